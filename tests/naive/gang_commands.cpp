// tests/naive/gang_commands.cpp -- what is said of applications and tasks.
//
// What names a statement is written from it; what quotes is of docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <utility>

#include "tests/naive/gangs.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

using core::DecisionKind;
using shm::AppState;
using shm::GangStyle;
using shm::Reason;
using shm::TaskState;
using Event = core::ApplicationEvent::Kind;

namespace {

bool is_name(std::string_view name) {
    return !name.empty() && name.size() <= shm::kNameMax;
}

// "No number, or a negative one: 0."
TimeNs seconds_of(std::string_view text) {
    uint64_t seconds = 0;
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (wrong != std::errc{} || end != text.data() + text.size()) return 0;
    constexpr uint64_t kSecond = 1'000'000'000;
    return seconds > (shm::kNever - 1) / kSecond ? shm::kNever - 1 : seconds * kSecond;
}

// S4.14: space-separated key=value; without exactly one "=" skipped; later tokens win.
void take_parameters(std::string_view text, Application& app) {
    while (!text.empty()) {
        const size_t end = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (std::count(word.begin(), word.end(), '=') != 1) continue;
        const std::string_view key = word.substr(0, word.find('='));
        const std::string_view value = word.substr(word.find('=') + 1);
        if (key == "placeholderTimeoutInSeconds") app.placeholder_timeout_ns = seconds_of(value);
        if (key == "gangSchedulingStyle")
            app.style = value == "Hard" ? GangStyle::kHard : GangStyle::kSoft;
    }
}

const Application* find_in(const Model& model, uint32_t uid, std::string_view name) {
    for (const auto& [number, app] : model.applications)
        if (app.state != AppState::kGoing && app.uid == uid && app.name == name) return &app;
    return nullptr;
}

}  // namespace

// "What a plain claim is refused for comes first; then malformed, not found, app ended, state,
// duplicate, ended, tables full."
Reason member_refusal(const Model& model, const core::Claim& claim, uint64_t* first_claim) {
    const core::MemberOf& member = *claim.member;
    if (member.application.empty() || !is_name(member.task)) return Reason::kMalformed;
    if (!claim.also.empty() || claim.route != nullptr || claim.offer != 0)
        return Reason::kMalformed;
    const Application* app =
        find_in(model, model.sessions.at(claim.session).uid, member.application);
    if (app == nullptr) return Reason::kNotFound;
    const bool has_gang = !app->groups.empty() && !member.group.empty();
    if (has_gang && !app->group_named(member.group)) return Reason::kNotFound;
    if (app->has_ended_or_is_ending()) return Reason::kAppEnded;
    if (app->pool != claim.pool) return Reason::kState;
    const Task* task = app->task_named(member.task);
    if (task == nullptr) return Reason::kOk;
    if (task->has_ended()) return Reason::kEnded;
    if (task->state == TaskState::kNew && task->claim == 0) return Reason::kOk;
    *first_claim = std::max(task->claim, task->lease);  // none: it runs already, outside any lease
    return Reason::kDuplicate;
}

// Behind all else that it may be refused for.
Reason Gangs::room_for_task(const core::Claim& claim) {
    const Application& app = *find(claim.session, 0, claim.member->application);
    if (app.task_named(claim.member->task) != nullptr) return Reason::kOk;
    make_room(app.uid);
    return tasks_in(m_) < core_.limits_.tasks ? Reason::kOk : Reason::kTablesFull;
}

// S4.2: "the task is made if it is new, and the claim is held".
void Gangs::take_member(Claim& claim, const core::MemberOf& member) {
    Application& app = *find(claim.session, 0, member.application);
    const Task* known = app.task_named(member.task);
    if (known == nullptr) {
        Task task;
        task.name = member.task;
        task.number = ++m_.claims_seen;
        if (!member.group.empty()) task.group = app.group_named(member.group);
        task.priority = member.priority;
        app.tasks[task.number] = task;
        known = &app.tasks.at(task.number);
    }
    app.tasks.at(known->number).claim = claim.number;
    claim.application = app.number;
    claim.task = member.task;
    claim.is_held_back = true;
}

Application* Gangs::find(uint32_t session, uint32_t uid, std::string_view name) {
    const uint32_t whose = session == shm::kNoRow ? uid : m_.sessions.at(session).uid;
    const Application* known = find_in(m_, whose, name);
    return known == nullptr ? nullptr : &m_.applications.at(known->number);
}

// S4.13: name, members, valid resources, or the whole definition is rejected.
std::vector<Group> Gangs::groups_of(const core::AddApplication& command, bool* malformed) const {
    std::vector<Group> groups;
    std::set<std::string> names;
    for (const core::GroupSpec& spec : command.groups) {
        Group group;
        group.name = spec.name;
        group.members = spec.members;
        bool is_sound = is_name(spec.name) && spec.members != 0;
        is_sound = is_sound && names.insert(group.name).second;
        if (is_sound && !spec.resource.empty()) {
            const auto vector = core_.vector_of(command.pool, spec.resource);
            is_sound = vector && *vector != Vector(vector->size());
            if (is_sound) group.resource = *vector;
        }
        if (!is_sound) {
            *malformed = true;
            return {};
        }
        groups.push_back(group);
    }
    return groups;
}

// S4.1. "In this order."
Reason Gangs::addition_refusal(const core::AddApplication& command, uint64_t* number) {
    const bool is_long =
        command.tags.size() > shm::kMetaMax || command.parameters.size() > shm::kMetaMax;
    const bool has_too_many = command.groups.size() > shm::kGangMax;
    if (!is_name(command.application) || is_long || has_too_many) return Reason::kMalformed;
    if (!core_.pool_lives(command.pool)) return Reason::kUnknownPool;
    const Application* known = find(command.session, command.uid, command.application);
    if (known != nullptr) {
        *number = known->number;
        return known->has_ended_or_is_ending() ? Reason::kAppEnded : Reason::kDuplicate;
    }
    bool malformed = false;
    const std::vector<Group> groups = groups_of(command, &malformed);
    // Who is to be rejected will have no groups.
    const bool is_fit = admission_refusal(command.pool, groups) == Reason::kOk;
    make_room(command.session == shm::kNoRow ? command.uid : m_.sessions.at(command.session).uid,
              is_fit ? groups.size() : 0);
    const bool has_rows = m_.applications.size() < core_.limits_.applications &&
                          groups_in(m_) + (is_fit ? groups.size() : 0) <= core_.limits_.groups;
    if (!has_rows) return Reason::kTablesFull;
    return blocks_for(command.tags.size()) <= core_.arena_free() ? Reason::kOk : Reason::kArenaFull;
}

// S4.28, "Admission".
Reason Gangs::admission_refusal(uint32_t of, const std::vector<Group>& groups) const {
    const Pool& pool = m_.pools.at(of);
    if (core_.by_account(of) || pool.config.dispatch) return Reason::kState;
    if (core_.is_draining(of)) return Reason::kDraining;
    return size_refusal(of, groups);
}

// "What no packing of its slots can hold."
Reason Gangs::size_refusal(uint32_t of, const std::vector<Group>& groups) const {
    const Pool& pool = m_.pools.at(of);
    uint64_t members = 0;
    uint64_t whole = 0;  // of them those that want whole slots
    for (const Group& group : groups) {
        members += group.members;
        uint64_t wanted = 0;
        for (const auto much : group.resource)
            wanted += static_cast<uint64_t>(much);
        if (wanted == 0) whole += group.members;
    }
    const bool counted = pool.config.kind == shm::PoolKind::kCounted;
    if (members > pool.config.gang_max) return Reason::kTooManyUnits;
    if (counted && whole > pool.config.slots) return Reason::kTooManyUnits;
    if (pool.config.workers_max != 0 && whole > pool.config.workers_max)
        return Reason::kTooManyUnits;
    // As a claim is refused: of an elastic pool, too, what no slot will have is known.
    const bool is_known = counted || core_.is_elastic(of);
    if (!is_known) return Reason::kOk;
    const uint64_t most = counted ? pool.config.slots : pool.config.workers_max;
    for (size_t at = 0; at < pool.vector.size(); ++at) {
        const auto capacity = static_cast<uint64_t>(pool.vector[at].second);
        uint64_t sum = 0;
        for (const Group& group : groups) {
            if (group.resource.empty() || group.resource[at] == 0) continue;
            if (group.resource[at] > capacity) return Reason::kUnavailable;
            const uint64_t in_each_slot = capacity / group.resource[at];
            const uint64_t slots = (group.members + in_each_slot - 1) / in_each_slot;
            if (slots + whole > most) return Reason::kTooManyUnits;
            sum += group.resource[at] * group.members;
        }
        if (sum == 0) continue;
        const uint64_t slots = sum / capacity + (sum % capacity != 0 ? 1 : 0);
        if (slots + whole > most) return Reason::kTooManyUnits;
    }
    return Reason::kOk;
}

// Who has no session is told by the command's answer alone.
void Gangs::tell(uint32_t session, uint64_t user_data, Reason reason, uint64_t value) {
    if (session != shm::kNoRow) core_.tell_result(session, user_data, reason, value);
}

Reason Gangs::add(const core::AddApplication& command, uint64_t* number_of) {
    uint64_t number = 0;
    const Reason refusal = addition_refusal(command, &number);
    if (refusal != Reason::kOk) {
        *number_of = refusal == Reason::kDuplicate ? number : 0;
        tell(command.session, command.user_data, refusal, *number_of);
        return refusal;
    }
    Application app;
    app.number = ++m_.claims_seen;
    app.uid = command.session == shm::kNoRow ? command.uid : m_.sessions.at(command.session).uid;
    app.name = command.application;
    app.pool = command.pool;
    app.priority = command.priority;
    app.style = command.style;
    app.tags_blocks = blocks_for(command.tags.size());
    app.manager = command.session;
    app.is_unmanaged = command.session == shm::kNoRow;
    app.placeholder_timeout_ns = command.placeholder_timeout_ns;
    take_parameters(command.parameters, app);
    if (app.placeholder_timeout_ns == 0)
        app.placeholder_timeout_ns = core::AddApplication::kTimeOutNs;
    app.manager_timeout_ns = command.manager_timeout_ns;
    bool malformed = false;
    app.groups = groups_of(command, &malformed);
    for (Group& group : app.groups)
        group.number = ++m_.claims_seen;
    m_.applications[app.number] = app;
    *number_of = app.number;
    tell(command.session, command.user_data, Reason::kOk, app.number);
    Application& made = m_.applications.at(app.number);
    const Reason rejected = admission_refusal(made.pool, made.groups);
    if (rejected != Reason::kOk) {
        made.groups.clear();  // it will never have a gang
        go_to(made, AppState::kRejected, rejected);
        go_to(made, AppState::kFailed, rejected);
        return Reason::kOk;
    }
    go_to(made, command.recover ? AppState::kRecovering : AppState::kAccepted);
    if (malformed) tell_state(made, made.state, Reason::kMalformed);
    return Reason::kOk;
}

uint64_t Gangs::tasks_left(const Application& app) const {
    return static_cast<uint64_t>(
        std::count_if(app.tasks.begin(), app.tasks.end(), [](const auto& entry) {
            return !entry.second.has_ended();
        }));
}

Reason Gangs::task_refusal(const core::ApplicationEvent& event, const Application* app) {
    const Task* task = app == nullptr ? nullptr : app->task_named(event.task);
    if (event.kind == Event::kRemoveTask) {
        if (task == nullptr) return Reason::kAlreadyEnded;
        return task->has_ended() ? Reason::kOk : Reason::kState;
    }
    if (app == nullptr) return Reason::kNotFound;
    if (event.kind == Event::kCompleteTask) {
        if (task == nullptr) return Reason::kNotFound;
        return task->has_ended() ? Reason::kAlreadyEnded : Reason::kOk;
    }
    if (app->has_ended_or_is_ending()) return Reason::kAppEnded;
    if (!is_name(event.task)) return Reason::kMalformed;
    if (task != nullptr) return Reason::kDuplicate;
    const bool has_gang = !app->groups.empty() && !event.group.empty();
    if (has_gang && !app->group_named(event.group)) return Reason::kNotFound;
    make_room(app->uid);
    return tasks_in(m_) < core_.limits_.tasks ? Reason::kOk : Reason::kTablesFull;
}

// S4.8: "any other pair is an error and does not change the state".
Reason Gangs::event_refusal(const core::ApplicationEvent& event, uint64_t* value) {
    const Application* app = find(event.session, event.uid, event.application);
    if (event.kind == Event::kAddTask || event.kind == Event::kRemoveTask ||
        event.kind == Event::kCompleteTask) {
        return task_refusal(event, app);
    }
    if (app == nullptr) return Reason::kNotFound;
    switch (event.kind) {
        case Event::kAdopt:
            if (app->has_ended_or_is_ending()) return Reason::kAppEnded;
            if (app->manager == shm::kNoRow) return Reason::kOk;
            return app->manager == event.session ? Reason::kAlreadyEnded : Reason::kNotHolder;
        case Event::kComplete:
            return app->state == AppState::kRunning ? Reason::kOk : Reason::kState;
        case Event::kFail:
        case Event::kKill:
            return app->has_ended_or_is_ending() ? Reason::kState : Reason::kOk;
        case Event::kRecovered:
            return app->state == AppState::kRecovering ? Reason::kOk : Reason::kState;
        case Event::kRemove:
            *value = tasks_left(*app);
            return *value == 0 ? Reason::kOk : Reason::kState;
        default:
            return Reason::kOk;
    }
}

Reason Gangs::apply(const core::ApplicationEvent& event, uint64_t* value) {
    *value = 0;
    const Reason refusal = event_refusal(event, value);
    tell(event.session, event.user_data, refusal, *value);
    if (refusal == Reason::kOk) do_event(event, *find(event.session, event.uid, event.application));
    return refusal;
}

void Gangs::do_event(const core::ApplicationEvent& event, Application& app) {
    const Task* task = app.task_named(event.task);
    switch (event.kind) {
        case Event::kAdopt:
            app.manager = event.session;
            app.manager_until_ns = shm::kNever;
            tell_state(app, app.state, Reason::kOk);  // "The adopter is told the state."
            break;
        case Event::kComplete:
            go_to(app, AppState::kCompleted);
            break;
        case Event::kFail:
            go_to(app, AppState::kFailing);
            break;
        case Event::kKill:
            go_to(app, AppState::kKilling);
            break;
        case Event::kRemove: {
            // "Its manager is told, unless it says so itself, or has been told its end."
            const AppState from = std::exchange(app.state, AppState::kGoing);
            if (!app.has_ended() && app.manager != event.session.number)
                tell_state(app, from, Reason::kOk);
            forget(app.number);
            break;
        }
        case Event::kRecovered:
            go_to(app, AppState::kAccepted);
            break;
        case Event::kAddTask:
            add_task(event, app);
            break;
        case Event::kRemoveTask:
            app.tasks.erase(task->number);
            break;
        case Event::kCompleteTask:
            complete_task(app.tasks.at(task->number));
            break;
    }
}

// S4.39: assigned → it runs already.
void Gangs::add_task(const core::ApplicationEvent& event, Application& app) {
    Task task;
    task.name = event.task;
    task.number = ++m_.claims_seen;
    if (!event.group.empty()) task.group = app.group_named(event.group);
    task.priority = event.priority;
    if (event.assigned && app.state == AppState::kRecovering) task.state = TaskState::kBound;
    app.tasks[task.number] = task;
}

// S4.31, S4.32: "the task is completed first, then its claim ends (cancelled, told to its session),
// or its lease (revoked, told to its holder)", which is no task's from then on.
void Gangs::complete_task(Task& task) {
    task.state = TaskState::kCompleted;
    const uint64_t claim = task.claim;
    if (claim != 0) core_.end_claim_and_free(claim, shm::Outcome::kCancelled, Reason::kOk);
    const uint64_t lease = std::exchange(task.lease, 0);
    if (lease == 0) return;
    core::Steer steer;
    steer.kind = core::Steer::Kind::kRelease;
    steer.lease = lease;
    core_.apply(steer, nullptr);
}

}  // namespace dibs::naive
