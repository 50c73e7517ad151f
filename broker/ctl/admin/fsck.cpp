// broker/ctl/admin/fsck.cpp -- `dibs fsck`: checks a broker's state, running or left behind.
//
// The running broker checks row by row, a slice between two turns, so no client waits for it; sums
// over many rows can only be checked while no broker changes them. A state that was left behind is
// checked whole.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>
#include <vector>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/admin/state_check.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/line_wrap.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl {

namespace {

// A state that cannot be checked is reported like one that is wrong, and the rest are checked.
int check_left_behind(Output& output, const std::vector<std::string>& states) {
    Sheet sheet{"dibs.fsck/1", {{"wrong", "WRONG"}}};
    bool all_read = true;
    for (const std::string& path : states) {
        StateReport report;
        try {
            report = check_state(path);
        } catch (const Failure& failure) {
            all_read = false;
            std::fprintf(stderr, "dibs fsck: %s\n", harmless(failure.what()).c_str());
            if (output.form() != Form::kTable) sheet.rows.push_back({Cell::of(failure.what())});
            continue;
        }
        if (report.wrong.empty() && output.form() == Form::kTable) {
            output.say(path + ": sound; epoch " + std::to_string(report.epoch) + ", " +
                       counted(report.turns, "turn") + ", " +
                       (report.clean ? "stopped in order." : "its broker died or serves from it."));
        }
        for (const std::string& wrong : report.wrong)
            sheet.rows.push_back({Cell::of(path + ": " + wrong)});
    }
    const bool sound = sheet.rows.empty();
    if (output.form() != Form::kTable || !sound) output.show_rows(sheet);
    return output.finish(sound && all_read ? kExitOk : kExitFailed);
}

}  // namespace

int run_fsck(int argc, char** argv) {
    Arguments arguments("fsck",
                        "Checks the rows of the running broker's state and what they name, slice "
                        "by slice, without holding it up; or, whole, states that were left "
                        "behind. Exit code 1: something is wrong.");
    Output output(arguments);
    std::vector<std::string> states;
    arguments.words("STATE",
                    &states,
                    "a state that was put aside (failed-N.state), or a descriptor of one "
                    "(/dev/fd/N, /proc/PID/fd/N)");
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    if (!states.empty()) return check_left_behind(output, states);
    AdminClient client(output.socket());
    admin::RequestT request;
    request.ask = admin::Ask::check;
    Sheet sheet{"dibs.fsck/1", {{"wrong", "WRONG"}}};
    uint64_t slices = 0;
    client.pages(request, {}, [&](admin::AnswerT& answer) {
        ++slices;
        for (std::string& wrong : answer.names)
            sheet.rows.push_back({Cell::of(std::move(wrong))});
    });
    const bool sound = sheet.rows.empty();
    if (output.form() == Form::kTable && sound) {
        output.say("The state is sound: " + counted(slices, "slice") + ", nothing wrong.");
    } else {
        output.show_rows(sheet);
    }
    return output.finish(sound ? kExitOk : kExitFailed);
}

}  // namespace dibs::ctl
