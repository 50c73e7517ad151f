// broker/core/worker_command.hpp -- defines what workers say, and what is said of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "broker/core/ids.hpp"
#include "broker/core/settings.hpp"
#include "shm/layout.hpp"

namespace dibs::core {

struct Announce {
    SessionId session = 0;
    PoolId pool = 0;
    uint64_t worker_tag = 0;     // the worker's own name for the slot; returned with assignments
    std::string_view name = {};  // empty = none; else unique in its pool
    std::span<const std::string_view> labels = {};
    std::string_view attributes = {};  // "key=value", each ended by a zero byte
    // What it has, where its pool's slots have resources; none: what it had, at first what the
    // pool says. `parts` of it may be there at a time; 0: it is leased as a whole.
    std::span<const Amount> resources = {};
    uint32_t parts = 0;
    bool is_protected = false;
    bool ready = false;
    uint32_t room = shm::kNoRow;  // where assignments go; opaque to the core
    uint64_t user_data = 0;
    shm::Reason refusal = shm::Reason::kOk;
    // Elastic pools. The order whose worker it is: its slot becomes this one, and its type this
    // worker's. An order that is not there (any more), or another pool's, is none. A worker without
    // one may say its type; one that its pool does not have is not found.
    SlotId order = {};
    std::string_view type = {};
};

// What a worker says of one of its slots.
struct WorkerWord {
    enum class Kind : uint8_t { kReady, kConfirm, kRefuse, kDone, kWithdraw, kProtect, kUnprotect };
    Kind kind = Kind::kReady;
    bool try_again = false;   // kRefuse: retriable
    bool then_ready = false;  // kDone
    SessionId session = 0;
    SlotId slot = 0;
    uint32_t round = 0;  // of the assignment that it speaks of
    int64_t code = 0;    // kRefuse
    uint64_t user_data = 0;
    std::span<const uint8_t> answer = {};  // kConfirm, kDone
};

// A session takes the role of provisioner of a type, or gives it up. Results: unknown_pool;
// not_found: no such type; name_in_use: another session has the role; not_holder: it gives up what
// it does not have.
struct Provide {
    SessionId session = 0;
    PoolId pool = 0;
    std::string_view type = {};
    uint32_t tag = 0;  // the provisioner's own number of the type; opaque to the core
    bool on = true;
    uint64_t user_data = 0;
};

// A provisioner answers: of an order that it was asked for (kCreate), or of a worker that it was
// told to stop (kStop). Results: not_found: no order's slot; not_holder: of a type that this
// session does not provide; state: of a worker that has come, at quota or capacity.
struct Provisioned {
    enum class Answer : uint8_t { kCreated, kStopped, kQuota, kCapacity, kOverload, kFailed };
    // Of kCapacity: what is at capacity, of the order's pool. The order's type is in any case, or
    // it would be ordered again at once.
    enum class Scope : uint8_t {
        kEverything,  // all its types
        kQuotaGroup,  // those of the named group; unnamed: of the group of the order's type
        kType,        // those of the same provider_type, and preemptible or not as the order's
    };
    SessionId session = 0;
    SlotId slot = {};
    Answer answer = Answer::kCreated;
    Scope scope = Scope::kType;
    std::string_view quota_group = {};
    uint64_t user_data = 0;
};

// A report on a worker from outside, with the time of its observation. `pool` is ordered by
// account; an unknown worker is made.
struct Report {
    enum class Kind : uint8_t { kIdle, kRunning, kAbsent };
    Kind kind = Kind::kIdle;
    PoolId pool = 0;
    std::string_view worker = {};
    ClaimNumber claim = {};  // 0 = one that never was. kRunning, kAbsent
    std::span<const std::string_view> labels = {};
    TimeNs event_ns = shm::kNever;  // kNever = the turn's time
    uint64_t user_data = 0;
};

// Workers ask for work: at the turn's end each gets its answer (kPulled).
struct Pull {
    struct Worker {
        std::string_view name;
        std::span<const std::string_view> labels = {};
    };
    PoolId pool = 0;
    std::span<const Worker> workers = {};
    TimeNs event_ns = shm::kNever;
    uint64_t user_data = 0;
};

struct Unassign {
    PoolId pool = 0;
    ClaimNumber claim = {};
    std::string_view worker = {};
    TimeNs event_ns = shm::kNever;
    std::string_view error = {};
    uint64_t user_data = 0;
};

}  // namespace dibs::core
