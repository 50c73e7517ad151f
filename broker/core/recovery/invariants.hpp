// broker/core/recovery/invariants.hpp -- states what holds over all rows and what is derived.
//
// The list of invariants has three parts. Soundness says which rows can be trusted at all;
// row_invariants.cpp says what holds for each of them, whatever others say; this says what they add
// up to, and what is derived from them. Pools ordered by account have their part of it in
// match/invariants.cpp and ledger/invariants.cpp. Each part relies on those before it.
//
//   check_all()     all of it
//   attach()        all of it, some rows at a time
//   check_slice()   for some rows: whatever needs no other row of their table
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "broker/core/recovery/row_invariants.hpp"

namespace dibs::core {

// What is derived for each row.
struct DerivedInvariants {
    const Core::Parts& parts;
    Wrongs* wrongs;

    void pool(uint32_t row) const;
    void claim(uint32_t row) const;
    void lease(uint32_t row) const;
};

class Invariants {
  public:
    explicit Invariants(const Core::Parts& parts)
        : parts_(parts), state_(parts.state), derived_{parts, &wrongs_} {}
    Invariants(const Invariants&) = delete;
    Invariants& operator=(const Invariants&) = delete;

    void leases(uint32_t begin, uint32_t end);  // once what is derived from these rows is there
    // Once all is, and all slots and leases have been looked at.
    Wrongs check(RowCounts counts, bool free_claims_sound);

  private:
    [[nodiscard]] RowInvariants of_rows() { return {state_, parts_.now_ns, &wrongs_}; }
    void claims(bool free_claims_sound);
    void tables(bool free_claims_sound);
    void pools();
    void ready_queue(uint32_t pool);
    void backlog(uint32_t pool);
    void expired_leases(uint32_t pool);
    void sessions();
    void arena();
    void totals();
    uint32_t mark_chain(uint32_t chain, uint32_t bytes, const Subject& whose);

    const Core::Parts& parts_;
    const State& state_;
    Wrongs wrongs_;
    const DerivedInvariants derived_;
    RowCounts counts_;
    std::vector<uint32_t> live_claims_;
    std::vector<uint8_t> block_used_;
};

}  // namespace dibs::core
