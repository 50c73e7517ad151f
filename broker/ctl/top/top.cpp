// broker/ctl/top/top.cpp -- `dibs top`: shows a live picture and obeys keys.
// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "broker/ctl/arguments.hpp"
#include "broker/ctl/clock.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/ctl/top/looker.hpp"
#include "broker/ctl/top/picture.hpp"
#include "broker/ctl/top/screen.hpp"
#include "broker/ctl/top/signals.hpp"
#include "broker/text/line_wrap.hpp"

namespace dibs::ctl {

namespace {

using top::Action;
using top::Key;

constexpr const char* kKeys =
    "q quit  Up Down choose  e explain  s sort  d drain  r release  h help";
constexpr const char* kHelp =
    "In a bar, # is a slot that is leased, + reserved for a claim, ~ recovering, . idle, ? "
    "unknown. GOT is what accounts have had of all since they were made. s sorts leases "
    "by "
    "the time held, user, pool, command. Space looks again. Drain and release ask first.";

class Live {
  public:
    Live(top::Looker& looker, int64_t period_ns) : looker_(looker), period_ns_(period_ns) {
        view_.keys = kKeys;
    }

    int run() {
        int64_t next_ns = monotonic_ns() + period_ns_;
        for (;;) {
            show();
            wait(next_ns);
            const top::Signals::Came came = top::Signals::take();
            if (came.stop != 0) return 128 + came.stop;
            if (gone_) return kExitOk;
            if (came.resized) top::Screen::fit();
            for (int key = top::Screen::key(); key != 0; key = top::Screen::key()) {
                if (key == static_cast<int>(Key::kEnd)) return kExitOk;
                if (!hear(key)) return kExitOk;
            }
            if (monotonic_ns() < next_ns && !std::exchange(look_now_, false)) continue;
            looker_.look();
            next_ns = monotonic_ns() + period_ns_;
        }
    }

  private:
    void show() {
        top::choose(looker_.facts(), 0, &view_);
        top::View view = view_;
        if (const std::string absence = looker_.absence(); !absence.empty() && !asked_) {
            view.message = absence;
        }
        screen_.draw(
            top::picture(looker_.facts(), view, top::Screen::width(), top::Screen::height()));
    }

    void wait(int64_t until_ns) {
        const int64_t left_ns = std::max<int64_t>(until_ns - monotonic_ns(), 0);
        struct pollfd ready[] = {{STDIN_FILENO, POLLIN, 0}, {top::Signals::fd(), POLLIN, 0}};
        const auto left_ms = std::min<int64_t>(left_ns / 1'000'000 + 1, INT32_MAX);
        (void)poll(ready, 2, static_cast<int>(left_ms));
        gone_ = (ready[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
    }

    // False: it ends.
    bool hear(int key) {
        if (asked_) {
            const Action action = *std::exchange(asked_, std::nullopt);
            view_.message = key == 'y' ? looker_.act(action) : "nothing was done";
            look_now_ = true;
            return true;
        }
        view_.message.clear();
        switch (key) {
            case 'q':
                return false;
            case static_cast<int>(Key::kUp):
                top::choose(looker_.facts(), -1, &view_);
                break;
            case static_cast<int>(Key::kDown):
                top::choose(looker_.facts(), 1, &view_);
                break;
            case static_cast<int>(Key::kPageUp):
                top::choose(looker_.facts(), -10, &view_);
                break;
            case static_cast<int>(Key::kPageDown):
                top::choose(looker_.facts(), 10, &view_);
                break;
            case 's':
                sort();
                break;
            case ' ':
                look_now_ = true;
                break;
            case 'e':
            case 'd':
            case 'r':
                begin(top::action_of(key, looker_.facts(), view_.chosen));
                break;
            case 'h':
            case '?':
                view_.message = kHelp;
                break;
            default:
                break;
        }
        return true;
    }

    void begin(Action action) {
        if (action.kind != Action::Kind::kNone && !action.question.empty()) {
            view_.message = action.question;
            asked_ = std::move(action);
            return;
        }
        view_.message = looker_.act(action);
        look_now_ = action.kind == Action::Kind::kUndrain;
    }

    void sort() {
        const auto next = (static_cast<uint8_t>(view_.order) + 1) % 4;
        view_.order = static_cast<top::LeaseOrder>(next);
        view_.message = "leases by " + std::string(word(view_.order));
    }

    top::Looker& looker_;
    int64_t period_ns_;
    top::View view_;
    bool look_now_ = false;
    bool gone_ = false;            // the terminal is
    std::optional<Action> asked_;  // to be done if the next key is y
    top::Screen screen_;
};

int run_batch(top::Looker& looker, Output& output, int64_t period_ns, uint64_t count) {
    const size_t width = columns_of(STDOUT_FILENO);
    for (uint64_t told = 0; count == 0 || told < count; ++told) {
        if (told != 0) {
            (void)poll(
                nullptr, 0, static_cast<int>(std::min<int64_t>(period_ns / 1'000'000, INT32_MAX)));
            looker.look();
        }
        std::string text = told == 0 ? "" : "\n";
        if (const std::string absence = looker.absence(); !absence.empty()) {
            text += absence + "\n";
        } else {
            for (const top::Line& line :
                 top::picture(looker.facts(), {}, width == 0 ? 80 : width, 0))
                text += line.text + "\n";
        }
        if (!output.write(text)) break;
    }
    return kExitOk;
}

}  // namespace

int run_top(int argc, char** argv) {
    Arguments arguments("top",
                        "Shows pools, accounts, the oldest waiting claims and leases, again and "
                        "again; keys choose, explain, drain and release. It goes on over a restart "
                        "of the broker.");
    bool batch = false;
    uint64_t count = 0;
    int64_t period_ns = 2 * DIBS_SECOND;
    arguments.flag("-b,--batch", &batch, "as text, for a script: all rows, and no keys");
    arguments.number("-n,--count", &count, {1}, "with --batch: end after so many looks", false);
    arguments.seconds("-d,--delay", &period_ns, "2", "so many seconds between two looks, or 2");
    Output output(arguments, Output::kTextOnly);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    if (count != 0 && !batch) throw Failure(kExitUsage, "--count is for --batch");
    if (batch) require_output();
    top::Looker looker(output.socket());
    looker.look();
    if (batch) return run_batch(looker, output, period_ns, count);
    const top::Signals signals;
    return Live(looker, period_ns).run();
}

}  // namespace dibs::ctl
