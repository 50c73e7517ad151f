// broker/core/decision_sum.cpp -- adds up every field of a decision, one after the other.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/decision_sum.hpp"

#include <array>
#include <vector>

#include "broker/core/store/index.hpp"

namespace dibs::core {

uint32_t sum_of(const Core& core, const Decision& decision) {
    const std::array<uint64_t, 26> fields = {
        static_cast<uint64_t>(decision.kind),
        static_cast<uint64_t>(decision.outcome),
        static_cast<uint64_t>(decision.reason),
        decision.session,
        decision.pool,
        decision.tag,
        decision.units,
        decision.claim,
        decision.user_data,
        decision.id,
        decision.fence,
        decision.value,
        decision.round,
        decision.account,
        decision.hit_permille,
        decision.slot_number,
        decision.room,
        decision.holder_uid,
        decision.holder_pid,
        uint64_t{decision.provision} | uint64_t{decision.is_void} << 1U |
            uint64_t{decision.pledged} << 2U | uint64_t{decision.has_class} << 3U,
        decision.from_class,
        decision.to_class,
        decision.holder_claim,
        decision.holder_age_ns,
        decision.answer.size(),  // its bytes are a command's, and may be gone by now
        decision.kind == DecisionKind::kAnswer ? decision.slots_begin : 0,  // which of its units
    };
    uint64_t sum = hash_bytes(fields.data(), sizeof(fields), 0);
    if (decision.slots_count != 0) {
        std::vector<uint32_t> rows;
        for (const DecidedSlot& slot : core.decided_slots(decision))
            rows.push_back(slot.row);
        sum = hash_bytes(rows.data(), rows.size() * sizeof(uint32_t), sum);
    }
    if (decision.kind == DecisionKind::kPreempt || decision.kind == DecisionKind::kRefund) {
        const auto cost = core.decided_cost(decision);
        sum = hash_bytes(cost.data(), cost.size_bytes(), sum);
    }
    return static_cast<uint32_t>(sum ^ (sum >> 32U));
}

}  // namespace dibs::core
