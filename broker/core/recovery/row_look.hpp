// broker/core/recovery/row_look.hpp -- two of a takeover's three looks at rows, by any thread.
//
// Whether rows are sound, and whether what one row says of another is right, asks nothing but
// STATE: that much of a takeover more than one thread can do. The core starts no thread and waits
// for none: who attaches may bring a RowsAhead that does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "broker/core/recovery/row_check.hpp"
#include "broker/core/recovery/soundness.hpp"

namespace dibs::core {

// One thread's. Begins once the log has been taken back and the counters are sound; nobody writes
// to STATE meanwhile.
class RowLook {
  public:
    explicit RowLook(State& state);

    // The rows in [begin, end) of both tables; end may be behind the last row. What is unsound, or
    // nothing: then they are counted.
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
    // Of all rows, once until() has answered for the last one.
    [[nodiscard]] virtual RowCounts counts() = 0;
};

}  // namespace dibs::core
