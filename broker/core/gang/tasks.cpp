// broker/core/gang/tasks.cpp -- holds claims of tasks, and lets them replace placeholders.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::AppState;
using shm::ClaimState;
using shm::TaskState;

Reason Gangs::find_group(uint32_t app, std::string_view name, uint32_t* found) const {
    *found = kNoRow;
    if (name.empty() || state.apps[app].first_group == kNoRow) return Reason::kOk;
    each_group(app, [&](uint32_t group) {
        const shm::GroupRow& row = state.groups[group];
        if (std::string_view{row.name, row.name_size} == name) *found = group;
    });
    return *found == kNoRow ? Reason::kNotFound : Reason::kOk;
}

uint32_t Gangs::add_task(const Member& member, std::string_view name, int32_t priority) {
    shm::CountersRow& counters = edit().counters(1);
    const uint32_t row = free_rows().take_task_row();
    shm::TaskRow& task = edit().row(state.tasks[row], 0x3U);
    put(task.state, TaskState::kNew);
    put(task.reason, 0);
    put(task.app, member.app);
    put(task.group, member.group);
    put(task.claim, kNoRow);
    put(task.lease, kNoRow);
    put(task.priority, priority);
    put(task.number, counters.arrival_next);
    put(counters.arrival_next, counters.arrival_next + 1);
    name.copy(task.name, sizeof(task.name));
    put(task.name_size, name.size());
    task_names.insert(task_hash(member.app, name), row);
    app_tasks.push_back(member.app, row);
    shm::AppRow& app = edit().row(state.apps[member.app], 1U << 1U);
    put(app.tasks, app.tasks + 1);
    return row;
}

void Gangs::free_task(uint32_t row) {
    const shm::TaskRow& task = state.tasks[row];
    task_names.remove(task_hash(task.app, {task.name, task.name_size}), row);
    app_tasks.remove(task.app, row);
    shm::AppRow& app = edit().row(state.apps[task.app], 1U << 1U);
    put(app.tasks, app.tasks - 1);
    free_rows().free_task_row(row);
}

void Gangs::end_task(uint32_t row, TaskState to, Reason reason) {
    shm::TaskRow& task = edit().row(state.tasks[row], 1);
    put(task.state, to);
    put(task.reason, static_cast<int16_t>(reason));
}

Reason Gangs::member_refusal(const Claim& command, Member* member, uint64_t* other) const {
    const MemberOf& said = *command.member;
    const bool is_name = !said.task.empty() && said.task.size() <= shm::kNameMax;
    if (!is_name || said.application.empty() || !command.also.empty() || command.route != nullptr ||
        command.offer != 0) {
        return Reason::kMalformed;
    }
    member->app = find(state.sessions[command.session].uid, said.application);
    if (member->app == kNoRow) return Reason::kNotFound;
    const shm::AppRow& app = state.apps[member->app];
    if (const Reason reason = find_group(member->app, said.group, &member->group);
        reason != Reason::kOk) {
        return reason;
    }
    if (!is_live(app.state)) return Reason::kAppEnded;
    if (app.pool != command.pool) return Reason::kState;
    member->task = find_task(member->app, said.task);
    if (member->task != kNoRow) {
        const shm::TaskRow& task = state.tasks[member->task];
        member->group = task.group;
        if (has_ended(task.state)) return Reason::kEnded;
        if (task.state == TaskState::kNew && task.claim == kNoRow) return Reason::kOk;
        if (task.claim != kNoRow) *other = state.claims[task.claim].arrival;
        if (task.lease != kNoRow) *other = state.leases[task.lease].arrival;
        return Reason::kDuplicate;
    }
    return Reason::kOk;
}

void Gangs::apply_claim(const Claim& command) {
    early_grants().settle_fresh();
    shm::CountersRow& counters = edit().counters(1);
    const uint64_t number = counters.arrival_next;
    put(counters.arrival_next, number + 1);
    uint64_t other = 0;
    Member member;
    Claim plain = command;  // refused for these by member_refusal()
    plain.also = {};
    plain.route = nullptr;
    Reason reason = claims().claim_refusal(plain, &other);
    if (reason == Reason::kOk) reason = member_refusal(command, &member, &other);
    if (reason == Reason::kOk && member.task == kNoRow) {
        make_room(state.apps[member.app].uid);
        if (state.counters->tasks_free == 0) reason = Reason::kTablesFull;
    }
    if (reason != Reason::kOk) {
        return claims().reject_unaccepted(command, number, reason, other);
    }
    shm::PoolRow& pool = edit().row(state.pools[command.pool], kPoolStates);
    put(pool.accepted_total, pool.accepted_total + 1);
    if (member.task == kNoRow) {
        member.task = add_task(member, command.member->task, command.member->priority);
    }
    const uint32_t row = claims().accept(command, number, {});
    put(edit().row(state.claims[row], 1U << 2U).task, member.task);
    put(edit().row(state.tasks[member.task], 1).claim, row);
    shm::AppRow& app = edit().row(state.apps[member.app], 1U << 1U);
    put(app.claims, app.claims + 1);
    hold_claim(row);
}

void Gangs::hold_claim(uint32_t row) {
    shm::ClaimRow& claim = edit().row(state.claims[row], 1);
    put(claim.state, ClaimState::kHeld);
    seat_held(row);
    add_news(state.tasks[claim.task].app);
}

// Behind those of its priority that are older.
void Gangs::seat_held(uint32_t row) {
    const shm::ClaimRow& claim = state.claims[row];
    const shm::TaskRow& task = state.tasks[claim.task];
    const auto before = [&](uint32_t other) {
        const shm::ClaimRow& that = state.claims[other];
        const int32_t priority = state.tasks[that.task].priority;
        if (priority != task.priority) return priority > task.priority;
        return that.arrival < claim.arrival;
    };
    uint32_t behind = kNoRow;
    uint32_t at = held.tail(task.app);
    while (at != kNoRow && !before(at)) {
        behind = at;
        at = held.previous(at);
    }
    held.insert_before(task.app, row, behind);
    ++held_in[claim.pool];
    if ((claim.flags & kImpatient) != 0) impatient_.push_back(row);
}

void Gangs::unhold(uint32_t row) {
    held.remove(state.tasks[state.claims[row].task].app, row);
    --held_in[state.claims[row].pool];
}

// Of a claim that has been taken off its slots.
void Gangs::wait_again(uint32_t row) {
    shm::ClaimRow& claim = edit().row(state.claims[row], 1);
    put(claim.attempts, claim.attempts < 255 ? claim.attempts + 1 : 255);
    if (const Reason reason = pools().waits_for_nothing(row); reason != Reason::kOk) {
        return claims().end_claim(row, Outcome::kRejected, reason, 0, true);
    }
    early_grants().settle_fresh();
    hold_claim(row);
}

void Gangs::end_claim(uint32_t row, Outcome outcome, Reason reason) {
    const bool confirming = state.claims[row].state == ClaimState::kReserved;
    const uint32_t first = confirming ? claims().unreserve(row) : kNoRow;
    claims().end_claim(row, outcome, reason, 0, true);
    slots().give_back_chain(first, false, false, kNoRow);
}

void Gangs::complete_task(uint32_t row) {
    const shm::TaskRow& task = state.tasks[row];
    end_task(row, TaskState::kCompleted, Reason::kOk);
    if (task.claim != kNoRow) return end_claim(task.claim, Outcome::kCancelled, Reason::kOk);
    const uint32_t lease = task.lease;
    if (lease == kNoRow) return;
    leave_lease(row);  // which may outlive the task's row, while its holder is being killed
    revoke(lease);
}

// Larger than the placeholders of its group (S4.26)?
bool Gangs::fits(uint32_t row, uint32_t group) const {
    const shm::ClaimRow& claim = state.claims[row];
    const auto& resource = state.groups[group].resource;
    const bool is_part = wants_some(resource);
    if (claim.units != 1 || wants_part(claim) != is_part) return false;
    if (!is_part) return true;
    const auto& least = state.claim_vectors[row].least;
    return std::equal(std::begin(least),
                      std::end(least),
                      std::begin(resource),
                      [](uint64_t wanted, uint64_t has) { return wanted <= has; });
}

// The first that may be granted; if there is none, the first.
uint32_t Gangs::free_placeholder(uint32_t group) const {
    uint32_t first = kNoRow;
    for (uint32_t slot = placeholders.head(group); slot != kNoRow; slot = placeholders.next(slot)) {
        if (!is_placeholder(state.slots[slot])) continue;
        if (may_be_granted(slot)) return slot;
        if (first == kNoRow) first = slot;
    }
    return first;
}

// It is drained, or protected: no claim is granted it.
bool Gangs::is_withdrawn(uint32_t row) const {
    const shm::SlotRow& slot = state.slots[row];
    return is_stopped(slot) || is_stopped(state.slots[whole_of(slot, row)]);
}

// Nor is a part while its worker has not answered for another one of the slot.
bool Gangs::may_be_granted(uint32_t row) const {
    const uint32_t whole = state.slots[row].part_of;
    if (whole != kNoRow && !vectors().parts_index->has_answered(whole)) return false;
    return !is_withdrawn(row);
}

bool Gangs::may_be_replaced(uint32_t slot) const {
    const shm::PoolRow& pool = state.pools[state.slots[slot].pool];
    const bool may_serve = pool.kind == shm::PoolKind::kCounted || may_ask(pool, 1);
    return free_rows().lease_row_left() && may_serve && may_be_granted(slot);
}

bool Gangs::serve_held(uint32_t row) {
    const shm::AppRow& app = state.apps[row];
    const bool drains = pools().draining(app.pool);
    if (app.state != AppState::kRunning && !drains) return true;
    bool is_blocked = false;
    for (uint32_t claim = held.head(row); claim != kNoRow;) {
        if (turn().full()) return false;
        const uint32_t next = held.next(claim);
        const uint32_t group = state.tasks[state.claims[claim].task].group;
        if (drains) {
            claims().end_claim(claim, Outcome::kRejected, Reason::kDraining, 0, true);
        } else {
            if (group != kNoRow && app.placeholders != 0 && !fits(claim, group)) {
                release_group(group);
            }
            if (group == kNoRow || app.placeholders == 0) {
                enter_backlog(claim);
            } else if (const uint32_t slot = free_placeholder(group);
                       slot != kNoRow && fits(claim, group)) {
                may_be_replaced(slot) ? replace(claim, slot) : void(is_blocked = true);
            }
        }
        claim = next;
    }
    if (is_blocked) blocked_.push_back(row);
    return true;
}

bool Gangs::has_unblocked() const {
    return std::any_of(blocked_.begin(), blocked_.end(), [&](uint32_t row) {
        const shm::AppRow& app = state.apps[row];
        if (app.state != AppState::kRunning || pools().draining(app.pool)) return false;
        for (uint32_t claim = held.head(row); claim != kNoRow; claim = held.next(claim)) {
            const uint32_t group = state.tasks[state.claims[claim].task].group;
            const uint32_t slot = group == kNoRow ? kNoRow : free_placeholder(group);
            if (slot != kNoRow && fits(claim, group) && may_be_replaced(slot)) return true;
        }
        return false;
    });
}

// The pool may have become too small for it since it came.
void Gangs::enter_backlog(uint32_t claim) {
    if (const Reason reason = pools().waits_for_nothing(claim); reason != Reason::kOk) {
        return claims().end_claim(claim, Outcome::kRejected, reason, 0, true);
    }
    unhold(claim);
    matcher().backlog.forget_seat(state.claims[claim].pool, claim);
    claims().wait_in_backlog(claim);
}

void Gangs::replace(uint32_t row, uint32_t slot) {
    unhold(row);
    const uint32_t pool = state.claims[row].pool;
    shm::SlotRow& taken = edit().row(state.slots[slot], 1);
    put(taken.round, taken.round + 1);
    const bool counted = state.pools[pool].kind == shm::PoolKind::kCounted;
    matcher().give(row, slot, counted ? SlotState::kLeased : SlotState::kReserved);
    if (!counted) matcher().touch(pool);  // one more that waits for its worker: demand
    if (taken.part_of != kNoRow) vectors().slot_changes(slot);
}

void Gangs::is_granted(uint32_t claim, uint32_t lease) {
    const uint32_t row = state.claims[claim].task;
    shm::TaskRow& task = edit().row(state.tasks[row], 1);
    put(task.state, TaskState::kBound);
    put(task.claim, kNoRow);
    put(task.lease, lease);
    put(edit().row(state.leases[lease], 1U << 1U).of_task, 1);
    task_of[lease] = row;
    shm::AppRow& app = edit().row(state.apps[task.app], 1U << 1U);
    put(app.claims, app.claims - 1);
    put(app.leases, app.leases + 1);
    const uint32_t slot = state.leases[lease].first_slot;
    if (linked != 0 && state.slots[slot].group != kNoRow) {
        unlink(slot, PlaceholderNews::kReplaced);
    }
}

// Without a grant.
void Gangs::claim_ends(uint32_t claim, Outcome outcome, Reason reason) {
    const uint32_t row = state.claims[claim].task;
    shm::TaskRow& task = edit().row(state.tasks[row], 1);
    if (state.claims[claim].state == ClaimState::kHeld) unhold(claim);
    // It may have been about to replace a placeholder.
    if (state.claims[claim].state == ClaimState::kReserved) add_news(task.app);
    put(task.claim, kNoRow);
    shm::AppRow& app = edit().row(state.apps[task.app], 1U << 1U);
    put(app.claims, app.claims - 1);
    if (has_ended(task.state)) return;
    const bool cancelled = outcome == Outcome::kCancelled;
    end_task(row, cancelled ? TaskState::kKilled : TaskState::kFailed, reason);
}

void Gangs::lease_ends(uint32_t lease, Reason reason) {
    const uint32_t row = task_of[lease];
    const bool completed = reason == Reason::kOk || reason == Reason::kDone;
    const bool revoked = reason == Reason::kRevoked;
    end_task(row,
             completed ? TaskState::kCompleted
             : revoked ? TaskState::kKilled
                       : TaskState::kFailed,
             reason);
    leave_lease(row);
}

// It has ended. The lease is one like others from here on.
void Gangs::leave_lease(uint32_t row) {
    shm::TaskRow& task = edit().row(state.tasks[row], 1);
    put(edit().row(state.leases[task.lease], 1U << 1U).of_task, 0);
    task_of[task.lease] = kNoRow;
    put(task.lease, kNoRow);
    shm::AppRow& app = edit().row(state.apps[task.app], 1U << 1U);
    put(app.leases, app.leases - 1);
    if (app.state != AppState::kKilling || app.leases != 0) return;
    if (std::find(ending_.begin(), ending_.end(), task.app) == ending_.end()) {
        ending_.push_back(task.app);
    }
}

}  // namespace dibs::core
