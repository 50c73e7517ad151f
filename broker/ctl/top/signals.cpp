// broker/ctl/top/signals.cpp -- handles signals with handlers that do next to nothing.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/top/signals.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "broker/ctl/stop_signals.hpp"
#include "broker/ctl/system_failure.hpp"

namespace dibs::ctl::top {

namespace {

// Handlers have nowhere else to look.
int pipe_ends[2] = {-1, -1};
struct termios settings_before = {};
std::array<char, 128> farewell_text = {};
volatile sig_atomic_t farewell_size = 0;
volatile sig_atomic_t is_guarded = 0;
volatile sig_atomic_t is_drawn = 0;

void give_terminal_back() {
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &settings_before);
    struct pollfd room = {STDOUT_FILENO, POLLOUT, 0};
    if (poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) return;
    (void)!write(STDOUT_FILENO, farewell_text.data(), static_cast<size_t>(farewell_size));
}

void hear(int signal) {
    const int error = errno;
    if (signal != SIGWINCH && is_drawn != 0 && is_guarded != 0) {
        give_terminal_back();
        ::signal(signal, SIG_DFL);
        raise(signal);  // it is blocked until this returns
    }
    const auto byte = static_cast<char>(signal);
    (void)!write(pipe_ends[1], &byte, 1);  // a full pipe has told enough
    errno = error;
}

}  // namespace

Signals::Signals() {
    (void)tcgetattr(STDIN_FILENO, &settings_before);
    if (pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) throw system_failure("pipe2");
    struct sigaction action = {};
    action.sa_handler = hear;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    for (const int one : {SIGTERM, SIGINT, SIGHUP, SIGWINCH}) {
        if (one != SIGWINCH && one != SIGTERM && ignored_from_the_start(one)) continue;
        (void)sigaction(one, &action, nullptr);
    }
}

Signals::~Signals() {
    for (const int one : {SIGTERM, SIGINT, SIGHUP, SIGWINCH}) {
        if (!ignored_from_the_start(one)) signal(one, SIG_DFL);
    }
    is_guarded = 0;
    for (int& end : pipe_ends) {
        close(end);
        end = -1;
    }
}

int Signals::fd() {
    return pipe_ends[0];
}

Signals::Came Signals::take() {
    Came came;
    char byte = 0;
    while (read(pipe_ends[0], &byte, 1) == 1) {
        if (byte == SIGWINCH) {
            came.resized = true;
        } else {
            came.stop = byte;
        }
    }
    return came;
}

void Signals::guard(const std::string& farewell) {
    const size_t size = std::min(farewell.size(), farewell_text.size());
    std::memcpy(farewell_text.data(), farewell.data(), size);
    farewell_size = static_cast<sig_atomic_t>(size);
    is_guarded = 1;
}

void Signals::drawing(bool is_drawing) {
    is_drawn = is_drawing ? 1 : 0;
}

}  // namespace dibs::ctl::top
