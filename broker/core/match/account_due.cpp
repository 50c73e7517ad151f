// broker/core/match/account_due.cpp -- computes when time alone changes what a pass may do.
//
// An idle broker with pools ordered by account sleeps until then and not a microsecond longer.
//
// Between turns a balance is a line with steps: it falls by one micro-unit per microsecond and
// paying slot, and rises by its rate up to its cap. What matters is the first microsecond at which
//   - a class of an account with waiting claims begins or ends to be its best one,
//   - a balance passes the threshold at which its leases are promoted or demoted,
//   - a waiting claim's balance begins to exceed the cost of a lease that it could take.
// floor(x) > n is x ≥ n + 1 for whole n, so each of them is one division and no search. When the
// broker wakes, a ban or a limit may still stop the claim; then nothing is due for it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

namespace {

using Wide = __int128;

constexpr Wide kMillion = 1'000'000;

// One class of an account, from now on.
struct Line {
    Wide value;
    Wide cap;
    Wide rate;
    Wide running;
    Wide now_us;

    [[nodiscard]] Wide earned_before() const { return rate * now_us / kMillion; }

    // Microseconds from now until value > bound + slope · microseconds; 0 = never.
    [[nodiscard]] Wide until_above(Wide bound, Wide slope) const {
        if (value >= cap) return 0;  // it rises no more
        const Wide net = rate - kMillion * (running + slope);
        const Wide lacks = kMillion * (bound - value + earned_before() + 1) - rate * now_us;
        if (net <= 0 || lacks <= 0) return 0;
        const Wide after = (lacks + net - 1) / net;
        return bound + slope * after < cap ? after : 0;
    }

    // Microseconds from now until value < bound + slope · microseconds; 0 = never.
    [[nodiscard]] Wide until_below(Wide bound, Wide slope) const {
        // Above its cap it earns nothing.
        const Wide earns = bound > cap ? 0 : rate;
        const Wide before = bound > cap ? 0 : earned_before();
        const Wide net = kMillion * (running + slope) - earns;
        const Wide left = earns * now_us - kMillion * (bound - value + before);
        if (net > 0) return left < 0 ? 0 : left / net + 1;
        // It rises as fast as the bound, up to its cap.
        return slope == 0 || bound > cap ? 0 : (cap - bound) / slope + 1;
    }
};

// The earliest of what is due.
struct Earliest {
    Wide after_us = 0;  // 0 = nothing
    void add(Wide us) {
        if (us > 0 && (after_us == 0 || us < after_us)) after_us = us;
    }
};

}  // namespace

struct Crowds::Crossings {
    const Core::Parts& parts;
    Earliest earliest;

    [[nodiscard]] Line line(uint32_t account, uint32_t p) const {
        const shm::AccountRow& row = parts.state.accounts[account];
        return {.value = parts.balance_at(account, p),
                .cap = parts.book->caps[account][p],
                .rate = row.rate[p],
                .running = row.running[p],
                .now_us = parts.now_ns / 1000};
    }
    [[nodiscard]] bool configured(uint32_t account) const {
        return account != kNoRow &&
               (parts.state.accounts[account].flags & shm::AccountFlag::kConfigured) != 0;
    }

    void of_pool(uint32_t pool) {
        AccountBook& known = *parts.book;
        ++known.walks;
        for (const uint32_t place : known.crowds_of_pool[pool]) {
            const Crowd& crowd = known.crowds[place];
            if (!configured(crowd.account)) continue;
            if (known.sees(crowd.account)) known.best_of[crowd.account] = best_class(crowd.account);
            preemption(crowd, parts.class_of(crowd, known.best_of[crowd.account]));
        }
        for (const uint32_t place : parts.book->tenants_of_pool[pool]) {
            const Tenant& tenant = parts.book->tenants[place];
            if (configured(tenant.account)) thresholds(tenant);
        }
    }

    // When it begins or ends to be the best.
    uint8_t best_class(uint32_t account) {
        const uint8_t best = parts.best_class(account);
        for (uint8_t p = 0; p < best; ++p)
            earliest.add(line(account, p).until_above(0, 0));
        if (best < kFreeClass) earliest.add(line(account, best).until_below(1, 0));
        return best;
    }

    void thresholds(const Tenant& tenant) {
        const shm::PoolRow& pool = parts.state.pools[tenant.pool];
        uint32_t worse = 0;
        for (uint32_t p = 0; p < kClassesAndFree; ++p)
            worse += tenant.units[p];
        for (uint8_t p = 0; p < shm::kClasses; ++p) {
            worse -= tenant.units[p];
            const Line at = line(tenant.account, p);
            const Wide net = at.rate - kMillion * at.running;
            if (tenant.units[p] != 0 && net < 0 && at.value >= pool.demote_threshold) {
                earliest.add(at.until_below(pool.demote_threshold, 0));
            }
            if (worse != 0 && net > 0 && at.value <= pool.promote_threshold) {
                earliest.add(at.until_above(pool.promote_threshold, 0));
            }
        }
    }

    // In each list of candidates the order stays as it is, so its head is the one to watch.
    void preemption(const Crowd& crowd, uint8_t at_class) {
        const shm::PoolRow& pool = parts.state.pools[crowd.pool];
        if ((pool.flags & shm::PoolFlag::kNoPreemption) != 0 || crowd.units != 1) return;
        if (at_class >= kFreeClass) return;
        for (const uint32_t place : parts.book->stalls_of_pool[crowd.pool]) {
            const Stall& stall = parts.book->stalls[place];
            if (!parts.book->labels.covers(stall.labels, crowd.base)) continue;
            for (uint32_t q = at_class + 1U; q < kClassesAndFree; ++q) {
                const uint32_t lease = parts.book->stall_leases.first(stall.leases[q]);
                if (lease != kNoRow) richer_than(crowd.account, lease);
            }
        }
    }

    // Vectors compare by their first difference: only what stands before it, or it, can turn it,
    // and the latter only while what stands before is equal still.
    void richer_than(uint32_t account, uint32_t lease) {
        const Cost cost = parts.cost_of(lease);
        const uint8_t pays_at = parts.state.leases[lease].account_class;
        Earliest falls;
        for (uint8_t p = 0; p < shm::kClasses; ++p) {
            const Line at = line(account, p);
            if (at.value > cost[p]) return;  // it is already, or waits for one before
            const Wide slope = p == pays_at ? 1 : 0;
            const Wide equal = at.value == cost[p] ? 1 : 0;
            const Wide rises_us = at.until_above(Wide{cost[p]} - 1 + equal, slope);
            if (falls.after_us == 0 || rises_us < falls.after_us) earliest.add(rises_us);
            if (equal == 0) return;
            falls.add(at.until_below(cost[p], slope));
        }
    }
};

TimeNs Crowds::next_crossing() const {
    if (book()->is_deferred) return turn().now_ns + 1;
    if (book()->crossing_known) return book()->crossing_ns;
    Crossings crossings{.parts = all(), .earliest = {}};
    for (uint32_t pool = 0; pool < state.counters->pools; ++pool) {
        if (matcher().by_account(pool)) crossings.of_pool(pool);
    }
    const Wide after_us = crossings.earliest.after_us;
    const Wide due_ns = (Wide{turn().now_ns / 1000} + after_us) * 1000;
    book()->crossing_ns = after_us == 0 || due_ns >= kNever ? kNever : static_cast<TimeNs>(due_ns);
    assert(book()->crossing_ns > turn().now_ns);
    book()->crossing_known = true;
    return book()->crossing_ns;
}

}  // namespace dibs::core
