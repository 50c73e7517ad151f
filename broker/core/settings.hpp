// broker/core/settings.hpp -- defines the commands that configure pools and accounts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "broker/core/ids.hpp"
#include "shm/layout.hpp"

namespace dibs::core {

using TimeNs = uint64_t;

// The quantum of a counted pool whose owner says none.
constexpr TimeNs kQuantumNs = 1'000'000;

// So much of a resource, which the pool's owner has named.
struct Amount {
    std::string_view name;
    int64_t amount = 0;
};

inline bool is_resource_name(std::string_view name) {
    const auto is_letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-' || c == '.';
    };
    return !name.empty() && name.size() <= shm::kResourceNameMax &&
           std::all_of(name.begin(), name.end(), is_letter);
}

// A pool as it is configured. The same name again changes what may be changed live.
struct PoolConfig {
    std::string_view name;
    shm::PoolKind kind = shm::PoolKind::kCounted;
    shm::WhenBusy when_busy = shm::WhenBusy::kWait;
    uint32_t slots = 0;  // counted pools only
    uint32_t units_max = shm::kUnitsMax;
    uint32_t backlog_max = 8192;
    uint32_t unconfirmed_max = 128;
    uint32_t payload_max = shm::kPayloadMax;
    uint32_t answer_max = 0;
    uint32_t attributes_max = 0;
    TimeNs reservation_ttl_ns = 2'000'000'000;
    TimeNs retry_after_ns = 10'000'000;
    TimeNs interval_max_ns = 300'000'000'000;
    TimeNs grace_ns = 0;
    bool release_is_ready = false;
    bool is_transient = false;  // for clients that delete pools; the core does nothing with it
    shm::ExpiryMode expiry = shm::ExpiryMode::kCooperative;
    shm::PoolOrder order = shm::PoolOrder::kArrival;
    std::string_view required_label = {};
    // Counted pools: attributes of slot 0, 1, …, each "key=value" ended by a zero byte.
    std::span<const std::string_view> slot_attributes = {};
    // Pools ordered by account.
    bool preemption_disabled = false;
    int64_t promote_threshold = 600'000'000;  // micro-units
    int64_t demote_threshold = -600'000'000;
    TimeNs account_expiry_ns = 300'000'000'000;  // of reported workers; 0 = this
    TimeNs request_age_max_ns = 165'600'000'000'000;
    TimeNs queue_timeout_ns = 600'000'000'000;
    // How long a lease may be parked and taken again although others wait; 0: none is parked.
    // Microseconds count. Not in strict pools, nor in those ordered by account.
    TimeNs quantum_ns = 0;
    bool park = false;  // worker pools: a use needs no reset of the worker, so parking is allowed
    // Of each slot of a pool that is not ordered by account: claims may want a part of it.
    std::span<const Amount> vector = {};
    // Elastic pools: of workers, ordered by priority, whose workers a provisioner makes and stops
    // as claims need them. A time-out of kNever never comes.
    uint32_t workers_max = 0;     // 0: it is not elastic, and the rest means nothing
    uint32_t workers_min = 0;     // so many are there without claims, too
    uint32_t spare = 0;           // unallocated workers beyond what locked claims need
    uint32_t quota_estimate = 0;  // where the limit begins; 0 = at workers_max
    uint32_t creates_max = 1;     // orders without an answer at a time; 0 = any number
    TimeNs create_throttle_ns = 5'000'000'000;  // pause where that is met, or at an overload
    TimeNs quiet_ns = 60'000'000'000;           // from an overload until the limit grows again
    TimeNs quota_error_ns = 60'000'000'000;     // at quota for so long at most
    TimeNs capacity_error_ns = 60'000'000'000;  // at capacity for so long
    TimeNs idle_timeout_ns = 60'000'000'000;    // an idle worker that was made is stopped
    TimeNs boot_timeout_ns = 600'000'000'000;  // an order without a worker that is ready has failed
    // Types that cost more than so many thousandths of what the cheapest does are not made; 0: all.
    uint32_t price_factor_permille = 0;
    // Of an elastic pool: its claims are entries of a queue that somebody else keeps, its workers
    // run processes that somebody else starts, and both are known by reports alone.
    bool dispatch = false;
    uint32_t supervisor_permille = 500;  // of the limit: supervisors at most; 0 = any number
    uint32_t attempts_max = 10;          // locks of an entry; 0 = any number
    TimeNs stale_lock_timeout_ns = 60'000'000'000;  // unknown workers are waited for at the start
    TimeNs probe_timeout_ns = 600'000'000'000;      // a worker is stopped without a good one
    // Where their slots have resources: workers are ordered of the size that claims need, once none
    // has come for so long, and none smaller than that.
    TimeNs gather_ns = 50'000'000;
    std::span<const Amount> create_min = {};
    uint32_t gang_max = 64;  // placeholders of one application, at most kGangMax
};

// A type of workers of an elastic pool, made or changed. Names are of the pool and the type.
struct TypeConfig {
    std::string_view name;
    std::string_view pool;
    uint64_t cost = 1;                    // at least 1
    std::string_view provider_type = {};  // empty: the type is its own, where capacity is meant
    bool preemptible = false;
    std::string_view quota_group = {};  // empty: none
    // Pools ordered by account: what each worker of it will announce.
    std::span<const std::string_view> labels = {};
};

// While a worker or an order of it is there: state; it goes with the last one, and none is made. To
// be made again it has to be set.
struct DeleteType {
    std::string_view name;
    std::string_view pool;
};

// Money in micro-units: one slot costs one per microsecond. Missing entries are 0.
struct AccountConfig {
    struct Limit {
        std::string_view key;
        uint32_t limit = 0;
    };
    std::string_view name;
    std::span<const int64_t> rate = {};  // per second and class
    TimeNs charge_max_ns = 0;
    uint32_t fanout_max = 0;  // 0 = none
    std::span<const Limit> label_limits = {};
    bool free_tasks_disabled = false;
    std::span<const int64_t> balance = {};
    bool keep_balance = false;  // of an account that is configured already
    // A mark for the code that configures; the core decides nothing by it.
    bool of_file = false;
};

struct DeletePool {
    PoolId pool = 0;
    bool when_unused = false;
};

struct DeleteAccount {
    std::string_view account;
};

struct ResetBalance {
    std::string_view account;
    std::span<const int64_t> balance = {};
};

}  // namespace dibs::core
