// tests/naive/words.cpp -- what a worker says of a slot: the table of docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/naive/naive_core.hpp"

namespace dibs::naive {

using core::Decision;
using core::DecisionKind;
using shm::Outcome;
using shm::Reason;
using Kind = core::WorkerWord::Kind;

namespace {

bool has_round(Kind kind) {
    return kind == Kind::kReady || kind == Kind::kConfirm || kind == Kind::kRefuse ||
           kind == Kind::kDone;
}

}  // namespace

// The lines of the table, and the two paragraphs on withdraw and protect, which hold in any state.
bool NaiveCore::table_names(const core::WorkerWord& word, const Slot& slot) {
    const SlotIs is = slot.is;
    switch (word.kind) {
        case Kind::kReady:
            return !slot.holder_is_killed;
        case Kind::kWithdraw:
        case Kind::kProtect:
        case Kind::kUnprotect:
            return true;
        case Kind::kConfirm:
            return (is == SlotIs::kReserved && !slot.has_confirmed) || is == SlotIs::kUnknown;
        case Kind::kRefuse:
            return is == SlotIs::kReserved || is == SlotIs::kUnknown;
        case Kind::kDone:
            return is == SlotIs::kLeased;
    }
    return false;
}

// "A word whose round is not the slot's current one: stale. Of another session's slot: not holder.
// Of a slot that is not there: not found." "An answer longer than the pool's answer_max is
// payload."
Reason NaiveCore::word_refusal(const core::WorkerWord& word) const {
    const auto found = m_.slots.find(word.slot);
    if (found == m_.slots.end()) return Reason::kNotFound;
    const Slot& slot = found->second;
    if (slot.session != word.session) return Reason::kNotHolder;
    if (has_round(word.kind) && slot.round != word.round) return Reason::kStale;
    if (!table_names(word, slot)) return Reason::kState;
    const bool confirms = word.kind == Kind::kConfirm && slot.is == SlotIs::kReserved;
    if (confirms && m_.now > m_.claims.at(slot.claim).deadline_ns) return Reason::kState;
    if (word.answer.size() > m_.pools.at(slot.pool).config.answer_max) return Reason::kPayload;
    return Reason::kOk;
}

void NaiveCore::apply(const core::WorkerWord& word) {
    const Reason refusal = word_refusal(word);
    tell_result(word.session, word.user_data, refusal);
    if (refusal != Reason::kOk) return;
    Slot& slot = m_.slots.at(word.slot);
    switch (word.kind) {
        case Kind::kReady:
            ready(slot);
            break;
        case Kind::kConfirm:
            confirm(slot, word);
            break;
        case Kind::kRefuse:
            refuse(slot, word);
            break;
        case Kind::kDone:
            done(slot, word.then_ready, word.answer);
            break;
        case Kind::kWithdraw:
            withdraw(slot);
            break;
        case Kind::kProtect:
            protect(slot);
            break;
        case Kind::kUnprotect:
            slot.is_protected = false;
            admit_if_only_waiting(slot);
            break;
    }
}

void NaiveCore::ready(Slot& slot) {
    switch (slot.is) {
        case SlotIs::kIdle:
            break;
        case SlotIs::kReserved:
            ready_while_reserved(slot);
            break;
        case SlotIs::kKept:  // S0.24: a newer ready ends the reservation
        case SlotIs::kRecovering:
        case SlotIs::kUnknown:
            become_idle(slot.id);
            break;
        case SlotIs::kLeased:
            done(slot, true, {});
            break;
    }
}

// "reserved | ready | idle | as refuse-try-again, but idle at once": before its claim may end.
void NaiveCore::ready_while_reserved(Slot& slot) {
    const uint64_t id = slot.id;
    const std::vector<uint64_t> slots = m_.claims.at(slot.claim).slots;
    const uint64_t number = slot.claim;
    become_idle(id);
    wait_again(number);
    for (const uint64_t other : slots) {
        if (other != id) free_slot(other);
    }
}

void NaiveCore::confirm(Slot& slot, const core::WorkerWord& word) {
    if (slot.is == SlotIs::kUnknown) {  // "late news": invariant 4
        revoke(slot);
        become_recovering(slot.id);
        return;
    }
    slot.has_confirmed = true;
    tell_answer(slot, word.answer);
    const std::vector<uint64_t>& slots = m_.claims.at(slot.claim).slots;
    const bool last = std::all_of(
        slots.begin(), slots.end(), [&](uint64_t id) { return m_.slots.at(id).has_confirmed; });
    if (last) grant(slot.claim);
}

// "refuse, try again: kept until its reservation's instant; the claim waits again in its place; its
// other slots are freed." "refuse, for good: idle (released first: S0.26); the claim ends rejected
// (refused) with the worker's code; its other slots are freed."
void NaiveCore::refuse(Slot& slot, const core::WorkerWord& word) {
    m_.pools.at(slot.pool).totals.refused += 1;
    if (slot.is == SlotIs::kUnknown) {
        become_idle(slot.id);
        return;
    }
    const uint64_t id = slot.id;
    const uint64_t number = slot.claim;
    const std::vector<uint64_t> slots = m_.claims.at(number).slots;
    if (word.try_again) {
        slot.is = SlotIs::kKept;
        slot.kept_until_ns = m_.claims.at(number).reserved_until_ns;
        wait_again(number);
    } else {
        become_idle(id);
        end_claim(number, Outcome::kRejected, Reason::kRefused, static_cast<uint64_t>(word.code));
    }
    for (const uint64_t other : slots) {
        if (other != id) free_slot(other);
    }
}

// "leased | done | recovering; idle if it says then ready | the lease ends (done); the lease's
// other slots are freed"
void NaiveCore::done(Slot& slot, bool then_ready, std::span<const uint8_t> answer) {
    const uint64_t id = slot.id;
    tell_answer(slot, answer);
    tell_lease_end(m_.leases.at(slot.claim), Reason::kDone);
    for (const uint64_t other : remove_lease(slot.claim)) {
        if (other != id) free_slot(other);
    }
    if (then_ready) {
        become_idle(id);
    } else {
        become_recovering(id);
    }
}

// "A draining slot (worker says withdraw while it is reserved or leased) is not granted again and
// its row is freed where it would become idle, recovering or unknown. Withdraw of a slot in
// another state frees its row at once."
void NaiveCore::withdraw(Slot& slot) {
    if (slot.is == SlotIs::kReserved || slot.is == SlotIs::kLeased || slot.holder_is_killed) {
        slot.is_draining = true;
    } else {
        leave(slot.id);
    }
}

// A worker's answer goes to the holder, before the grant or the lease's end that it belongs to.
void NaiveCore::tell_answer(const Slot& slot, std::span<const uint8_t> bytes) {
    if (bytes.empty()) return;
    const auto claim = m_.claims.find(slot.claim);
    const bool waits = claim != m_.claims.end();
    const std::vector<uint64_t>& slots =
        waits ? claim->second.slots : m_.leases.at(slot.claim).slots;
    Decision& answer = tell(DecisionKind::kAnswer,
                            waits ? claim->second.session : m_.leases.at(slot.claim).session);
    answer.tag = waits ? claim->second.tag : m_.leases.at(slot.claim).tag;
    answer.pool = slot.pool;
    answer.claim = slot.claim;
    answer.slots_begin =
        static_cast<uint32_t>(std::find(slots.begin(), slots.end(), slot.id) - slots.begin());
    answer.answer = bytes;
    if (!waits) answer.reason = shm::Reason::kDone;  // its last one
}

}  // namespace dibs::naive
