// demo/trace/text_line.hpp -- splits text into lines and lines into fields.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::ctl::demo {

// Walks the lines of a text; takes off a byte-order mark, carriage returns and outer blanks.
class LineWalk {
  public:
    explicit LineWalk(std::string_view text);
    // The next line, also an empty one; false at the end.
    bool next(std::string_view* line);
    // Number of the line that next() gave last, from 1.
    [[nodiscard]] uint64_t number() const { return number_; }

  private:
    std::string_view rest_;
    uint64_t number_ = 0;
};

std::string_view trimmed(std::string_view text);
std::vector<std::string_view> split_blanks(std::string_view line);
// Fields between commas, trimmed; a field in double quotes may hold commas ("" is a quote).
std::vector<std::string> split_commas(std::string_view line);
// A field as it may be shown in a message: printable, short, in quotes.
std::string shown(std::string_view field);
bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace dibs::ctl::demo
