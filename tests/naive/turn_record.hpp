// tests/naive/turn_record.hpp -- what the judge is told of a turn of the core.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "broker/core/core.hpp"
#include "tests/naive/journal.hpp"
#include "tests/naive/player.hpp"
#include "tests/naive/statements.hpp"

namespace dibs::naive {

class TurnRecord {
  public:
    explicit TurnRecord(const Journal& journal) : journal_(journal) {}

    // It has been opened: what was decided so far comes before its commands. Those that it had
    // before have not happened.
    void open(Player<core::Core>& player);
    // Plays the step, and writes down that it was played, to which pool.
    void play(const Step& step, const core::Core& core, Player<core::Core>& player);
    // The turn has been committed: what was decided, and what can be seen now.
    const Turn& close(core::TimeNs now, const core::Core& core, const Player<core::Core>& player);

  private:
    [[nodiscard]] uint32_t living_pool(const core::Core& core, uint32_t row) const;

    const Journal& journal_;
    Turn turn_;
};

}  // namespace dibs::naive
