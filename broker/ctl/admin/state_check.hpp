// broker/ctl/admin/state_check.hpp -- checks through the core a STATE that no broker serves from.
//
// It works on a private copy, and takes back there what a dead broker left half done, as its
// successor would. The core trusts what it wrote itself, so rows that no broker wrote may end the
// check with a signal; that is a result like any other, so the check runs in a child.
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
