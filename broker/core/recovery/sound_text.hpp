// broker/core/recovery/sound_text.hpp -- what the texts in STATE may say.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace dibs::core {

// The labels of a set's text, or 0 if it is none: each of 1 to 63 bytes and a zero byte, in their
// order and once each.
uint32_t labels_in(std::string_view text);

// Keys of 1 to 63 bytes, each with a zero byte and four bytes of limit behind it.
bool are_limits(std::string_view text);

}  // namespace dibs::core
