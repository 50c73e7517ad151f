// broker/admission/policy.hpp -- says which limits and rights the configuration gives each user.
//
//   admin_group = "dibs-admin"
//
//   [[policy]]
//   user = "alice"                # a name, or a number
//   pools = ["gpu"]; offers = []; account = "research"; priority_max = 10
//   sessions = 16; leases = 64; backlog = 256; memory = "16MiB"; handshakes = 50
//   slots = 8; label_sets = 16; arena = "1MiB"
//
//   [[policy]]
//   group = "render"; …           # any group of the peer, supplementary ones included
//
//   [[policy]]
//   default = true; …             # all other users
//
// One table applies to a peer, the first of these: that of its user; the first in the file whose
// group is one of its groups; the default; the built-in one. A key that a table does not set has
// its value in the built-in one. Every number is per uid: it counts what all sessions of that uid
// have together, also when their groups lead them to different tables. Numbers of sessions, memory
// and handshakes apply where a session begins (broker/admission), those of rows, pools and priority
// where an entry is read (broker/admission/quotas). A changed policy ends nothing that
// exists.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/admission/peer.hpp"

namespace dibs {

inline constexpr uint32_t kNoLimit = std::numeric_limits<uint32_t>::max();
inline constexpr uint64_t kNoSize = std::numeric_limits<uint64_t>::max();

// What one peer may do.
struct Allowance {
    std::string account = {};                            // empty: one of its uid's own, "uid:<n>"
    std::optional<std::vector<std::string>> pools = {};  // to claim from; nothing: all
    // To announce slots in. Nothing: as pools where one user has the socket; where several do, only
    // administrators, since a worker reads what claims bring and forges their answers.
    std::optional<std::vector<std::string>> offers = {};
    std::optional<std::vector<std::string>> provisions =
        {};  // to make workers of; nothing: as offers
    int32_t priority_max = std::numeric_limits<int32_t>::max();
    uint32_t sessions = kNoLimit;
    uint32_t leases = kNoLimit;   // leases, and claims that may become one
    uint32_t backlog = kNoLimit;  // claims that have not ended
    uint32_t slots = kNoLimit;    // that its sessions have announced
    // A claim or slot with labels that no other has is refused while the claims, leases and slots,
    // each of which may have a label set, are as many.
    uint32_t label_sets = kNoLimit;
    uint64_t arena = kNoSize;      // bytes of payloads and attributes, in whole blocks
    uint64_t memory = 256U << 20;  // bytes of rings and payload areas
    uint32_t handshakes = 1000;    // connections a second

    [[nodiscard]] bool may_claim(std::string_view pool) const;
    [[nodiscard]] bool may_offer(std::string_view pool, bool unnamed) const;
    [[nodiscard]] bool may_provision(std::string_view pool, bool unnamed) const;
};

struct Policy {
    std::map<uint32_t, Allowance> users;
    std::vector<std::pair<uint32_t, Allowance>> groups;  // in the order of the file
    Allowance others;
    std::optional<uint32_t> admin_group;

    [[nodiscard]] const Allowance& of(const Credentials& peer) const;
    // The account that its claims are charged to.
    [[nodiscard]] std::string account_of(const Credentials& peer) const;
    // Pools that a rule names, each once, by name.
    [[nodiscard]] std::set<std::string> named_pools() const;
    // Those of them that a rule names in its offers.
    [[nodiscard]] std::set<std::string> offered_pools() const;
    // Root, the broker's own uid and the admin group.
    [[nodiscard]] bool is_admin(const Credentials& peer) const;
};

// The number of a name, or of digits; nothing if there is no such user or group.
std::optional<uint32_t> user_id(const std::string& name);
std::optional<uint32_t> group_id(const std::string& name);

}  // namespace dibs
