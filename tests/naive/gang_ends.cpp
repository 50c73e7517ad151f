// tests/naive/gang_ends.cpp -- what the ends of claims, leases, slots and sessions do to tasks and
// placeholders, and how it is told.
//
// What names a statement is written from it; what quotes is of docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "tests/naive/gangs.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

using core::Decision;
using core::DecisionKind;
using core::PlaceholderNews;
using shm::AppState;
using shm::Reason;
using shm::TaskState;

namespace {

Task* task_of(Model& model, const Claim& claim) {
    const auto app = model.applications.find(claim.application);
    if (claim.is_ask() || app == model.applications.end()) return nullptr;
    const Task* task = app->second.task_named(claim.task);
    return task == nullptr ? nullptr : &app->second.tasks.at(task->number);
}

}  // namespace

uint64_t groups_in(const Model& model) {
    uint64_t count = 0;
    for (const auto& [number, app] : model.applications)
        count += app.groups.size();
    return count;
}

uint64_t tasks_in(const Model& model) {
    uint64_t count = 0;
    for (const auto& [number, app] : model.applications)
        count += app.tasks.size();
    return count;
}

// S4.26: the real one is effective, and the placeholder is not any more.
void Gangs::granted(const Claim& claim) {
    Task* task = task_of(m_, claim);
    if (task == nullptr) return;
    task->claim = 0;
    task->lease = claim.number;
    task->state = TaskState::kBound;
    for (const uint64_t id : claim.slots) {
        Slot& slot = m_.slots.at(id);
        if (!slot.placeholder) continue;
        const PlaceholderName name = *std::exchange(slot.placeholder, std::nullopt);
        m_.applications.at(name.application).groups.at(name.group).placeholders.erase(name.index);
        tell_placeholder(name, slot, PlaceholderNews::kReplaced);
    }
}

// "When the member's claim does not get it, the slot is the placeholder's again as soon as it would
// become idle."
void Gangs::let_go(const Claim& claim) {
    for (const uint64_t id : claim.slots) {
        const auto slot = m_.slots.find(id);
        if (slot == m_.slots.end() || !slot->second.placeholder) continue;
        const PlaceholderName& name = *slot->second.placeholder;
        Placeholder& placeholder =
            m_.applications.at(name.application).groups.at(name.group).placeholders.at(name.index);
        if (placeholder.replaced_by != claim.number) continue;
        placeholder.replaced_by = 0;
        placeholder.is_away = true;
    }
}

// "What its claim ends with: cancelled: killed; else failed."
void Gangs::claim_ended(const Claim& claim, shm::Outcome outcome) {
    let_go(claim);
    Task* task = task_of(m_, claim);
    if (task == nullptr || task->claim != claim.number) return;
    task->claim = 0;
    if (task->has_ended()) return;
    task->state = outcome == shm::Outcome::kCancelled ? TaskState::kKilled : TaskState::kFailed;
}

void Gangs::lease_ends(const Lease& lease, TaskState as) {
    Task* task = task_of(m_, lease.was);
    if (task == nullptr || task->lease != lease.claim) return;
    task->lease = 0;
    if (!task->has_ended()) task->state = as;
}

// "A slot of a placeholder that is gone is lost."
void Gangs::slot_goes(const Slot& slot) {
    if (!slot.placeholder) return;
    const PlaceholderName name = *slot.placeholder;
    m_.applications.at(name.application).groups.at(name.group).placeholders.erase(name.index);
    tell_placeholder(name, slot, PlaceholderNews::kLost);
}

// "The slot is the placeholder's again as soon as it would become idle", which one that is stopped
// would not; who is ending has no placeholders.
bool Gangs::comes_back(Slot& slot) {
    if (!slot.placeholder) return false;
    const PlaceholderName name = *slot.placeholder;
    Application& app = m_.applications.at(name.application);
    std::map<uint32_t, Placeholder>& placeholders = app.groups.at(name.group).placeholders;
    if (app.state != AppState::kReserving && app.state != AppState::kRunning) {
        slot.placeholder = std::nullopt;
        placeholders.erase(name.index);
        tell_placeholder(name, slot, PlaceholderNews::kReleased);
        return false;
    }
    const Slot& whole = m_.slots.at(slot.part_of.value_or(slot.id));
    // Nothing but its slot's leaving takes a part away.
    const bool is_marked = whole.is_protected || whole.is_unqualified;
    if (whole.is_draining || (is_marked && !slot.part_of)) return false;
    placeholders.at(name.index).is_away = false;
    placeholders.at(name.index).replaced_by = 0;
    slot.is = SlotIs::kPlaceholder;
    slot.claim = 0;
    slot.is_collected = false;
    slot.is_taken_back = false;
    slot.only_waits_for_admission = false;
    return true;
}

// "When the manager's session ends, its applications have none: asks leave the pool, placeholders
// stay, the time-outs run. Unmanaged ones are not concerned."
void Gangs::session_gone(uint32_t session) {
    for (auto& [number, app] : m_.applications) {
        if (app.manager != session) continue;
        app.manager = shm::kNoRow;
        if (app.is_unmanaged || app.has_ended_or_is_ending()) continue;
        app.manager_until_ns = later(m_.now, app.manager_timeout_ns);
        drop_asks(app);
    }
}

// "A reservation fails where its pool drains": at the command, in the place of its first ask.
void Gangs::ask_drains(uint64_t ask) {
    Application& app = m_.applications.at(m_.claims.at(ask).application);
    if (app.state == AppState::kReserving) reservation_fails(app);
    drop_asks(app);
}

// There is nothing left that an application of a deleted pool could run on.
void Gangs::pool_goes(uint32_t pool) {
    for (auto& [number, app] : m_.applications)
        if (app.pool == pool && !app.has_ended_or_is_ending())
            go_to(app, AppState::kFailing, Reason::kUnknownPool);
}

void Gangs::drop_asks(const Application& app) {
    std::erase_if(m_.claims, [&](const auto& entry) {
        return entry.second.is_ask() && entry.second.application == app.number;
    });
}

bool Gangs::release_group(Application& app, size_t group, bool also_replaced) {
    bool released = false;
    const std::map<uint32_t, Placeholder> placeholders = app.groups.at(group).placeholders;
    for (const auto& [index, placeholder] : placeholders) {
        if (placeholder.replaced_by != 0 && !also_replaced) continue;
        released = true;
        Slot& slot = m_.slots.at(placeholder.slot);
        slot.placeholder = std::nullopt;
        app.groups.at(group).placeholders.erase(index);
        tell_placeholder({app.number, group, index}, slot, PlaceholderNews::kReleased);
        if (slot.is == SlotIs::kPlaceholder) core_.become_idle(slot.id);
    }
    return released;
}

// "By group, then index."
void Gangs::release_all(Application& app, bool also_replaced) {
    for (size_t group = 0; group < app.groups.size(); ++group)
        release_group(app, group, also_replaced);
}

void Gangs::go_to(Application& app, AppState state, Reason reason) {
    const AppState from = std::exchange(app.state, state);
    if (state == AppState::kFailing || state == AppState::kRejected) app.reason = reason;
    tell_state(app, from, reason);
    // What is ending has nothing left to wait for.
    if (app.has_ended_or_is_ending()) app.placeholder_until_ns = app.manager_until_ns = shm::kNever;
    const bool ends =
        state == AppState::kFailed || state == AppState::kKilled || state == AppState::kCompleted;
    if (!ends) return;
    app.ended = m_.now;
    forget_oldest(app);
}

// Those that have ended, and of which nothing lives, as they ended.
std::vector<uint64_t> Gangs::remembered() const {
    std::map<std::pair<TimeNs, uint64_t>, uint64_t> found;
    for (const auto& [number, app] : m_.applications) {
        // "Not in the instant of its end."
        if (!app.has_ended() || app.state == AppState::kGoing || app.ended == m_.now) continue;
        const bool lives = std::any_of(app.tasks.begin(), app.tasks.end(), [](const auto& task) {
            return task.second.claim != 0 || task.second.lease != 0;
        });
        if (!lives) found[{app.ended, number}] = number;
    }
    std::vector<uint64_t> numbers;
    for (const auto& [at, number] : found)
        numbers.push_back(number);
    return numbers;
}

// "Of a user the last 1,024, and no more than a quarter of the rows: the oldest is forgotten then",
// of those of which nothing lives.
void Gangs::forget_oldest(const Application& last) {
    const auto count =
        std::count_if(m_.applications.begin(), m_.applications.end(), [&](const auto& entry) {
            const Application& app = entry.second;
            return app.uid == last.uid && app.has_ended() && app.state != AppState::kGoing;
        });
    const uint64_t most = std::min(shm::kEndedAppsMax, core_.limits_.applications / 4);
    if (static_cast<uint64_t>(count) <= std::max<uint64_t>(most, 1)) return;
    for (const uint64_t number : remembered()) {
        if (m_.applications.at(number).uid == last.uid) return forget(number);
    }
}

// "Before an application, with its groups, or a task takes a row that may not be there, or while an
// eighth or less of a table is free, the oldest is forgotten: of the same user, or else of any."
void Gangs::make_room(uint32_t uid, size_t groups) {
    const auto are_few = [](uint64_t used, uint64_t rows) { return rows - used <= rows / 8; };
    if (!are_few(m_.applications.size(), core_.limits_.applications) &&
        groups_in(m_) + groups <= core_.limits_.groups &&
        !are_few(groups_in(m_), core_.limits_.groups) &&
        !are_few(tasks_in(m_), core_.limits_.tasks)) {
        return;
    }
    const std::vector<uint64_t> numbers = remembered();
    const auto own = std::find_if(numbers.begin(), numbers.end(), [&](uint64_t number) {
        return m_.applications.at(number).uid == uid;
    });
    if (own != numbers.end()) return forget(*own);
    if (!numbers.empty()) forget(numbers.front());
}

// Its name is free at once, and nobody is told of it any more; its rows go with the turn's endings.
void Gangs::forget(uint64_t number) {
    Application& app = m_.applications.at(number);
    app.state = AppState::kGoing;
    app.manager = shm::kNoRow;
    app.placeholder_until_ns = app.manager_until_ns = shm::kNever;
}

void Gangs::free_rows_of(uint64_t number) {
    Application& app = m_.applications.at(number);
    drop_asks(app);
    release_all(app, true);
    core_.arena_freed(app.tags_blocks);
    m_.applications.erase(number);
}

std::string_view Gangs::keep(std::string_view name) {
    return core_.entry_names_.emplace_back(name);
}

void Gangs::tell_state(const Application& app, AppState from, Reason reason) {
    Decision& told = core_.tell(DecisionKind::kApplication, app.manager);
    told.id = app.number;
    told.entry = keep(app.name);
    told.from_class = static_cast<uint8_t>(from);
    told.to_class = static_cast<uint8_t>(app.state);
    told.reason = reason;
}

void Gangs::tell_task(const Application& app, const Task& task, TaskState from) {
    Decision& told = core_.tell(DecisionKind::kTask, app.manager);
    told.id = app.number;
    told.entry = keep(task.name);
    told.from_class = static_cast<uint8_t>(from);
    told.to_class = static_cast<uint8_t>(task.state);
    told.reason = app.reason;
}

void Gangs::tell_placeholder(const PlaceholderName& name, const Slot& slot, PlaceholderNews news) {
    const Application& app = m_.applications.at(name.application);
    Decision& told = core_.tell(DecisionKind::kPlaceholder, app.manager);
    told.id = app.number;
    told.entry = keep(app.groups.at(name.group).name);
    told.pool = slot.pool;
    told.slot_number = slot.number;
    told.value = name.index;
    told.to_class = static_cast<uint8_t>(news);
}

}  // namespace dibs::naive
