// tests/naive/journal_of_gangs.cpp -- applications with small gangs, their tasks, and what befalls
// both: added twice, failed, killed, adopted, completed too early.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "tests/naive/journal_writer.hpp"

namespace dibs::naive {

using Event = core::ApplicationEvent::Kind;

// Of each resource of the pool's slots up to so much; none where they have none.
std::vector<core::Amount> Writer::share_of(uint32_t pool, uint64_t percent) {
    std::vector<core::Amount> share;
    if (!player_->knows_pool(pool)) return share;
    for (const auto& [name, amount] : model().pools[player_->pool_row(pool)].vector) {
        const uint64_t most = std::max<uint64_t>(1, amount * percent / 100);
        const char* known = name == "cpu" ? "cpu" : name == "mem" ? "mem" : "disk";
        share.push_back({known, static_cast<int64_t>(dice_.between(1, most))});
    }
    return share;
}

const Application* Writer::any_application() {
    const auto& apps = model().applications;
    return apps.empty() ? nullptr : &dice_.any(apps).second;
}

// One of this user's, if there is one.
uint32_t Writer::session_of(uint32_t uid) {
    std::vector<uint32_t> labels;
    for (const auto& [label, row] : player_->sessions())
        if (model().sessions.at(row).uid == uid) labels.push_back(label);
    return labels.empty() ? any_session() : dice_.any(labels);
}

void Writer::add_application() {
    Step step;
    step.kind = StepKind::kApplication;
    step.session = dice_.percent(85) ? any_session() : kNoLabel;
    step.pool = dice_.percent(99) ? any_pool(false) : kNoLabel;
    GangSpec& gang = step.gang;
    gang.uid = 1000 + static_cast<uint32_t>(dice_.below(2));
    gang.application = "a" + std::to_string(dice_.below(4));
    if (dice_.percent(1)) gang.application = dice_.percent(50) ? "" : std::string(64, 'a');
    if (character_.priorities) gang.priority = any_priority();
    const uint64_t groups = dice_.one_of<uint64_t>({0, 1, 1, 1, 2, 2, 3});
    for (uint64_t at = 0; at < groups; ++at) {
        GroupOfGang group;
        group.name = std::string(1, static_cast<char>('u' + at));
        group.members = dice_.one_of<uint32_t>({1, 1, 2, 2, 3, 4});
        if (step.pool != kNoLabel && dice_.percent(80)) group.resource = share_of(step.pool, 60);
        if (dice_.percent(2)) group.members = dice_.one_of<uint32_t>({0, 9, 300});
        if (dice_.percent(1)) group.name = dice_.percent(50) ? "" : "u";
        if (dice_.percent(1)) group.resource.push_back({"gpu", 1});
        if (dice_.percent(1)) group.resource.push_back({"cpu", dice_.one_of<int64_t>({-1, 0, 99})});
        gang.groups.push_back(group);
    }
    gang.placeholder_timeout_ns = dice_.one_of<uint64_t>({0, 2, 6, 20, 20, 60, shm::kNever});
    gang.manager_timeout_ns = dice_.one_of<uint64_t>({0, 4, 15, 60, shm::kNever});
    gang.style = dice_.percent(35) ? shm::GangStyle::kHard : shm::GangStyle::kSoft;
    if (dice_.percent(8)) {
        const char* text = dice_.one_of({"placeholderTimeoutInSeconds=1",
                                         "placeholderTimeoutInSeconds=-5",
                                         "gangSchedulingStyle=Hard",
                                         "a=b=c gangSchedulingStyle=Hard gangSchedulingStyle=Soft",
                                         "gangSchedulingStyle=unheard-of word"});
        gang.parameters = text;
    }
    if (dice_.percent(10)) gang.tags_size = dice_.one_of<uint32_t>({1, 255, 255, 256});
    gang.recover = dice_.percent(8);
    put(step);
}

void Writer::application_event() {
    const Application* app = any_application();
    if (app == nullptr && dice_.percent(90)) return;
    Step step;
    step.kind = StepKind::kApplicationEvent;
    GangSpec& gang = step.gang;
    gang.uid = app == nullptr ? 1000 : app->uid;
    gang.application = app == nullptr || dice_.percent(2) ? "unheard-of" : app->name;
    step.session = dice_.percent(85) ? session_of(gang.uid) : kNoLabel;
    const bool has_ended = app != nullptr && app->has_ended_or_is_ending();
    const bool is_alone = app != nullptr && app->manager == shm::kNoRow;
    const bool recovers = app != nullptr && app->state == shm::AppState::kRecovering;
    gang.kind = static_cast<Event>(dice_.weighed({is_alone ? uint64_t{20} : uint64_t{3},
                                                  4,
                                                  3,
                                                  3,
                                                  has_ended ? uint64_t{25} : uint64_t{2},
                                                  recovers ? uint64_t{20} : uint64_t{1},
                                                  14,
                                                  12,
                                                  10}));
    if (gang.kind == Event::kAdopt && step.session == kNoLabel) step.session = any_session();
    gang.task = "t" + std::to_string(dice_.below(12));
    const bool is_of_known = gang.kind == Event::kRemoveTask || gang.kind == Event::kCompleteTask;
    if (is_of_known && app != nullptr && !app->tasks.empty() && dice_.percent(90))
        gang.task = dice_.any(app->tasks).second.name;
    if (dice_.percent(1)) gang.task = "";
    if (app != nullptr && !app->groups.empty() && dice_.percent(70))
        gang.group = dice_.any(app->groups).name;
    if (dice_.percent(2)) gang.group = "unheard-of";
    gang.priority = dice_.one_of({1, 1, 2, 3});
    gang.assigned = dice_.percent(20);
    put(step);
}

// Mostly of an application of the session's user, in its pool, and as large as its group's members.
void Writer::be_member(Step& step) {
    const uint32_t uid = model().sessions.at(player_->sessions().at(step.session)).uid;
    std::vector<const Application*> apps;
    for (const auto& [number, app] : model().applications)
        if (app.uid == uid && !app.has_ended_or_is_ending()) apps.push_back(&app);
    GangSpec& gang = step.gang;
    gang.is_member = true;
    gang.application = "a" + std::to_string(dice_.below(4));
    gang.task = "t" + std::to_string(dice_.below(12));
    gang.priority = dice_.one_of({1, 1, 2, 3});
    if (dice_.percent(1)) gang.task = "";
    if (apps.empty()) return;
    const Application& app = *dice_.any(apps);
    gang.application = app.name;
    const uint32_t pool = label_of_pool(app.pool);
    if (pool == kNoLabel) return;
    if (dice_.percent(96)) step.pool = pool;
    if (dice_.percent(95)) step.route = {};
    if (dice_.percent(90)) step.claim.units = 1;
    step.claim.offer = 0;
    step.most.clear();
    step.least = dice_.percent(85) ? share_of(step.pool, 70) : std::vector<core::Amount>{};
    if (app.groups.empty() || dice_.percent(12)) return;
    const Group& group = dice_.any(app.groups);
    gang.group = dice_.percent(98) ? group.name : "unheard-of";
    if (dice_.percent(80)) {
        step.least.clear();
        const auto& resources = model().pools[app.pool].vector;
        for (size_t at = 0; at < group.resource.size(); ++at) {
            const std::string& name = resources[at].first;
            const auto amount = static_cast<int64_t>(group.resource[at]);
            const char* known = name == "cpu" ? "cpu" : name == "mem" ? "mem" : "disk";
            step.least.push_back({known, std::max<int64_t>(1, amount - dice_.percent(30))});
        }
    }
    if (step.least.empty() || !dice_.percent(15)) return;
    step.most = step.least;
    step.most.front().amount += 1;
}

// False: the step is another one.
bool Writer::write_one_of_gangs() {
    if (!character_.gangs || dice_.percent(70)) return false;
    dice_.percent(35) ? add_application() : application_event();
    return true;
}

}  // namespace dibs::naive
