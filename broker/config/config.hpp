// broker/config/config.hpp -- dibsd's configuration file, and its copy for the next broker.
//
//   socket = "/run/dibs/dibs.sock"      # else $DIBS_SOCKET, $XDG_RUNTIME_DIR/dibs/, /run/dibs/
//   socket_mode = "0600"                # who may connect: a file's permission bits
//   log_level = "info"                  # trace, debug, info, warning, error, off
//   drain_timeout = "30s"               # how long an orderly stop waits for leases
//   ended_leases_for = "10min"          # how long dibs inspect knows them, 1,024 at most; 0 = not
//   peer_pidfd = true                   # false: the path for kernels before 6.5
//   state_dir = "/var/lib/dibs"         # else $DIBS_STATE_DIR; where a failed STATE is put
//   spin = "25us"                       # of the idle broker, while a client is elsewhere
//   throttle = "500us"                  # of a session whose entries are refused
//   hardening = "on"                    # strict: what it may not do kills it; off
//   admin_group = "wheel"               # who may administer, beside root and the broker's own uid
//
//   [limits]                            # rows to preallocate
//   pools = 64; sessions = 1024; slots = 4096; claims = 65536; leases = 16384; arena = "4MiB"
//   accounts = 1024; label_sets = 512; entries = 512; log_images = 6144; log_stores = 1024
//   applications = 1024; groups = 2048; tasks = 8192
//
//   [[pool]]
//   name = "gpu"; kind = "counted"; slots = 2
//   attributes = [{ device = "0" }, { device = "1" }]    # of slot 0, 1, …
//
//   [[pool]]
//   name = "big"; kind = "counted"; slots = 2            # claims may want a part of a slot
//   resources = { memory = "80GiB", sm = 100 }
//
//   [[pool]]
//   name = "web"; kind = "worker"; expiry = "lazy"; reservation_ttl = "2s"; payload_max = "1KiB"
//
//   [[pool]]                            # elastic: a provisioner makes and stops its workers
//   name = "py"; kind = "worker"; workers_max = 8; spare = 1; idle_timeout = "60s"
//
//   [[pool]]                            # its claims and workers are known by reports alone
//   name = "far"; kind = "worker"; workers_max = 8; dispatch = true; supervisors = 0.5
//
//   [[type]]                            # without one: a type of the pool's name
//   name = "small"; pool = "py"; cost = 10
//
//   [[set]]                             # a claim of it is served by one of these, in this order
//   name = "any"; pools = ["gpu", "big"]
//
//   [[account]]                         # who pays in pools with order = "account"
//   name = "research"; rate = [3]; charge_max = "100s"; balance = [60]; label_limits = { gpu = 2 }
//
//   [account_default]                   # for each uid that has none of its own
//   rate = 1; fanout_max = 2            # the keys of an account but its name
//
//   [[policy]]                          # who may do how much: broker/admission/policy.hpp
//   user = "alice"; pools = ["gpu"]; sessions = 16
//
// Durations are text with units (ns, us, ms, s, min, h), sizes are bytes or text (B, KiB, MiB).
// Reading continues after a mistake: each one is a line "FILE:LINE:COLUMN: what is wrong".
//
// The text of the last good configuration goes with STATE to the next broker: if the file is broken
// by then, users keep the rights and limits that they had.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/admission/policy.hpp"
#include "broker/config/account_settings.hpp"
#include "broker/core/command.hpp"
#include "broker/core/core.hpp"
#include "broker/sandbox/hardening.hpp"
#include "shm/descriptor.hpp"
#include "shm/target.hpp"

namespace dibs {

// What a lease lets happen when a better claim wants its slot, if its claim did not say.
struct PoolPreempt {
    shm::PreemptMode mode = shm::PreemptMode::kForbidden;
    uint64_t grace_ns = 0;
};

// A pool as written, owning its text; core::PoolConfig is a view of it.
struct PoolSettings {
    std::string name;
    PoolPreempt preempt;
    bool equal_share = false;  // each uid gets as much of all such (uid_accounts)
    std::string required_label;
    std::vector<std::string> slot_attributes;  // "key=value", each ended by a zero byte
    std::vector<std::string_view> slot_attribute_views;
    std::vector<std::pair<std::string, int64_t>> resources;  // of each slot
    std::vector<core::Amount> resource_views;
    std::vector<std::pair<std::string, int64_t>> create_min;
    std::vector<core::Amount> create_min_views;
    core::PoolConfig values;  // everything but the views

    [[nodiscard]] core::PoolConfig view();
};

// Pools that are named together.
struct SetSettings {
    std::string name;
    std::vector<std::string> pools;  // in the order in which a claim asks them
    shm::SetRank rank = shm::SetRank::kOrder;
    // By load.
    std::vector<core::RouteMember> members = {};  // as `pools`, whose rows are to be found
    uint32_t group_cap = shm::kNoRow;
    core::TimeNs cool_down_ns = core::Route::kCoolDownNs;
};

// A type of workers of an elastic pool.
struct TypeSettings {
    std::string name;
    std::string pool;
    uint32_t cost = 1;  // the cheapest is made first
    bool preemptible = false;
    std::string provider_type;        // empty: one of its own
    std::string quota_group;          // empty: none
    std::vector<std::string> labels;  // of its workers, in a pool ordered by account
};

struct Config {
    std::string file;                 // empty: none, all defaults
    std::optional<std::string> text;  // of the file; none: it could not be read
    std::string socket;               // empty: see default_socket()
    std::string state_dir;            // empty: see default_state_dir()
    uint32_t socket_mode = 0600;
    std::string log_level = "info";
    std::string cluster = shm::kOwnCluster;
    core::TimeNs drain_timeout_ns = 30'000'000'000;
    core::TimeNs ended_leases_for_ns = 600'000'000'000;
    core::TimeNs created_pool_idle_ns = 60'000'000'000;
    core::TimeNs manager_timeout_ns = 300'000'000'000;  // of applications without a manager
    bool peer_pidfd = true;
    core::TimeNs spin_ns = 25'000;
    core::TimeNs throttle_ns = 500'000;
    core::Limits limits;
    std::vector<PoolSettings> pools;
    std::vector<SetSettings> sets;
    std::vector<TypeSettings> types;  // each elastic pool has one at least
    std::vector<AccountSettings> accounts;
    std::vector<std::string> struck;  // pools that an earlier file named and this one does not
    std::optional<AccountSettings> account_default;  // for a uid that the file names no account of
    std::shared_ptr<const Policy> policy = std::make_shared<const Policy>();
    HardeningMode hardening = HardeningMode::kOn;
    bool multi_user = false;  // of the command line: its own uid gets no session
};

struct ConfigResult {
    Config config;
    std::vector<std::string> mistakes;  // none: the configuration is good
};

// Pools that a broker has beside those of its file: which of them sets may name, and which names
// are taken.
struct PoolsThere {
    std::set<std::string> created;
    std::set<std::string> all;
    bool unknown = false;  // no STATE has been read: a set may name what is not known
};

// `name` is what mistakes call the text.
ConfigResult parse_config(std::string_view text,
                          const std::string& name,
                          const PoolsThere& there = {});
ConfigResult read_config(const std::string& path, const PoolsThere& there = {});

// Pools of strict expiry, whose holders a broker without CAP_KILL refuses if they are another
// user's: a line each.
std::vector<std::string> pools_that_kill(const Config& config);

// What is no mistake and may be one: a line each.
std::vector<std::string> doubts_about(const Config& config);

// $DIBS_STATE_DIR, else /var/lib/dibs.
std::string default_state_dir();

// What cannot change while sessions are attached; one sentence per such difference.
std::vector<std::string> fixed_differences(const Config& before, const Config& after);

// A sealed memfd. Throws std::system_error.
shm::Descriptor copy_config(std::string_view text);
// What is in one. Throws std::system_error.
std::string text_of_copy(int memfd);
// The meaning that `file` had then; parts that cannot be understood now (a deleted user, say) are
// left out, and logged. Without a copy all is as built in.
Config config_as_read_before(const std::string& file, const shm::Descriptor& copy);

}  // namespace dibs
