// tests/naive/gang_player.cpp -- plays the steps about applications, and words what is decided.
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <type_traits>
#include <vector>

#include "broker/core/core.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/player.hpp"

namespace dibs::naive {

namespace {

core::AddApplication addition(const Step& step) {
    core::AddApplication command;
    command.uid = step.gang.uid;
    command.application = step.gang.application;
    command.priority = step.gang.priority;
    command.placeholder_timeout_ns = step.gang.placeholder_timeout_ns;
    command.manager_timeout_ns = step.gang.manager_timeout_ns;
    command.style = step.gang.style;
    command.parameters = step.gang.parameters;
    command.recover = step.gang.recover;
    command.user_data = step.label;
    return command;
}

core::ApplicationEvent event(const Step& step) {
    core::ApplicationEvent command;
    command.kind = step.gang.kind;
    command.uid = step.gang.uid;
    command.application = step.gang.application;
    command.task = step.gang.task;
    command.group = step.gang.group;
    command.priority = step.gang.priority;
    command.assigned = step.gang.assigned;
    command.user_data = step.label;
    return command;
}

}  // namespace

template <class CoreType>
void Player<CoreType>::gang(const Step& step) {
    uint64_t value = 0;
    shm::Reason reason = shm::Reason::kOk;
    if (step.kind == StepKind::kApplication) {
        core::AddApplication command = addition(step);
        std::vector<core::GroupSpec> groups;
        for (const GroupOfGang& group : step.gang.groups)
            groups.push_back({group.name, group.members, group.resource});
        const std::string tags(step.gang.tags_size, 't');
        command.session = session_row(step.session);
        command.pool = pool_row(step.pool);
        command.groups = groups;
        command.tags = tags;
        reason = core_.apply(command, &value);
    } else {
        core::ApplicationEvent command = event(step);
        command.session = session_row(step.session);
        reason = core_.apply(command, &value);
    }
    listen();
    if (step.session != kNoLabel) return;
    DecisionLine line;
    line.reason = reason;
    line.value = value;
    line.user_data = step.label;
    lines_.push_back(line);
}

// Applications, groups and tasks take numbers of the claims', too.
template <class CoreType>
uint64_t Player<CoreType>::next_number() const {
    if constexpr (std::is_same_v<CoreType, NaiveCore>) {
        return core_.model().claims_seen + 1;
    } else {
        return core_.counters().arrival_next;
    }
}

template <class CoreType>
void Player<CoreType>::word_gang(const core::Decision& decision, DecisionLine& line) const {
    line.session = session_label(decision.session);
    line.entry = decision.entry;
    line.user_data = decision.id;
    line.from_class = decision.from_class;
    line.to_class = decision.to_class;
    if (decision.kind != core::DecisionKind::kPlaceholder) return;
    line.pool = pool_label(decision.pool);
    line.slot = decision.slot_number;
    line.value = decision.value;
}

template void Player<NaiveCore>::gang(const Step&);
template void Player<core::Core>::gang(const Step&);
template uint64_t Player<NaiveCore>::next_number() const;
template uint64_t Player<core::Core>::next_number() const;
template void Player<NaiveCore>::word_gang(const core::Decision&, DecisionLine&) const;
template void Player<core::Core>::word_gang(const core::Decision&, DecisionLine&) const;

}  // namespace dibs::naive
