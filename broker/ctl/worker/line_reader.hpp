// broker/ctl/worker/line_reader.hpp -- reads lines without blocking, in bounded memory.
// The bound holds whatever is written at the other end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace dibs::ctl::worker {

class LineReader {
  public:
    explicit LineReader(size_t line_max) : line_max_(line_max) {}

    enum class Got { kSomething, kNothing, kEnd };
    // Reads at most one block. Call it again while it has something, or when the descriptor can be
    // read again.
    Got read(int fd);
    // The next whole line without its end; at the end of the stream also what has none.
    std::optional<std::string> next();
    // A line has outgrown its bound. Nothing is kept of it.
    [[nodiscard]] bool overlong() const { return overlong_; }
    void clear();

  private:
    size_t line_max_;
    std::string buffer_;
    size_t start_ = 0;  // of what next() has not given out
    bool ended_ = false;
    bool overlong_ = false;
};

}  // namespace dibs::ctl::worker
