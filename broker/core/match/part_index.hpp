// broker/core/match/part_index.hpp -- finds the slot of which least is left behind a part.
//
// Derived from the rows. Each shape that claims want lately (a pool, at least so much, at most so
// much) has a key of each slot that has room for it: what would be left, as the sum over the
// resources of left / capacity in permille, then the number; equal numbers, of which there are none
// in a sound pool, go by row. A claim takes the slot with the least key, and a slot that changes
// changes its key of as many shapes as there are of its pool. A shape that is not among them is
// looked for in all slots; it takes another one's place once that one has not been wanted for a
// while.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "broker/core/store/least_rows.hpp"
#include "broker/core/store/row_states.hpp"
#include "broker/core/store/state.hpp"

namespace dibs::core {

using Vector = std::array<uint64_t, shm::kResourcesMax>;

[[nodiscard]] bool fits_in(const Vector& vector, const Vector& room);

class PartIndex {
  public:
    explicit PartIndex(const State& state);

    // The slot has changed: in what is free of it, or in whether parts of it may be leased.
    void change(uint32_t slot);
    // Of slots of the pool that have room for the least; kNoRow: none has.
    [[nodiscard]] uint32_t best(uint32_t pool, const Vector& least, const Vector& most);
    // A part has: whether its worker has answered. True: it has become so or has ceased to be.
    bool part_changes(uint32_t part);
    // The worker of the slot has answered for all parts of it.
    [[nodiscard]] bool has_answered(uint32_t slot) const { return unanswered_[slot] == 0; }
    // A slot of the pool has come or gone, or has another capacity, or may have other parts.
    void capacity_changes(uint32_t pool) { smallest_[pool].reset(); }
    // The least that a part can have of any slot of the pool, of each resource: 0 where a slot has
    // no parts.
    [[nodiscard]] const Vector& smallest(uint32_t pool);
    // Somebody who wants a part of at least that could use the slot, if nobody had anything of it.
    [[nodiscard]] bool is_held_back(uint32_t slot, std::span<const Vector> wants) const;
    // A pool begins, or goes.
    void forget(uint32_t pool);

    // Whether parts of it may be leased.
    [[nodiscard]] bool is_open(uint32_t slot) const;
    // The order in which a shape takes slots; kNoRoom: not this one.
    static constexpr uint32_t kNoRoom = UINT32_MAX;
    [[nodiscard]] uint32_t left_of(uint32_t slot, const Vector& least, const Vector& most) const;
    // The same without an index, of slots that those wants do not hold back.
    [[nodiscard]] uint32_t best_of_all(uint32_t pool,
                                       const Vector& least,
                                       const Vector& most,
                                       std::span<const Vector> held_back) const;

    void check(std::vector<std::string>* wrongs) const;

  private:
    struct Shape {
        explicit Shape(uint32_t rows) : slots(rows) {}
        uint32_t pool = shm::kNoRow;
        Vector least = {};
        Vector most = {};
        uint64_t wanted = 0;  // when it was last
        LeastRows slots;
    };

    [[nodiscard]] uint64_t key_of(const Shape& shape, uint32_t slot) const;
    void adopt(Shape& shape, uint32_t pool, const Vector& least, const Vector& most);

    const State& state_;
    std::vector<Shape> shapes_;
    std::vector<bool> is_unanswered_;              // by part
    std::vector<uint32_t> unanswered_;             // such parts, by slot
    std::vector<std::optional<Vector>> smallest_;  // by pool, where it is known
    uint64_t wanted_ = 0;
};

}  // namespace dibs::core
