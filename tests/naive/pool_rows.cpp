// tests/naive/pool_rows.cpp -- takes a pool's counters from its row, and compares them.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/pool_rows.hpp"

#include <utility>

namespace dibs::naive {

PoolCounters counters_of(const shm::PoolRow& pool, core::TimeNs now) {
    PoolCounters counters;
    counters.idle = pool.idle;
    counters.waiting = pool.waiting;
    counters.confirming = pool.confirming;
    counters.unconfirmed = pool.unconfirmed;
    counters.reserved = pool.reserved;
    counters.leased = pool.leased;
    counters.recovering = pool.recovering;
    counters.unknown = pool.unknown;
    counters.shared = pool.shared;
    counters.parts = pool.parts;
    counters.slots = pool.slots;
    counters.parked = pool.parked;
    counters.last_dispatch_ns = pool.last_dispatch_ns;
    if (pool.saturated_until_ns > now) counters.saturated_until_ns = pool.saturated_until_ns;
    counters.demand_published = pool.demand_published;
    counters.totals.accepted = pool.accepted_total;
    counters.totals.requeued = pool.requeued_total;
    counters.totals.granted = pool.granted_total;
    counters.totals.expired = pool.expired_total;
    counters.totals.cancelled = pool.cancelled_total;
    counters.totals.rejected = pool.rejected_total;
    counters.totals.turned_away = pool.turned_away_total;
    counters.totals.released = pool.released_total;
    counters.totals.refused = pool.refused_total;
    counters.totals.hits = pool.hit_total;
    counters.totals.skipped = pool.skipped_total;
    counters.totals.unqualified = pool.unqualified_total;
    counters.totals.kills = pool.kills_total;
    counters.totals.kills_failed = pool.kills_failed_total;
    return counters;
}

std::vector<uint64_t> parkable_of(const core::Core& core, uint32_t pool) {
    std::vector<uint64_t> numbers;
    for (uint32_t row = core.next_parkable(pool); row != shm::kNoRow;
         row = core.next_parkable(pool, row))
        numbers.push_back(core.lease(row).arrival);
    return numbers;
}

std::string difference(const PoolCounters& real, const PoolCounters& naive) {
    const auto fields = [](const PoolCounters& c) {
        return std::vector<std::pair<const char*, uint64_t>>{
            {"idle", c.idle},
            {"waiting", c.waiting},
            {"confirming", c.confirming},
            {"unconfirmed", c.unconfirmed},
            {"reserved", c.reserved},
            {"leased", c.leased},
            {"recovering", c.recovering},
            {"unknown", c.unknown},
            {"shared", c.shared},
            {"parts", c.parts},
            {"slots", c.slots},
            {"parked", c.parked},
            {"wanted", c.wanted},
            {"last_dispatch_ns", c.last_dispatch_ns},
            {"saturated_until_ns", c.saturated_until_ns},
            {"demand_published", static_cast<uint64_t>(c.demand_published)},
            {"accepted", c.totals.accepted},
            {"requeued", c.totals.requeued},
            {"granted", c.totals.granted},
            {"expired", c.totals.expired},
            {"cancelled", c.totals.cancelled},
            {"rejected", c.totals.rejected},
            {"turned_away", c.totals.turned_away},
            {"released", c.totals.released},
            {"refused", c.totals.refused},
            {"hits", c.totals.hits},
            {"skipped", c.totals.skipped},
            {"unqualified", c.totals.unqualified},
            {"kills", c.totals.kills},
            {"kills_failed", c.totals.kills_failed}};
    };
    const auto real_fields = fields(real);
    const auto naive_fields = fields(naive);
    for (size_t i = 0; i < real_fields.size(); ++i) {
        if (real_fields[i].second == naive_fields[i].second) continue;
        return std::string(real_fields[i].first) + ": core " +
               std::to_string(real_fields[i].second) + ", naive " +
               std::to_string(naive_fields[i].second);
    }
    return {};
}

}  // namespace dibs::naive
