// broker/ctl/admin/offers.cpp -- `dibs offers`: lists what may be claimed of each slot.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/admin/listing.hpp"
#include "broker/ctl/amounts.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl {

namespace {

// The pool, or those of the set.
std::vector<std::unique_ptr<admin::PoolT>> members(AdminClient& client, const std::string& name) {
    std::vector<std::string> wanted = {name};
    for (const auto& set : client.sets()) {
        if (set->name == name) wanted = set->pools;
    }
    auto rows = client.pools({});
    std::erase_if(rows, [&](const auto& row) {
        return std::find(wanted.begin(), wanted.end(), row->name) == wanted.end();
    });
    return rows;
}

std::string why_none(const admin::PoolT& pool, bool wants) {
    if (pool.leaving) return "the configuration names it no more";
    if (pool.draining) return "it drains, or the whole broker";
    const uint32_t waiting = pool.waiting + pool.confirming;
    if (waiting == 1) return "a claim waits, which comes first";
    if (waiting != 0) return std::to_string(waiting) + " claims wait, which come first";
    if (pool.slots == 0) return "it has no slots";
    return wants ? "no slot has as much free" : "no slot has something of each resource free";
}

// Why nothing is offered, as far as that is known now.
void tell_none(const std::string& socket, const std::string& name, bool wants) {
    std::string text;
    try {
        AdminClient client(socket);
        for (const auto& pool : members(client, name)) {
            if (pool->resources.empty()) continue;
            text += (text.empty() ? ": pool \"" : "; pool \"") + pool->name +
                    "\": " + why_none(*pool, wants);
        }
    } catch (const Failure&) {  // then it is not known
    }
    talk("dibs offers: nothing is offered" + harmless(text));
}

// What its slots do not have at all is a mistake of usage; what they have too little of is not.
void check_resources(AdminClient& client, const admin::RequestT& request) {
    std::string text;
    for (const auto& pool : members(client, request.pool)) {
        const std::string why = no_part(pool->resources, request.least, request.most);
        if (why.empty()) return;
        text = "pool \"" + pool->name + "\": " + why;
    }
    if (!text.empty()) throw Failure(kExitUsage, text);
}

}  // namespace

int run_offers(int argc, char** argv) {
    std::string pool;
    admin::RequestT request;
    int64_t wait_ns = -1;
    std::optional<uint64_t> stamp;
    uint64_t count = 10;
    Arguments arguments("offers",
                        "Lists what may be claimed of each slot of a pool whose slots have "
                        "resources: what is free, and what has expired and may be collected.");
    arguments.operand("POOL", &pool, "the pool's name, or a pool set's");
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
        "--after", &stamp, {0, UINT64_MAX}, "with --wait: other offers than those of this stamp");
    arguments.number("--count", &count, {1, 64}, "so many at most");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    check_part(request.least, request.most);
    if (stamp && wait_ns < 0) {
        throw Failure(kExitUsage, "--after waits for other offers: say with --wait for how long");
    }
    request.most = full_most(request.least, request.most);
    request.ask = admin::Ask::offers;
    request.pool = pool;
    request.number = count;
    request.after_stamp = stamp.value_or(0);
    const admin::AnswerT answer =
        ask_waiting(output.socket(), request, std::max<int64_t>(wait_ns, 0));
    if (answer.code != admin::Code::ok) {
        AdminClient client(output.socket());
        client.take_sets();
        if (answer.code == admin::Code::refused) check_resources(client, request);
        client.check(answer, request, "pool " + pool);
    }
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
    sheet.stamp = answer.stamp;
    output.show_rows(sheet);
    output.say("stamp " + std::to_string(answer.stamp));
    if (answer.offers.empty()) tell_none(output.socket(), pool, !request.least.empty());
    return output.finish(answer.offers.empty() ? kExitNoneFree : kExitOk);
}

}  // namespace dibs::ctl
