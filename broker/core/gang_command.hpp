// broker/core/gang_command.hpp -- defines what is said of applications, their groups and tasks.
//
// An application is named by a user and a name. Names have 1 to 63 bytes; an empty one is refused,
// it never means all. docs/scheduling.md, "Applications and gangs", says what each does when.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

#include "broker/core/ids.hpp"
#include "broker/core/settings.hpp"
#include "shm/layout.hpp"

namespace dibs::core {

// Members at least, each of which wants so much of one slot; no resource: a whole one.
struct GroupSpec {
    std::string_view name;
    uint32_t members = 1;
    std::span<const Amount> resource = {};
};

// Results: ok; duplicate: it is there, unchanged (id = its number); app_ended: its id is dead until
// it is removed; malformed: a name; tables_full; unknown_pool. One that its pool can never serve
// is made, and has failed.
struct AddApplication {
    static constexpr TimeNs kTimeOutNs = 900'000'000'000;
    SessionId session = {};  // its manager; none: an administrator's, which needs no manager
    uint32_t uid = 0;        // without a session: whose it is
    std::string_view application;
    PoolId pool = {};
    int32_t priority = 1;
    std::span<const GroupSpec> groups = {};
    TimeNs placeholder_timeout_ns = 0;  // 0 = kTimeOutNs; kNever = none
    shm::GangStyle style = shm::GangStyle::kSoft;
    // "placeholderTimeoutInSeconds=30 gangSchedulingStyle=Hard": what it names counts (S4.14).
    std::string_view parameters = {};
    std::string_view tags = {};       // at most kMetaMax bytes; opaque to the core
    TimeNs created_ns = shm::kNever;  // kNever = the turn's time
    TimeNs manager_timeout_ns = 300'000'000'000;
    bool recover = false;  // after a cold start: not decided on before kRecovered
    uint64_t user_data = 0;
};

// What happens to an application or to one of its tasks. `session`: who says it; none: an
// administrator, `uid` then says whose application it is.
struct ApplicationEvent {
    enum class Kind : uint8_t {
        kAdopt,         // the session becomes its manager
        kComplete,      // of a running one
        kFail,          // with `reason`
        kKill,          // it fails, and its leases end
        kRemove,        // forget one whose tasks have all ended
        kRecovered,     // its manager has listed what exists: go on
        kAddTask,       // ok; duplicate: it is there, unchanged
        kRemoveTask,    // one that has ended; already_ended: there is none
        kCompleteTask,  // its claim ends, or its lease
    };
    Kind kind = Kind::kAdopt;
    SessionId session = {};
    uint32_t uid = 0;
    std::string_view application;
    std::string_view task = {};
    std::string_view group = {};  // kAddTask
    int32_t priority = 1;         // kAddTask
    bool assigned = false;  // kAddTask of a recovering one: it runs already, outside any lease
    uint64_t user_data = 0;
};

template <class Command>
concept GangCommand =
    std::same_as<Command, AddApplication> || std::same_as<Command, ApplicationEvent>;

// Of a claim: it is this task's of this application of its session's user, which is added if it is
// new, in this group (empty: in none).
struct MemberOf {
    std::string_view application;
    std::string_view task;
    std::string_view group = {};
    int32_t priority = 1;
};

}  // namespace dibs::core
