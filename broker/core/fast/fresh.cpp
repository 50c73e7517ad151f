// broker/core/fast/fresh.cpp -- grants plain claims in the turn of their arrival without a row.
//
// Most claims of a streaming pool find an idle slot. A row, a place in the backlog and their undo
// images would be made and taken back within one turn, at more than the cost of the grant itself
// (about 600 of 1,250 instructions were counted for it). So a plain claim on a counted pool where
// nothing waits stays in private memory until the pass, which either grants it from there or gives
// it a row. A cancel, a death, a drain or a changed pool before the pass settles all fresh claims
// first, so that no other part knows of them. A turn that is cut settles them too: no accepted
// claim outlives a turn outside the rows.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/fast/fresh.hpp"

#include "broker/core/parts.hpp"

namespace dibs::core {

bool EarlyGrants::may_stay_fresh(const Claim& command) const {
    return matcher().serves_fresh(command.pool) && matcher().backlog.head(command.pool) == kNoRow &&
           command.payload.empty() && command.meta.empty() && !key_given(command.key.data()) &&
           !command.brings_its_time() && command.deadline_ns == kNever && !command.by_word &&
           turn().fresh.size() < Turn::kFreshMax;
}

Claim FreshClaim::command() const {
    Claim claim;
    claim.session = session;
    claim.tag = tag;
    claim.units = units;
    claim.pool = pool;
    claim.user_data = user_data;
    claim.timeout_ns = timeout_ns;
    claim.interval_ns = interval_ns;
    claim.when_busy_given = when_busy_given;
    claim.when_busy = when_busy;
    claim.room = room;
    claim.room_lines = room_lines;
    claim.priority = priority;
    return claim;
}

void EarlyGrants::stay_fresh(const Claim& command, uint64_t number) {
    const auto place = static_cast<uint32_t>(turn().fresh.size());
    turn().fresh.push_back({.number = number,
                            .user_data = command.user_data,
                            .timeout_ns = command.timeout_ns,
                            .interval_ns = command.interval_ns,
                            .session = command.session,
                            .pool = command.pool,
                            .room = command.room,
                            .room_lines = command.room_lines,
                            .priority = command.priority,
                            .next = kNoRow,
                            .tag = command.tag,
                            .units = command.units,
                            .when_busy_given = command.when_busy_given,
                            .when_busy = command.when_busy});
    FreshList& list = turn().fresh_of_pool[command.pool];
    (list.tail == kNoRow ? list.head : turn().fresh[list.tail].next) = place;
    list.tail = place;
    ++list.count;
    list.units += command.units;
    sessions().tags[command.session][command.tag] = kTagFresh | place;
    matcher().touch(command.pool);
}

void EarlyGrants::serve_fresh(uint32_t pool) {
    FreshList& list = turn().fresh_of_pool[pool];
    for (uint32_t place = list.head; place != kNoRow; place = turn().fresh[place].next) {
        const FreshClaim& claim = turn().fresh[place];
        if (turn().full() || !matcher().servable(pool, claim.units)) break;
        --list.count;
        list.units -= claim.units;
        list.head = claim.next;
        leases().lease_out({.session = claim.session,
                            .pool = claim.pool,
                            .units = claim.units,
                            .tag = claim.tag,
                            .number = claim.number,
                            .user_data = claim.user_data,
                            .interval_ns = claim.interval_ns,
                            .room = claim.room,
                            .room_lines = claim.room_lines,
                            .is_plain = claim.units == 1 && claim.interval_ns == 0},
                           matcher().take_idle(pool, claim.units, SlotState::kLeased));
    }
    for (uint32_t place = list.head; place != kNoRow; place = turn().fresh[place].next) {
        claims().accept(turn().fresh[place].command(), turn().fresh[place].number, {});
    }
    list = {};
}

void EarlyGrants::settle_fresh() {
    if (turn().fresh.empty()) return;
    for (uint32_t place = 0; place < turn().fresh.size(); ++place) {
        const FreshClaim& claim = turn().fresh[place];
        if (turn().fresh_of_pool[claim.pool].count == 0) continue;
        if (sessions().tags[claim.session][claim.tag] != (kTagFresh | place)) continue;
        claims().accept(claim.command(), claim.number, {});
    }
    for (FreshList& list : turn().fresh_of_pool)
        list = {};
    turn().fresh.clear();
}

uint32_t EarlyGrants::fresh_claims(uint32_t uid) const {
    uint32_t count = 0;
    for (uint32_t place = 0; place < turn().fresh.size(); ++place) {
        const FreshClaim& claim = turn().fresh[place];
        if (sessions().tags[claim.session][claim.tag] != (kTagFresh | place)) continue;
        if (state.sessions[claim.session].uid == uid) ++count;
    }
    return count;
}

}  // namespace dibs::core
