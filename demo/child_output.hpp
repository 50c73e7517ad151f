// demo/child_output.hpp -- reads what children write: last lines, and how many are ready.
// All children share one pipe for stdout and stderr; one line says that a child is ready.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>

namespace dibs::ctl::demo {

class ChildOutput {
  public:
    // A line that holds `ready_text` says that one child is ready. Throws std::system_error.
    explicit ChildOutput(std::string ready_text);
    ChildOutput(const ChildOutput&) = delete;
    ChildOutput& operator=(const ChildOutput&) = delete;
    ~ChildOutput();

    // Given to children; closed here when all have been started, so that the end can be seen.
    [[nodiscard]] int write_end() const { return write_end_; }
    void close_write_end();

    [[nodiscard]] int fd() const { return read_end_; }  // readable: read() has something to take
    bool read();                                        // false: all children have closed it
    [[nodiscard]] bool closed() const { return closed_; }
    // Reads until `count` children are ready; false if that does not come in time, or ever.
    bool await_ready(size_t count, std::chrono::milliseconds within);

    // The last lines, indented, for a message.
    [[nodiscard]] std::string last_words() const;

  private:
    void take_lines();

    int read_end_ = -1;
    int write_end_ = -1;
    std::string ready_text_;
    std::string partial_;
    std::deque<std::string> lines_;
    size_t ready_ = 0;
    bool closed_ = false;
};

}  // namespace dibs::ctl::demo
