// tests/naive/statement_commands.cpp -- what a command does to what the judge follows, once its
// result says that it was accepted.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "tests/naive/model.hpp"
#include "tests/naive/statement_words.hpp"
#include "tests/naive/statements.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

using Word = core::WorkerWord::Kind;
using shm::Reason;

namespace {

JudgedPool new_pool(uint32_t label, bool lives) {
    JudgedPool pool;
    pool.label = label;
    pool.lives = lives;
    return pool;
}

}  // namespace

void Statements::begin(const Heard& heard) {
    clock_ += 1;
    step_ = heard.step;
    step_is_ok_ = false;
    step_pool_ = heard.pool;
    spoken_of_ = 0;
    is_late_ = false;
    switch (step_->kind) {
        case StepKind::kOpen:
            sessions_.insert(step_->label);
            break;
        case StepKind::kSetPool:
            configure(step_->label, journal_.pools[step_->label]);
            break;
        case StepKind::kClaim:
            claim(heard);
            break;
        case StepKind::kDied:
            sessions_.erase(step_->session);
            break;
        case StepKind::kHolderDied:
            sessions_.erase(step_->session);
            outlived(step_->session);
            break;
        case StepKind::kHarvest:
            harvest(*step_);
            break;
        case StepKind::kDrain:  // if idle: as its result says
            if (step_->if_idle_for_ns == shm::kNever || !step_->on) drain(heard);
            break;
        case StepKind::kDeletePool:
            if (JudgedPool* pool = pool_of(heard.pool); pool != nullptr && step_->on) retire(*pool);
            break;
        default:
            break;
    }
}

// Its result came: what it changes is changed before the decisions that follow from it.
void Statements::take_effect(const DecisionLine& result) {
    if (step_is_ok_ || result.user_data != step_->label) return;
    confirmation_is_right(result);
    JudgedClaim* claim = claim_of_label(step_->subject);
    const bool leased = claim != nullptr && claim->phase == ClaimPhase::kLeased;
    if (step_->kind == StepKind::kRelease && result.reason == Reason::kExpiredLease && leased) {
        for (const uint32_t number : claim->slots) {
            JudgedSlot* slot = slot_of(claim->pool, number);
            if (slot != nullptr) slot->phase = SlotPhase::kUnsure;
        }
    }
    if (result.reason != Reason::kOk) return;
    step_is_ok_ = true;
    switch (step_->kind) {
        case StepKind::kWord:
            word(*step_);
            break;
        case StepKind::kRelease:
            if (leased) end_lease(*claim, step_->broken ? LeaseEnd::kBroken : LeaseEnd::kRelease);
            break;
        case StepKind::kDrain:
            drain({step_, step_pool_, true, 0});
            break;
        case StepKind::kChangePool:
            if (result.value != 0) configure(step_pool_, step_->change);
            break;
        case StepKind::kDeletePool:
            if (step_pool_ != kNoLabel && !step_->on) {
                pools_[step_pool_] = new_pool(step_pool_, false);
            }
            break;
        default:
            break;
    }
}

// S0.22, S0.40: whoever has been asked confirms once, however late. S0.23: nobody else does.
void Statements::confirmation_is_right(const DecisionLine& result) {
    if (step_->kind != StepKind::kWord || step_->word.kind != Word::kConfirm) return;
    const JudgedSlot* slot = slot_of_label(step_->subject);
    if (slot == nullptr || slot->phase == SlotPhase::kUnsure) return;
    const bool reserved = slot->phase == SlotPhase::kReserved;
    const bool asked = reserved ? !slot->has_confirmed : slot->is_asked;
    if (result.reason == Reason::kOk) {
        hold(23, asked, [&] { return words_of(*slot) + " is confirmed, and nobody has asked"; });
    } else if (result.reason == Reason::kState) {
        const auto turned_away = [&] {
            return words_of(*slot) + " was asked for, and its confirmation is turned away";
        };
        hold(reserved ? 22 : 40, !asked, turned_away);
    }
}

void Statements::end(const Heard& heard) {
    const Step& step = *heard.step;
    if (step.kind == StepKind::kDied) died(step.session);
    if (step.kind == StepKind::kHolderDied) offers_no_more(step.session);
    if (!step_is_ok_) return;
    if (step.kind == StepKind::kWord) word_is_over(step);
    if (step.kind == StepKind::kSteer && step.steer == core::Steer::Kind::kRelease) {
        JudgedClaim* claim = claim_of_label(step.subject);
        const bool leased = claim != nullptr && claim->phase == ClaimPhase::kLeased;
        if (leased && !claim->is_killed) end_lease(*claim, LeaseEnd::kRelease);
    }
    if (step.kind != StepKind::kCancel) return;
    for (auto& [number, claim] : claims_) {
        if (claim.phase != ClaimPhase::kLeased || claim.holder != step.session) continue;
        if (claim.holder_tag != step.tag) continue;
        end_lease(claim, LeaseEnd::kRelease);
        break;
    }
}

// S0.1, S0.4: what a claim carries, and its place, which is its number.
void Statements::claim(const Heard& heard) {
    const Step& step = *heard.step;
    claims_seen_ += 1;
    const JudgedPool* pool = pool_of(heard.pool);
    if (pool == nullptr) return;
    JudgedClaim claim;
    claim.number = claims_seen_;
    claim.label = step.label;
    claim.session = step.session;
    claim.pool = heard.pool;
    claim.tag = step.claim.tag;
    claim.units = step.claim.units;
    const shm::WhenBusy when =
        step.claim.when_busy_given ? step.claim.when_busy : pool->spec.config.when_busy;
    claim.may_wait = when == shm::WhenBusy::kWait && step.claim.timeout_ns != 0;
    claim.has_interval = step.claim.interval_ns != 0;
    claim.arrival_ns = now_;
    const core::TimeNs enqueued_ns = step.terms.enqueued_ns;
    claim.enqueued_ns = enqueued_ns == shm::kNever ? now_ : enqueued_ns;
    const bool has_deadline = step.claim.timeout_ns != 0;  // 0 = now or not at all
    claim.deadline_ns = has_deadline ? later(now_, step.claim.timeout_ns) : shm::kNever;
    if (step.claim.deadline_ns != shm::kNever) claim.deadline_ns = step.claim.deadline_ns;
    claim.turn = turns_;
    judged_.insert(claim.number);
    numbers_[step.label] = claim.number;
    claims_[claim.number] = claim;
}

void Statements::drain(const Heard& heard) {
    const bool on = heard.step->on;
    if (!heard.names_pool) {
        if (on && !broker_drains_) broker_is_drained_ = false;
        broker_drains_ = on;
        return;
    }
    JudgedPool* pool = pool_of(heard.pool);
    if (pool == nullptr) return;
    if (heard.step->number != kNoLabel) {
        JudgedSlot* slot = slot_of(heard.pool, heard.step->number);
        if (slot != nullptr && slot->is_drained != on) drain_slot(*slot, on);
        return;
    }
    if (on && !pool->drains) pool->is_drained = false;
    pool->drains = on;
}

// As if its worker protected it; but its worker's words do not take that back.
void Statements::drain_slot(JudgedSlot& slot, bool on) {
    slot.is_drained = on;
    slot.is_protected = on;
    pools_[slot.pool].idle_changed = true;
    if (on) return;
    slot.idle_to = clock_;
    slot.news = News::kReadmitted;
}

void Statements::leave(JudgedSlot& slot) {
    slot.leaves = true;
    pools_[slot.pool].idle_changed = true;
}

// It takes no claims any more; of a counted one the slots leave.
void Statements::retire(JudgedPool& pool) {
    pool.leaves = true;
    if (pool.spec.config.kind != shm::PoolKind::kCounted) return;
    for (auto& [number, slot] : pool.slots)
        leave(slot);
}

// Each take is a grant with a fence of its own; a lease that is recalled while it is parked ends,
// and nobody is told.
void Statements::harvest(const Step& step) {
    JudgedClaim* claim = claim_of_label(step.subject);
    const bool leased = claim != nullptr && claim->phase == ClaimPhase::kLeased;
    if (!leased || !claim->may_park) return;
    const core::Harvest& said = step.harvest;
    if (said.takes > claim->takes && said.takes <= kTakesMax) {
        for (const uint32_t number : claim->slots) {
            JudgedSlot* slot = slot_of(claim->pool, number);
            if (slot != nullptr) slot->fence += said.takes - claim->takes;
        }
        claim->takes = said.takes;
        pools_[claim->pool].last_dispatch_ns = now_;
    }
    if (said.parked && said.recalled) end_lease(*claim, LeaseEnd::kRelease);
}

void Statements::configure(uint32_t label, const PoolSpec& spec) {
    if (label == kNoLabel) return;
    JudgedPool& pool = pools_[label];
    if (!pool.lives) pool = new_pool(label, true);
    pool.spec = spec;
    pool.leaves = false;
    pool.backlog_max = std::max(pool.backlog_max, spec.config.backlog_max);
    // S0 knows no parts of slots.
    pool.by_arrival = spec.config.order == shm::PoolOrder::kArrival && spec.vector.empty();
    leases_are_judged_ = leases_are_judged_ && pool.by_arrival;
    if (!pool.by_arrival) return;
    if (spec.config.kind != shm::PoolKind::kCounted) return;
    for (auto& [number, slot] : pool.slots) {
        if (number >= spec.config.slots) leave(slot);
    }
    for (uint32_t number = 0; number < spec.config.slots; ++number) {
        const auto known = pool.slots.find(number);
        const bool there = known != pool.slots.end();
        if (there && !known->second.leaves) continue;
        // One that was to leave is still there if it is in use; if that cannot be told, it may be
        // another one by now, which nobody has drained.
        if (there && known->second.phase != SlotPhase::kIdle) {
            JudgedSlot& kept = known->second;
            kept.leaves = false;
            if (kept.phase == SlotPhase::kLeased) continue;
            kept.phase = SlotPhase::kUnsure;
            kept.is_drained = kept.is_protected = false;
            continue;
        }
        JudgedSlot slot;
        slot.pool = label;
        slot.number = number;
        slot.incarnation = ++incarnations_;
        become_idle(slot, News::kNone);
        slot.idle_to = kThisTurn;
        pool.slots[number] = slot;
    }
}

// What a worker says of its slot. S0.20: of another generation it says nothing.
void Statements::word(const Step& step) {
    JudgedSlot* slot = slot_of_label(step.subject);
    if (slot == nullptr) return;
    const Word kind = step.word.kind;
    const bool has_round = kind == Word::kReady || kind == Word::kConfirm ||
                           kind == Word::kRefuse || kind == Word::kDone;
    if (has_round && slot->round != 0) {
        hold(20, step.distance == 0, [&] {
            return words_of(*slot) + " is spoken for by a word of another round";
        });
    }
    JudgedClaim* claim = claim_of(slot->claim);
    const bool reserved = slot->phase == SlotPhase::kReserved && claim != nullptr;
    spoken_of_ = reserved ? claim->number : 0;
    switch (kind) {
        case Word::kReady:
            if (slot->phase == SlotPhase::kIdle) break;
            if (slot->phase == SlotPhase::kUnsure) {
                become_idle(*slot, News::kReady);
                slot->idle_from = turn_clock_ > 1 ? 0 : turn_clock_;  // perhaps long since
                break;
            }
            if (slot->phase == SlotPhase::kLeased && claim != nullptr) {
                const uint32_t number = slot->number;
                end_lease(*claim, LeaseEnd::kOther);
                slot = slot_of(slot->pool, number);
            }
            become_idle(*slot, News::kReady);
            if (reserved) wait_again(*claim);
            break;
        case Word::kConfirm:
            confirm(*slot, reserved ? claim : nullptr);
            break;
        case Word::kRefuse:
            slot->is_asked = false;
            if (!reserved) {
                if (slot->phase != SlotPhase::kIdle) slot->phase = SlotPhase::kUnsure;
                break;
            }
            if (step.word.try_again) {
                slot->phase = SlotPhase::kKept;
                slot->claim = 0;
                slot->has_confirmed = false;
                wait_again(*claim);
            } else {
                become_idle(*slot, News::kReady);
            }
            break;
        case Word::kDone:
            if (slot->phase == SlotPhase::kLeased && claim != nullptr) {
                end_lease(*claim, LeaseEnd::kOther);
                slot->phase = SlotPhase::kAway;
            }
            if (step.word.then_ready) become_idle(*slot, News::kReady);
            break;
        case Word::kWithdraw:
            slot->leaves = true;
            pools_[slot->pool].idle_changed = true;
            break;
        case Word::kProtect:
            slot->is_protected = true;
            pools_[slot->pool].idle_changed = true;
            break;
        case Word::kUnprotect:
            if (!slot->is_protected || slot->is_drained) break;
            slot->is_protected = false;
            slot->idle_to = clock_;
            slot->news = News::kReadmitted;
            pools_[slot->pool].idle_changed = true;
            break;
    }
}

// S0.22: it counts, also after its claim's deadline. S0.40: for whoever has let the slot go it is
// too late, and the slot is released at once; S0.24: what that is to its pool decides.
void Statements::confirm(JudgedSlot& slot, const JudgedClaim* claim) {
    if (claim != nullptr) {
        slot.has_confirmed = true;
        slot.is_late = now_ > claim->deadline_ns;
        is_late_ = slot.is_late;
        // S0.23: it is the transition.
        if (!slot.is_late && !slot.is_drained) {
            slot.is_unmarked = std::exchange(slot.is_protected, false);
        }
        return;
    }
    is_late_ = true;
    if (pools_[slot.pool].spec.config.release_is_ready) {
        become_idle(slot, News::kLate);
    } else {
        slot.phase = SlotPhase::kAway;
        slot.is_asked = false;
    }
}

// S0.24 to S0.26, S0.40: what has to be decided with the word.
void Statements::word_is_over(const Step& step) {
    const JudgedSlot* slot = slot_of_label(step.subject);
    if (is_late_ && slot != nullptr && slot->phase == SlotPhase::kAway) {
        hold(40, slot->is_revoked, [&] {
            return words_of(*slot) + " is confirmed too late, and its worker is not told";
        });
    }
    if (spoken_of_ == 0) return;
    const JudgedClaim* claim = claim_of(spoken_of_);
    if (step.word.kind == Word::kConfirm) {
        const bool reserved = claim != nullptr && claim->phase == ClaimPhase::kReserved;
        const bool all =
            reserved && std::all_of(claim->slots.begin(), claim->slots.end(), [&](uint32_t number) {
                return slot_of(claim->pool, number)->has_confirmed;
            });
        hold(24, !all || is_late_, [&] {
            return words_of(*claim) + " is confirmed and not granted";
        });
    }
    if (step.word.kind != Word::kRefuse) return;
    if (step.word.try_again) {
        hold(25, claim != nullptr || is_draining(pools_[slot_of_label(step.subject)->pool]), [&] {
            return "claim " + std::to_string(spoken_of_) + " is lost by a refusal to try again";
        });
    } else {
        hold(26, claim == nullptr, [&] {
            return words_of(*claim) + " has not failed with its worker's error";
        });
    }
}

// S0.40: what it held is free, what it offered is gone.
void Statements::died(uint32_t session) {
    std::vector<uint64_t> held;
    for (const auto& [number, claim] : claims_) {
        if (claim.phase == ClaimPhase::kLeased && claim.holder == session) held.push_back(number);
    }
    for (const uint64_t number : held)
        end_lease(claims_.at(number), LeaseEnd::kDeath);
    offers_no_more(session);
}

// What it held is held by those that have outlived it: as where its holder is killed.
void Statements::outlived(uint32_t session) {
    for (auto& [number, claim] : claims_) {
        if (claim.phase != ClaimPhase::kLeased || claim.holder != session) continue;
        claim.is_killed = true;
        claim.may_park = false;  // nobody takes it again
    }
}

void Statements::offers_no_more(uint32_t session) {
    for (JudgedPool& pool : pools_) {
        std::vector<uint32_t> offered;
        for (const auto& [number, slot] : pool.slots) {
            if (slot.session == session) offered.push_back(number);
        }
        for (const uint32_t number : offered)
            forget_slot(pool.label, number);
    }
}

}  // namespace dibs::naive
