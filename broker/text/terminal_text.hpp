// broker/text/terminal_text.hpp -- makes text from outside safe to print on a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dibs {

// The size of the UTF-8 character with which `bytes` begin, or 0 if it is invalid.
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
