// broker/ctl/top/picture.hpp -- lays out what `dibs top` shows as lines of text.
// A terminal draws them, and a script reads them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "broker/ctl/top/table.hpp"

namespace dibs::ctl::top {

enum class Style : uint8_t { kPlain, kHeading, kChosen, kMessage };

struct Line {
    std::string text;
    Style style = Style::kPlain;
    bool has_bar = false;  // from its first "[" to the next "]"
};

// What the person at the terminal has chosen.
struct View {
    RowName chosen;
    LeaseOrder order = LeaseOrder::kHeld;
    std::string message;  // a sentence at the bottom: an answer, or a question
    std::string keys;     // the last line, where there is no message
};

// `height` 0: as high as it gets, and nothing at the bottom. The parts share the lines; what is
// chosen is among those that are shown.
std::vector<Line> picture(const Facts& facts, const View& view, size_t width, size_t height);

// Moves the choice by so many rows, over all parts; to the nearest row where its own is gone.
void choose(const Facts& facts, int by, View* view);

}  // namespace dibs::ctl::top
