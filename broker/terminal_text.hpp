// broker/terminal_text.hpp -- what others have named or typed, as a terminal may be given it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dibs {

// How many bytes the UTF-8 character has with which `bytes` begin; 0: it is none.
size_t utf8_size(std::string_view bytes);

// One character of UTF-8 that a terminal obeys: U+0000 to U+001F, and U+007F to U+009F.
bool is_control(std::string_view character);

// Control characters, and bytes that are no UTF-8, as "?".
std::string harmless(std::string_view text);

}  // namespace dibs
