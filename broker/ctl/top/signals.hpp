// broker/ctl/top/signals.hpp -- handles signals while `dibs top` owns the terminal.
//
// TERM, INT and HUP end the program in order; WINCH changes the picture's size. Each is written
// into a pipe that the program waits on. A stopped terminal, or a blocked line, blocks the drawing
// program: then the signal handler itself gives the terminal back, as far as it takes anything, and
// ends the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace dibs::ctl::top {

class Signals {
  public:
    Signals();
    ~Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    [[nodiscard]] static int fd();
    // What has come since; both may be true.
    struct Came {
        int stop = 0;  // the signal that ends
        bool resized = false;
    };
    [[nodiscard]] static Came take();

    // What the terminal is sent to be as before, beside the settings that it had when this began.
    static void guard(const std::string& farewell);
    // While this is so the signal ends the program at once.
    static void drawing(bool is_drawing);
};

}  // namespace dibs::ctl::top
