// tests/naive/router.cpp -- which pool a routed claim is tried in first.
//
// What quotes is of docs/scheduling.md, Router; the rest names its statement.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tests/naive/naive_core.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

using shm::Reason;

namespace {

struct Member {
    uint32_t pool = 0;
    std::string name;
    int64_t priority = 0;
    int64_t idle = 0;
    int64_t queue = 0;
    int64_t desired = 0;
    std::optional<int64_t> cap;
    bool saturated = false;
    int64_t headroom = 0;
    int64_t score = 0;
};

// S0.36: "priority ascending, idle descending, queue ascending, name ascending", the saturated
// behind the others.
bool goes_first(const Member& one, const Member& other) {
    if (one.saturated != other.saturated) return other.saturated;
    if (one.priority != other.priority) return one.priority < other.priority;
    if (one.idle != other.idle) return one.idle > other.idle;
    if (one.queue != other.queue) return one.queue < other.queue;
    return one.name < other.name;
}

bool scores_more(const Member& one, const Member& other) {
    return one.score != other.score ? one.score > other.score : one.name < other.name;
}

// S0.37: "cap = min(its cap, max(the group's − what its siblings desire, 0))".
void find_headroom(std::vector<Member>& members, std::optional<int64_t> group) {
    for (Member& member : members) {
        std::optional<int64_t> cap = member.cap;
        if (group) {
            int64_t left = *group;
            for (const Member& sibling : members)
                if (&sibling != &member) left -= sibling.desired;
            left = std::max<int64_t>(left, 0);
            cap = cap ? std::min(*cap, left) : left;
        }
        member.cap = cap;
        member.headroom = cap && *cap > member.desired ? *cap - member.desired : 0;
    }
}

std::optional<int64_t> unless_none(uint32_t number) {
    if (number == shm::kNoRow) return std::nullopt;
    return number;
}

}  // namespace

std::vector<uint32_t> NaiveCore::routed(const core::Route& route) const {
    std::vector<Member> members;
    for (const core::RouteMember& of : route.members) {
        const bool takes_claims = pool_lives(of.pool) && !is_draining(of.pool);
        if (!takes_claims || members.size() == 16) continue;
        const Pool& pool = m_.pools[of.pool];
        const PoolCounters now = counters(of.pool);
        Member member;
        member.pool = of.pool;
        member.name = pool.name;
        member.priority = of.priority;
        member.queue = static_cast<int64_t>(now.waiting + now.confirming);
        // "Idle are slots, parked ones too, that the claims before it will not take."
        member.idle = static_cast<int64_t>(now.idle + now.parked);
        for (const auto& [number, claim] : m_.claims)
            if (!claim.is_confirming && !claim.is_held_back)
                member.idle -= units_in(claim, of.pool);
        member.idle = std::max<int64_t>(member.idle, 0);
        if (route.version == 3)
            member.idle = std::max<int64_t>(member.idle, of.idle_seen);  // S0.38
        member.cap = unless_none(of.cap);
        const bool counted = pool.config.kind == shm::PoolKind::kCounted;
        member.desired = static_cast<int64_t>(counted ? pool.config.slots : now.slots - now.parts);
        const int64_t own = counted ? pool.config.slots : pool.config.workers_max;
        if (counted || is_elastic(of.pool)) member.cap = std::min(member.cap.value_or(own), own);
        member.saturated = m_.now < pool.saturated_until_ns;
        members.push_back(member);
    }
    if (route.version == 1) {
        std::sort(members.begin(), members.end(), goes_first);
    } else {
        find_headroom(members, unless_none(route.group_cap));
        const auto is_maxed_out = [](const Member& member) {
            return member.cap && member.desired >= *member.cap && member.idle == 0;
        };
        if (!std::all_of(members.begin(), members.end(), is_maxed_out))
            std::erase_if(members, is_maxed_out);
        for (Member& member : members) {
            const bool third = route.version == 3;
            const int64_t headroom =
                third ? std::min<int64_t>(member.headroom, 10) : member.headroom;
            member.score = -1000 * member.priority + (third ? 100 : 10) * member.idle +
                           5 * headroom - 2 * member.queue;
            if (member.saturated && !(third && member.idle > 0)) member.score -= 1'000'000;
        }
        std::sort(members.begin(), members.end(), scores_more);
    }
    std::vector<uint32_t> pools;
    for (const Member& member : members)
        pools.push_back(member.pool);
    return pools;
}

// S0.36: "tried in that order until one accepts". "A member whose backlog is full is saturated for
// the route's cool-down." "If all refuse, the first one's reason is told."
core::Claim NaiveCore::placed(const core::Claim& claim) {
    core::Claim first = claim;
    first.route = nullptr;
    first.pool = {};
    if (first.refusal == Reason::kOk) first.refusal = Reason::kNotFound;
    bool is_first = true;
    for (const uint32_t pool : routed(*claim.route)) {
        core::Claim one = claim;
        one.route = nullptr;
        one.pool = pool;
        uint64_t unused = 0;
        const Reason refusal = refusal_of(one, &unused);
        if (refusal == Reason::kOk) return one;
        if (refusal == Reason::kBacklogFull) {
            const TimeNs until_ns = later(m_.now, claim.route->cool_down_ns);
            m_.pools[pool].saturated_until_ns = std::min(until_ns, shm::kNever - 1);
        }
        if (is_first) first = one;
        is_first = false;
    }
    return first;
}

}  // namespace dibs::naive
