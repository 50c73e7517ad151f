// tests/naive/statement_turns.cpp -- what a turn's end wants: nobody waits who could be served or
// is too late, and what can be seen from outside is so.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "tests/naive/statement_words.hpp"
#include "tests/naive/statements.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

// S0.18: as the turn opens, before anything is admitted; and what a refusal has left over, before
// all timers. S0.17: reserved until now is not reserved. In order of these instants.
void Statements::sweep() {
    for (JudgedPool& pool : pools_)
        sweep(pool);
}

void Statements::sweep(JudgedPool& pool) {
    std::map<std::pair<core::TimeNs, uint32_t>, JudgedSlot*> over;
    for (auto& [number, slot] : pool.slots) {
        if (slot.phase == SlotPhase::kKept && slot.until_ns <= now_) {
            over[{slot.until_ns, number}] = &slot;
        }
    }
    for (const auto& [order, slot] : over) {
        clock_ += 1;
        become_idle(*slot, News::kSwept);
    }
}

// S0.17, of those that have not been confirmed. Nobody is told, but who has been asked and has not
// answered must speak before its slot is idle.
void Statements::reservations_end() {
    clock_ += 1;
    for (auto& [number, claim] : claims_) {
        if (claim.phase != ClaimPhase::kReserved || now_ < claim.until_ns) continue;
        pools_[claim.pool].reservation_over = true;
        wait_again(claim);
    }
}

void Statements::turn_ends(const Turn& turn) {
    clock_ += 1;
    for (JudgedPool& pool : pools_) {
        if (!pool.lives || !pool.by_arrival) continue;
        head_is_served(pool);
        nobody_is_late(pool);
        reservations_hold(pool);
        backlog_is_bounded(pool);
        drain_is_complete(pool);
        picture_is_true(pool, turn.pools[pool.label]);
        demand_is_published(pool);
        for (auto& [number, slot] : pool.slots)
            slot.idle_to = std::min(slot.idle_to, clock_);
    }
    if (broker_drains_) {
        const bool over =
            claims_.empty() || std::none_of(claims_.begin(), claims_.end(), [](auto& c) {
                return c.second.phase != ClaimPhase::kLeased;
            });
        hold(31, broker_is_drained_ || !over || !leases_are_judged_, [] {
            return std::string("nothing is under way, and the broker is not drained");
        });
    }
    timers_are_exact(turn);
}

// S0.8, S0.11 and their like: within one turn. Which of them, the slot's news says.
void Statements::head_is_served(const JudgedPool& pool) {
    const JudgedClaim* head = first_waiting(pool.label);
    if (head == nullptr) return;
    if (!could_be_served(*head)) {
        const core::PoolConfig& config = pool.spec.config;
        const bool full = config.kind == shm::PoolKind::kWorker &&
                          unconfirmed_in(pool) + head->units > config.unconfirmed_max;
        if (full && ready_in(pool) >= head->units) tested_[22] += 1;
        return;
    }
    News news = News::kNone;
    for (const auto& [number, slot] : pool.slots) {
        if (is_ready(slot) && slot.news != News::kNone) news = slot.news;
    }
    size_t statement = statement_of(news);
    if (news == News::kNone && head->turn == turns_) statement = pool.has_chosen ? 8 : 7;
    hold(statement, false, [&] {
        return words_of(*head) + " waits, and " + words_of(pool) + " has slots for it";
    });
}

// S0.12, S0.22, S0.40: whoever is too late or gone has been answered.
void Statements::nobody_is_late(const JudgedPool& pool) {
    for (const auto& [number, claim] : claims_) {
        if (claim.pool != pool.label || claim.phase == ClaimPhase::kLeased) continue;
        const JudgedClaim& late = claim;
        if (claim.deadline_ns != shm::kNever) {
            hold(claim.phase == ClaimPhase::kWaiting ? 12 : 22, now_ <= claim.deadline_ns, [&] {
                return words_of(late) + " is not answered after its deadline";
            });
        }
        const auto is_gone = [&] {
            return words_of(late) + " is still there, and its client is gone";
        };
        hold(40, sessions_.contains(claim.session), is_gone, false);
    }
}

// S0.17: not at its expiry. S0.19: and until then, counted from when its worker was asked.
void Statements::reservations_hold(const JudgedPool& pool) {
    for (const auto& [number, claim] : claims_) {
        if (claim.pool != pool.label || claim.phase != ClaimPhase::kReserved) continue;
        const JudgedClaim& held = claim;
        hold(17, now_ < claim.until_ns, [&] {
            return words_of(held) + " is still reserved at its reservation's expiry";
        });
        if (later(claim.arrival_ns, pool.spec.config.reservation_ttl_ns) <= now_) tested_[19] += 1;
    }
    for (const auto& [number, slot] : pool.slots) {
        if (slot.phase == SlotPhase::kKept && first_waiting(pool.label) != nullptr)
            tested_[17] += 1;
    }
}

// S0.3, also where claims came back (S0.25): there is a limit, unless it was higher before.
void Statements::backlog_is_bounded(const JudgedPool& pool) {
    const uint32_t waiting = count(pool.label, ClaimPhase::kWaiting);
    const bool has_new = std::any_of(claims_.begin(), claims_.end(), [&](const auto& claim) {
        return claim.second.pool == pool.label && claim.second.phase == ClaimPhase::kWaiting &&
               claim.second.turn == turns_;
    });
    if (!has_new) return;
    const auto words = [&] {
        return words_of(pool) + " has " + std::to_string(waiting) + " claims that wait";
    };
    hold(3, waiting <= pool.backlog_max, words, waiting == pool.backlog_max);
}

// S0.29, S0.31: all that wait have failed; the end is told.
void Statements::drain_is_complete(const JudgedPool& pool) {
    if (!is_draining(pool)) return;
    const auto waits = [&] {
        return words_of(*first_waiting(pool.label)) + " waits in a pool that drains";
    };
    hold(29, first_waiting(pool.label) == nullptr, waits, false);
    if (!pool.drains) return;
    hold(31, pool.is_drained || pending_in(pool.label) != 0, [&] {
        return "nothing is under way, and " + words_of(pool) + " is not drained";
    });
}

// S0.5, S0.33, S0.41, and S0.28: not ahead of its news, and not behind.
void Statements::picture_is_true(const JudgedPool& pool, const PoolPicture& picture) {
    const uint32_t waiting = count(pool.label, ClaimPhase::kWaiting);
    const uint32_t confirming = count(pool.label, ClaimPhase::kReserved);
    const auto same = [&](size_t statement, const char* what, uint64_t seen, uint64_t is) {
        hold(statement, seen == is, [&] {
            return words_of(pool) + " shows " + what + " " + std::to_string(seen) + ", is " +
                   std::to_string(is);
        });
    };
    const uint64_t queued = uint64_t{picture.waiting} + picture.confirming;
    const auto fewer = [&] { return words_of(pool) + " shows fewer claims than there are"; };
    if (pool.claim_moved) same(41, "queued", queued, waiting + confirming);
    if (pool.reservation_over) same(17, "confirming", picture.confirming, confirming);
    hold(5, queued >= waiting + confirming, fewer, waiting + confirming > 0);
    same(33, "waiting", picture.waiting, waiting);
    same(33, "confirming", picture.confirming, confirming);
    same(33, "unconfirmed", picture.unconfirmed, unconfirmed_in(pool));
    same(33, "last dispatch", picture.last_dispatch_ns, pool.last_dispatch_ns);
    const bool unsure = std::any_of(pool.slots.begin(), pool.slots.end(), [](const auto& slot) {
        return slot.second.phase == SlotPhase::kUnsure;
    });
    if (unsure) return;
    same(33, "reserved", picture.reserved, reserved_in(pool));
    same(pool.idle_changed ? 28 : 33, "idle", picture.idle, ready_in(pool));
}

// Kept ones included: what is over has been swept.
uint32_t Statements::reserved_in(const JudgedPool& pool) {
    return static_cast<uint32_t>(
        std::count_if(pool.slots.begin(), pool.slots.end(), [](const auto& s) {
            return s.second.phase == SlotPhase::kReserved || s.second.phase == SlotPhase::kKept;
        }));
}

// S0.34: as soon as it is news; and that it is told as it is.
void Statements::demand_is_published(const JudgedPool& pool) {
    const auto queued = static_cast<int64_t>(pending_in(pool.label));
    const auto unpublished = [&] {
        return words_of(pool) + " has " + std::to_string(queued) + " claims and published " +
               std::to_string(pool.published);
    };
    hold(34, !is_news(pool.published, queued), unpublished, pool.published != queued);
    if (pool.demands != 1) return;
    hold(34, pool.published == queued, [&] {
        return words_of(pool) + " publishes " + std::to_string(pool.published) + " of " +
               std::to_string(queued) + " claims";
    });
    const JudgedClaim* oldest = first_waiting(pool.label);
    const core::TimeNs wait_ns = oldest == nullptr ? 0 : now_ - std::min(now_, oldest->enqueued_ns);
    hold(4, pool.oldest_wait_ns == wait_ns, [&] {
        return words_of(pool) + " publishes an oldest wait of " +
               std::to_string(pool.oldest_wait_ns) + " ns";
    });
}

bool Statements::is_news(int64_t last, int64_t now) {
    if (last < 0) return true;
    if ((last == 0) != (now == 0)) return true;
    const int64_t change = last > now ? last - now : now - last;
    return last != 0 && change * 5 >= last;
}

// S0.13: a claim is answered at its deadline: one instant after its last one. S0.17: a reservation
// is over at its expiry. S0.21: nothing is polled.
void Statements::timers_are_exact(const Turn& turn) {
    core::TimeNs due = shm::kNever;
    for (const auto& [number, claim] : claims_) {
        if (claim.phase == ClaimPhase::kLeased) continue;
        if (claim.deadline_ns != shm::kNever) {
            const core::TimeNs end = later(claim.deadline_ns, 1);
            due = std::min(due, end);
            hold(13, turn.next_due <= end, [&] {
                return "the next timer, " + std::to_string(turn.next_due) +
                       ", is behind a deadline, " + std::to_string(end);
            });
        }
        if (claim.phase != ClaimPhase::kReserved) continue;
        const core::TimeNs until = claim.until_ns;
        due = std::min(due, until);
        hold(17, turn.next_due <= until, [&] {
            return "the next timer, " + std::to_string(turn.next_due) +
                   ", is behind a reservation's end, " + std::to_string(until);
        });
    }
    bool is_known = leases_are_judged_ && !leases_have_timers();
    for (const JudgedPool& pool : pools_) {
        for (const auto& [number, slot] : pool.slots) {
            is_known = is_known && slot.phase != SlotPhase::kUnsure;
            if (slot.phase != SlotPhase::kKept) continue;
            const core::TimeNs until = slot.until_ns;
            due = std::min(due, until);
            hold(18, turn.next_due <= until, [&] {
                return "the next timer, " + std::to_string(turn.next_due) +
                       ", is behind the sweep of a reservation, " + std::to_string(until);
            });
        }
    }
    if (!is_known) return;
    hold(21, turn.next_due == due, [&] {
        return "the next timer is " + std::to_string(turn.next_due) + ", and " +
               std::to_string(due) + " is the first that is needed";
    });
}

bool Statements::leases_have_timers() const {
    return std::any_of(claims_.begin(), claims_.end(), [](const auto& claim) {
        return claim.second.phase == ClaimPhase::kLeased && claim.second.has_interval;
    });
}

// A row for the lease, too, is asked of the whole.
uint32_t Statements::leased() const {
    return static_cast<uint32_t>(std::count_if(claims_.begin(), claims_.end(), [](const auto& c) {
        return c.second.phase != ClaimPhase::kWaiting;
    }));
}

}  // namespace dibs::naive
