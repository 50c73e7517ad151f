// broker/ctl/output/talk.cpp -- writes messages through one LineWriter beside standard error.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/output/talk.hpp"

#include <signal.h>
#include <unistd.h>

#include "broker/ctl/stop_signals.hpp"
#include "broker/text/line_wrap.hpp"
#include "broker/text/line_writer.hpp"

namespace dibs::ctl {

namespace {

bool ignored_before = false;

// A terminal with `tostop` stops a background process that writes to it, unless SIGTTOU is blocked.
void write(const std::string& text) {
    sigset_t stop;
    sigset_t before;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &stop, &before);
    static LineWriter writer(STDERR_FILENO, LineWriter::Opened::kBeside, "dibs");
    writer.write(text);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void talk(const std::string& line) {
    write(line + "\n");
}

void talk_over(const std::string& line) {
    static bool shown = false;
    if (line.empty() && !shown) return;
    shown = !line.empty();
    const size_t width = columns_of(STDERR_FILENO);
    write("\r\x1b[K" + line.substr(0, width > 1 ? width - 1 : line.size()));
}

void ignore_lost_readers() {
    ignored_before = ignored_from_the_start(SIGPIPE);
    ::signal(SIGPIPE, SIG_IGN);
}

void restore_lost_readers() {
    if (!ignored_before) ::signal(SIGPIPE, SIG_DFL);
}

}  // namespace dibs::ctl
