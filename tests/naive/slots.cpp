// tests/naive/slots.cpp -- "Slots" of docs/scheduling.md: states, admission, freeing, announcing.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "tests/naive/labels.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

using core::Decision;
using core::DecisionKind;
using shm::Reason;

// The idle slots of a pool, first the one that became so first: nothing is queued twice (S0.14).
std::vector<uint64_t> NaiveCore::ready_of(uint32_t pool) const {
    std::map<uint64_t, uint64_t> by_place;
    for (const auto& [id, slot] : m_.slots) {
        if (slot.pool == pool && slot.is == SlotIs::kIdle) by_place[slot.idle_place] = id;
    }
    std::vector<uint64_t> ready;
    for (const auto& [place, id] : by_place)
        ready.push_back(id);
    return ready;
}

// "Wherever a slot becomes idle while it is protected or unqualified, that admission is stopped
// and it is recovering instead. Each admission that one of the two stops is counted (S0.14,
// S0.15), protected first." A draining slot's row is freed instead.
void NaiveCore::become_idle(uint64_t id) {
    Slot& slot = m_.slots.at(id);
    Pool& pool = m_.pools.at(slot.pool);
    slot.is_collected = false;
    if (slot.is_draining) {
        leave(id);
        return;
    }
    slot.only_waits_for_admission = slot.is_protected || slot.is_unqualified;
    if (slot.only_waits_for_admission) {
        if (slot.is_protected) {
            pool.totals.skipped += 1;
        } else {
            pool.totals.unqualified += 1;
        }
        slot.is = SlotIs::kRecovering;
        return;
    }
    if (slot.promised_to != 0) {
        const Claim& next = m_.claims.at(slot.promised_to);
        if (m_.now > next.deadline_ns || !has_all(slot.labels, next.base)) void_promise(id);
    }
    if (slot.promised_to != 0) {
        give_promised(id);
        return;
    }
    slot.is = SlotIs::kIdle;
    slot.idle_place = m_.idle_seen++;
}

void NaiveCore::become_recovering(uint64_t id) {
    Slot& slot = m_.slots.at(id);
    if (slot.is_draining) {
        leave(id);
        return;
    }
    slot.is = SlotIs::kRecovering;
    slot.only_waits_for_admission = false;
}

void NaiveCore::become_unknown(uint64_t id) {
    Slot& slot = m_.slots.at(id);
    if (slot.is_draining) {
        leave(id);
        return;
    }
    slot.is = SlotIs::kUnknown;
    slot.only_waits_for_admission = false;
}

// "Where a slot's row is freed, kSlotGone is decided, after the slot's kRevoke if it has one."
void NaiveCore::leave(uint64_t id) {
    Slot& slot = m_.slots.at(id);
    void_promise(id);
    Decision& gone =
        tell(DecisionKind::kSlotGone, slot.session == dying_ ? shm::kNoRow : slot.session);
    gone.pool = slot.pool;
    gone.slot_number = slot.number;
    gone.id = id;
    arena_freed(slot.attribute_blocks);
    m_.slots.erase(id);
}

// "Freed means: a worker slot is recovering and its worker is told revoke (idle at once and nobody
// told where the pool says release_is_ready and its worker had confirmed); a counted slot is idle."
// Not at once after *fail*.
void NaiveCore::free_slot(uint64_t id, bool broken) {
    Slot& slot = m_.slots.at(id);
    const core::PoolConfig& pool = m_.pools.at(slot.pool).config;
    const bool counted = pool.kind == shm::PoolKind::kCounted;
    // A worker that is only reported must say idle, but for whoever has preempted there.
    const bool is_promised = slot.session == shm::kNoRow && slot.promised_to != 0;
    const bool is_reported_idle = std::exchange(slot.is_reported_idle, false);
    if (counted || is_promised || is_reported_idle ||
        (pool.release_is_ready && slot.has_confirmed && !broken)) {
        become_idle(id);
        return;
    }
    revoke(slot);
    become_recovering(id);
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

// "Protect takes an idle slot out of the ready queue (recovering); in other states it only sets
// the mark."
void NaiveCore::protect(Slot& slot) {
    slot.is_protected = true;
    if (slot.is != SlotIs::kIdle) return;
    slot.is = SlotIs::kRecovering;
    slot.only_waits_for_admission = true;
}

// "A slot that was only waiting for that becomes idle."
void NaiveCore::admit_if_only_waiting(Slot& slot) {
    const bool stopped = slot.is_protected || slot.is_unqualified;
    if (slot.is == SlotIs::kRecovering && slot.only_waits_for_admission && !stopped) {
        become_idle(slot.id);
    }
}

// "Announcing is checked in this order."
Reason NaiveCore::announce_refusal(const core::Announce& announce, const Slot* existing) const {
    if (announce.refusal != Reason::kOk) return announce.refusal;
    if (!pool_lives(announce.pool)) return Reason::kUnknownPool;
    const core::PoolConfig& pool = m_.pools[announce.pool].config;
    if (pool.kind == shm::PoolKind::kCounted) return Reason::kState;
    if (existing != nullptr && existing->session != announce.session) return Reason::kNameInUse;
    if (announce.attributes.size() > pool.attributes_max) return Reason::kPayload;
    if (by_account(announce.pool) && !labels_are_sound(announce.labels)) return Reason::kPayload;
    if (existing == nullptr && m_.slots.size() >= limits_.slots) return Reason::kTablesFull;
    if (blocks_for(announce.attributes.size()) > arena_free()) return Reason::kArenaFull;
    return Reason::kOk;
}

void NaiveCore::apply(const core::Announce& announce) {
    Slot* existing = slot_named(announce.pool, announce.name);
    const Reason refusal = announce_refusal(announce, existing);
    if (refusal != Reason::kOk) {
        tell_result(announce.session, announce.user_data, refusal);
        return;
    }
    uint64_t id = m_.slots_seen;
    if (existing == nullptr) {
        Slot slot;
        slot.id = m_.slots_seen++;
        slot.pool = announce.pool;
        slot.number = m_.pools[announce.pool].number_next++;
        slot.session = announce.session;
        slot.name = announce.name;
        m_.slots[id] = slot;
    } else {
        id = existing->id;
    }
    Slot& slot = m_.slots.at(id);
    Decision& announced = tell(DecisionKind::kAnnounced, announce.session);
    announced.user_data = announce.user_data;
    announced.pool = slot.pool;
    announced.slot_number = slot.number;
    announced.id = id;

    arena_freed(slot.attribute_blocks);
    slot.attribute_blocks = blocks_for(announce.attributes.size());
    slot.worker_tag = announce.worker_tag;
    if (by_account(announce.pool)) slot.labels = label_set(announce.labels);
    if (existing != nullptr) {
        announce_again(slot, announce);
        return;
    }
    // "recovering; idle if it says ready and is neither protected nor unqualified"
    slot.is_protected = announce.is_protected;
    slot.is_unqualified = lacks_label(announce.pool, label_set(announce.labels));
    if (announce.ready) become_idle(id);
}

// "The new protection and labels count first: an idle slot that is now protected or unqualified
// leaves the queue, one that had only been waiting for that becomes idle." Then "ready on it
// counts as the word ready (in any state but reserved, kept included, or leased)." Of a pool
// ordered by account: "one that is reserved for a claim and lacks one of its base labels by now is
// freed with the claim's other slots, and the claim waits again in its place".
void NaiveCore::announce_again(Slot& slot, const core::Announce& announce) {
    slot.is_protected = announce.is_protected;
    slot.is_unqualified = lacks_label(announce.pool, label_set(announce.labels));
    if (slot.is == SlotIs::kReserved && by_account(slot.pool) &&
        !has_all(slot.labels, m_.claims.at(slot.claim).base)) {
        const uint64_t number = slot.claim;
        const std::vector<uint64_t> slots = m_.claims.at(number).slots;
        wait_again(number);
        for (const uint64_t freed : slots)
            free_slot(freed);
        return;
    }
    if (slot.is == SlotIs::kIdle && (slot.is_protected || slot.is_unqualified)) {
        slot.is = SlotIs::kRecovering;
        slot.only_waits_for_admission = true;
    }
    admit_if_only_waiting(slot);
    const bool taken = slot.is == SlotIs::kReserved || slot.is == SlotIs::kKept ||
                       slot.is == SlotIs::kLeased || slot.holder_is_killed;
    if (announce.ready && !taken) ready(slot);
}

// Names are unique in their pool; the empty name is none.
Slot* NaiveCore::slot_named(uint32_t pool, std::string_view name) {
    if (name.empty()) return nullptr;
    for (auto& [id, slot] : m_.slots) {
        if (slot.pool == pool && slot.name == name) return &slot;
    }
    return nullptr;
}

// "A slot that lacks its pool's required_label (exact match with one of its labels)." S0.15
bool NaiveCore::lacks_label(uint32_t pool, const Labels& labels) const {
    const std::string& required = m_.pools.at(pool).required_label;
    return !required.empty() && !labels.contains(required);
}

}  // namespace dibs::naive
