// broker/core/fast/pledge.cpp -- publishes a grant before its turn runs, to answer sooner.
//
// Where a turn has one claim to serve and a slot is idle, its decision is known before any row
// changes, and most of its cost is writing the rows. So the grant is pledged first: the completion
// goes into the log's first store as the client will read it, and the number of the turn that will
// make the grant goes into the log's head. Then the completion is published, and then the grant is
// made.
//
//   foresee ─► draft ─► sign ─► (told) ─► apply ─► decide ─► commit
//      │                  │                                    │
//      │                  └ a death from here on owes it  └ done: a turn like any other
//      └ a death here has said nothing
//
// A draft holds everything except what only the claim itself says, and may be written between
// turns: no turn uses the log's stores then, and an unsigned draft is written over.
//
// An undone turn leaves the rows that the pledge was made from, and the core decides the same from
// the same rows. So attaching keeps an owed pledge, in a turn of its own that it commits with the
// completion as its store: the session reads the completion a second time, in the same bytes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstring>

#include "broker/core/parts.hpp"

namespace dibs::core {

// No command has changed a row, and nothing goes on.
bool EarlyGrants::nothing_goes_on() const {
    return !edit().open() && !turn().cut && !turn().forgetting && sessions().dying.empty() &&
           pools().growing.empty() && pools().going.empty() && pools().shrinking.empty() &&
           turn().dirty.empty() && !gangs().has_work();
}

bool Core::foresee(const Claim& command, Foreseen* seen) const {
    return parts_->decisions.empty() && next_due() > parts_->now_ns && foresee_next(command, seen);
}

bool Core::foresee_next(const Claim& command, Foreseen* seen) const {
    const Parts& parts = *parts_;
    const State& state = parts.state;
    uint64_t other = 0;
    if (command.units != 1 || !command.also.empty() || !parts.nothing_goes_on() ||
        parts.claim_refusal(command, &other) != Reason::kOk || !parts.may_stay_fresh(command) ||
        !parts.servable(command.pool, 1)) {
        return false;
    }
    const shm::PoolRow& pool = state.pools[command.pool];
    const uint32_t lease = state.counters->leases_free_head;
    seen->lease = row_id(state.leases[lease].head.generation, lease);
    seen->fence = pool.fence_next + 1;
    seen->claim = state.counters->arrival_next;
    seen->interval_ns = std::min(command.interval_ns, pool.interval_max_ns);
    const bool may_park = command.interval_ns == 0 && (pool.flags & shm::PoolFlag::kParks) != 0;
    seen->reason = may_park ? Reason::kMayPark : Reason::kOk;
    seen->slot = {pool.ready_head, state.slots[pool.ready_head].number};
    return true;
}

bool Core::begins_plainly() const {
    return !parts_->book && !parts_->cut;
}

bool Core::still_foreseen() const {
    return parts_->nothing_goes_on();
}

void Core::draft_pledge(const Claim& command, const shm::Completion& told) {
    const Parts& parts = *parts_;
    shm::LogStore& store = parts.state.log_stores[0];
    shm::store_words(store.entry, &told, shm::kLineWords);
    stored();
    put(store.session, command.session);
    put(store.generation, parts.state.sessions[command.session].head.generation);
    put(store.kind, shm::LogStoreKind::kCompletion);
    put(store.position, told.sequence - 1);
    shm::LogHead& log = parts.state.head->log;
    put(log.pledged_pool, command.pool);
    put(log.pledged_room_lines, command.room_lines);
}

void Core::sign_pledge(const shm::Completion& told, TimeNs now) {
    Parts& parts = *parts_;
    shm::LogStore& store = parts.state.log_stores[0];
    assert(store.position == told.sequence - 1);
    std::memcpy(store.entry + offsetof(shm::Completion, user_data), &told.user_data, 8);
    stored();
    std::memcpy(store.entry + offsetof(shm::Completion, value), &told.value, 8);
    stored();
    shm::LogHead& log = parts.state.head->log;
    put(log.pledged_ns, std::max(parts.now_ns, now));
    std::atomic_signal_fence(std::memory_order_seq_cst);
    put(log.pledged_turn, parts.state.counters->turns + 1);  // owed from here on
    std::atomic_signal_fence(std::memory_order_seq_cst);
    parts.pledged = true;
}

void Core::pledge(const Claim& command, const shm::Completion& told) {
    draft_pledge(command, told);
    sign_pledge(told, parts_->now_ns);
}

void EarlyGrants::keep_pledge(const Claim& command) {
    turn().pledged = false;
    edit().keep_first_store();
    shm::CountersRow& counters = edit().counters(1);
    const uint64_t number = counters.arrival_next;
    put(counters.arrival_next, number + 1);
    shm::PoolRow& pool = edit().row(state.pools[command.pool], kPoolStates);
    put(pool.accepted_total, pool.accepted_total + 1);
    leases().lease_out({.session = command.session,
                        .pool = command.pool,
                        .units = 1,
                        .tag = command.tag,
                        .number = number,
                        .user_data = command.user_data,
                        .interval_ns = command.interval_ns,
                        .room = command.room,
                        .room_lines = command.room_lines,
                        .is_plain = command.interval_ns == 0},
                       matcher().take_idle(command.pool, 1, SlotState::kLeased));
    turn().decisions.back().pledged = true;
}

// What a predecessor told and did not live to grant.
void EarlyGrants::keep_owed_pledge() {
    const shm::LogHead& log = state.head->log;
    if (log.pledged_turn != state.counters->turns + 1) return;
    const shm::LogStore& store = state.log_stores[0];
    shm::Completion told;
    std::memcpy(&told, store.entry, sizeof(told));
    Claim command;
    command.session = store.session;
    command.tag = told.tag;
    command.pool = log.pledged_pool;
    command.user_data = told.user_data;
    command.interval_ns = told.value;
    command.room = told.data / static_cast<uint32_t>(shm::kLineSize);
    command.room_lines = log.pledged_room_lines;
    assert(store.kind == shm::LogStoreKind::kCompletion && told.units == 1);
    assert(matcher().serves_fresh(command.pool) && state.pools[command.pool].idle != 0);
    assert(state.sessions[store.session].completion_tail == store.position);
    edit().begin();
    turn().now_ns = std::max(turn().now_ns, log.pledged_ns);
    keep_pledge(command);
    assert(turn().decisions.back().id == told.id && turn().decisions.back().fence == told.fence);
    leases().keep_room(state.leases[row_of(told.id)]);
    shm::SessionRow& session = edit().row(state.sessions[store.session], 1);
    put(session.submission_consumed, session.submission_consumed + 1);
    put(session.completion_tail, store.position + 1);
    put(edit().counters(1).time_ns, turn().now_ns);
    edit().commit();
    edit().leave_owing();
    turn().decisions.clear();
    turn().decided_slots.clear();
    turn().grants = 0;
    turn().revivals.clear();
}

}  // namespace dibs::core
