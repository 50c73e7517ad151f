// benchmarks/instructions.hpp -- instructions that this thread executes outside the kernel, where
// the machine counts them: virtual machines mostly do not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "shm/descriptor.hpp"

namespace dibs::bench {

class InstructionCounter {
  public:
    InstructionCounter();
    // Why it does not count; empty if it does.
    [[nodiscard]] const std::string& absent() const { return absent_; }
    [[nodiscard]] uint64_t count() const;

  private:
    shm::Descriptor event_;
    std::string absent_;
};

}  // namespace dibs::bench
