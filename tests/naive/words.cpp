// tests/naive/words.cpp -- what a worker says of its slot: how a transition went (S0.22 to S0.26),
// that the slot is idle (S0.27), that it is not for the queue (S0.14).
//
// Written from the statements named above each function. Which code a word gets that is not taken
// (stale, state, not found) no statement fixes: that follows from dibs.h and the scenarios. So does
// that a draining slot's row is freed.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/naive/gangs.hpp"

namespace dibs::naive {

using core::Decision;
using core::DecisionKind;
using shm::Outcome;
using shm::Reason;
using Kind = core::WorkerWord::Kind;

// Whether there is something that the word can be an answer to. S0.22: who has been asked, and has
// not answered, can confirm or refuse, and S0.19 whoever was asked and did not answer in time must
// still; S0.40: a confirmation may come after its claim has let the slot go. S0.25, S0.26: who has
// confirmed and not got its claim may think again. Design 5: a lease ends by its worker's "done".
// S0.27: that a slot is idle can be said at any time; invariant 2: but not while its holder may
// live on, in strict mode.
bool NaiveCore::can_say(Kind kind, const Slot& slot) {
    const bool is_asked =
        (slot.is == SlotIs::kReserved && !slot.has_confirmed) || slot.is_taken_back;
    const bool must_speak = slot.is == SlotIs::kUnknown;
    switch (kind) {
        case Kind::kReady:
            return !slot.holder_is_killed && slot.is != SlotIs::kShared;
        case Kind::kConfirm:
            return is_asked || must_speak;
        case Kind::kRefuse:
            return slot.is == SlotIs::kReserved || must_speak;
        case Kind::kDone:
            return slot.is == SlotIs::kLeased;
        case Kind::kWithdraw:
        case Kind::kProtect:
        case Kind::kUnprotect:
            return !slot.part_of;  // its slot has the marks
    }
    return false;
}

// S0.20: a word is of one incarnation of the slot and of one round of it; of another one it says
// nothing. Marks are of the slot, whatever its round. Invariant 13: it is for its own session to
// speak of it.
Reason NaiveCore::word_refusal(const core::WorkerWord& word) const {
    if (!m_.slots.contains(word.slot)) return Reason::kNotFound;
    const Slot& slot = m_.slots.at(word.slot);
    if (slot.session != word.session) return Reason::kNotHolder;
    const bool is_of_a_round = word.kind != Kind::kWithdraw && word.kind != Kind::kProtect &&
                               word.kind != Kind::kUnprotect;
    if (is_of_a_round && word.round != slot.round) return Reason::kStale;
    if (!can_say(word.kind, slot)) return Reason::kState;
    if (word.answer.size() > m_.pools.at(slot.pool).config.answer_max) return Reason::kPayload;
    return Reason::kOk;
}

// S0.28: what is said is so from here on, not later.
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
            confirm(slot, word.answer);
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
        case Kind::kUnprotect:  // S0.16
            slot.is_protected = slot.is_drained || slot.is_held;
            admit_if_only_waiting(slot);
            break;
    }
}

// S0.27, S0.11: it is idle. S0.14: where it is in the queue already it stays there. S0.24: what was
// left of a reservation ends with it. Design 5: what still runs there by a lease is done.
void NaiveCore::ready(Slot& slot) {
    if (slot.is == SlotIs::kLeased) {
        done(slot, true, {});
    } else if (slot.is == SlotIs::kReserved) {
        ready_while_reserved(slot);
    } else if (slot.is != SlotIs::kIdle && slot.is != SlotIs::kPlaceholder) {
        become_idle(slot.id);
    }
}

// S0.23: its phase is not the one that the transition would have, which is a retriable error.
// S0.25: the claim goes back to its place. Design 5: if one of N fails, the other N - 1 are freed.
void NaiveCore::ready_while_reserved(Slot& slot) {
    const uint64_t id = slot.id;
    const uint64_t number = slot.claim;
    const std::vector<uint64_t> slots = m_.claims.at(number).slots;
    become_idle(id);
    wait_again(number);
    free_others(slots, id);
}

// S0.22, S0.24: the transition is made; S0.23: it removes the mark of protection. When all of the
// claim's are, it has succeeded; but not after the claim's deadline: then it is made for nobody,
// and the claim, whose timer has not come yet, lets go of a slot that has confirmed (S0.40).
void NaiveCore::confirm(Slot& slot, std::span<const uint8_t> answer) {
    if (slot.is != SlotIs::kReserved) {
        confirm_late(slot);
        return;
    }
    slot.has_confirmed = true;
    const uint64_t number = slot.claim;
    if (m_.now > m_.claims.at(number).deadline_ns) return;
    slot.is_protected = slot.is_drained || slot.is_held;
    tell_answer(slot, answer);
    for (const uint64_t id : m_.claims.at(number).slots) {
        if (!m_.slots.at(id).has_confirmed) return;
    }
    grant(number);
}

// S0.40, invariant 4: the claim has let the slot go before; what comes for it is released at once,
// as if it had been granted. S0.24: so the slot is idle where a release is as good as its worker's
// word. Else its worker is told to clean it, if it has not been.
void NaiveCore::confirm_late(Slot& slot) {
    if (m_.pools.at(slot.pool).config.release_is_ready && slot.is_taken_back) {
        become_idle(slot.id);
        return;
    }
    if (slot.is == SlotIs::kUnknown) revoke(slot);
    become_recovering(slot.id);
}

// S0.25: a retriable error: the reservation is kept until its time, the claim goes back to its
// place. S0.26: any other: the reservation is released first, then the claim fails with that very
// error. Design 5: either way the claim's other slots are freed. S0.19: of one whose claim has gone
// back already it says that nothing runs there.
void NaiveCore::refuse(Slot& slot, const core::WorkerWord& word) {
    m_.pools.at(slot.pool).totals.refused += 1;
    const uint64_t id = slot.id;
    if (slot.is == SlotIs::kUnknown) {
        become_idle(id);
        return;
    }
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
    free_others(slots, id);
}

// In the order in which they were taken, as nothing else orders them.
void NaiveCore::free_others(const std::vector<uint64_t>& slots, uint64_t spoken_of) {
    for (const uint64_t id : slots) {
        if (id != spoken_of) free_slot(id);
    }
}

// Design 5: the lease ends, whole; its other slots are freed. The slot is recovering until its
// worker says ready, with this word or later. That the others come first no statement fixes.
void NaiveCore::done(Slot& slot, bool then_ready, std::span<const uint8_t> answer) {
    const uint64_t id = slot.id;
    tell_answer(slot, answer);
    tell_lease_end(m_.leases.at(slot.claim), Reason::kDone);
    gangs().lease_ends(m_.leases.at(slot.claim), shm::TaskState::kCompleted);
    free_others(remove_lease(slot.claim), id);
    if (then_ready) {
        become_idle(id);
    } else {
        become_recovering(id);
    }
}

// The clash of S0.29 with others: a slot that drains is granted no more, and what runs there runs
// on; so does what is asked (S0.31). Invariant 2: and a holder that is being killed. S0.15: else it
// is not there any more. A placeholder's part is lost "as soon as its slot is withdrawn".
void NaiveCore::withdraw(Slot& slot) {
    slot.is_draining = true;
    const uint64_t withdrawn = slot.id;
    std::map<std::pair<std::pair<uint64_t, uint32_t>, uint64_t>, uint64_t> parts;
    for (const auto& [id, part] : m_.slots) {
        if (part.part_of != withdrawn || part.holder_is_killed) continue;
        const bool is_held = part.is == SlotIs::kReserved || part.is == SlotIs::kLeased;
        if (!is_held) parts[{place_in_gang(m_, part), id}] = id;
    }
    for (const auto& [place, id] : parts)
        join_part(id);
    if (!m_.slots.contains(withdrawn)) return;
    const bool is_held =
        slot.is == SlotIs::kReserved || slot.is == SlotIs::kLeased || slot.is == SlotIs::kShared;
    if (!is_held && !slot.holder_is_killed) leave(slot.id);
}

// A worker's answer goes to whoever claimed (dibs.h), before what it belongs to; it says which of
// the claim's slots it is of.
void NaiveCore::tell_answer(const Slot& slot, std::span<const uint8_t> bytes) {
    if (bytes.empty()) return;
    Decision& answer = tell(DecisionKind::kAnswer, shm::kNoRow);
    answer.pool = slot.pool;
    answer.claim = slot.claim;
    answer.answer = bytes;
    const auto put_part = [&](const Claim& of) {
        const std::vector<uint32_t> pools = pools_of(of);
        const auto part = std::find(pools.begin(), pools.end(), slot.pool);
        answer.part = static_cast<uint8_t>(part - pools.begin());
    };
    const auto put_place = [&](const std::vector<uint64_t>& slots) {
        const auto place = std::find(slots.begin(), slots.end(), slot.id);
        answer.slots_begin = static_cast<uint32_t>(place - slots.begin());
    };
    if (slot.is == SlotIs::kLeased) {
        const Lease& lease = m_.leases.at(slot.claim);
        answer.session = lease.session;
        answer.tag = lease.tag;
        answer.reason = Reason::kDone;  // its last one
        put_place(slots_in(lease, slot.pool));
        put_part(lease.was);
    } else {
        const Claim& claim = m_.claims.at(slot.claim);
        answer.session = claim.session;
        answer.tag = claim.tag;
        put_place(slots_in(claim, slot.pool));
        put_part(claim);
    }
}

}  // namespace dibs::naive
