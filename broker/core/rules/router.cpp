// broker/core/rules/router.cpp -- ranks the pools of which one is to have a claim.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/rules/router.hpp"

#include <algorithm>

namespace dibs::core {

namespace {

constexpr int64_t kPriorityWeight = 1000;
constexpr int64_t kHeadroomWeight = 5;
constexpr int64_t kQueueWeight = 2;
constexpr int64_t kSaturationPenalty = 1'000'000;
constexpr int64_t kHeadroomMax = 10;  // version 3: it outranks no idle slot

// What the smaller of two is tried first by; the name decides between equals.
using Standing = std::array<int64_t, 4>;

Standing compared(const Candidate& member, bool is_saturated) {
    return {is_saturated ? 1 : 0, member.priority, -int64_t{member.idle}, member.queue};
}

int64_t idle_of(const Candidate& member, bool corrected) {
    return corrected ? std::max(member.idle, member.idle_seen) : member.idle;
}

// `siblings`: what the other members desire, summed.
int64_t headroom_of(const Candidate& member, uint32_t group_cap, int64_t siblings) {
    if (member.cap == shm::kNoRow && group_cap == shm::kNoRow) return 0;
    int64_t cap = member.cap;  // kNoRow is above all
    if (group_cap != shm::kNoRow) cap = std::min(cap, std::max<int64_t>(group_cap - siblings, 0));
    return std::max<int64_t>(cap - member.desired, 0);
}

Standing scored(const Candidate& member, int64_t headroom, bool is_saturated, bool corrected) {
    const int64_t idle = idle_of(member, corrected);
    const int64_t room = corrected ? std::min(headroom, kHeadroomMax) : headroom;
    const bool is_out = is_saturated && !(corrected && idle > 0);
    const int64_t score = -kPriorityWeight * member.priority + (corrected ? 100 : 10) * idle +
                          kHeadroomWeight * room - kQueueWeight * member.queue -
                          (is_out ? kSaturationPenalty : 0);
    return {-score};
}

}  // namespace

Ranking rank(std::span<const Candidate> members,
             uint32_t group_cap,
             uint8_t version,
             TimeNs now_ns) {
    members = members.first(std::min<size_t>(members.size(), shm::kSetMembersMax));
    const bool compares = version == 1;
    const bool corrected = version != 1 && version != 2;
    int64_t desired = 0;
    for (const Candidate& member : members)
        desired += member.desired;
    std::array<Standing, shm::kSetMembersMax> keys = {};
    std::array<bool, shm::kSetMembersMax> fresh = {};
    Ranking ranking;
    for (size_t at = 0; at < members.size(); ++at) {
        const Candidate& member = members[at];
        const bool is_saturated = now_ns < member.saturated_until_ns;
        const int64_t headroom = headroom_of(member, group_cap, desired - member.desired);
        const bool is_capped = member.cap != shm::kNoRow || group_cap != shm::kNoRow;
        const bool is_maxed_out = is_capped && headroom == 0 && idle_of(member, corrected) == 0;
        fresh[at] = compares ? !is_saturated : !is_maxed_out;
        ranking.fresh = ranking.fresh || fresh[at];
        keys[at] = compares ? compared(member, is_saturated)
                            : scored(member, headroom, is_saturated, corrected);
    }
    std::array<size_t, shm::kSetMembersMax> order = {};
    for (size_t at = 0; at < members.size(); ++at) {
        if (!compares && ranking.fresh && !fresh[at]) continue;
        const auto comes_before = [&](size_t other) {
            return keys[at] != keys[other] ? keys[at] < keys[other]
                                           : members[at].name < members[other].name;
        };
        uint32_t place = ranking.count++;
        for (; place != 0 && comes_before(order[place - 1]); --place)
            order[place] = order[place - 1];
        order[place] = at;
    }
    for (uint32_t place = 0; place < ranking.count; ++place)
        ranking.pools[place] = members[order[place]].pool;
    return ranking;
}

}  // namespace dibs::core
