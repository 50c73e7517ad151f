// broker/ctl/admin/name.hpp -- the names that people give pools, slots, claims, leases and clients.
// A pool has its name, a slot is POOL/NUMBER, a claim c12, a lease l12, a client sROW.LIFE; claims,
// leases and slots are also named by their ids, c0x100000000, l0x100000000, s0x100000000. Each of
// these behind POOL/, split at the first slash, is looked for in that pool alone: what another pool
// has is not found.
//
// A claim's number is its place in the order of arrival, and is never used again; the lease that it
// is granted has the same number: so one number follows a request from the backlog to its end. But
// the ids of claims, of leases and of slots all count from the same number on. So a number or id
// without its letter names nothing, and one of another kind than is asked for is refused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "broker/ctl/admin/admin_client.hpp"

namespace dibs::ctl {

struct Name {
    enum class Kind : uint8_t { kPool, kSlot, kSlotId, kClaim, kLease, kClient };
    Kind kind = Kind::kPool;
    std::string pool;     // kPool, kSlot; kClient: the text; else where to look, or empty
    uint64_t number = 0;  // all but kPool and kClient
    bool by_id = false;   // kClaim, kLease: it is an id
};

// Failure (usage) of an empty one, which a script's empty variable makes: it is not "all of them".
void check_named(const std::string& text);

// Failure (usage): it can be none of them, or several.
Name parse_name(const std::string& text);
// The same where a claim or lease is wanted; `word`: the subcommand.
Name parse_claim(const std::string& text, const std::string& word);
Name parse_lease(const std::string& text, const std::string& word);

// A claim, lease or slot by number or id, as it is written.
std::string shown(const Name& name);

// The claim or lease of that name; Failure (not found).
std::unique_ptr<admin::ClaimT> find_claim(AdminClient& client, const Name& name);
std::unique_ptr<admin::LeaseT> find_lease(AdminClient& client, const Name& name);
// One that has ended lately, and is the asker's to see; null: none.
std::unique_ptr<admin::LeaseT> find_ended(AdminClient& client, const Name& name);

}  // namespace dibs::ctl
