// tests/naive/telling.cpp -- how a decision is written down: as broker/core/decision.hpp says.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/naive_core.hpp"

namespace dibs::naive {

using core::Decision;
using core::DecisionKind;
using shm::Reason;

std::span<const core::DecidedSlot> NaiveCore::decided_slots(const Decision& decision) const {
    return std::span(decided_slots_).subspan(decision.slots_begin, decision.slots_count);
}

std::span<const int64_t> NaiveCore::decided_amounts(const Decision& decision) const {
    const std::span<const int64_t> all(decided_costs_);
    if (decision.kind == DecisionKind::kGrant || decision.kind == DecisionKind::kAssign ||
        decision.kind == DecisionKind::kCreate) {
        return all.subspan(decision.resources_begin, decision.resources_count);
    }
    return all.subspan(decision.slots_begin, decision.slots_count);
}

void NaiveCore::list_cost(Decision& decision, const Money& cost) {
    decision.slots_begin = static_cast<uint32_t>(decided_costs_.size());
    decision.slots_count = static_cast<uint32_t>(cost.size());
    decided_costs_.insert(decided_costs_.end(), cost.begin(), cost.end());
}

Decision& NaiveCore::tell(DecisionKind kind, uint32_t session) {
    Decision decision{};
    decision.kind = kind;
    decision.session = session;
    decisions_.push_back(decision);
    return decisions_.back();
}

void NaiveCore::tell_result(uint32_t session, uint64_t user_data, Reason reason, uint64_t value) {
    Decision& decision = tell(DecisionKind::kResult, session);
    decision.user_data = user_data;
    decision.reason = reason;
    decision.value = value;
}

void NaiveCore::list_slots(Decision& decision, const std::vector<uint64_t>& slots) {
    decision.slots_begin = static_cast<uint32_t>(decided_slots_.size());
    decision.slots_count = static_cast<uint32_t>(slots.size());
    for (const uint64_t slot : slots)
        decided_slots_.push_back({static_cast<uint32_t>(slot), m_.slots.at(slot).number});
}

// S0.32 asks for codes that tell ends apart; whom to ask for the slot comes with some of them, as
// dibs.h says.
void NaiveCore::name_holder(Decision& decision, const Lease* lease) const {
    if (lease == nullptr) return;
    const Session& holder = m_.sessions.at(lease->session);
    decision.holder_uid = holder.uid;
    decision.holder_pid = holder.pid;
    decision.holder_claim = lease->claim;
    decision.holder_age_ns = m_.now - lease->granted_ns;
}

}  // namespace dibs::naive
