// broker/core/steer.cpp -- what an administrator, or the owner from another process, does to a
// claim or lease: it is named by its row's id, and nobody's session asks.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/parts.hpp"

namespace dibs::core {

namespace {

uint32_t row_of(uint64_t id) {
    return static_cast<uint32_t>(id);
}

uint32_t generation_of(uint64_t id) {
    return static_cast<uint32_t>(id >> 32U);
}

}  // namespace

Reason Core::Parts::apply(const Steer& command, uint64_t* granted_ns) {
    settle_fresh();
    if (command.kind == Steer::Kind::kCancel) return revoke_claim(command.id);
    const uint32_t row = row_of(command.id);
    if (row >= state.leases.size()) return Reason::kNotFound;
    const shm::LeaseRow& lease = state.leases[row];
    const bool free = lease.state == shm::LeaseState::kFree;
    if (generation_of(command.id) < lease.head.generation) return Reason::kAlreadyEnded;
    if (free || generation_of(command.id) > lease.head.generation) return Reason::kNotFound;
    // Its holder's death frees it, or the holder itself: nobody from outside.
    if (lease.state == shm::LeaseState::kKilling) return Reason::kState;
    if (command.kind == Steer::Kind::kRelease) {
        end_lease(row, Reason::kRevoked, Tell::kHolder, false, kNoRow);
        return Reason::kOk;
    }
    *granted_ns = keep_alive(row, command.interval_ns);
    return Reason::kOk;
}

Reason Core::Parts::revoke_claim(uint64_t id) {
    const uint32_t row = row_of(id);
    if (row >= state.claims.size()) return Reason::kNotFound;
    const shm::ClaimRow& claim = state.claims[row];
    if (generation_of(id) < claim.head.generation) return Reason::kAlreadyEnded;
    if (claim.state == shm::ClaimState::kFree || generation_of(id) > claim.head.generation) {
        return Reason::kNotFound;
    }
    const bool confirming = claim.state == shm::ClaimState::kReserved;
    const uint32_t first = confirming ? unreserve(row) : kNoRow;
    end_claim(row, Outcome::kCancelled, Reason::kRevoked, 0, true);
    give_back_chain(first, false, false, kNoRow);
    return Reason::kOk;
}

}  // namespace dibs::core
