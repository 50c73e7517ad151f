// broker/core/recovery/soundness.hpp -- whether a STATE that somebody hands over can be attached
// to.
//
// Attaching, and check_all() after it, follow the rows' links and use their words as places in
// tables; both trust that a broker wrote them. Here is asked, before either, whether every such
// word stays within its table and every enum within its machine, whether the slots of a claim or
// lease are as many as it counts, and whether a text can be taken apart: what may be wrong behind
// that is check_all()'s to say.
//
// Slots and leases may come in pieces: whoever attaches looks at some, takes them in while they are
// warm, and goes on (attach.cpp).
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

    // In this order; each says the first thing that is wrong, or nothing.
    [[nodiscard]] std::string log();       // takes back an uncommitted turn, as attaching does
    [[nodiscard]] std::string counters();  // of tables(); all that slots() and leases() lean on
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
