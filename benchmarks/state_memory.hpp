// benchmarks/state_memory.hpp -- memory for a core's STATE: shared, in large pages if possible.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dibs::bench {

class StateMemory {
  public:
    explicit StateMemory(uint64_t size);  // throws std::system_error
    ~StateMemory();
    StateMemory(const StateMemory&) = delete;
    StateMemory& operator=(const StateMemory&) = delete;
    [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

  private:
    std::span<std::byte> bytes_;
};

}  // namespace dibs::bench
