// broker/core/gang/applications.cpp -- adds applications, and applies what happens to them.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::AppState;
using shm::TaskState;
using What = ApplicationEvent::Kind;

namespace {

bool is_name(std::string_view name) {
    return !name.empty() && name.size() <= shm::kNameMax;
}

std::string_view text_of(const auto& row) {
    return {row.name, row.name_size};
}

}  // namespace

Gangs::Gangs(const State& rows)
    : Module(rows),
      app_names(rows.apps.size()),
      task_names(rows.tasks.size()),
      app_tasks(rows.apps.size(), rows.tasks.size()),
      session_apps(rows.sessions.size(), rows.apps.size()),
      pool_apps(rows.pools.size(), rows.apps.size()),
      held(rows.apps.size(), rows.claims.size()),
      placeholders(rows.groups.size(), rows.slots.size()),
      ended_apps(1, rows.apps.size()),
      holder(rows.pools.size(), kNoRow),
      held_in(rows.pools.size()),
      task_of(rows.leases.size(), kNoRow),
      due(0, rows.apps.size(), rows.apps.size()),
      has_news_(rows.apps.size()) {
    news_.reserve(rows.apps.size());
    looks_.reserve(rows.apps.size());
    ending_.reserve(rows.apps.size());
    blocked_.reserve(rows.apps.size());
    impatient_.reserve(rows.claims.size());
}

uint64_t Gangs::app_hash(uint32_t uid, std::string_view name) const {
    return text_hash(name, hash_seed() ^ numbers_hash(uid));
}
uint64_t Gangs::task_hash(uint32_t app, std::string_view name) const {
    return text_hash(name, hash_seed() ^ numbers_hash(app));
}

uint32_t Gangs::find(uint32_t uid, std::string_view name) const {
    return app_names.find(app_hash(uid, name), [&](uint32_t row) {
        return state.apps[row].uid == uid && text_of(state.apps[row]) == name;
    });
}

uint32_t Gangs::find_task(uint32_t app, std::string_view name) const {
    return task_names.find(task_hash(app, name), [&](uint32_t row) {
        return state.tasks[row].app == app && text_of(state.tasks[row]) == name;
    });
}

void Gangs::tell_state(uint32_t row, AppState from, AppState to, Reason reason) {
    Decision& told = tell_of(DecisionKind::kApplication, row, text_of(state.apps[row]));
    told.from_class = static_cast<uint8_t>(from);
    told.to_class = static_cast<uint8_t>(to);
    told.reason = reason;
}

Decision& Gangs::tell_of(DecisionKind kind, uint32_t row, std::string_view name) {
    const shm::AppRow& app = state.apps[row];
    Decision& told = turn().decide_that(kind);
    told.session = app.manager;
    told.pool = app.pool;
    told.id = app.number;
    told.entry = dispatch().keep_name(name);
    return told;
}

// Its place in the machine above AppState; where it does not move, a warning.
void Gangs::set_state(uint32_t row, AppState to, Reason reason) {
    shm::AppRow& app = edit().row(state.apps[row], 1);
    const AppState from = app.state;
    put(app.state, to);
    // What ends it now counts, not what it has lived through.
    const bool ends = is_ending(to) || to == AppState::kCompleted;
    const bool is_told = reason != Reason::kOk || ends;
    if (is_told && from != to) put(app.reason, static_cast<int16_t>(reason));
    tell_state(row, from, to, reason);
    add_news(row);
}

void Gangs::set_manager(uint32_t row, uint32_t session) {
    shm::AppRow& app = edit().row(state.apps[row], 1);
    if (app.manager != kNoRow) session_apps.remove(app.manager, row);
    put(app.manager, session);
    if (session != kNoRow) session_apps.push_back(session, row);
    set_manager_limit(row, kNever);
}

void Gangs::set_manager_limit(uint32_t row, TimeNs until_ns) {
    shm::AppRow& app = edit().row(state.apps[row], 1);
    if (app.manager_until_ns != kNever) due.remove(TimerKind::kLease, row);
    put(app.manager_until_ns, until_ns);
    if (until_ns != kNever) due.set(TimerKind::kLease, row, until_ns, app.number);
}

// S4.28.
Reason Gangs::admission(const AddApplication& command) const {
    const shm::PoolRow& pool = state.pools[command.pool];
    if (pool.order == shm::PoolOrder::kAccount || dispatch().is_dispatched(command.pool)) {
        return Reason::kState;
    }
    if (pools().draining(command.pool)) return Reason::kDraining;
    if (!are_groups(command)) return Reason::kOk;
    std::vector<Members> groups;
    for (const GroupSpec& group : command.groups) {
        groups.push_back({group.members, {}});
        if (group.resource.empty()) continue;
        (void)vectors().read(command.pool, group.resource, &groups.back().each);
    }
    return size_refusal(command.pool, groups);
}

// What no packing of the pool's slots can hold. A worker pool has as many slots as come.
Reason Gangs::size_refusal(uint32_t row, std::span<const Members> groups) const {
    const shm::PoolRow& pool = state.pools[row];
    uint64_t members = 0;
    uint64_t whole = 0;  // of them those that want whole slots
    for (const Members& group : groups) {
        members += group.number;
        if (!wants_some(group.each)) whole += group.number;
    }
    const bool counted = pool.kind == shm::PoolKind::kCounted;
    const bool elastic = provisioning().is_elastic(row);
    uint64_t most = shm::kGangMax;
    if (counted) most = pool.slots_wanted;
    if (elastic) most = state.elastics[row].workers_max;
    if (members > pool.gang_max || whole > most) return Reason::kTooManyUnits;
    if (!has_resources(pool) || (!counted && !elastic)) return Reason::kOk;
    const uint64_t slots = std::min(most - whole, members);  // for parts; more are of no use
    for (uint32_t at = 0; at < pool.resources_count; ++at) {
        const uint64_t capacity = pool.capacity[at];
        uint64_t sum = 0;
        for (const Members& group : groups) {
            const uint64_t wanted = group.each[at];
            if (wanted > capacity) return Reason::kUnavailable;
            if (wanted != 0 && group.number > slots * (capacity / wanted)) {
                return Reason::kTooManyUnits;
            }
            sum += group.number * wanted;
        }
        if (sum > slots * capacity) return Reason::kTooManyUnits;
    }
    return Reason::kOk;
}

// S4.13: all of them, or the application has no gang.
bool Gangs::are_groups(const AddApplication& command) const {
    const bool parts = has_resources(state.pools[command.pool]);
    for (size_t at = 0; at < command.groups.size(); ++at) {
        const GroupSpec& group = command.groups[at];
        if (!is_name(group.name) || group.members == 0) return false;
        for (size_t before = 0; before < at; ++before)
            if (command.groups[before].name == group.name) return false;
        Vector wanted{};
        if (group.resource.empty()) continue;
        if (!parts || !vectors().read(command.pool, group.resource, &wanted)) return false;
        if (!wants_some(wanted)) return false;
    }
    return true;
}

void Gangs::make_groups(const AddApplication& command, uint32_t app, uint64_t number) {
    uint32_t next = kNoRow;
    for (size_t at = command.groups.size(); at-- != 0;) {
        const GroupSpec& spec = command.groups[at];
        const uint32_t row = free_rows().take_group_row();
        shm::GroupRow& group = edit().row(state.groups[row], 0x7U);
        put(group.state, 1);
        put(group.app, app);
        put(group.next, next);
        put(group.members, spec.members);
        put(group.bound, 0);
        put(group.replaced, 0);
        put(group.claim, kNoRow);
        put(group.number, number + 1 + at);
        Vector wanted{};
        if (!spec.resource.empty()) (void)vectors().read(command.pool, spec.resource, &wanted);
        for (size_t place = 0; place < wanted.size(); ++place)
            put(group.resource[place], wanted[place]);
        spec.name.copy(group.name, sizeof(group.name));
        put(group.name_size, spec.name.size());
        next = row;
    }
    put(edit().row(state.apps[app], 1U << 1U).first_group, next);
}

Reason Gangs::apply(const AddApplication& command, uint64_t* number) {
    early_grants().settle_fresh();
    const bool by_session = !command.session.is_none();
    return add(command, by_session ? state.sessions[command.session].uid : command.uid, number);
}

Reason Gangs::add(const AddApplication& command, uint32_t uid, uint64_t* number) {
    if (!is_name(command.application) || command.tags.size() > shm::kMetaMax ||
        command.parameters.size() > shm::kMetaMax || command.groups.size() > shm::kGangMax) {
        return Reason::kMalformed;
    }
    if (!pools().pool_lives(command.pool)) return Reason::kUnknownPool;
    if (const uint32_t there = find(uid, command.application); there != kNoRow) {
        const AppState found = state.apps[there].state;
        if (has_ended(found) || is_ending(found)) return Reason::kAppEnded;
        *number = state.apps[there].number;
        return Reason::kDuplicate;
    }
    const Reason refusal = admission(command);
    const bool are_sound = !command.groups.empty() && are_groups(command);
    const bool has_gang = refusal == Reason::kOk && are_sound;
    make_room(uid, has_gang ? command.groups.size() : 0);
    if (state.counters->apps_free == 0 ||
        (has_gang && state.counters->groups_free < command.groups.size())) {
        return Reason::kTablesFull;
    }
    if (!arena().has_room(command.tags.size())) return Reason::kArenaFull;
    const GangParameters said = gang_parameters(command.parameters);
    TimeNs timeout_ns = said.has_timeout ? said.timeout_ns : command.placeholder_timeout_ns;
    if (timeout_ns == 0) timeout_ns = AddApplication::kTimeOutNs;
    shm::CountersRow& counters = edit().counters(1);
    *number = counters.arrival_next;
    put(counters.arrival_next, *number + 1 + (are_sound ? command.groups.size() : 0));
    const uint32_t row = free_rows().take_app_row();
    shm::AppRow& app = edit().row(state.apps[row], 0x7U);
    put(app.state, AppState::kNew);
    put(app.style, said.has_style ? said.style : command.style);
    put(app.flags, command.session.is_none() ? shm::AppFlag::kUnmanaged : 0);
    put(app.pool, command.pool);
    put(app.reason, 0);
    put(app.number, *number);
    put(app.uid, uid);
    put(app.manager, kNoRow);
    put(app.placeholder_until_ns, kNever);
    put(app.manager_until_ns, kNever);
    put(app.placeholder_timeout_ns, timeout_ns);
    put(app.manager_timeout_ns, command.manager_timeout_ns);
    put(app.created_ns, turn().event_time(command.created_ns));
    put(app.ended_ns, 0);
    put(app.priority, command.priority);
    put(app.first_group, kNoRow);
    put(app.tasks, 0);
    put(app.claims, 0);
    put(app.leases, 0);
    put(app.placeholders, 0);
    const auto* tags = reinterpret_cast<const uint8_t*>(command.tags.data());
    put(app.tags, arena().store({tags, command.tags.size()}));
    put(app.tags_size, command.tags.size());
    command.application.copy(app.name, sizeof(app.name));
    put(app.name_size, command.application.size());
    app_names.insert(app_hash(uid, command.application), row);
    if (!command.session.is_none()) set_manager(row, command.session);
    pool_apps.push_back(command.pool, row);
    if (refusal != Reason::kOk) {
        set_state(row, AppState::kRejected, refusal);
        set_state(row, AppState::kFailed, refusal);
        leave(row);
        return Reason::kOk;
    }
    if (has_gang) make_groups(command, row, *number);
    set_state(row, command.recover ? AppState::kRecovering : AppState::kAccepted);
    const bool is_dropped = !command.groups.empty() && !has_gang;
    if (is_dropped) set_state(row, app.state, Reason::kMalformed);
    return Reason::kOk;
}

Reason Gangs::apply(const ApplicationEvent& command, uint64_t* value) {
    early_grants().settle_fresh();
    const bool by_session = !command.session.is_none();
    return happens(command, by_session ? state.sessions[command.session].uid : command.uid, value);
}

Reason Gangs::happens(const ApplicationEvent& command, uint32_t uid, uint64_t* value) {
    const uint32_t row = find(uid, command.application);
    if (command.kind == What::kRemoveTask && row == kNoRow) return Reason::kAlreadyEnded;
    if (row == kNoRow) return Reason::kNotFound;
    const AppState now = state.apps[row].state;
    const bool may_fail = is_live(now);
    switch (command.kind) {
        case What::kAdopt:
            return command.session.is_none() ? Reason::kMalformed : adopt(row, command.session);
        case What::kComplete:
            return complete(row);
        case What::kFail:
            if (!may_fail) return Reason::kState;
            return fail(row, AppState::kFailing, Reason::kOk), Reason::kOk;
        case What::kKill:
            if (!may_fail) return Reason::kState;
            return fail(row, AppState::kKilling, Reason::kOk), Reason::kOk;
        case What::kRemove:
            return remove(row, command.session, value);
        case What::kRecovered:
            if (now != AppState::kRecovering) return Reason::kState;
            return set_state(row, AppState::kAccepted), Reason::kOk;
        case What::kAddTask:
        case What::kRemoveTask:
        case What::kCompleteTask:
            break;
    }
    return happens_to_task(command, row);
}

Reason Gangs::happens_to_task(const ApplicationEvent& command, uint32_t app) {
    const bool is_there = is_name(command.task);
    Member member{.app = app, .task = is_there ? find_task(app, command.task) : kNoRow};
    if (command.kind == What::kRemoveTask) {
        if (member.task == kNoRow) return Reason::kAlreadyEnded;
        if (!has_ended(state.tasks[member.task].state)) return Reason::kState;
        return free_task(member.task), Reason::kOk;
    }
    if (command.kind == What::kCompleteTask) {
        if (member.task == kNoRow) return Reason::kNotFound;
        if (has_ended(state.tasks[member.task].state)) return Reason::kAlreadyEnded;
        return complete_task(member.task), Reason::kOk;
    }
    if (!is_live(state.apps[app].state)) return Reason::kAppEnded;
    if (!is_there) return Reason::kMalformed;
    if (member.task != kNoRow) return Reason::kDuplicate;
    if (const Reason reason = find_group(app, command.group, &member.group);
        reason != Reason::kOk) {
        return reason;
    }
    make_room(state.apps[app].uid);
    if (state.counters->tasks_free == 0) return Reason::kTablesFull;
    const uint32_t task = add_task(member, command.task, command.priority);
    // What runs already has no lease of ours (S4.39).
    const bool runs = command.assigned && state.apps[app].state == AppState::kRecovering;
    if (runs) put(edit().row(state.tasks[task], 1).state, TaskState::kBound);
    return Reason::kOk;
}

Reason Gangs::adopt(uint32_t row, uint32_t session) {
    const shm::AppRow& app = state.apps[row];
    if (has_ended(app.state) || is_ending(app.state)) return Reason::kAppEnded;
    if (app.manager == session) return Reason::kAlreadyEnded;
    if (app.manager != kNoRow) return Reason::kNotHolder;
    set_manager(row, session);
    tell_state(row, app.state, app.state, Reason::kOk);
    add_news(row);
    return Reason::kOk;
}

// Nothing new is asked for until another one adopts it.
bool Gangs::orphan_one(uint32_t session) {
    const uint32_t row = session_apps.head(session);
    if (row == kNoRow) return false;
    set_manager(row, kNoRow);
    shm::AppRow& app = edit().row(state.apps[row], 1);
    if (!is_live(app.state) || is_managed(app)) return true;
    each_group(row, [&](uint32_t group) { drop_ask(group); });
    if (app.manager_timeout_ns == kNever) return true;
    set_manager_limit(row, sum_or_never(turn().now_ns, app.manager_timeout_ns));
    return true;
}

void Gangs::pool_changes(uint32_t pool) {
    for (uint32_t app = pool_apps.head(pool); app != kNoRow; app = pool_apps.next(app))
        add_news(app);
}

bool Gangs::has_claims(uint32_t pool) const {
    for (uint32_t app = pool_apps.head(pool); app != kNoRow; app = pool_apps.next(app))
        if (state.apps[app].claims != 0) return true;
    // Those of one that has been completed end with the turn.
    for (uint32_t app = ended_apps.head(0); app != kNoRow; app = ended_apps.next(app))
        if (state.apps[app].pool == pool && state.apps[app].claims != 0) return true;
    return false;
}

bool Gangs::pool_goes(uint32_t pool) {
    for (uint32_t app = ended_apps.head(0); app != kNoRow; app = ended_apps.next(app)) {
        if (state.apps[app].pool != pool) continue;
        if (turn().full()) return false;
        put(edit().row(state.apps[app], 1).pool, shm::kNoPool);
    }
    for (uint32_t app = pool_apps.head(pool); app != kNoRow; app = pool_apps.next(app)) {
        if (!is_live(state.apps[app].state)) continue;
        if (turn().full()) return false;
        fail(app, AppState::kFailing, Reason::kUnknownPool);
    }
    return true;
}

}  // namespace dibs::core
