// broker/admin/packet.hpp -- looks at what a tool has sent before it is read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace dibs {

// It is a Request, and unpacks to no more than it is.
[[nodiscard]] bool verified(std::span<const uint8_t> packet);

}  // namespace dibs
