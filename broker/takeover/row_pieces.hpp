// broker/takeover/row_pieces.hpp -- the tables in pieces, for two threads to look at in a takeover.
//
// Clients wait for them, and another CPU is often idle. Pieces are taken in their order, by whoever
// comes first: where the other thread gets no CPU, the one that attaches looks at the rows itself.
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

#include "broker/core/recovery/row_look.hpp"
#include "broker/takeover/second_thread.hpp"

namespace dibs {

class RowPieces : public core::RowsAhead {
  public:
    // Fewer are looked at sooner than a thread is there.
    static constexpr uint32_t kRowsMin = 4'096;

    // `state` outlives this; nobody writes to it meanwhile. `before` each piece, by whoever looks
    // at it: a test's.
    explicit RowPieces(std::span<std::byte> state, std::function<void(uint32_t)> before = {});
    ~RowPieces() override;

    void begin() override;
    std::string until(uint32_t end) override;
    core::RowCounts counts() override;

  private:
    // One per piece, each written by whoever has taken it:
    //   open ── looked at ──► sound, and counted by whoever has looked
    //         ├─ not sound ───► unsound: the attaching thread looks again, and says why
    //         └─ it threw ────► threw: half of it may be counted, so nobody goes on from there
    enum class Piece : uint8_t { kOpen, kSound, kUnsound, kThrew };
    struct Looker {  // one thread's
        explicit Looker(core::State& state) : look(state) {}
        core::RowLook look;
        std::exception_ptr thrown;  // before its piece is kThrew
    };

    bool look_at_next(Looker* looker);  // false: nothing is left, or it threw

    core::State state_;
    const std::function<void(uint32_t)> before_;
    std::vector<std::atomic<Piece>> pieces_;  // release by who has looked, acquire by until()
    std::atomic<uint32_t> taken_ = 0;         // pieces below are somebody's; relaxed: a ticket
    std::atomic<bool> stop_ = false;          // by the destructor; relaxed: a wish
    uint32_t seen_ = 0;                       // pieces that until() has answered for
    std::optional<Looker> own_;               // the attaching thread's, from begin() on
    std::optional<Looker> other_;             // the other thread's, until that has ended
    std::optional<SecondThread> thread_;      // last: it ends before what it uses
};

}  // namespace dibs
