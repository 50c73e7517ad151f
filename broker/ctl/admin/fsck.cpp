// broker/ctl/admin/fsck.cpp -- `dibs fsck`: the checks of a state that a broker serves from.
//
// The broker checks row by row, a slice between two turns, so nobody waits for it; what is a sum
// over many rows can only be checked while nobody changes them.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/output.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

int run_fsck(int argc, char** argv) {
    Arguments arguments("fsck",
                        "Checks the rows of the running broker's state and what they name, slice "
                        "by slice, without holding it up. Exit code 1: something is wrong.");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    AdminClient client(output.socket());
    admin::RequestT request;
    request.ask = admin::Ask::check;
    Sheet sheet{"dibs.fsck/1", {{"wrong", "WRONG"}}};
    uint64_t slices = 0;
    client.pages(request, "fsck", [&](admin::AnswerT& answer) {
        ++slices;
        for (std::string& wrong : answer.names)
            sheet.rows.push_back({Cell::of(std::move(wrong))});
    });
    const bool sound = sheet.rows.empty();
    if (output.form() == Form::kTable && sound) {
        output.say("The state is sound: " + std::to_string(slices) + " slices, nothing wrong.");
    } else {
        output.show_rows(sheet);
    }
    return output.finish(sound ? kExitOk : kExitFailed);
}

}  // namespace dibs::ctl
