// tests/naive/gang_wording.cpp -- the one-line texts of what is said of applications and tasks.
// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <string>

#include "tests/naive/wording.hpp"

namespace dibs::naive {

namespace {

constexpr const char* kEvents[] = {"adopt",
                                   "complete",
                                   "fail",
                                   "kill",
                                   "remove",
                                   "recovered",
                                   "add-task",
                                   "remove-task",
                                   "complete-task"};

std::string task_words(const GangSpec& spec) {
    std::string words = spec.task.empty() ? "" : " task:" + spec.task;
    if (!spec.group.empty()) words += " group:" + spec.group;
    if (spec.priority != 1) words += " priority:" + std::to_string(spec.priority);
    return words + (spec.assigned ? " assigned" : "");
}

}  // namespace

std::string gang_words(const Step& step) {
    const GangSpec& spec = step.gang;
    std::string words = "of:" + spec.application;
    if (step.session == kNoLabel) words += " uid=" + std::to_string(spec.uid);
    if (step.kind == StepKind::kApplicationEvent)
        words = kEvents[static_cast<size_t>(spec.kind)] + (" " + words);
    if (step.kind != StepKind::kApplication) return words + task_words(spec);
    for (const GroupOfGang& group : spec.groups) {
        words += " " + group.name + "*" + std::to_string(group.members);
        for (const core::Amount& amount : group.resource)
            words += "," + std::string(amount.name) + "=" + std::to_string(amount.amount);
    }
    if (spec.priority != 1) words += " priority:" + std::to_string(spec.priority);
    if (spec.style == shm::GangStyle::kHard) words += " hard";
    if (spec.placeholder_timeout_ns != 0)
        words += " timeout=" + std::to_string(spec.placeholder_timeout_ns);
    words += " manager-timeout=" + std::to_string(spec.manager_timeout_ns);
    if (!spec.parameters.empty()) words += " '" + spec.parameters + "'";
    if (spec.tags_size != 0) words += " tags=" + std::to_string(spec.tags_size);
    return words + (spec.recover ? " recover" : "");
}

}  // namespace dibs::naive
