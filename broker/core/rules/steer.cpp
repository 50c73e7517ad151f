// broker/core/rules/steer.cpp -- applies steering of a claim or lease from outside its session.
//
// An administrator, or the owner from another process, names the claim or lease by its row's id; no
// session asks.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/parts.hpp"

namespace dibs::core {

Reason Leases::apply(const Steer& command, uint64_t* granted_ns) {
    if (command.kind == Steer::Kind::kCancel) return revoke_claim(command);
    const uint32_t named = row_of(command.lease);
    const uint32_t generation = generation_of(command.lease);
    if (named >= state.leases.size() || generation == 0) return Reason::kNotFound;
    const shm::LeaseRow& lease = state.leases[named];
    if (generation < lease.head.generation) return Reason::kAlreadyEnded;
    if (lease.state == shm::LeaseState::kFree || generation > lease.head.generation) {
        return Reason::kNotFound;
    }
    const uint32_t row = several_pools().first_lease(named);  // it is meant as a whole
    if (state.sessions[lease.session].state == shm::SessionState::kOutlived &&
        command.kind == Steer::Kind::kRelease) {
        leases().outlive(row);  // unless its session has come to that already
        return leases().kill_holder(row), Reason::kOk;
    }
    // Its holder's death frees it, or the holder itself: no command from outside.
    if (lease.state == shm::LeaseState::kKilling) return Reason::kState;
    assert(sessions().tags[lease.session][lease.tag] == (row | kTagLease));
    if (command.kind == Steer::Kind::kRelease) {
        end_lease(row, Reason::kRevoked, Tell::kHolder, false, kNoRow);
    } else {
        *granted_ns = keep_alive(row, command.interval_ns);
    }
    return Reason::kOk;
}

// The number makes sure that the tag still names the claim that was meant.
Reason Leases::revoke_claim(const Steer& command) {
    early_grants().settle_fresh();
    if (command.number == 0 || command.number >= state.counters->arrival_next) {
        return Reason::kNotFound;
    }
    const bool known = command.session < sessions().tags.size() &&
                       command.tag < sessions().tags[command.session].size();
    const uint32_t row = known ? sessions().tags[command.session][command.tag] : kTagFree;
    if ((row & kTagLease) != 0 || state.claims[row].arrival != command.number) {
        return Reason::kAlreadyEnded;
    }
    assert(state.claims[row].state != shm::ClaimState::kFree);
    assert(state.claims[row].session == command.session);
    const bool confirming = state.claims[row].state == shm::ClaimState::kReserved;
    const uint32_t first = confirming ? claims().unreserve(row) : kNoRow;
    claims().end_claim(row, Outcome::kCancelled, Reason::kRevoked, 0, true);
    slots().give_back_chain(first, false, false, kNoRow);
    return Reason::kOk;
}

}  // namespace dibs::core
