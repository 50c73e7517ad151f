// broker/core/rules/sessions.cpp -- opens sessions, and gives back what a dead session held.
//
// A death may touch thousands of rows, so it is a state that turns work off: the session is `dying`
// until no row names it. Each step fits the log's last quarter. A session that its tree outlives
// gives back all but its leases, by the same steps.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::SessionState;

uint32_t Sessions::open_session(const SessionOpen& open, std::string* why) {
    std::string refusal;
    if (!open.account.empty()) refusal = ledger().account_name_refusal(open.account);
    if (refusal.empty() && state.counters->sessions_free == 0) {
        refusal = "no room for another session";
    }
    if (!refusal.empty()) {
        if (why != nullptr) *why = std::move(refusal);
        return kNoRow;
    }
    const uint32_t row = free_rows().take_session_row();
    assert(state.sessions[row].state == SessionState::kFree);
    assert(session_slots.head(row) == kNoRow);
    shm::SessionRow& session = edit().fresh_row(state.sessions[row]);
    put(session.state, SessionState::kOpen);
    put(session.tags_max, std::min<uint32_t>(open.tags_max, shm::kTagsMax));
    put(session.uid, open.uid);
    put(session.gid, open.gid);
    put(session.pid, open.pid);
    put(session.start_time, open.start_time);
    put(session.account, ledger().hold_account(open.account, kNoRow));
    put(session.claims, 0);
    put(session.leases, 0);
    put(session.slots, 0);
    put(session.dying_cursor, 0);
    put(session.submission_consumed, 0);
    put(session.completion_tail, 0);
    put(session.opened_ns, turn().now_ns);
    put(session.submission_entries, open.submission_entries);
    put(session.completion_entries, open.completion_entries);
    put(session.up_payload_size, open.up_payload_size);
    put(session.down_payload_size, open.down_payload_size);
    put(session.hand_deaths, 0);
    put(session.hand_sequence, 0);
    put(session.tree, open.tree);
    tags[row].assign(session.tags_max, kTagFree);
    return row;
}

void Sessions::session_died(uint32_t row) {
    if (row >= state.sessions.size()) return;
    const SessionState before = state.sessions[row].state;
    if (before == SessionState::kOpen || before == SessionState::kOutlived) {
        begin_to_die(row, SessionState::kDying);
    }
}

void Sessions::holder_died(uint32_t row) {
    if (row >= state.sessions.size() || state.sessions[row].state != SessionState::kOpen) return;
    begin_to_die(row, SessionState::kOutlived);
}

void Sessions::begin_to_die(uint32_t row, SessionState as) {
    early_grants().settle_fresh();
    provisioning().session_ends(row);
    put(edit().row(state.sessions[row], 1).state, as);
    // An outlived one may not have given back all yet.
    if (std::find(dying.begin(), dying.end(), row) == dying.end()) dying.push_back(row);
    if (dying.size() == 1) bury_the_dying();
}

bool Sessions::waits_for_tree(uint32_t row) const {
    const shm::SessionRow& session = state.sessions[row];
    return session.state == SessionState::kOutlived && session.claims == 0 && session.slots == 0 &&
           std::all_of(tags[row].begin(), tags[row].end(), [&](uint32_t holder) {
               if (holder == kTagFree) return true;
               const shm::LeaseRow& lease = state.leases[holder & ~kTagLease];
               return lease.state == shm::LeaseState::kKilling ||
                      lease.mode != state.pools[lease.pool].mode;
           });
}

bool Sessions::bury_the_dying() {
    while (!dying.empty()) {
        const uint32_t session = dying.front();
        if (!bury(session)) return false;
        if (state.sessions[session].state == SessionState::kDying) {
            free_rows().free_session_row(session);
        }
        dying.erase(dying.begin());
    }
    return true;
}

bool Sessions::bury(uint32_t session) {
    const bool outlived = state.sessions[session].state == SessionState::kOutlived;
    assert(outlived || state.sessions[session].state == SessionState::kDying);
    do {
        if (turn().full()) return false;
    } while (gangs().orphan_one(session));
    const auto gather = [&](bool leased) {
        turn().scratch.clear();
        for (const uint32_t holder : tags[session]) {
            if (holder == kTagFree || ((holder & kTagLease) != 0) != leased) continue;
            turn().scratch.push_back(holder & ~kTagLease);
        }
    };
    gather(false);
    std::sort(turn().scratch.begin(), turn().scratch.end(), [&](uint32_t left, uint32_t right) {
        return state.claims[left].arrival < state.claims[right].arrival;
    });
    for (const uint32_t claim : turn().scratch) {
        if (turn().full()) return false;
        const bool confirming = state.claims[claim].state == shm::ClaimState::kReserved;
        const uint32_t first = confirming ? claims().unreserve(claim) : kNoRow;
        claims().end_claim(claim, Outcome::kCancelled, Reason::kHolderGone, 0, false);
        slots().give_back_chain(first, false, false, kNoRow);
    }
    gather(true);
    std::sort(turn().scratch.begin(), turn().scratch.end(), [&](uint32_t left, uint32_t right) {
        return state.leases[left].arrival < state.leases[right].arrival;
    });
    for (const uint32_t lease : turn().scratch) {
        if (turn().full()) return false;
        if (outlived) {
            leases().outlive(lease);
        } else {
            leases().end_lease(lease, Reason::kHolderGone, Tell::kNobody, false, kNoRow);
        }
    }
    turn().scratch.clear();
    for (uint32_t slot = session_slots.head(session); slot != kNoRow;
         slot = session_slots.next(slot)) {
        turn().scratch.push_back(slot);
    }
    std::sort(turn().scratch.begin(), turn().scratch.end(), [&](uint32_t left, uint32_t right) {
        const shm::SlotRow& one = state.slots[left];
        const shm::SlotRow& other = state.slots[right];
        if (one.pool != other.pool) return one.pool < other.pool;
        if (one.number != other.number) return one.number < other.number;
        // Parts before their slot, in the order of their grants; placeholders have had none.
        const bool is_part = one.part_of != kNoRow;
        if (is_part != (other.part_of != kNoRow)) return is_part;
        if (one.fence != other.fence) return one.fence < other.fence;
        return std::pair(gangs().place(one), left) < std::pair(gangs().place(other), right);
    });
    for (const uint32_t slot : turn().scratch) {
        if (turn().full()) return false;
        // An earlier step may have removed a draining one.
        if (state.slots[slot].state != SlotState::kFree) lose_slot(slot);
    }
    const shm::SessionRow& dead = state.sessions[session];
    assert(dead.claims == 0 && (dead.leases == 0 || outlived) && dead.slots == 0);
    assert(session_slots.head(session) == kNoRow);
    return true;
}

// The slot's worker is gone.
void Sessions::lose_slot(uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    assert(slot.state != SlotState::kFree);
    if (slot.state == SlotState::kReserved && slot.holder != kNoRow) {
        const uint32_t claim = slot.holder;
        assert(state.claims[claim].pool == slot.pool);
        const uint32_t first = claims().unreserve(claim);
        claims().wait_again(claim);
        slots().give_back_chain(first, false, false, row);
    } else if (slot.state == SlotState::kLeased) {
        leases().end_lease(slot.holder, Reason::kWorkerLost, Tell::kHolder, false, row);
    } else if (being_killed_for(slot)) {
        leases().take_off_lease(row);
    }
    slots().remove_slot(row);
}

}  // namespace dibs::core
