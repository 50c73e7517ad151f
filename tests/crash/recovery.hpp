// tests/crash/recovery.hpp -- an image of STATE as a killed broker leaves it, and what must be true
// of it.
//
// It is recovered twice and checked: all invariants hold, and the rows are those from before the
// turn (no commit yet) or those from after it (committed, with every staged store still there):
// nothing between. Then it serves a turn.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "broker/core/core.hpp"
#include "tests/crash/workload.hpp"

namespace dibs::tests {

struct Image {
    std::vector<std::byte> bytes;
    shm::LogPhase phase;
    uint64_t pledged_turn;
};

// Those of one turn. Their memory is kept for the next one's: to be given it takes longer than to
// fill it.
class Images {
  public:
    void take(std::span<const std::byte> state);
    void clear() { count_ = 0; }
    [[nodiscard]] std::span<const Image> all() const { return {images_.data(), count_}; }

  private:
    std::vector<Image> images_;
    size_t count_ = 0;
};

struct Turn {
    uint64_t before;
    uint64_t after;
    uint32_t staged;
    uint64_t pledged = 0;  // the turn's number, if its grant is told before it
};

// Small enough to be full often.
core::Limits small();
// What STATE says: all rows but the log's own marks, and the bytes of every payload.
uint64_t digest_of(std::span<std::byte> bytes);
// Recovers the image; says what is wrong with the result.
std::string wrong_with(const Image& image, const Turn& turn);

// What a turn of the workload is made of.
Operation draw(Workload* workload);
void stage_one_per_decision(core::Core* core);

}  // namespace dibs::tests
