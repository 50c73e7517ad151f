// broker/core/recovery/soundness.hpp -- checks whether another process's STATE can be attached.
//
// Attaching, and check_all() after it, follow the rows' links and use their words as indices into
// tables; both trust that a broker wrote them. These checks come before either: every such word
// stays within its table, every enum within its state machine, a claim or lease has as many slots
// as it counts, and texts can be parsed. Errors beyond these are for check_all() to find.
//
// Slots and leases may come in pieces: the caller looks at some, takes them in while they are in
// the cache, and goes on (attach.cpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "broker/core/store/state.hpp"

namespace dibs::core {

class Soundness {
  public:
    explicit Soundness(State& state);
    ~Soundness();
    Soundness(const Soundness&) = delete;
    Soundness& operator=(const Soundness&) = delete;

    // Call them in this order; each returns the first error, or nothing.
    [[nodiscard]] std::string log();       // takes back an uncommitted turn, as attaching does
    [[nodiscard]] std::string counters();  // of tables(); all that slots() and leases() rely on
    [[nodiscard]] std::string tables();
    // Of tables(): the list of free claims holds as many as are counted, each of them free.
    [[nodiscard]] bool free_claims_sound() const;
    [[nodiscard]] std::string slots(uint32_t begin, uint32_t end) const;
    [[nodiscard]] std::string leases(uint32_t begin, uint32_t end) const;
    [[nodiscard]] std::string lists();  // over all of them

  private:
    class Rows;
    State& state_;
    std::unique_ptr<Rows> rows_;
};

}  // namespace dibs::core
