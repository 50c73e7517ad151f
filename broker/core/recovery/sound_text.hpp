// broker/core/recovery/sound_text.hpp -- validates the texts in STATE.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace dibs::core {

// The number of labels in a set's text, or 0 if it is invalid: each of 1 to 63 bytes and a zero
// byte, in order and without duplicates.
uint32_t labels_in(std::string_view text);

// Keys of 1 to 63 bytes, each with a zero byte and four bytes of limit behind it.
bool are_limits(std::string_view text);

}  // namespace dibs::core
