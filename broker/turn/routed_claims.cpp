// broker/turn/routed_claims.cpp -- makes one command of a claim of a set, for the pools that it may
// have.
//
// Which pool takes it is the core's to say, and is known once the command is applied. Until then
// what depends on the pool is as the largest needs it.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/look.hpp"
#include "broker/turn/operations.hpp"
#include "broker/turn/pool_sets.hpp"
#include "shm/operation.hpp"

namespace dibs {

using shm::Reason;

// Members whose pools this claim may have: the others are left out, and where none is left the
// first one's reason is told.
Reason Operations::members_of_claim(const Session& session,
                                    const shm::Submission& entry,
                                    std::span<const uint8_t> payload,
                                    const core::Route& set) {
    members_.clear();
    const size_t ruled = ruled_.size();
    Reason first = Reason::kOk;
    size_t ruled_by_first = ruled;
    for (const core::RouteMember& member : set.members) {
        shm::Submission one = entry;
        one.flags &= static_cast<uint8_t>(~shm::OpFlag::kOfSet);
        one.pool = static_cast<uint16_t>(member.pool);
        const Reason refusal = claim_refusal(session, one, payload);
        if (refusal == Reason::kOk) members_.push_back(member);
        if (refusal != Reason::kOk && first == Reason::kOk) {
            first = refusal;
            ruled_by_first = ruled_.size();
        }
        ruled_.resize(ruled_by_first, {});
    }
    if (members_.empty()) return first;
    ruled_.resize(ruled, {});
    return Reason::kOk;
}

void Operations::claim_of_set(Session& session,
                              const shm::Submission& entry,
                              std::span<const uint8_t> payload) {
    core::Claim command = command_of(session, entry, payload);
    command.pool = {};
    const core::Route* set = sets_ == nullptr ? nullptr : sets_->route_of_claim(entry.pool);
    core::Route route = set == nullptr ? core::Route{} : *set;
    command.refusal =
        set == nullptr ? Reason::kUnknownPool : members_of_claim(session, entry, payload, route);
    route.members = members_;
    uint32_t largest = 0;
    for (const core::RouteMember& member : members_) {
        if (grant_stride(core_.pool(member.pool)) >= grant_stride(core_.pool(largest)) ||
            &member == members_.data()) {
            largest = member.pool;
        }
    }
    give_room(session, largest, &command);
    bring(&command);
    if (command.refusal == Reason::kOk) {
        command.route = &route;
    } else if (set != nullptr) {
        command.pool = set->members.front().pool;
    }
    core_.apply(command);
    const uint32_t pool = core::Look::pool_of_claim(core_, session.row, entry.tag);
    if (command.refusal != Reason::kOk || pool == shm::kNoRow) return;
    if (command.room != shm::kNoRow) {
        session.tags[entry.tag].stride = grant_stride(core_.pool(pool));
        session.tags[entry.tag].answer_place = grant_answer_place(core_.pool(pool));
    }
    words_.make_room(pool, 0);  // it waits there by now
}

}  // namespace dibs
