// broker/ctl/top/screen.hpp -- draws lines on a terminal by ncurses, which sends changes only.
//
// Keeps the library's header, whose names have no prefix, in one translation unit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "broker/ctl/top/picture.hpp"

namespace dibs::ctl::top {

enum class Key : int { kNone = 0, kUp = 256, kDown, kPageUp, kPageDown, kEnd, kOther };

class Screen {
  public:
    // Failure: standard output or input is no terminal, or one that cannot be drawn on.
    Screen();
    ~Screen();  // the terminal is as it was
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;

    [[nodiscard]] static size_t width();
    [[nodiscard]] static size_t height();
    static void fit();  // the terminal has another size
    void draw(const std::vector<Line>& lines) const;
    // A letter as it is; kNone: none has been pressed; kEnd: the terminal is gone.
    [[nodiscard]] static int key();

  private:
    bool colours_ = false;
};

}  // namespace dibs::ctl::top
