// broker/core/check.hpp -- the invariants, each a count taken anew from the rows.
//
// Each check states what it found in one sentence. It recounts from the rows, so that a counter
// and the list that it counts cannot be wrong together. check.cpp counts rows of all kinds,
// check_pools.cpp what a pool counts and lists, check_arena.cpp blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "broker/core/parts.hpp"

namespace dibs::core {

using Wrongs = std::vector<std::string>;

// How many rows before its own turn what a row names is asked for: memory answers in 100 ns or so,
// and where leases have come and gone for long a slot stands anywhere.
inline constexpr uint32_t kCheckAhead = 16;

inline std::string name_of(const shm::PoolRow& pool) {
    return "pool '" + std::string{pool.name, pool.name_size} + "'";
}

// What is wrong is only put into words when it is: a takeover checks every row. So many are enough
// for everybody, and each of a million rows may be wrong.
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
    std::array<uint32_t, 8> by_state{};
    uint32_t killed = 0;  // recovering, under a lease whose holder is being killed
    uint32_t waiting = 0;
    uint32_t confirming = 0;
    uint32_t unconfirmed = 0;
    uint32_t expired = 0;    // leases, uncollected
    uint32_t collected = 0;  // slots
};

// What a session's row says that it has, counted on the way through the other tables: each of them
// is read once, because a takeover waits for it.
struct Held {
    uint32_t claims = 0;
    uint32_t leases = 0;
    uint32_t slots = 0;
};

// What has been made sure of already, and is not looked at once more.
struct Seen {
    bool free_claims = false;   // their list
    bool lease_chains = false;  // so many slots as it says, each of them its own
};

class Check {
  public:
    explicit Check(const Core::Parts& parts) : parts_(parts), state_(parts.state) {}

    Wrongs run() {
        begin();
        for (uint32_t row = 0; row < rows(); row += Core::kRowsAtOnce)
            slots_and_leases(row, row + Core::kRowsAtOnce);
        return finish();
    }

    // The same in pieces. A slot is compared with its lease, a lease with its slots. Both tables
    // are larger than any cache, and mostly a lease stands about where its slots do: so they are
    // gone through side by side.
    [[nodiscard]] uint32_t rows() const {  // of the larger table
        return std::max(state_.slots.size(), state_.leases.size());
    }
    void begin(Seen seen = {});
    void slots_and_leases(uint32_t begin, uint32_t end);  // end may be behind the last row
    Wrongs finish() {
        leased_slots();
        claims();
        live_rows();
        if (!wrongs_.empty()) return wrongs_;  // lists of broken rows may not end
        pools();
        sessions();
        arena();
        derived();
        if (parts_.book) {
            const Wrongs more = parts_.check_accounts();
            wrongs_.insert(wrongs_.end(), more.begin(), more.end());
        }
        return wrongs_;
    }

  private:
    void free_lists(bool but_claims);
    void slots(uint32_t begin, uint32_t end);
    void marked_slot(uint32_t row);
    void held_slot(uint32_t row);
    static std::string slot_text(uint32_t row) { return "slot row " + std::to_string(row); }
    void claims();
    void leases(uint32_t begin, uint32_t end);
    void leased_slots();
    void live_rows();
    [[nodiscard]] uint64_t rows_in_use(uint64_t rows, uint64_t free) const;
    void pools();
    void ready_queue(uint32_t pool);
    void expired_leases(uint32_t pool);
    void sessions();
    void arena();
    void derived();
    template <class Whose>
    uint32_t mark_chain(uint32_t chain, uint32_t bytes, const Whose& whose);
    uint32_t chain_length(uint32_t first, uint32_t holder, SlotState state, uint32_t* confirmed);

    const Core::Parts& parts_;
    const State& state_;
    Seen seen_;
    Wrongs wrongs_;
    std::vector<Census> census_;
    std::vector<Held> held_by_;
    std::vector<uint32_t> leased_;  // pool → slots that its leases have
    std::vector<uint32_t> live_claims_;
    std::vector<uint32_t> slots_with_text_;
    uint64_t slots_used_ = 0;
    uint64_t leases_used_ = 0;
    uint64_t live_slots_ = 0;
    uint64_t live_leases_ = 0;
    std::vector<uint8_t> block_used_;
    uint64_t promised_ = 0;
    size_t timers_wanted_ = 0;
    size_t kept_wanted_ = 0;
    size_t keys_wanted_ = 0;
    size_t names_wanted_ = 0;
};

}  // namespace dibs::core
