// broker/core/recovery/row_check.hpp -- checks each slot and lease against the rows that it names.
//
// These checks take the longest of all and read only STATE: nothing derived, and no other piece's
// counts. So several threads can look at pieces of the two tables, each with a RowCheck of its own,
// and the counts are added up (row_look.hpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "broker/core/parts.hpp"

namespace dibs::core {

using Wrongs = std::vector<std::string>;

// How many rows ahead the rows that a row names are prefetched: memory answers in 100 ns or so, and
// where leases have come and gone for long a slot may stand anywhere.
inline constexpr uint32_t kCheckAhead = 16;

// Error text is composed only on an error: a takeover checks every row. The number is bounded,
// because each of a million rows may be wrong.
inline constexpr size_t kWrongsMax = 1000;

template <class What>
void expect(Wrongs* wrongs, bool holds, const What& what) {
    if (!holds && wrongs->size() < kWrongsMax) wrongs->push_back(what());
}

template <class What>
void expect_count(Wrongs* wrongs, const What& what, uint64_t counted, uint64_t stored) {
    if (counted == stored || wrongs->size() >= kWrongsMax) return;
    wrongs->push_back(what() + ": counted " + std::to_string(counted) + ", stored " +
                      std::to_string(stored));
}

struct Census {
    std::array<uint32_t, 6> by_state{};
    uint32_t killed = 0;  // recovering, under a lease whose holder is being killed
    uint32_t waiting = 0;
    uint32_t confirming = 0;
    uint32_t unconfirmed = 0;
    uint32_t expired = 0;    // leases, uncollected
    uint32_t collected = 0;  // slots
    uint32_t drained = 0;    // slots

    Census& operator+=(const Census& other) {
        for (size_t state = 0; state < by_state.size(); ++state)
            by_state[state] += other.by_state[state];
        killed += other.killed;
        drained += other.drained;
        waiting += other.waiting;
        confirming += other.confirming;
        unconfirmed += other.unconfirmed;
        expired += other.expired;
        collected += other.collected;
        return *this;
    }
};

// What a session's row says it has, counted in the one pass over the other tables: each table is
// read once, because a takeover waits for it.
struct Held {
    uint32_t claims = 0;
    uint32_t leases = 0;
    uint32_t slots = 0;

    Held& operator+=(const Held& other) {
        claims += other.claims;
        leases += other.leases;
        slots += other.slots;
        return *this;
    }
};

// Counts of some rows, and errors found in them.
struct RowCounts {
    explicit RowCounts(const State& state)
        : census(state.counters->pools), held_by(state.sessions.size()), leased(census.size()) {}
    RowCounts() = default;
    void add(const RowCounts& other);

    Wrongs wrongs;
    std::vector<Census> census;    // by pool
    std::vector<Held> held_by;     // by session
    std::vector<uint32_t> leased;  // pool → slots that its leases have
    std::vector<uint32_t> slots_with_text;
    uint64_t live_slots = 0;
    uint64_t live_leases = 0;
    size_t timers_wanted = 0;
    size_t kept_wanted = 0;
    size_t keys_wanted = 0;
    size_t names_wanted = 0;
};

class RowCheck {
  public:
    // Whether it is known that each lease has as many slots as it says, each in one lease only.
    enum class Chains { kUnseen, kSeen };

    // `state` outlives this; its counters are sound, and no thread writes to it meanwhile.
    RowCheck(const State& state, uint64_t now_ns, Chains chains)
        : state_(state), now_ns_(now_ns), chains_(chains), counts_(state) {}

    // The rows in [begin, end) of both tables; end may be behind the last row. A slot is compared
    // with its lease, a lease with its slots. Both tables are larger than any cache, and mostly a
    // lease stands about where its slots do: so they are gone through side by side.
    void piece(uint32_t begin, uint32_t end);
    // From the first one on, until so many in use have been met.
    void all(uint64_t slots, uint64_t leases);
    [[nodiscard]] RowCounts& counts() { return counts_; }

  private:
    void slots(uint32_t begin, uint32_t end);
    void marked_slot(uint32_t row);
    void held_slot(uint32_t row);
    void leases(uint32_t begin, uint32_t end);

    const State& state_;
    const uint64_t now_ns_;
    const Chains chains_;
    RowCounts counts_;
};

// The length of a chain of slots in that state and of that holder; 0: it is not so long, or leaves
// the table. Counts the confirmed ones.
uint32_t chain_length(
    const State& state, uint32_t first, uint32_t holder, SlotState held, uint32_t* confirmed);

}  // namespace dibs::core
