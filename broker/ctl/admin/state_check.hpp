// broker/ctl/admin/state_check.hpp -- a STATE that no broker serves from, looked at through the
// core.
//
// On a private copy: what a dead broker left half done is taken back there, as its successor would
// do it. The core believes what it wrote itself, so rows that nobody wrote may end the look with a
// signal; that is an answer like any other, so the look happens in a child.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dibs::ctl {

// Pages of its own, aligned as a segment's are. Failure.
class StateCopyOfFile {
  public:
    explicit StateCopyOfFile(const std::string& path);
    ~StateCopyOfFile();
    StateCopyOfFile(const StateCopyOfFile&) = delete;
    StateCopyOfFile& operator=(const StateCopyOfFile&) = delete;
    [[nodiscard]] std::span<std::byte> bytes() const {
        return {static_cast<std::byte*>(memory_), size_};
    }

  private:
    void* memory_ = nullptr;
    size_t size_ = 0;
};

struct StateReport {
    std::vector<std::string> wrong;  // empty: it is sound
    uint64_t epoch = 0;
    uint64_t turns = 0;
    bool clean = false;  // its last broker stopped in order
};

// `path` may also be a descriptor's, /dev/fd/3 or /proc/PID/fd/3. Throws Failure if it cannot be
// read.
StateReport check_state(const std::string& path);

}  // namespace dibs::ctl
