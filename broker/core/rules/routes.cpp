// broker/core/rules/routes.cpp -- says what the members of a route are like now.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "broker/core/parts.hpp"

namespace dibs::core {

// What claims of this turn are about to get is not idle for the next one.
Candidate Claims::candidate(const RouteMember& member) const {
    const shm::PoolRow& pool = state.pools[member.pool];
    const FreshList& fresh = turn().fresh_of_pool[member.pool];
    const uint32_t wanted = parking().waiting_units[member.pool] + fresh.units;
    const uint32_t free = pool.idle + pool.parked;
    const bool is_counted = pool.kind == shm::PoolKind::kCounted;
    Candidate as{.pool = member.pool,
                 .name = {pool.name, pool.name_size},
                 .priority = member.priority,
                 .idle = free - std::min(free, wanted),
                 .idle_seen = member.idle_seen,
                 .queue = pool.waiting + pool.confirming + fresh.count,
                 .desired = is_counted ? pool.slots_wanted : whole_slots(pool),
                 .cap = member.cap,
                 .saturated_until_ns = pool.saturated_until_ns};
    if (is_counted) as.cap = std::min(as.cap, pool.slots_wanted);
    if (provisioning().is_elastic(member.pool)) {
        as.cap = std::min(as.cap, state.elastics[member.pool].workers_max);
    }
    return as;
}

// Of the members that take claims at all.
Ranking Claims::ranking(const Route& route) const {
    std::array<Candidate, shm::kSetMembersMax> members;
    size_t count = 0;
    for (const RouteMember& member : route.members) {
        if (count == members.size()) break;
        if (!pools().pool_lives(member.pool) || pools().draining(member.pool)) continue;
        members[count++] = candidate(member);
    }
    return rank({members.data(), count}, route.group_cap, route.version, turn().now_ns);
}

}  // namespace dibs::core
