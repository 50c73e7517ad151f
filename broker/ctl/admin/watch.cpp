// broker/ctl/admin/watch.cpp -- redraws the terminal and waits between two looks.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/admin/watch.hpp"

#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "broker/ctl/clock.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/sheet.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/line_wrap.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl {

namespace {

constexpr size_t kLines = 24;  // of a terminal that does not say

// One that goes back to a line that it has shown.
bool can_go_back() {
    const char* term = std::getenv("TERM");
    return isatty(STDOUT_FILENO) == 1 && term != nullptr && *term != '\0' &&
           std::strcmp(term, "dumb") != 0;
}

size_t terminal_lines() {
    struct winsize size = {};
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    return size.ws_row == 0 ? kLines : size.ws_row;
}

// Without the sequences that make it bold.
size_t shown_width(const std::string& line) {
    size_t width = width_of(line);
    for (size_t at = line.find('\x1b'); at != std::string::npos; at = line.find('\x1b', at + 1))
        width -= line.find('m', at) - at + 1;
    return width;
}

// From the top, each line to its end, and nothing below. A line that is wider than the terminal
// takes several of its lines.
std::string in_place(const std::string& text) {
    const size_t width = std::max<size_t>(columns_of(STDOUT_FILENO), 1);
    const size_t most = terminal_lines();
    std::string all = "\x1b[H";
    size_t lines = 0;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        const std::string line = text.substr(at, end - at);
        lines += std::max<size_t>((shown_width(line) + width - 1) / width, 1);
        if (lines > most) break;
        all += (at == 0 ? "" : "\n") + line + "\x1b[K";
        at = end + 1;
    }
    return all + "\x1b[J";
}

void pass(int64_t period_ns) {
    const struct timespec left = {period_ns / DIBS_SECOND, period_ns % DIBS_SECOND};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &left, nullptr);
}

}  // namespace

int watch(Output& output,
          const std::string& title,
          int64_t period_ns,
          const std::function<void(AdminClient&)>& show) {
    const bool places = can_go_back() && output.form() == Form::kTable;
    std::optional<AdminClient> client(std::in_place, output.socket());
    if (places) output.write("\x1b[2J");
    for (bool first = true;; first = false) {
        std::string text;
        try {
            if (!client) client.emplace(output.socket());
            show(*client);
            text = output.take();
        } catch (const Failure& failure) {
            if (failure.exit_code() != kExitUnreachable) throw;
            client.reset();
            text = "waiting for the broker: " + harmless(failure.what()) + "\n";
            if (output.form() != Form::kTable) text.clear();
        }
        const std::string heading = title + "  " + instant_text(wall_ns()) + "\n\n";
        const bool apart = !places && !first && output.form() == Form::kTable;
        if (places) text = in_place(heading + text);
        if (!output.write((apart ? "\n" : "") + text)) return kExitOk;
        pass(period_ns);
    }
}

}  // namespace dibs::ctl
