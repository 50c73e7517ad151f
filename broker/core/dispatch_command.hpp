// broker/core/dispatch_command.hpp -- defines what is reported of dispatched pools: of the entries
// of a queue that somebody else keeps, of workers, and of processes that run there.
//
// An administrator says all of it. A refusal has a result, with the session kNoRow: unknown_pool;
// state: the pool is not dispatched, or as the command says; malformed: a name that is none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

#include "broker/core/ids.hpp"
#include "broker/core/settings.hpp"
#include "broker/core/worker_command.hpp"
#include "shm/layout.hpp"

namespace dibs::core {

enum class QueueState : uint8_t { kQueued, kLocked, kRunning, kComplete, kCancelled };
enum class QueueWord : uint8_t { kLock, kUnlock, kCancel, kForget };

// An entry as its queue has it. What is not given stays as it is; a new one is queued with priority
// 1, is no supervisor, and any type suits it. tables_full: no row is left.
struct EntryReport {
    PoolId pool = 0;
    std::string_view claim = {};  // the entry's name
    bool state_given = false;
    QueueState state = QueueState::kQueued;
    bool priority_given = false;
    int32_t priority = 0;
    bool supervisor_given = false;
    bool supervisor = false;
    bool types_given = false;
    std::span<const std::string_view> types = {};  // none: any
    TimeNs event_ns = shm::kNever;  // when the reading began; kNever = the turn's time
    uint64_t user_data = 0;
};

// The queue was read: entries that it did not name are not in it any more.
struct QueueRead {
    PoolId pool = 0;
    TimeNs started_ns = 0;
    std::span<const std::string_view> claims = {};
    bool failed = false;
    uint64_t user_data = 0;
};

// What somebody asks of an entry; it is so at once. not_found; state; busy: an operation on it is
// under way.
struct QueueOperation {
    PoolId pool = 0;
    std::string_view claim = {};
    QueueWord word = QueueWord::kLock;
    uint64_t user_data = 0;
};

// A lock, an unlock or a kill that the scheduler has asked for has ended. not_found: no such entry,
// or nothing is under way.
struct OperationDone {
    PoolId pool = 0;
    std::string_view claim = {};
    bool ok = true;
    std::string_view error = {};  // for readers of a recording; nothing is decided by it
    uint64_t user_data = 0;
};

// A worker as it is seen from outside; a new name takes the oldest order of its type that is open.
// not_found: no such type, or an absent worker that is not known; tables_full.
struct WorkerReport {
    enum class State : uint8_t { kUnknown, kBooting, kIdle, kRunning, kShutdown, kAbsent };
    PoolId pool = 0;
    std::string_view worker = {};
    std::string_view type = {};  // empty: as it was
    State state = State::kUnknown;
    TimeNs event_ns = shm::kNever;
    uint64_t user_data = 0;
};

// A process of an entry is alive on a worker, or has exited. not_found: no such worker.
struct ProcessReport {
    PoolId pool = 0;
    std::string_view worker = {};
    std::string_view claim = {};
    TimeNs exited_ns = shm::kNever;  // kNever: alive
    uint64_t user_data = 0;
};

// A look at a worker. not_found.
struct Probe {
    PoolId pool = 0;
    std::string_view worker = {};
    bool ok = false;
    TimeNs started_ns = 0;
    uint64_t user_data = 0;
};

// Of a slot of an elastic pool, by its number. Held: it takes nothing new and is never stopped;
// drained: it takes nothing new and is stopped. not_found; state: the pool is not elastic, or the
// worker has been told to stop.
struct SetBehaviour {
    PoolId pool = 0;
    uint32_t number = 0;
    shm::Behaviour behaviour = shm::Behaviour::kRun;
    uint64_t user_data = 0;
};

// Of elastic pools, dispatched or not.
template <class Command>
concept ElasticCommand = std::same_as<Command, Provide> || std::same_as<Command, Provisioned> ||
    std::same_as<Command, EntryReport> || std::same_as<Command, QueueRead> ||
    std::same_as<Command, QueueOperation> || std::same_as<Command, OperationDone> ||
    std::same_as<Command, WorkerReport> || std::same_as<Command, ProcessReport> ||
    std::same_as<Command, Probe> || std::same_as<Command, SetBehaviour>;

}  // namespace dibs::core
