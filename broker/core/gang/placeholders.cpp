// broker/core/gang/placeholders.cpp -- takes slots for placeholders, and gives them back.
//
// A slot with a group is its placeholder's until it is replaced, released or lost, in whichever
// state it is meanwhile: recovering from a refusal, or asked for the task that replaces it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::AppState;

// False: there is no claim row.
bool Gangs::ask(uint32_t group_row) {
    if (const uint32_t asks = state.groups[group_row].claim; asks != kNoRow) {
        const uint32_t missing = state.groups[group_row].members - state.groups[group_row].bound;
        if (state.claims[asks].units == missing) return true;
        matcher().claim_stops_waiting(asks);  // a slot that it had is gone
        shm::ClaimRow& claim = edit().row(state.claims[asks], 1);
        put(claim.state, shm::ClaimState::kHeld);
        put(claim.units, missing);
        claims().wait_in_backlog(asks);
        return true;
    }
    if (state.counters->claims_free == 0) return false;
    shm::GroupRow& group = edit().row(state.groups[group_row], 1);
    const shm::AppRow& app = state.apps[group.app];
    const uint32_t row = free_rows().take_claim_row();
    shm::ClaimRow& claim = edit().fresh_row(state.claims[row]);
    const bool wants_part = wants_some(group.resource);
    shm::ClaimRow blank{};
    blank.head = claim.head;
    std::memcpy(&claim, &blank, sizeof(claim));
    stored();
    put(claim.pool, app.pool);
    put(claim.session, kNoRow);
    put(claim.arrival, group.number);
    put(claim.deadline_ns, kNever);
    put(claim.first_slot, kNoRow);
    put(claim.units, group.members - group.bound);
    put(claim.priority, app.priority);
    put(claim.flags, wants_part ? shm::ClaimFlag::kPart : 0);
    put(claim.payload, kNoRow);
    put(claim.account, kNoRow);
    put(claim.room, kNoRow);
    put(claim.label_set, kNoRow);
    put(claim.preferred_set, kNoRow);
    put(claim.carried_cost, kNoRow);
    put(claim.lease, kNoRow);
    put(claim.meta, kNoRow);
    put(claim.task, kNoRow);
    put(claim.group, group_row);
    put(claim.enqueued_ns, turn().now_ns);
    if (wants_part) {
        shm::ClaimVectorRow& wanted = edit().row(state.claim_vectors[row], 1U << 1U);
        for (size_t at = 0; at < shm::kResourcesMax; ++at) {
            put(wanted.least[at], group.resource[at]);
            put(wanted.most[at], group.resource[at]);
        }
        put(wanted.offer, 0);
        put(wanted.offer_slot, kNoRow);
    }
    put(group.claim, row);
    matcher().ask_comes(row);
    claims().wait_in_backlog(row);
    return true;
}

void Gangs::drop_ask(uint32_t group_row) {
    shm::GroupRow& group = edit().row(state.groups[group_row], 1);
    const uint32_t claim = group.claim;
    if (claim == kNoRow) return;
    put(group.claim, kNoRow);
    const uint32_t pool = state.claims[claim].pool;
    if (state.claims[claim].state == shm::ClaimState::kWaiting) {
        matcher().claim_stops_waiting(claim);
    }
    matcher().claim_goes(claim);
    matcher().touch(pool);
    free_rows().free_claim_row(claim);
}

// Where a claim that waits is ended because its pool drains.
void Gangs::ask_drains(uint32_t claim) {
    const uint32_t group = state.claims[claim].group;
    const uint32_t app = state.groups[group].app;
    if (state.apps[app].state != AppState::kReserving) return drop_ask(group);  // it is ending
    reservation_fails(app, Reason::kReservationFailed);
}

// The next that a claim would get; no worker is asked, and no lease row is needed.
uint32_t Gangs::slot_for(uint32_t row) {
    const shm::ClaimRow& claim = state.claims[row];
    const auto& held_back = vectors().held_back;
    if (wants_part(claim)) return vectors().slot_for_placeholder(row);
    if (!held_back.empty()) {
        const auto others = vectors().idle_for_others(claim.pool, 1);
        return others.empty() ? kNoRow : others.front();
    }
    const shm::PoolRow& pool = state.pools[claim.pool];
    return provisioning().is_elastic(claim.pool) ? pool.ready_tail : pool.ready_head;
}

bool Gangs::serve_holder(uint32_t pool) {
    const uint32_t app = holder[pool];
    bool is_over = true;
    each_group(app, [&](uint32_t group) {
        const uint32_t claim = state.groups[group].claim;
        if (claim != kNoRow && is_over) is_over = serve_ask(claim);
    });
    return is_over;
}

// It reserves, and asks for nothing: who does comes first. What the pass has passed over may be
// served now. False: the log is full.
bool Gangs::give_way(uint32_t app) {
    bool is_full = false;
    each_group(app, [&](uint32_t group) {
        while (!is_full && placeholders.head(group) != kNoRow) {
            is_full = turn().full();
            if (!is_full) put_back(placeholders.head(group));
        }
    });
    has_given_way = true;
    return !is_full;
}

bool Gangs::serve_ask(uint32_t row) {
    const shm::ClaimRow& claim = state.claims[row];
    const uint32_t pool = claim.pool;
    const uint32_t group = claim.group;
    const uint32_t app = state.groups[group].app;
    if (const uint32_t other = holder[pool]; other != kNoRow && other != app) {
        if (is_managed(state.apps[other])) return true;
        if (!give_way(other)) return false;
    }
    for (;;) {
        if (turn().full()) return false;
        uint32_t slot = slot_for(row);
        if (slot == kNoRow) {
            const bool goes_on = has_resources(state.pools[pool])
                                     ? vectors().collect(row, 1)
                                     : leases().collect(pool, 1, false);
            if (!goes_on) return false;
            slot = slot_for(row);
        }
        if (slot == kNoRow) return true;
        if (claim.units == 1) break;
        matcher().claim_stops_waiting(row);
        put(edit().row(claim, 1).state, shm::ClaimState::kHeld);
        hold(slot, group);
        put(edit().row(claim, 1).units, claim.units - 1);
        claims().wait_in_backlog(row);
    }
    hold(slot_for(row), group);
    drop_ask(group);
    if (is_whole(app)) holder[pool] = kNoRow;  // others may hold a part from now on
    return true;
}

// An idle slot, or one that a part of is free, for the group's placeholder with the lowest index
// that is not there.
void Gangs::hold(uint32_t slot_row, uint32_t group_row) {
    shm::GroupRow& group = edit().row(state.groups[group_row], 1);
    shm::AppRow& app = edit().row(state.apps[group.app], 1U | 1U << 1U);
    uint32_t row = slot_row;
    if (wants_part(state.claims[group.claim])) {
        row = vectors().cut_part(group.claim, slot_row, SlotState::kReserved);
    } else {
        slots().move_slot(row, SlotState::kReserved);
    }
    uint8_t index = 0;
    uint32_t behind = placeholders.head(group_row);
    for (; behind != kNoRow && state.slots[behind].index == index; ++index)
        behind = placeholders.next(behind);
    shm::SlotRow& slot = edit().row(state.slots[row], 1U | 1U << 1U);
    put(slot.holder, kNoRow);
    put(slot.holder_next, kNoRow);
    put(slot.reserved_until_ns, 0);
    put(slot.group, group_row);
    put(slot.index, index);
    placeholders.insert_before(group_row, row, behind);
    ++linked;
    put(group.bound, group.bound + 1);
    put(app.placeholders, app.placeholders + 1);
    is_new_holder = is_new_holder || holder[app.pool] != group.app;
    holder[app.pool] = group.app;
    if (slot.part_of != kNoRow) vectors().slot_changes(row);
    matcher().holder_changes(row);
    tell_of_slot(row, PlaceholderNews::kBound);
    if (group.bound >= group.members) add_news(group.app);
}

void Gangs::tell_of_slot(uint32_t row, PlaceholderNews news) {
    const shm::SlotRow& slot = state.slots[row];
    const shm::GroupRow& group = state.groups[slot.group];
    const std::string_view name{group.name, group.name_size};
    Decision& told = tell_of(DecisionKind::kPlaceholder, group.app, name);
    told.to_class = static_cast<uint8_t>(news);
    told.slot_number = slot.number;
    told.value = slot.index;
}

void Gangs::unlink(uint32_t row, PlaceholderNews news) {
    shm::SlotRow& slot = edit().row(state.slots[row], 1U | 1U << 1U);
    shm::GroupRow& group = edit().row(state.groups[slot.group], 1);
    shm::AppRow& app = edit().row(state.apps[group.app], 1U << 1U);
    tell_of_slot(row, news);
    placeholders.remove(slot.group, row);
    --linked;
    put(group.bound, group.bound - 1);
    if (news == PlaceholderNews::kReplaced) put(group.replaced, group.replaced + 1);
    put(app.placeholders, app.placeholders - 1);
    put(slot.group, kNoRow);
    put(slot.index, 0);
    add_news(group.app);
    if (app.placeholders != 0 || holder[app.pool] != group.app) return;
    holder[app.pool] = kNoRow;
    matcher().touch(app.pool);
}

// The slot of a placeholder that is not being replaced.
void Gangs::put_back(uint32_t slot) {
    const bool is_here = is_placeholder(state.slots[slot]);
    unlink(slot, PlaceholderNews::kReleased);
    if (is_here) slots().make_idle(slot);
}

void Gangs::release_group(uint32_t group) {
    for (uint32_t slot = placeholders.head(group); slot != kNoRow;) {
        const uint32_t next = placeholders.next(slot);
        const bool is_replaced =
            state.slots[slot].state == SlotState::kReserved && state.slots[slot].holder != kNoRow;
        if (!is_replaced) put_back(slot);
        slot = next;
    }
}

void Gangs::release_all(uint32_t app) {
    each_group(app, [&](uint32_t group) { release_group(group); });
}

bool Gangs::comes_back(uint32_t row) {
    const shm::SlotRow& found = state.slots[row];
    if (found.group == kNoRow || dispatch().is_dispatched(found.pool)) return false;
    const uint32_t app = state.groups[found.group].app;
    const AppState now = state.apps[app].state;
    if (now != AppState::kReserving && now != AppState::kRunning) {
        unlink(row, PlaceholderNews::kReleased);
        return false;
    }
    // A mark of its slot keeps a part from being granted, not from being there.
    const bool is_part = found.part_of != kNoRow;
    if (is_part ? slots().leaves(row) : is_stopped(found)) return false;
    shm::SlotRow& slot = edit().row(found, 1U | 1U << 1U);
    put(slot.holder, kNoRow);
    put(slot.holder_next, kNoRow);
    put(slot.flags, 0);
    put(slot.reserved_until_ns, 0);
    if (slot.state != SlotState::kReserved) slots().move_slot(row, SlotState::kReserved);
    if (slot.part_of != kNoRow) vectors().slot_changes(row);
    matcher().holder_changes(row);
    add_news(app);
    return true;
}

std::pair<uint64_t, uint32_t> Gangs::place(const shm::SlotRow& slot) const {
    return {slot.group == kNoRow ? 0 : state.groups[slot.group].number, slot.index};
}

std::vector<uint32_t> Gangs::placeholders_in(uint32_t pool) const {
    std::vector<uint32_t> found;
    const auto look_at = [&](uint32_t app) {
        each_group(app, [&](uint32_t group) {
            for (uint32_t slot = placeholders.head(group); slot != kNoRow;
                 slot = placeholders.next(slot))
                found.push_back(slot);
        });
    };
    for (uint32_t app = pool_apps.head(pool); app != kNoRow; app = pool_apps.next(app))
        look_at(app);
    for (const uint32_t app : ending_) {
        const bool has_left = has_ended(state.apps[app].state) ||
                              state.apps[app].state == AppState::kGoing;  // the pool's list
        if (has_left && state.apps[app].pool == pool) look_at(app);
    }
    std::sort(found.begin(), found.end(), [&](uint32_t one, uint32_t other) {
        return place(state.slots[one]) < place(state.slots[other]);
    });
    return found;
}

// A slot of a counted pool: its parts that are leased stay until that ends. Where the log is full
// some that are not stay, too: who called asks once more.
void Gangs::whole_leaves(uint32_t whole) {
    if (linked == 0) return;
    for (const uint32_t part : placeholders_in(state.slots[whole].pool)) {
        if (state.slots[part].part_of != whole) continue;
        if (turn().full()) return;
        vectors().join_part(part);
    }
}

void Gangs::is_lost(uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    if (slot.group == kNoRow || dispatch().is_dispatched(slot.pool)) return;
    unlink(row, PlaceholderNews::kLost);
}

}  // namespace dibs::core
