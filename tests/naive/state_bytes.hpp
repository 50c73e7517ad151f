// tests/naive/state_bytes.hpp -- memory with an empty STATE in it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "broker/core/core.hpp"
#include "shm/lines.hpp"

namespace dibs::naive {

class StateBytes {
  public:
    explicit StateBytes(const core::Limits& limits) : lines_(core::state_size(limits)) {
        core::format_state(span(), limits);
    }
    std::span<std::byte> span() { return lines_.bytes(); }

  private:
    shm::Lines lines_;
};

}  // namespace dibs::naive
