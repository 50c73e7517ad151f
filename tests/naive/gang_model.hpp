// tests/naive/gang_model.hpp -- what the naive core remembers of applications, gangs and tasks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/core/command.hpp"

namespace dibs::naive {

using core::TimeNs;
using Vector = std::vector<uint64_t>;  // by its pool's order of resources

struct PlaceholderName {
    uint64_t application = 0;  // its number
    size_t group = 0;
    uint32_t index = 0;
    bool operator==(const PlaceholderName&) const = default;
};

struct Placeholder {
    uint64_t slot = 0;         // its id
    uint64_t replaced_by = 0;  // the number of a member's claim, whose worker is asked
    bool is_away = false;      // that has not got it, and the slot is not idle yet
};

struct Group {
    std::string name;
    uint64_t number = 0;  // of its asks
    uint32_t members = 0;
    Vector resource;  // of each; empty: a whole slot
    std::map<uint32_t, Placeholder> placeholders;
};

struct Task {
    std::string name;
    uint64_t number = 0;
    std::optional<size_t> group;
    int32_t priority = 1;
    shm::TaskState state = shm::TaskState::kNew;  // or bound, or how it ended
    uint64_t claim = 0;
    uint64_t lease = 0;

    [[nodiscard]] bool has_ended() const {
        return state != shm::TaskState::kNew && state != shm::TaskState::kBound;
    }
};

struct Application {
    uint64_t number = 0;
    uint32_t uid = 0;
    std::string name;
    uint32_t pool = 0;
    uint32_t tags_blocks = 0;
    int32_t priority = 1;
    shm::AppState state = shm::AppState::kNew;
    shm::GangStyle style = shm::GangStyle::kSoft;
    shm::Reason reason = shm::Reason::kOk;  // why it has failed
    uint32_t manager = shm::kNoRow;         // a session
    bool is_unmanaged = false;              // an administrator's: it needs no manager
    TimeNs placeholder_timeout_ns = 0;
    TimeNs manager_timeout_ns = 0;
    TimeNs placeholder_until_ns = shm::kNever;
    TimeNs manager_until_ns = shm::kNever;
    bool is_stripped = false;  // as it ends: its claims have ended
    TimeNs ended = 0;          // when it ended
    std::vector<Group> groups;
    std::map<uint64_t, Task> tasks;  // by number

    [[nodiscard]] uint64_t placeholders() const {
        uint64_t count = 0;
        for (const Group& group : groups)
            count += group.placeholders.size();
        return count;
    }
    [[nodiscard]] bool is_whole() const {
        uint64_t missing = 0;
        for (const Group& group : groups)
            missing += group.members - std::min<uint64_t>(group.members, group.placeholders.size());
        return missing == 0;
    }
    [[nodiscard]] bool has_ended_or_is_ending() const {
        switch (state) {
            case shm::AppState::kCompleted:
            case shm::AppState::kFailing:
            case shm::AppState::kFailed:
            case shm::AppState::kKilling:
            case shm::AppState::kKilled:
            case shm::AppState::kRejected:
            case shm::AppState::kGoing:
                return true;
            default:
                return false;
        }
    }
    [[nodiscard]] bool has_ended() const { return ended != 0; }
    [[nodiscard]] const Task* task_named(std::string_view task) const {
        for (const auto& [key, known] : tasks)
            if (known.name == task) return &known;
        return nullptr;
    }
    [[nodiscard]] std::optional<size_t> group_named(std::string_view group) const {
        for (size_t at = 0; at < groups.size(); ++at)
            if (groups[at].name == group) return at;
        return std::nullopt;
    }
};

}  // namespace dibs::naive
