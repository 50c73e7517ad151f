// broker/text/terminal_text.hpp -- what others have named or typed, as a terminal may be given it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dibs {

// How many bytes the UTF-8 character has with which `bytes` begin; 0: it is none.
size_t utf8_size(std::string_view bytes);

// The number of a valid character of UTF-8.
uint32_t code_point(std::string_view character);

// One character of UTF-8 that a terminal obeys, or does not show: control characters, those that
// change the direction of text, line and paragraph separators, and other invisible ones.
bool is_unprintable(std::string_view character);

// Unprintable characters, and bytes that are not UTF-8, as "?".
std::string harmless(std::string_view text);

// The same, but for the line breaks of a message of several lines.
std::string harmless_lines(std::string_view text);

}  // namespace dibs
