// broker/ctl/version.cpp -- `dibs version`: prints the tool's version, and a running broker's.
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/subcommand.hpp"
#include "shm/layout.hpp"

namespace dibs::ctl {

int run_version(int argc, char** argv) {
    Arguments arguments("version",
                        "Prints the version of dibs and its memory layout, and those of the broker "
                        "if one answers.");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    Sheet sheet{"dibs.version/1",
                {{"version", ""},
                 {"layout", ""},
                 {"broker_version", ""},
                 {"broker_layout", ""},
                 {"socket", ""}}};
    sheet.rows.push_back({Cell::of(DIBS_VERSION), Cell::of(shm::kLayoutVersion), {}, {}, {}});
    output.say("dibs " DIBS_VERSION ", layout " + std::to_string(shm::kLayoutVersion));
    try {
        const AdminClient client(output.socket());
        const uint32_t layout = client.welcome().layout_version;
        output.say("dibsd " + client.broker_version() + ", layout " + std::to_string(layout) +
                   ", at " + client.path());
        sheet.rows.front()[2] = Cell::of(client.broker_version());
        sheet.rows.front()[3] = Cell::of(layout);
        sheet.rows.front()[4] = Cell::of(client.path());
    } catch (const Failure& failure) {
        output.say(failure.what());
    }
    output.show_record(sheet);
    return output.finish(kExitOk);
}

}  // namespace dibs::ctl
