// broker/ctl/admin/status.cpp -- `dibs status`: shows one broker at a glance.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/admin/listing.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

int run_status(int argc, char** argv) {
    Arguments arguments("status",
                        "Shows the broker: who it is, for how long, how full its tables are.");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    AdminClient client(output.socket());
    admin::RequestT request;
    request.ask = admin::Ask::status;
    const admin::AnswerT answer = client.must(request, {});
    if (answer.status != nullptr) output.show_record(status_sheet(*answer.status, client.path()));
    return output.finish(kExitOk);
}

}  // namespace dibs::ctl
