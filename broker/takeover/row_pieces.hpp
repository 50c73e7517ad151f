// broker/takeover/row_pieces.hpp -- splits the tables, so that two threads validate a takeover.
//
// Clients wait for a takeover, and another CPU is often idle. Each thread takes the next piece in
// order: where the other thread gets no CPU, the attaching thread looks at all rows itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "broker/core/recovery/row_invariants.hpp"
#include "broker/takeover/second_thread.hpp"

namespace dibs {

class RowPieces : public core::RowsAhead {
  public:
    // Fewer are looked at sooner than a thread is there.
    static constexpr uint32_t kRowsMin = 4'096;

    // `state` outlives this; no thread writes to it meanwhile. `before` runs before each piece, in
    // the thread that looks at it: for tests.
    explicit RowPieces(std::span<std::byte> state, std::function<void(uint32_t)> before = {});
    ~RowPieces() override;

    void begin() override;
    std::string until(uint32_t end) override;
    core::RowCounts counts() override;

  private:
    // One per piece, each written by the thread that has taken it:
    //   open ── looked at ──► sound, and counted by the thread that looked
    //         ├─ not sound ───► unsound: the attaching thread looks again, and says why
    //         └─ it threw ────► threw: half of it may be counted, so no thread goes on from there
    enum class Piece : uint8_t { kOpen, kSound, kUnsound, kThrew };
    struct Looker {  // one thread's
        explicit Looker(core::State& state) : look(state) {}
        core::RowLook look;
        std::exception_ptr thrown;  // before its piece is kThrew
    };

    bool look_at_next(Looker* looker);  // false: nothing is left, or it threw

    core::State state_;
    const std::function<void(uint32_t)> before_;
    std::vector<std::atomic<Piece>> pieces_;  // release by the looking thread, acquire by until()
    std::atomic<uint32_t> taken_ = 0;         // pieces below are taken; relaxed: a ticket
    std::atomic<bool> stop_ = false;          // by the destructor; relaxed: a wish
    uint32_t seen_ = 0;                       // pieces that until() has answered for
    std::optional<Looker> own_;               // the attaching thread's, from begin() on
    std::optional<Looker> other_;             // the other thread's, until that has ended
    std::optional<SecondThread> thread_;      // last: it ends before what it uses
};

}  // namespace dibs
