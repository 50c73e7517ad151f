// broker/ctl/admin/offers.cpp -- `dibs offers`: lists what may be claimed of each slot.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/admin/listing.hpp"
#include "broker/ctl/amounts.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

int run_offers(int argc, char** argv) {
    std::string pool;
    admin::RequestT request;
    int64_t wait_ns = -1;
    std::optional<uint64_t> after;
    uint64_t count = 10;
    Arguments arguments("offers",
                        "Lists what may be claimed of each slot of a pool whose slots have "
                        "resources: what is free, and what has expired and may be collected.");
    arguments.operand("POOL", &pool, "the pool");
    arguments.texts("--want",
                    &request.least,
                    "only slots that have at least so much of the resource, such as "
                    "memory=10GiB (repeatable)",
                    "NAME=AMOUNT");
    arguments.texts("--up-to",
                    &request.most,
                    "and those nearest to so much first; as --want, if not said (repeatable)",
                    "NAME=AMOUNT");
    arguments.duration("--wait", &wait_ns, "while there are none, wait so long for some");
    arguments.number(
        "--after", &after, {0, UINT64_MAX}, "with --wait: other offers than those of this stamp");
    arguments.number("--count", &count, {1, 64}, "so many at most");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    check_part(request.least, request.most);
    request.most = full_most(request.least, request.most);
    request.ask = admin::Ask::offers;
    request.pool = pool;
    request.number = count;
    request.interval_ns = wait_ns < 0 ? 0 : static_cast<uint64_t>(wait_ns);
    request.after_stamp = after.value_or(0);
    const int64_t longest_ns = INT64_MAX / 2;
    AdminClient client(output.socket(),
                       kAnswerTimeoutNs + std::min(std::max<int64_t>(wait_ns, 0), longest_ns));
    const admin::AnswerT answer = client.must(request, "pool " + pool);
    Sheet sheet{"dibs.offers/1",
                {{"id", "OFFER"},
                 {"pool", ""},
                 {"slot", ""},
                 {"available", "AVAILABLE"},
                 {"resources", ""},
                 {"amounts", ""},
                 {"stamp", ""}}};
    for (const auto& row : answer.offers) {
        sheet.rows.push_back({Cell::of(row->pool + "/" + std::to_string(row->slot)),
                              Cell::of(row->pool),
                              Cell::of(row->slot),
                              Cell::of(amounts_text(row->resources, row->amounts)),
                              Cell::of(row->resources),
                              Cell::of(row->amounts),
                              Cell::of(answer.stamp)});
    }
    output.show_rows(sheet);
    return output.finish(answer.offers.empty() ? kExitNoneFree : kExitOk);
}

}  // namespace dibs::ctl
