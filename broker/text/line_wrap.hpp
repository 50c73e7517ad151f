// broker/text/line_wrap.hpp -- breaks sentences at spaces to fit the terminal's width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dibs {

// Columns of the terminal behind this descriptor; COLUMNS where it says nothing; 0 = unknown.
size_t columns_of(int fd);

// How many columns a text takes: bytes that continue a character of UTF-8 take none.
size_t width_of(std::string_view text);

// "1 slot", "2 slots".
std::string counted(uint64_t number, const std::string& noun);

// A sentence, broken at spaces; lines behind the first begin with `indent` spaces. Width 0: one
// line.
std::string wrapped(const std::string& text, size_t width, size_t indent);

// The lines of a text that are wider, broken so: each begins with `indent` columns that stand
// alone.
std::string wrapped_lines(const std::string& text, size_t width, size_t indent);

// A help text whose lines are sentences, or "  WHAT  meaning": a meaning goes on below itself, or,
// where there is no room beside what it explains, below that. Other lines that begin with a space
// are examples, and stay as they can be copied.
std::string folded_help(const std::string& help, size_t width);

// For what is printed to standard output: its terminal's columns, else 80.
size_t columns_for_output();

// What --help prints there.
std::string help_for_output(const std::string& help);

}  // namespace dibs
