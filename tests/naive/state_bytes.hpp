// tests/naive/state_bytes.hpp -- zeroed memory, aligned as STATE is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "broker/core/core.hpp"

namespace dibs::naive {

class StateBytes {
  public:
    explicit StateBytes(const core::Limits& limits)
        : size_((core::state_size(limits) + 63) / 64 * 64),
          bytes_(static_cast<std::byte*>(std::aligned_alloc(64, size_)), &std::free) {
        std::memset(bytes_.get(), 0, size_);
        core::format_state(span(), limits);
    }
    std::span<std::byte> span() { return {bytes_.get(), size_}; }

  private:
    size_t size_;
    std::unique_ptr<std::byte, decltype(&std::free)> bytes_;
};

}  // namespace dibs::naive
