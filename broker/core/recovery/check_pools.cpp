// broker/core/recovery/check_pools.cpp -- checks each pool's counts and lists.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/recovery/check.hpp"

namespace dibs::core {

using shm::ClaimState;
using shm::LeaseState;
namespace SlotFlag = shm::SlotFlag;

void Check::pools() {
    for (uint32_t row = 0; row < counts_.census.size(); ++row) {
        const shm::PoolRow& pool = state_.pools[row];
        const Census& census = counts_.census[row];
        const auto who = [&] { return name_of(pool); };
        const auto count = [&](const char* what, SlotState state, uint32_t stored) {
            expect_count(
                &wrongs_,
                [&] { return who() + " " + what; },
                census.by_state[static_cast<size_t>(state)],
                stored);
        };
        count("idle", SlotState::kIdle, pool.idle);
        count("reserved", SlotState::kReserved, pool.reserved);
        count("leased", SlotState::kLeased, pool.leased);
        count("recovering", SlotState::kRecovering, pool.recovering);
        count("unknown", SlotState::kUnknown, pool.unknown);
        expect_count(
            &wrongs_,
            [&] { return who() + " slots (conservation)"; },
            uint64_t{pool.idle} + pool.reserved + pool.leased + pool.recovering + pool.unknown,
            pool.slots);
        expect_count(
            &wrongs_, [&] { return who() + " drained slots"; }, census.drained, pool.drained);
        expect_count(
            &wrongs_, [&] { return who() + " waiting"; }, census.waiting, pool.waiting);
        expect_count(
            &wrongs_, [&] { return who() + " confirming"; }, census.confirming, pool.confirming);
        expect_count(
            &wrongs_, [&] { return who() + " unconfirmed"; }, census.unconfirmed, pool.unconfirmed);
        expect_count(
            &wrongs_,
            [&] { return who() + " accepted and requeued claims"; },
            pool.granted_total + pool.expired_total + pool.cancelled_total + pool.rejected_total +
                pool.waiting + pool.confirming,
            pool.accepted_total + pool.requeued_total);
        expect(&wrongs_,
               pool.order != shm::PoolOrder::kAccount || pool.mode != shm::ExpiryMode::kLazy,
               [&] { return who() + " is ordered by account and collects lazily"; });
        const bool lives = parts_.pool_lives(row);
        expect(&wrongs_,
               lives || (pool.waiting == 0 && pool.confirming == 0 && pool.idle == pool.slots &&
                         pool.slots_wanted == 0),
               [&] { return who() + " is gone and in use"; });
        expect(&wrongs_, lives || pool.state == shm::PoolState::kGoing || pool.slots == 0, [&] {
            return who() + " is gone and has slots";
        });
        const bool is_counted = pool.kind == shm::PoolKind::kCounted;
        expect(&wrongs_, lives || is_counted || pool.slots == 0, [&] {
            return who() + " is going and has workers";
        });
        ready_queue(row);
        expired_leases(row);
    }
}

void Check::ready_queue(uint32_t row) {
    const shm::PoolRow& pool = state_.pools[row];
    uint32_t found = 0;
    uint32_t previous = kNoRow;
    // Another slot's links lead anywhere, and a pool's count is a word as theirs are.
    for (uint32_t slot = pool.ready_head;
         slot < state_.slots.size() && found <= pool.idle && found <= state_.slots.size();
         slot = state_.slots[slot].ready_next) {
        const shm::SlotRow& idle = state_.slots[slot];
        const bool stands = idle.state == SlotState::kIdle && idle.pool == row;
        expect(&wrongs_, stands, [&] {
            return name_of(pool) + ": a slot that is not idle stands in the ready queue";
        });
        if (!stands) break;
        expect(&wrongs_, previous == kNoRow || idle.ready_prev == previous, [&] {
            return name_of(pool) + ": ready queue links differ";
        });
        expect(&wrongs_,
               previous == kNoRow || state_.slots[previous].idle_order < idle.idle_order,
               [&] { return name_of(pool) + ": the ready queue is out of order"; });
        previous = slot;
        ++found;
    }
    expect(&wrongs_, previous == pool.ready_tail, [&] {
        return name_of(pool) + ": ready queue tail differs";
    });
    expect_count(
        &wrongs_, [&] { return name_of(pool) + " ready queue"; }, found, pool.idle);
    uint32_t waiting = 0;
    uint64_t last = 0;
    for (uint32_t claim = parts_.backlog.head(row); claim != kNoRow && waiting <= pool.waiting;
         claim = parts_.backlog.next(claim)) {
        expect(&wrongs_,
               (state_.claims[claim].state == ClaimState::kWaiting ||
                state_.claims[claim].state == ClaimState::kPromised) &&
                   state_.claims[claim].arrival > last,
               [&] { return name_of(pool) + ": the backlog is out of order"; });
        last = state_.claims[claim].arrival;
        ++waiting;
    }
    expect_count(
        &wrongs_, [&] { return name_of(pool) + " backlog"; }, waiting, pool.waiting);
    expect_count(
        &wrongs_,
        [&] { return name_of(pool) + " seats"; },
        parts_.backlog.taken(row),
        pool.waiting);
    expect(&wrongs_, parts_.backlog.missing_seat(row) == kNoRow, [&] {
        return name_of(pool) + ": a waiting claim sits wrong";
    });
}

void Check::expired_leases(uint32_t row) {
    const auto who = [&] { return name_of(state_.pools[row]); };
    uint32_t found = 0;
    std::pair<uint64_t, uint64_t> last;
    for (uint32_t lease = parts_.expired_leases.head(row);
         lease != kNoRow && found <= counts_.census[row].expired;
         lease = parts_.expired_leases.next(lease)) {
        const shm::LeaseRow& expired = state_.leases[lease];
        const std::pair place{expired.expires_ns, expired.arrival};
        expect(&wrongs_, expired.state == LeaseState::kExpired && last < place, [&] {
            return who() + ": the list of expired leases is out of order";
        });
        last = place;
        ++found;
    }
    expect_count(
        &wrongs_, [&] { return who() + " expired leases"; }, found, counts_.census[row].expired);
    expect_count(
        &wrongs_,
        [&] { return who() + " collected slots"; },
        counts_.census[row].collected,
        parts_.collected[row]);
}

}  // namespace dibs::core
