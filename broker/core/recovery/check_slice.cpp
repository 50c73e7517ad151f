// broker/core/recovery/check_slice.cpp -- checks some rows between two turns of a serving broker.
//
// check_all() recounts everything at once, for a STATE that no broker serves from. Between two
// turns of a serving broker there is time for some hundred rows. The checks here need no sum over a
// table: a row must fit the rows that it names, and a pool's states must add up to its slots.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/parts.hpp"

namespace dibs::core {

namespace {

class Slice {
  public:
    explicit Slice(const Core::Parts& parts) : parts_(parts), state_(parts.state) {}

    void pool(uint32_t row);
    void slot(uint32_t row);
    void claim(uint32_t row);
    void lease(uint32_t row);
    std::vector<std::string> wrongs;

  private:
    void expect(bool holds, const char* table, uint32_t row, const char* what) {
        if (!holds) wrongs.push_back(std::string{table} + " row " + std::to_string(row) + what);
    }
    [[nodiscard]] bool session_lives(uint32_t session) const {
        return session < state_.sessions.size() &&
               state_.sessions[session].state != shm::SessionState::kFree;
    }
    [[nodiscard]] uint32_t chain(uint32_t first, uint32_t holder, uint32_t most) const;

    const Core::Parts& parts_;
    const State& state_;
};

void Slice::pool(uint32_t row) {
    const shm::PoolRow& pool = state_.pools[row];
    const uint64_t sum =
        uint64_t{pool.idle} + pool.reserved + pool.leased + pool.recovering + pool.unknown;
    expect(sum == pool.slots, "pool", row, ": its slots' states do not add up to its slots");
    expect(parts_.backlog.taken(row) == pool.waiting, "pool", row, ": the backlog's count differs");
    expect((pool.ready_head == kNoRow) == (pool.idle == 0),
           "pool",
           row,
           ": the ready queue and the number of idle slots disagree");
}

void Slice::slot(uint32_t row) {
    const shm::SlotRow& slot = state_.slots[row];
    if (slot.state == SlotState::kFree) return;
    if (slot.pool >= state_.counters->pools) {
        return expect(false, "slot", row, ": is in no pool");
    }
    expect(slot.session == kNoRow || session_lives(slot.session),
           "slot",
           row,
           ": its worker's session is gone");
    if (slot.state == SlotState::kLeased) {
        const bool held = slot.holder < state_.leases.size() &&
                          state_.leases[slot.holder].state != shm::LeaseState::kFree &&
                          state_.leases[slot.holder].pool == slot.pool;
        expect(held, "slot", row, ": is leased under no lease of its pool");
    }
    if (slot.state == SlotState::kReserved && !is_kept(slot)) {
        const bool held = slot.holder < state_.claims.size() &&
                          state_.claims[slot.holder].state == shm::ClaimState::kReserved;
        expect(held, "slot", row, ": is reserved for no claim");
    }
}

// How many slots the chain has that name this holder; more than `most` if it does not end.
uint32_t Slice::chain(uint32_t first, uint32_t holder, uint32_t most) const {
    uint32_t count = 0;
    for (uint32_t slot = first; slot < state_.slots.size() && count <= most;
         slot = state_.slots[slot].holder_next) {
        if (state_.slots[slot].holder != holder) break;
        ++count;
    }
    return count;
}

void Slice::claim(uint32_t row) {
    const shm::ClaimRow& claim = state_.claims[row];
    if (claim.state == shm::ClaimState::kFree) return;
    expect(parts_.pool_lives(claim.pool), "claim", row, ": is for no pool");
    expect(session_lives(claim.session), "claim", row, ": its session is gone");
    expect(claim.arrival < state_.counters->arrival_next, "claim", row, ": is from the future");
    if (claim.state != shm::ClaimState::kReserved) return;
    expect(chain(claim.first_slot, row, claim.units) == claim.units,
           "claim",
           row,
           ": does not have the slots that it wants");
}

void Slice::lease(uint32_t row) {
    const shm::LeaseRow& lease = state_.leases[row];
    if (lease.state == shm::LeaseState::kFree) return;
    if (!parts_.pool_lives(lease.pool)) {
        return expect(false, "lease", row, ": is of no pool");
    }
    expect(session_lives(lease.session), "lease", row, ": its session is gone");
    expect(lease.fence <= state_.pools[lease.pool].fence_next,
           "lease",
           row,
           ": its fence was never given out");
    expect(chain(lease.first_slot, row, lease.units) == lease.units,
           "lease",
           row,
           ": does not have the slots that it was granted");
}

}  // namespace

std::vector<std::string> Core::check_slice(uint64_t* cursor, uint32_t rows) const {
    const Parts& parts = *parts_;
    const State& state = parts.state;
    Slice slice(parts);
    const uint64_t pools_end = state.counters->pools;
    const uint64_t slots_end = pools_end + state.slots.size();
    const uint64_t claims_end = slots_end + state.claims.size();
    const uint64_t leases_end = claims_end + state.leases.size();
    uint64_t at = *cursor;
    for (uint32_t seen = 0; seen < rows && at < leases_end; ++seen, ++at) {
        if (at < pools_end) {
            slice.pool(static_cast<uint32_t>(at));
        } else if (at < slots_end) {
            slice.slot(static_cast<uint32_t>(at - pools_end));
        } else if (at < claims_end) {
            slice.claim(static_cast<uint32_t>(at - slots_end));
        } else {
            slice.lease(static_cast<uint32_t>(at - claims_end));
        }
    }
    *cursor = at < leases_end ? at : 0;
    return std::move(slice.wrongs);
}

}  // namespace dibs::core
