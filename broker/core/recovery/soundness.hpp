// broker/core/recovery/soundness.hpp -- checks whether another process's STATE can be attached.
//
// Attaching, and the invariants after it, follow the rows' links and use their words as indices
// into tables; both trust that a broker wrote them. These checks come before either: every such
// word stays within its table, every enum within its state machine, a claim or lease has as many
// slots as it counts, and texts can be parsed. Errors beyond these are for the invariants to find
// (invariants.hpp).
//
// Slots and leases may come in pieces: the caller looks at some, takes them in while they are in
// the cache, and goes on (attach.cpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "broker/core/store/state.hpp"

namespace dibs::core {

class Soundness {
  public:
    explicit Soundness(const State& state) : state_(state) {}

    // Call them in this order; each returns the first error, or nothing.
    [[nodiscard]] static std::string log(State& state);  // takes back an uncommitted turn
    [[nodiscard]] std::string counters() const;          // of tables(); all that rows rely on
    [[nodiscard]] std::string tables();
    // Of tables(): the list of free claims holds as many as are counted, each of them free.
    [[nodiscard]] bool free_claims_sound() const { return free_claims_sound_; }
    // Of slots and leases; `end` may be behind the last row.
    [[nodiscard]] std::string rows(uint32_t begin, uint32_t end) const;
    [[nodiscard]] std::string lists() const;         // over all rows
    [[nodiscard]] std::string ready_queues() const;  // of lists(); the rest is the log's

    // Of one table.
    [[nodiscard]] std::string pools(uint32_t begin, uint32_t end) const;
    [[nodiscard]] std::string slots(uint32_t begin, uint32_t end) const;
    [[nodiscard]] std::string claims(uint32_t begin, uint32_t end) const;
    [[nodiscard]] std::string leases(uint32_t begin, uint32_t end) const;

  private:
    std::string all_claims();
    [[nodiscard]] uint32_t free_claims() const;

    const State& state_;
    bool free_claims_sound_ = false;
};

}  // namespace dibs::core
