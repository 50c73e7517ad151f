// broker/core/recovery/check.hpp -- checks the core's invariants by counting anew from the rows.
//
// Each check reports a violation in one sentence. It recounts from the rows, so that a counter and
// the list that it counts cannot be wrong together. row_check.cpp counts slots and leases,
// check.cpp the other rows, check_pools.cpp each pool's counts and lists, check_arena.cpp blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "broker/core/parts.hpp"
#include "broker/core/recovery/row_check.hpp"

namespace dibs::core {

inline std::string name_of(const shm::PoolRow& pool) {
    return "pool '" + std::string{pool.name, pool.name_size} + "'";
}

// Checks that are done already and are not repeated.
struct Seen {
    bool free_claims = false;  // their list
};

class Check {
  public:
    explicit Check(const Core::Parts& parts) : parts_(parts), state_(parts.state) {}

    Wrongs run() {
        begin();
        RowCheck rows(state_, parts_.now_ns, RowCheck::Chains::kUnseen);
        rows.all(rows_in_use(state_.slots.size(), state_.counters->slots_free),
                 rows_in_use(state_.leases.size(), state_.counters->leases_free));
        tags(0, state_.leases.size());
        return finish(std::move(rows.counts()));
    }

    // The same in pieces: RowCheck checks each row, in any thread, and its tag is checked once the
    // data derived from it exists.
    void begin(Seen seen = {});
    void tags(uint32_t begin, uint32_t end);  // of leases
    Wrongs finish(RowCounts counts);

  private:
    void free_lists(bool but_claims);
    void claims();
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

    const Core::Parts& parts_;
    const State& state_;
    Wrongs wrongs_;
    RowCounts counts_;
    std::vector<uint32_t> live_claims_;
    std::vector<uint8_t> block_used_;
    uint64_t promised_ = 0;
};

}  // namespace dibs::core
