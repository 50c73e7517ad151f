// tests/naive/slots.cpp -- slots: announced, admitted to the ready queue, let go, gone.
//
// What names a statement is written from it; what quotes (draining, promises, reasons of refusals)
// is of docs/scheduling.md. A slot is in the ready queue while it is idle: no list is beside it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "tests/naive/gangs.hpp"
#include "tests/naive/labels.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

using core::Decision;
using core::DecisionKind;
using shm::Reason;

// S0.14: the ready queue is first in, first out. A slot is in it once, as it is idle once.
std::vector<uint64_t> NaiveCore::ready_of(uint32_t pool) const {
    std::map<uint64_t, uint64_t> by_place;
    for (const auto& [id, slot] : m_.slots) {
        if (slot.pool == pool && slot.is == SlotIs::kIdle) by_place[slot.idle_place] = id;
    }
    std::vector<uint64_t> ready;
    ready.reserve(by_place.size());
    for (const auto& [place, id] : by_place)
        ready.push_back(id);
    return ready;
}

// S0.28: what is said of a slot is seen at once, and S0.7: no claim waits for somebody to look.
// S0.14: a protected slot is not admitted, and counted as skipped; S0.15: one that lacks the
// required label is counted by itself, and only if it came as far. S0.16: both are forgotten, not
// lost; they are admitted when nothing stops them any more. A draining slot is granted no more: it
// goes.
void NaiveCore::become_idle(uint64_t id) {
    Slot& slot = m_.slots.at(id);
    if (gangs().comes_back(slot)) return;
    if (slot.part_of) {
        join_part(id);
        return;
    }
    Totals& totals = m_.pools.at(slot.pool).totals;
    slot.is_collected = false;
    slot.is_taken_back = false;
    slot.only_waits_for_admission = false;
    if (slot.is_draining) {
        leave(id);
        return;
    }
    if (slot.is_protected || slot.is_unqualified) {
        (slot.is_protected ? totals.skipped : totals.unqualified) += 1;
        stop_admission(slot);
        return;
    }
    // "The slot goes to the preemptor's claim as soon as it would be idle."
    if (slot.promised_to != 0 && promise_is_void(slot)) void_promise(id);
    // S0.22, invariant 9: past the maximum it is held over, and so it is behind others that are.
    const bool must_wait = slot.promised_to != 0 && slot.session != shm::kNoRow &&
                           (!may_ask(slot.pool, 1) || !held_over_in(slot.pool).empty());
    if (must_wait) {
        slot.is = SlotIs::kRecovering;
        slot.only_waits_for_admission = true;
        return;
    }
    if (slot.promised_to != 0) {
        give_promised(id);
        return;
    }
    slot.is = SlotIs::kIdle;
    slot.idle_place = m_.idle_seen++;
    slot.idle_since_ns = m_.now;
    slot.boot_until_ns = shm::kNever;
}

// S0.11: nobody has said of it that it is idle: it is not in the queue until its worker does.
void NaiveCore::become_recovering(uint64_t id) {
    Slot& slot = m_.slots.at(id);
    slot.is = SlotIs::kRecovering;
    slot.is_taken_back = false;
    slot.only_waits_for_admission = false;
    if (is_leaving(slot)) return leave(id);
}

// S0.19: its worker was asked and has not answered. As long as that is so the slot is held, if for
// nobody: no second claim can have it. Whoever was not asked (S2.24) cannot confirm late.
void NaiveCore::become_unknown(uint64_t id) {
    Slot& slot = m_.slots.at(id);
    const bool is_asked = slot.is == SlotIs::kReserved;
    slot.is = SlotIs::kUnknown;
    slot.is_taken_back = slot.is_taken_back || is_asked;  // "idle … if it was taken back"
    slot.only_waits_for_admission = false;
    if (is_leaving(slot)) return leave(id);
}

// S0.15: a slot that is not there any more is in no queue. S0.20: its id is not used again, so that
// nothing said of it can be meant for another incarnation.
void NaiveCore::leave(uint64_t id) {
    Slot& slot = m_.slots.at(id);
    if (slot.part_of) {
        join_part(id);
        return;
    }
    void_promise(id);
    gangs().slot_goes(slot);
    // Of an order nobody is told, as nobody has offered it.
    const bool is_offered = slot.is != SlotIs::kOrdered;
    if (m_.pools.at(slot.pool).config.kind == shm::PoolKind::kWorker && is_offered) {
        Decision& gone =
            tell(DecisionKind::kSlotGone, slot.session == dying_ ? shm::kNoRow : slot.session);
        gone.pool = slot.pool;
        gone.slot_number = slot.number;
        gone.id = id;
    }
    arena_freed(slot.attribute_blocks);
    const uint32_t pool = slot.pool;
    const uint32_t type = slot.type;
    // S1.33: "or until a worker of the type has gone".
    if (type != shm::kNoRow && slot.order == shm::OrderState::kAnnounced)
        m_.types.at(type).capacity_until_ns = 0;
    m_.slots.erase(id);
    slot_count_fell(pool);
    if (type != shm::kNoRow) type_goes(type);
}

// A claim or a lease lets the slot go. S0.24: whatever was left of its reservation ends with that,
// as a new incarnation begins. Who makes it idle: of a counted slot nobody has to; where the pool
// says that a release is as good as its worker's word, nobody if the worker had taken the claim on;
// else it is on its way from running to idle, and its worker says when. After *fail* it must.
// S0.40: who was asked, and has not answered, may still confirm.
void NaiveCore::free_slot(uint64_t id, bool broken) {
    Slot& slot = m_.slots.at(id);
    const core::PoolConfig& pool = m_.pools.at(slot.pool).config;
    // A worker that is only reported must say idle, but for whoever has preempted there.
    const bool is_promised = slot.session == shm::kNoRow && slot.promised_to != 0;
    const bool is_reported_idle = std::exchange(slot.is_reported_idle, false);
    const bool is_asked = slot.is == SlotIs::kReserved && !slot.has_confirmed;
    const bool release_is_ready = pool.release_is_ready && slot.has_confirmed && !broken;
    if (pool.kind == shm::PoolKind::kCounted || release_is_ready || is_promised ||
        is_reported_idle) {
        become_idle(id);
    } else {
        revoke(slot);
        become_recovering(id);
        if (m_.slots.contains(id)) m_.slots.at(id).is_taken_back = is_asked;
    }
}

// "slots freed of other sessions' workers are told revoke as usual, its own are not"
void NaiveCore::revoke(const Slot& slot) {
    if (slot.session == dying_ || slot.session == shm::kNoRow) return;
    Decision& revoke = tell(DecisionKind::kRevoke, slot.session);
    revoke.pool = slot.pool;
    revoke.slot_number = slot.number;
    revoke.id = slot.id;
    revoke.round = slot.round;
    revoke.user_data = slot.worker_tag;
}

// S0.14: protected, it is not in the ready queue; where it was there, it comes back when the mark
// is lifted. What it does elsewhere goes on.
void NaiveCore::protect(Slot& slot) {
    slot.is_protected = true;
    if (slot.is == SlotIs::kIdle || is_only_waiting(slot)) stop_admission(slot);
}

bool NaiveCore::is_only_waiting(const Slot& slot) {
    return slot.is == SlotIs::kRecovering && slot.only_waits_for_admission;
}

// It would be idle, or held over. Invariant 9: nobody waits for what may never come, so "the
// promise is void where the slot may not be admitted".
void NaiveCore::stop_admission(Slot& slot) {
    slot.is = SlotIs::kRecovering;
    slot.only_waits_for_admission = true;
    if (slot.promised_to != 0) void_promise(slot.id);
}

// S0.16, S0.28: a slot that was idle but for what stopped it is admitted when that is gone, at
// once.
void NaiveCore::admit_if_only_waiting(Slot& slot) {
    if (!slot.only_waits_for_admission || slot.is_protected || slot.is_unqualified) return;
    become_idle(slot.id);
}

// "Announcing is checked in this order." S0.14: a name is one slot's in its pool.
Reason NaiveCore::announce_refusal(const core::Announce& announce,
                                   const Slot* existing,
                                   const Slot* order) const {
    const bool is_of_order = order != nullptr;
    if (announce.refusal != Reason::kOk) return announce.refusal;
    if (!pool_lives(announce.pool)) return Reason::kUnknownPool;
    const core::PoolConfig& pool = m_.pools[announce.pool].config;
    if (pool.kind == shm::PoolKind::kCounted || pool.dispatch) return Reason::kState;
    // "The name is another session's, or that of another worker than the order's."
    if (existing != nullptr && (existing->session != announce.session || is_of_order))
        return Reason::kNameInUse;
    // "An order's worker lacks a label of its type."
    if (is_of_order && !has_all(label_set(announce.labels), m_.types.at(order->type).labels))
        return Reason::kState;
    if (announce.attributes.size() > pool.attributes_max) return Reason::kPayload;
    const Reason wrong = announced_vector_refusal(announce, existing);
    if (wrong != Reason::kOk) return wrong;
    const bool has_row = existing != nullptr || is_of_order;
    if (!is_of_order && !announce.type.empty() &&
        type_named(announce.pool, announce.type) == shm::kNoRow) {
        return Reason::kNotFound;
    }
    if (!has_row && slot_rows_used() >= limits_.slots) return Reason::kTablesFull;
    if (blocks_for(announce.attributes.size()) > arena_free()) return Reason::kArenaFull;
    // "Checked last."
    if (by_account(announce.pool) && !labels_are_sound(announce.labels)) return Reason::kPayload;
    return Reason::kOk;
}

// S0.20: what is new is a new incarnation, with an id of its own; what is known by its name is the
// same one as before. S0.28: the state is there before it is told.
void NaiveCore::apply(const core::Announce& announce) {
    Slot* known = slot_named(announce.pool, announce.name);
    // An order that is not there any more, or another pool's, is none.
    Slot* order = open_order(announce.order, announce.pool);
    const Reason refusal = announce_refusal(announce, known, order);
    if (refusal != Reason::kOk) {
        tell_result(announce.session, announce.user_data, refusal);
        return;
    }
    const Slot* there = known != nullptr ? known : order;
    const uint64_t id = there != nullptr ? there->id : m_.slots_seen++;
    if (order != nullptr) {
        order->is = SlotIs::kRecovering;
        order->order = shm::OrderState::kAnnounced;
        order->session = announce.session;
        order->name = announce.name;
    }
    if (there == nullptr) {
        Slot fresh;
        fresh.id = id;
        fresh.pool = announce.pool;
        fresh.number = m_.pools[announce.pool].number_next++;
        fresh.session = announce.session;
        fresh.capacity = usual_capacity(announce.pool);
        fresh.name = announce.name;
        m_.slots[id] = fresh;
    }
    Slot& slot = m_.slots.at(id);
    // "A worker without an order may say its type."
    if (slot.order == shm::OrderState::kNone && !announce.type.empty()) {
        const uint32_t before = slot.type;
        slot.type = type_named(announce.pool, announce.type);
        if (before != shm::kNoRow) type_goes(before);
    }
    arena_freed(slot.attribute_blocks);
    slot.attribute_blocks = blocks_for(announce.attributes.size());
    slot.worker_tag = announce.worker_tag;
    slot.is_protected = announce.is_protected || slot.is_drained || slot.is_held;
    slot.is_unqualified = lacks_label(announce.pool, label_set(announce.labels));
    if (by_account(announce.pool)) slot.labels = label_set(announce.labels);

    if (!announce.resources.empty()) slot.capacity = *vector_of(announce.pool, announce.resources);
    slot.parts_max = announce.parts;
    Decision& announced = tell(DecisionKind::kAnnounced, announce.session);
    announced.user_data = announce.user_data;
    announced.pool = slot.pool;
    announced.slot_number = slot.number;
    announced.id = id;
    if (known != nullptr) {
        announce_again(slot, announce);
    } else if (announce.ready) {
        become_idle(id);
    }
}

// A worker says again what it has. S0.14: a slot that is queued already stays where it is, one that
// is reserved, for a claim or without one, is passed over, and one that is protected by now is not
// for the queue, nor S0.15 one that lacks the label. S0.16: what was stopped before may come in
// now.
void NaiveCore::announce_again(Slot& slot, const core::Announce& announce) {
    // "One that is reserved for a claim and lacks one of its base labels by now is freed with the
    // claim's other slots, and the claim waits again in its place."
    if (slot.is == SlotIs::kReserved && by_account(slot.pool) &&
        !has_all(slot.labels, m_.claims.at(slot.claim).base)) {
        const uint64_t number = slot.claim;
        const std::vector<uint64_t> slots = m_.claims.at(number).slots;
        wait_again(number);
        for (const uint64_t freed : slots)
            free_slot(freed);
        return;
    }
    const bool is_stopped = slot.is_protected || slot.is_unqualified;
    if (is_stopped && (slot.is == SlotIs::kIdle || is_only_waiting(slot))) stop_admission(slot);
    admit_if_only_waiting(slot);
    if (!announce.ready) return;
    const bool is_elsewhere = slot.is == SlotIs::kRecovering || slot.is == SlotIs::kUnknown;
    if (is_elsewhere && !slot.holder_is_killed) become_idle(slot.id);
}

// Names are unique in their pool; the empty name is none.
Slot* NaiveCore::slot_named(uint32_t pool, std::string_view name) {
    if (name.empty()) return nullptr;
    for (auto& [id, slot] : m_.slots) {
        if (slot.pool == pool && slot.name == name) return &slot;
    }
    return nullptr;
}

// S0.15: one of the slot's labels is the one that its pool requires, if it requires any.
bool NaiveCore::lacks_label(uint32_t pool, const Labels& labels) const {
    const std::string& required = m_.pools.at(pool).required_label;
    return !required.empty() && !labels.contains(required);
}

}  // namespace dibs::naive
