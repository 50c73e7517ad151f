// shm/rule.hpp -- names the setting that refused a claim, in its completion's `value`.
//
// Used with Reason::kNotAllowed, kLimit, kPayload and kNoRoom; a value of 0 names no setting.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dibs::shm {

// The C interface's too (dibs.h, DIBS_KEY_…), so the numbers stay.
enum class RuleKey : uint32_t {
    kNone = 0,
    kPools = 1,         // [[policy]] pools
    kPriorityMax = 2,   // [[policy]] priority_max
    kAccount = 3,       // [[policy]] account: another one takes an administrator
    kLeases = 4,        // [[policy]] leases
    kBacklog = 5,       // [[policy]] backlog
    kClaimShare = 6,    // limits.claims: more than three quarters are in use; a uid with the rule's
    kLeaseShare = 7,    // number or more gets no more of the rest; limits.leases
    kLabelShare = 8,    // limits.label_sets
    kPayloadShare = 9,  // limits.arena, in blocks
    kOrder = 10,        // [[pool]] order: the claim's labels would not be read
    kDownPayload = 11,  // the session's down_payload, of which the claim needs `number` bytes
    kLabelSets = 12,    // [[policy]] label_sets
    kArena = 13,        // [[policy]] arena, in bytes
    kResources = 14,    // [[pool]] resources: a slot has less of this one, by the order of names
    kSlotShare = 15,    // limits.slots, of which each part of a slot takes one: as kClaimShare
    kTaskShare = 16,    // limits.tasks: half are in use; a uid with the number or more gets none
};

struct Rule {
    RuleKey key = RuleKey::kNone;
    uint32_t number = 0;
};

constexpr uint64_t packed(Rule rule) {
    return uint64_t{static_cast<uint32_t>(rule.key)} << 32U | rule.number;
}
constexpr Rule rule_in(uint64_t value) {
    return {static_cast<RuleKey>(value >> 32U), static_cast<uint32_t>(value)};
}

}  // namespace dibs::shm
