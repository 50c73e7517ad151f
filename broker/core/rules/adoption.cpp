// broker/core/rules/adoption.cpp -- moves a lease from one session to another of the same user.
//
// A wrapper that claims for a command, and the command that then runs alone, are two processes. The
// second one opens a session of its own and adopts the lease by its id and fence: from there on the
// lease ends with that session, which also owes the keepalives; the adoption counts as one. Id,
// fence and slots stay. The lease of a dead holder has ended and cannot be adopted.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::LeaseState;

Reason Leases::adoption_refusal(const Adopt& command) const {
    if (command.refusal != Reason::kOk) return command.refusal;
    const std::vector<uint32_t>& own = sessions().tags[command.session];
    if (command.tag >= own.size() || own[command.tag] != kTagFree) return Reason::kLimit;
    const Reason reason = lease_refusal(command.lease, command.fence);
    if (reason == Reason::kNotFound) return reason;
    if (reason != Reason::kOk) return Reason::kEnded;
    const shm::LeaseRow& lease = state.leases[row_of(command.lease)];
    const shm::SessionRow& holder = state.sessions[lease.session];
    if (holder.uid != state.sessions[command.session].uid) return Reason::kNotAllowed;
    if (holder.state != shm::SessionState::kOpen) return Reason::kEnded;
    if (lease.fence + takes_of(lease) != command.fence) return Reason::kStale;
    if (lease.session == command.session) return Reason::kState;
    return lease.state == LeaseState::kKilling ? Reason::kExpiredLease : Reason::kOk;
}

void Leases::apply(const Adopt& command) {
    const Reason reason = adoption_refusal(command);
    if (reason != Reason::kOk) return turn().result(command.session, command.user_data, reason);
    const uint32_t row = several_pools().first_lease(row_of(command.lease));
    parking().lease_moves(row);
    shm::LeaseRow& lease = edit().row(state.leases[row], 1U << 1U);
    const shm::LeaseRow before = lease;
    assert(before.session != command.session && lease.state != LeaseState::kKilling);
    free_rows().drop_arena(lease.session, meta_of(lease).size);
    free_rows().hold_arena(command.session, meta_of(lease).size);
    put(lease.session, command.session);
    put(lease.tag, command.tag);
    put(lease.user_data, command.user_data);
    put(lease.room, command.room);
    put(lease.room_lines, command.room_lines);
    // Its claim may have to wait again, and then it is the adopter's.
    if (const uint32_t behind = matcher().claim_behind(row); behind != kNoRow) {
        shm::ClaimRow& claim = edit().row(state.claims[behind], kClaimRunLines);
        assert(claim.state == shm::ClaimState::kRunning && claim.lease == row);
        assert(claim.session == before.session && claim.tag == before.tag);
        free_rows().drop_arena(claim.session, claim.payload_size);
        free_rows().hold_arena(command.session, claim.payload_size);
        free_rows().drop_arena(claim.session, claim.meta_size);
        free_rows().hold_arena(command.session, claim.meta_size);
        put(claim.session, command.session);
        put(claim.tag, command.tag);
        put(claim.user_data, command.user_data);
        put(claim.room, command.room);
        put(claim.room_lines, command.room_lines);
    }
    const uint32_t rows = std::max<uint32_t>(lease.several, 1);
    shm::SessionRow& giver = edit().row(state.sessions[before.session], 1);
    assert(giver.leases >= rows);
    put(giver.leases, giver.leases - rows);
    shm::SessionRow& taker = edit().row(state.sessions[command.session], 1);
    put(taker.leases, taker.leases + rows);
    keep_alive(row, 0);
    several_pools().follow(row);
    // The adopter's word begins anew.
    if ((lease.flags & shm::LeaseFlag::kByWord) != 0) {
        put(edit().row(state.leases[row], 1U << 2U).touched, 0);
    }
    assert(sessions().tags[before.session][before.tag] == (row | kTagLease));
    assert(sessions().tags[command.session][command.tag] == kTagFree);
    sessions().tags[before.session][before.tag] = kTagFree;
    sessions().tags[command.session][command.tag] = row | kTagLease;

    // Told by a completion and a cleared event word, as a grant is; and if the lease is being
    // taken, or comes to be in this turn, by the word for that.
    turn().grants += 2;
    Decision& adopted = tell_of_lease(DecisionKind::kAdopted, row);
    adopted.value = lease.interval_ns;
    turn().list_slots(&adopted, lease.first_slot);
    several_pools().tell_further(&adopted, row);
    Decision& end = tell_of_lease(DecisionKind::kLeaseEnd, row);
    end.reason = Reason::kAdopted;
    end.session = before.session;
    end.tag = before.tag;
    end.user_data = before.user_data;
    end.room = before.room;
    turn().list_slots(&end, lease.first_slot);
}

}  // namespace dibs::core
