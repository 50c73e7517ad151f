// broker/core/match/several_pools.hpp -- serves claims over several pools, all or none.
//
// Such a claim has a claim row, and then a lease row, in each of its pools: of the same number, in
// a chain, in the order in which it names them. The first row stands for all: tag, key, texts and
// timers are its alone. Each row waits in its pool's backlog at the claim's number, as a plain one
// does, and holds nothing until all of them can be served.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "broker/core/module.hpp"

namespace dibs::core {

enum class Tell : uint8_t;

inline bool is_several(const shm::ClaimRow& claim) {
    return (claim.flags & shm::ClaimFlag::kSeveral) != 0;
}
inline bool is_several(const shm::LeaseRow& lease) {
    return lease.several != 0;
}

// Of one over several pools.
inline uint32_t next_row_of(const shm::ClaimRow& claim) {
    return claim.several_next;
}
inline uint32_t next_row_of(const shm::LeaseRow& lease) {
    return static_cast<uint32_t>(lease.takes);
}
inline uint32_t first_row_of(const shm::ClaimRow& claim) {
    return claim.several_first;
}
inline uint32_t first_row_of(const shm::LeaseRow& lease) {
    return static_cast<uint32_t>(lease.takes >> 32U);
}

// In a chain, and not its first row.
template <class Row>
bool is_further(const Row& found, uint32_t row) {
    return is_several(found) && first_row_of(found) != row;
}

struct SeveralPools : Module<SeveralPools> {
    explicit SeveralPools(const State& rows) : Module(rows) {}

    static constexpr uint32_t kPoolsMax = 8;  // of one claim

    uint32_t waiting = 0;  // rows of such claims that wait
    uint32_t came = 0;     // of them, those that no pass has seen: all their pools are looked at
    // In a pass: one was served, or has ended: its pools are looked at again.
    bool goes_back = false;

    void apply(const Claim& command);
    // Lease rows that one that waits may want beside one.
    [[nodiscard]] uint32_t more_rows() const { return waiting == 0 ? 0 : kPoolsMax - 1; }

    // Of any row of a claim; a plain one's is the only one.
    [[nodiscard]] uint32_t first_claim(uint32_t row) const {
        const shm::ClaimRow& claim = state.claims[row];
        return is_several(claim) ? first_row_of(claim) : row;
    }
    // First of its pool's backlog, and of all others that are its.
    [[nodiscard]] bool can_serve(uint32_t claim) const;
    void serve(uint32_t claim);
    // The pass over all pools while such a claim waits. False: the log is full.
    bool pass_over_all();
    // All workers of one of its rows have confirmed.
    void grant_confirmed(uint32_t claim);
    // Takes all rows off their slots, which stay chained, over all pools.
    uint32_t unreserve(uint32_t claim);
    void wait_again(uint32_t claim);
    // Its rows but the first one, which ends so.
    void end_further(uint32_t claim, Outcome outcome);
    // Its row in the first pool that has too few idle slots for it; in all enough: in its first.
    [[nodiscard]] uint32_t lacking_row(uint32_t claim) const;
    // The same by whatever keeps it from being served there, or granted: a worker that is asked.
    [[nodiscard]] uint32_t stopped_row(uint32_t claim) const;
    // Idle slots that it keeps from those behind it.
    [[nodiscard]] uint32_t held_back(uint32_t claim) const;

    // Of any row of a lease; as of claims.
    [[nodiscard]] uint32_t first_lease(uint32_t row) const {
        const shm::LeaseRow& lease = state.leases[row];
        return is_several(lease) ? first_row_of(lease) : row;
    }
    [[nodiscard]] TimeNs interval_max(const shm::LeaseRow& lease) const;
    [[nodiscard]] TimeNs grace(const shm::LeaseRow& lease) const;
    [[nodiscard]] uint32_t units_of(uint32_t lease) const;
    // The others say what the first one does.
    void follow(uint32_t lease);
    // The same of the slots, once its holder is being killed.
    void kill_further(uint32_t lease);
    // Leases::end_lease() of all rows, the first one's slots coming back first.
    void end_lease(uint32_t lease, Reason reason, Tell tell, bool broken, uint32_t except);
    void tell_further(Decision* adopted, uint32_t lease);
    // Index of the row's pool among those of its claim or lease.
    template <class Rows>
    [[nodiscard]] uint8_t part_of(const Rows& rows, uint32_t row) const {
        uint8_t part = 0;
        for (uint32_t at = first_row_of(rows[row]); at != row; at = next_row_of(rows[at]))
            ++part;
        return part;
    }

  private:
    using Heads = std::array<uint32_t, kPoolsMax>;

    template <class Rows, class Visit>
    void each(const Rows& rows, uint32_t row, const Visit& visit) const {
        for (uint32_t at = first_row_of(rows[row]); at != kNoRow;) {
            const uint32_t next = next_row_of(rows[at]);
            visit(at);
            at = next;
        }
    }
    [[nodiscard]] bool by_arrival(uint32_t pool) const {
        return state.pools[pool].order == shm::PoolOrder::kArrival;
    }
    void wake();
    bool end_late();
    [[nodiscard]] Reason refusal(const Claim& command, uint64_t* other) const;
    [[nodiscard]] bool lease_rows_left(uint32_t rows) const;
    void accept(const Claim& command, uint64_t number);
    void grant(uint32_t first, const Heads& slots);
    uint32_t join(uint32_t first, uint32_t others);
};

}  // namespace dibs::core
