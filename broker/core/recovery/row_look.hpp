// broker/core/recovery/row_look.hpp -- lets several threads validate rows during a takeover.
//
// Two of a takeover's three looks, whether rows are sound and whether they agree with each other,
// read only STATE, so more than one thread can make them. The core starts no thread and waits for
// none: the caller that attaches may bring a RowsAhead that does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "broker/core/recovery/row_check.hpp"
#include "broker/core/recovery/soundness.hpp"

namespace dibs::core {

// One thread's. Begins once the log has been taken back and the counters are sound; no thread
// writes to STATE meanwhile.
class RowLook {
  public:
    explicit RowLook(State& state);

    // The rows in [begin, end) of both tables; end may be behind the last row. Returns the first
    // error; if there is none, the rows are counted.
    [[nodiscard]] std::string piece(uint32_t begin, uint32_t end);
    [[nodiscard]] RowCounts& counts() { return check_.counts(); }

  private:
    State& state_;
    Soundness soundness_;
    RowCheck check_;
};

class RowsAhead {
  public:
    RowsAhead() = default;
    virtual ~RowsAhead() = default;
    RowsAhead(const RowsAhead&) = delete;
    RowsAhead& operator=(const RowsAhead&) = delete;

    virtual void begin() = 0;  // from here on rows may be looked at
    // Returns once all rows below `end` have been looked at: what is unsound among them, or
    // nothing. `end` only grows.
    [[nodiscard]] virtual std::string until(uint32_t end) = 0;
    // Counts of all rows, once until() has returned for the last one.
    [[nodiscard]] virtual RowCounts counts() = 0;
};

}  // namespace dibs::core
