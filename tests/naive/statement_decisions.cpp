// tests/naive/statement_decisions.cpp -- whether what was decided may be: each decision against
// the claim and the slots that it names.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "tests/naive/statement_words.hpp"
#include "tests/naive/statements.hpp"
#include "tests/naive/sums.hpp"
#include "tests/naive/wording.hpp"

namespace dibs::naive {

using core::DecisionKind;
using shm::Outcome;
using shm::Reason;

void Statements::hear(const DecisionLine& line, uint32_t pool) {
    switch (line.kind) {
        case DecisionKind::kResult:
            if (step_ != nullptr) take_effect(line);
            break;
        case DecisionKind::kAnnounced:
            announced(line);
            break;
        case DecisionKind::kAssign:
            assign(line);
            break;
        case DecisionKind::kGrant:
            grant(line);
            break;
        case DecisionKind::kEnd:
            end_claim(line);
            break;
        case DecisionKind::kAnswer:
            answer();
            break;
        case DecisionKind::kAdopted:
            adopted(line);
            break;
        case DecisionKind::kRevoke: {
            JudgedSlot* slot = slot_of(pool, line.slot);
            if (slot != nullptr) revoke(*slot);
            break;
        }
        case DecisionKind::kKill: {
            JudgedClaim* claim = claim_of(line.claim);
            if (claim != nullptr) claim->is_killed = true;
            break;
        }
        case DecisionKind::kLeaseEnd:
            lease_end(line);
            break;
        case DecisionKind::kSlotGone:
            forget_slot(pool, line.slot);
            break;
        case DecisionKind::kDemand:
            demand(line, pool);
            break;
        case DecisionKind::kDrained:
            drained(pool);
            break;
        default:
            break;
    }
}

// Once more by its name: the same slot, with what is said of it now. Where it is in use it stays
// so.
void Statements::announced(const DecisionLine& line) {
    JudgedPool* pool = pool_of(step_pool_);
    if (pool == nullptr) return;
    JudgedSlot* known = slot_of(step_pool_, line.slot);
    if (known == nullptr) {
        JudgedSlot slot;
        slot.pool = step_pool_;
        slot.number = line.slot;
        slot.incarnation = ++incarnations_;
        slot.session = step_->session;
        slot.name = step_->name;
        pool->slots[line.slot] = slot;
        known = slot_of(step_pool_, line.slot);
    }
    places_[step_->label] = {step_pool_, line.slot, known->incarnation};
    const bool was_ready = is_ready(*known);
    const bool is_new = known->idle_from == 0 && known->phase == SlotPhase::kAway;
    known->labels = step_->labels;
    known->is_protected = step_->announce.is_protected || known->is_drained;
    pool->idle_changed = true;
    const bool ready = step_->announce.ready;
    if (known->phase == SlotPhase::kIdle) {
        if (!was_ready && is_ready(*known)) {
            known->idle_to = clock_;
            known->news = News::kReadmitted;
        }
        if (!ready) known->phase = SlotPhase::kUnsure;
    } else if (known->phase == SlotPhase::kAway && ready) {
        const auto before = pool->reserved_names.find(known->name);
        const bool same_name = before != pool->reserved_names.end() && before->second > now_;
        become_idle(*known, is_new && same_name ? News::kSameName : News::kReady);
    } else if (known->phase == SlotPhase::kKept && ready) {
        known->phase = SlotPhase::kUnsure;  // news, or said once more
    }
}

// S0.1, S0.4: on its own channel, with its own number.
void Statements::told_right(const JudgedClaim& claim, const DecisionLine& line) {
    const bool is_gone = !sessions_.contains(claim.session);
    const bool to_it = line.session == claim.session && line.tag == claim.tag;
    hold(1, to_it || (is_gone && line.session == kNoLabel), [&] {
        return words_of(claim) + " is answered on another channel: " + to_string(line);
    });
    if (line.kind == DecisionKind::kGrant || line.kind == DecisionKind::kEnd) {
        hold(4, line.user_data == claim.label, [&] {
            return words_of(claim) + " has another one's number: " + to_string(line);
        });
    }
}

// A worker is asked: its slot is reserved, and from here on for so long (S0.17, S0.19).
void Statements::assign(const DecisionLine& line) {
    const auto has_ended_before = [&] {
        return "claim " + std::to_string(line.claim) + " has ended and gets a slot";
    };
    hold(6, !has_ended(line.claim), has_ended_before, judged_.contains(line.claim));
    JudgedClaim* claim = claim_of(line.claim);
    if (claim == nullptr) return;
    JudgedPool& pool = pools_[claim->pool];
    JudgedSlot* slot = slot_of(claim->pool, line.slot);
    const auto not_there = [&] {
        return words_of(*claim) + " gets slot " + std::to_string(line.slot) +
               ", which is not there";
    };
    if (!hold(15, slot != nullptr, not_there, false)) return;
    if (claim->slots.empty()) may_be_served(*claim);
    may_be_chosen(*claim, *slot);
    are_longest_idle(claim->pool, {line.slot});
    hold(20, line.round > slot->round, [&] {
        return words_of(*slot) + " is reserved again in the same round";
    });
    // A claim of more units than that, accepted before it was lowered, has it alone.
    const uint32_t unconfirmed = unconfirmed_in(pool) + 1;
    const uint32_t most = std::max<uint32_t>(pool.spec.config.unconfirmed_max, claim->units);
    const bool is_alone = unconfirmed == claim->slots.size() + 1;
    const auto too_many = [&] {
        return words_of(pool) + " has " + std::to_string(unconfirmed) + " unconfirmed slots";
    };
    hold(22,
         unconfirmed <= pool.spec.config.unconfirmed_max || (is_alone && unconfirmed <= most),
         too_many,
         unconfirmed >= pool.spec.config.unconfirmed_max);
    slot->phase = SlotPhase::kReserved;
    slot->claim = claim->number;
    slot->round = line.round;
    slot->has_confirmed = false;
    slot->is_revoked = false;
    slot->until_ns = later(now_, pool.spec.config.reservation_ttl_ns);
    claim->until_ns = slot->until_ns;
    claim->asked_ns = now_;
    claim->slots.push_back(slot->number);
    if (claim->slots.size() == claim->units) claim->phase = ClaimPhase::kReserved;
    pool.idle_changed = true;
}

void Statements::grant(const DecisionLine& line) {
    const auto has_ended_before = [&] {
        return "claim " + std::to_string(line.claim) + " has ended and is granted";
    };
    hold(6, !has_ended(line.claim), has_ended_before, judged_.contains(line.claim));
    JudgedClaim* claim = claim_of(line.claim);
    if (claim == nullptr) return;
    JudgedPool& pool = pools_[claim->pool];
    told_right(*claim, line);
    const auto is_gone = [&] { return words_of(*claim) + " is granted to a client that is gone"; };
    hold(40, sessions_.contains(claim->session), is_gone, false);
    hold(6, claim->phase != ClaimPhase::kLeased, [&] {
        return words_of(*claim) + " is granted twice";
    });
    if (claim->phase == ClaimPhase::kLeased) return;
    if (pool.spec.config.kind == shm::PoolKind::kCounted) {
        may_be_served(*claim);
        claim->slots = line.slots;
        for (const uint32_t number : line.slots) {
            const JudgedSlot* slot = slot_of(claim->pool, number);
            const auto not_there = [&] {
                return words_of(*claim) + " gets slot " + std::to_string(number) +
                       ", which is not there";
            };
            if (!hold(15, slot != nullptr, not_there, false)) return;
            may_be_chosen(*claim, *slot);
        }
        are_longest_idle(claim->pool, line.slots);
    } else {
        confirmed_right(*claim, line);
    }
    for (const uint32_t number : line.slots) {
        JudgedSlot* slot = slot_of(claim->pool, number);
        if (slot == nullptr) continue;
        const auto same = [&] {
            return words_of(*slot) + " is granted again with the same generation";
        };
        hold(24, line.fence > slot->fence, same, slot->fence != 0);
        slot->fence = line.fence;
        slot->phase = SlotPhase::kLeased;
        slot->claim = claim->number;
    }
    claim->phase = ClaimPhase::kLeased;
    claim->holder = claim->session;
    claim->holder_tag = claim->tag;
    claim->may_park = line.may_park;
    pool.last_dispatch_ns = now_;
    pool.idle_changed = true;
}

// S0.22: strictly after its deadline it ends, also while its worker confirms. S0.24: what was
// reserved for it is what it gets, all of it confirmed.
void Statements::confirmed_right(const JudgedClaim& claim, const DecisionLine& line) {
    if (claim.deadline_ns != shm::kNever) {
        hold(22, now_ <= claim.deadline_ns, [&] {
            return words_of(claim) + " is granted after its deadline";
        });
    }
    const bool all = std::all_of(line.slots.begin(), line.slots.end(), [&](uint32_t number) {
        const JudgedSlot* slot = slot_of(claim.pool, number);
        return slot != nullptr && slot->claim == claim.number && slot->has_confirmed;
    });
    const bool reserved = claim.phase == ClaimPhase::kReserved && line.slots.size() == claim.units;
    hold(24, reserved && all, [&] {
        return words_of(claim) + " is granted what nobody has confirmed for it";
    });
}

void Statements::end_claim(const DecisionLine& line) {
    const auto has_ended_before = [&] {
        return "claim " + std::to_string(line.claim) + " ends a second time";
    };
    hold(6, !has_ended(line.claim), has_ended_before, judged_.contains(line.claim));
    JudgedClaim* claim = claim_of(line.claim);
    if (claim == nullptr) return;
    hold(6, claim->phase != ClaimPhase::kLeased, [&] {
        return words_of(*claim) + " was granted and ends without a grant";
    });
    told_right(*claim, line);
    end_is_right(*claim, line);
    if (claim->phase == ClaimPhase::kReserved) let_go(*claim);
    claims_.erase(line.claim);
}

// S0.32: each end has its own cause and its own name.
void Statements::end_is_right(const JudgedClaim& claim, const DecisionLine& line) {
    const auto because = [&](size_t statement, bool holds) {
        hold(statement, holds, [&] {
            return words_of(claim) + " has no cause to end as " + name_of(line.outcome) + " " +
                   name_of(line.reason);
        });
    };
    if (line.outcome == Outcome::kExpired) {
        because(2, now_ > claim.deadline_ns);
        because(32, line.reason == Reason::kOk);
    } else if (line.outcome == Outcome::kCancelled && line.reason != Reason::kHolderGone) {
        const bool by_itself = step_ != nullptr && step_->kind == StepKind::kCancel;
        const bool by_others = step_ != nullptr && step_->kind == StepKind::kSteer &&
                               step_->steer == core::Steer::Kind::kCancel;
        because(32, by_others ? line.reason == Reason::kRevoked : line.reason == Reason::kOk);
        because(
            32,
            (by_itself || by_others) && step_->session == claim.session && step_->tag == claim.tag);
    } else if (line.outcome == Outcome::kCancelled) {
        because(40, !sessions_.contains(claim.session));
    } else {
        because(32, line.outcome == Outcome::kRejected);
        rejection_is_right(claim, line);
    }
}

void Statements::rejection_is_right(const JudgedClaim& claim, const DecisionLine& line) {
    const JudgedPool& pool = pools_[claim.pool];
    const auto because = [&](size_t statement, bool holds, const char* why) {
        hold(statement, holds, [&] {
            return words_of(claim) + " is rejected, " + name_of(line.reason) + ": " + why;
        });
    };
    const bool refuses = step_ != nullptr && step_->kind == StepKind::kWord &&
                         step_->word.kind == core::WorkerWord::Kind::kRefuse;
    switch (line.reason) {
        case Reason::kBacklogFull: {
            // Whoever confirms may come back to its place, so it has one.
            const uint32_t others = pending_in(claim.pool) - 1;
            because(3, others >= pool.spec.config.backlog_max, "there is room");
            because(25, !claim.has_returned, "it was accepted long ago");
            break;
        }
        case Reason::kDraining: {
            because(30, is_draining(pool), "nothing drains");
            const JudgedClaim* first = first_waiting(claim.pool);
            const bool in_order = first == nullptr || first->number >= claim.number ||
                                  claim.turn == turns_ || claim.has_returned;
            because(29, in_order, "before one that has waited longer");
            break;
        }
        case Reason::kRefused:
            because(26,
                    refuses && spoken_of_ == claim.number && !step_->word.try_again,
                    "its worker has not said so");
            because(26,
                    refuses && line.value == static_cast<uint64_t>(step_->word.code),
                    "its worker has said another code");
            break;
        case Reason::kBusy:
        case Reason::kCold:
            because(39, !claim.may_wait, "it would have waited");
            because(8, !could_be_served(claim), "there is a slot for it");
            break;
        default:
            break;  // S0 does not know it
    }
}

// The lease is another session's now, under another tag.
void Statements::adopted(const DecisionLine& line) {
    JudgedClaim* claim = claim_of(line.claim);
    if (claim == nullptr) return;
    claim->holder = line.session;
    claim->holder_tag = line.tag;
    claim->may_park = false;
}

// S0.40: of a confirmation that comes too late nobody hears.
void Statements::answer() {
    hold(
        40,
        !is_late_,
        [&] { return std::string("the answer of a confirmation that was too late is told"); },
        is_late_);
}

// The broker takes its hold back: by its time (S0.17, S0.19), by its claim's end, or because
// another slot of the claim has failed.
void Statements::revoke(JudgedSlot& slot) {
    const bool is_idle = slot.phase == SlotPhase::kIdle && slot.news == News::kLate;
    hold(
        40,
        !is_idle,
        [&] { return words_of(slot) + " is idle, as it was confirmed too late, and revoked"; },
        is_idle);
    const auto again = [&] { return words_of(slot) + " is revoked once more in its round"; };
    hold(40, !slot.is_revoked, again, false);
    slot.is_revoked = true;
    JudgedClaim* claim = claim_of(slot.claim);
    if (slot.phase != SlotPhase::kReserved || claim == nullptr) return;
    const bool of_a_timer =
        step_ == nullptr && now_ <= claim->deadline_ns && sessions_.contains(claim->session);
    if (of_a_timer) {
        const bool waited = claim->arrival_ns < claim->asked_ns;
        hold(waited ? 19 : 17, now_ >= claim->until_ns, [&] {
            return words_of(slot) + " is reserved no more before its time";
        });
    }
    wait_again(*claim);
}

void Statements::lease_end(const DecisionLine& line) {
    JudgedClaim* claim = claim_of(line.claim);
    if (claim == nullptr || claim->phase != ClaimPhase::kLeased) return;
    if (line.reason == Reason::kAdopted) return;
    end_lease(*claim, line.reason == Reason::kHolderGone ? LeaseEnd::kDeath : LeaseEnd::kOther);
}

// S0.34, and S0.4: the oldest wait is counted from the claim's own arrival.
void Statements::demand(const DecisionLine& line, uint32_t label) {
    JudgedPool* pool = pool_of(label);
    if (pool == nullptr) return;
    const auto waits = static_cast<int64_t>(line.value);
    hold(34, is_news(pool->published, waits), [&] {
        return words_of(*pool) + " publishes " + std::to_string(waits) + " after " +
               std::to_string(pool->published);
    });
    pool->published = waits;
    pool->demands += 1;
    pool->oldest_wait_ns = line.user_data;
}

// S0.29, S0.31: told once, when nothing is under way any more.
void Statements::drained(uint32_t label) {
    if (label == kNoLabel) {
        for (const JudgedPool& pool : pools_)
            nothing_is_left(pool);
        hold(29, broker_drains_ && !broker_is_drained_, [] {
            return std::string("the broker is drained once more");
        });
        broker_is_drained_ = true;
        return;
    }
    JudgedPool* pool = pool_of(label);
    if (pool == nullptr) return;
    nothing_is_left(*pool);
    hold(29, pool->drains && !pool->is_drained, [&] {
        return words_of(*pool) + " is drained once more";
    });
    pool->is_drained = true;
}

void Statements::nothing_is_left(const JudgedPool& pool) {
    if (!pool.lives || !pool.by_arrival) return;
    hold(31, pending_in(pool.label) == 0, [&] {
        return words_of(pool) + " is drained while claims are under way";
    });
}

}  // namespace dibs::naive
