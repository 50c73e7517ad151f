// broker/core/recovery/row_invariants.hpp -- states what holds for each row, whatever others say.
//
// Each function has one table's list of invariants; soundness has validated the row before. These
// read STATE and nothing derived, so several threads can run them over pieces of the tables, each
// with a RowLook of its own; they tally what the sums of invariants.cpp need on the same way.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "broker/core/parts.hpp"
#include "broker/core/recovery/soundness.hpp"
#include "broker/core/store/invariant.hpp"

namespace dibs::core {

// How many rows ahead the rows that a row names are prefetched: memory answers in 100 ns or so, and
// where leases have come and gone for long a slot may stand anywhere.
inline constexpr uint32_t kCheckAhead = 16;

struct RowInvariants {
    const State& state;
    const TimeNs now_ns;
    Wrongs* wrongs;

    void pool(uint32_t row) const;
    void slot(uint32_t row) const;
    void claim(uint32_t row) const;
    void lease(uint32_t row) const;

  private:
    void several(const shm::ClaimRow& claim, uint32_t row) const;
    void several(const shm::LeaseRow& lease) const;
};

// Of one pool: slots in each state by its number, and what follows.
enum PoolCount : uint8_t {
    kDrainedSlots = 8,
    kParts,
    kCollectedSlots,
    kKilledSlots,  // recovering, under a lease whose holder is being killed
    kUnitsLeased,
    kExpiredLeases,
    kParkedLeases,
    kWaitingClaims,
    kConfirmingClaims,
    kUnconfirmedSlots,
    kHeldClaims,
    kAsks,
    kPoolCounts
};
// kFurtherOf: of the claims and leases those that are under the tag of another row.
enum SessionCount : uint8_t { kClaimsOf, kLeasesOf, kFurtherOf, kSlotsOf, kSessionCounts };
enum TableCount : uint8_t {
    kLiveSlots,
    kLiveClaims,
    kLiveLeases,
    kTimers,
    kKeptSlots,
    kKeys,
    kSlotNames,
    kPromisedClaims,
    kTableCounts
};

// Counts of some rows, and violations found in them.
struct RowCounts {
    explicit RowCounts(const State& state)
        : pools(state.counters->pools), sessions(state.sessions.size()) {}
    RowCounts() = default;
    void add(const RowCounts& other);
    void slot(const State& state, uint32_t row);
    void claim(const State& state, uint32_t row);
    void lease(const State& state, uint32_t row);

    Wrongs wrongs;
    std::vector<std::array<uint32_t, kPoolCounts>> pools;
    std::vector<std::array<uint32_t, kSessionCounts>> sessions;
    std::array<uint64_t, kTableCounts> tables = {};
    std::vector<uint32_t> slots_with_text;
};

// One thread's. Begins once the log has been taken back and the counters are sound; no thread
// writes to STATE meanwhile.
class RowLook {
  public:
    explicit RowLook(const State& state) : RowLook(state, state.counters->time_ns) {}
    RowLook(const State& state, TimeNs now_ns)
        : state_(state), soundness_(state), now_ns_(now_ns), counts_(state) {}

    // The rows in [begin, end) of slots and leases; end may be behind the last row. Returns what is
    // unsound; if there is nothing, invariants are checked and rows counted.
    [[nodiscard]] std::string piece(uint32_t begin, uint32_t end);
    [[nodiscard]] RowCounts& counts() { return counts_; }

  private:
    void slots(uint32_t begin, uint32_t end);
    void leases(uint32_t begin, uint32_t end);

    const State& state_;
    const Soundness soundness_;
    const TimeNs now_ns_;
    RowCounts counts_;
};

// Two of a takeover's three looks need nothing but STATE, so more than one thread can make them.
// The core starts no thread and waits for none: the caller that attaches may bring one that does.
class RowsAhead {
  public:
    RowsAhead() = default;
    virtual ~RowsAhead() = default;
    RowsAhead(const RowsAhead&) = delete;
    RowsAhead& operator=(const RowsAhead&) = delete;

    virtual void begin() = 0;  // from here on rows may be looked at
    // Returns once all rows below `end` have been looked at: what is unsound among them, or
    // nothing. `end` only grows.
    [[nodiscard]] virtual std::string until(uint32_t end) = 0;
    // Counts of all rows, once until() has returned for the last one.
    [[nodiscard]] virtual RowCounts counts() = 0;
};

}  // namespace dibs::core
