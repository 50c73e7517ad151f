// broker/ctl/admin/steer.cpp -- `dibs release`, `dibs renew`, `dibs cancel`: from outside the
// session that has the lease or claim. Its holder is told: reason "revoked".
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/admin/name.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

namespace {

Sheet done(std::string_view schema, uint64_t number, std::string_view pool, std::string_view what) {
    Sheet sheet{schema, {{"number", "number"}, {"pool", "pool"}, {"did", "did"}}};
    sheet.rows.push_back({Cell::of(number), Cell::of(pool), Cell::of(what)});
    return sheet;
}

}  // namespace

int run_release(int argc, char** argv) {
    std::string id;
    Arguments arguments("release",
                        "Ends a lease from outside, as its user or an administrator. Its holder is "
                        "told (revoked); the slots go to who waits.");
    arguments.operand("LEASE", &id, "its number, or its id (0x...): dibs ls leases shows them");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    const Name name = parse_name(id);
    AdminClient client(output.socket());
    const auto lease = find_lease(client, name);
    admin::RequestT request;
    request.ask = admin::Ask::release;
    request.id = lease->id;
    (void)client.must(request, "lease " + id);
    output.show_record(done("dibs.release/1", lease->number, lease->pool, "released"));
    return output.finish(kExitOk);
}

int run_renew(int argc, char** argv) {
    std::string id;
    int64_t interval_ns = -1;
    Arguments arguments("renew",
                        "Prolongs a lease from now, as its user or an administrator. A lease that "
                        "is bound to its holder's life needs none and stays as it is.");
    arguments.operand("LEASE", &id, "its number, or its id (0x...): dibs ls leases shows them");
    arguments.duration("-i,--interval", &interval_ns, "for so long; else as it was granted");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    const Name name = parse_name(id);
    AdminClient client(output.socket());
    const auto lease = find_lease(client, name);
    admin::RequestT request;
    request.ask = admin::Ask::renew;
    request.id = lease->id;
    request.interval_ns = interval_ns < 0 ? 0 : static_cast<uint64_t>(interval_ns);
    const admin::AnswerT answer = client.must(request, "lease " + id);
    Sheet sheet{"dibs.renew/1",
                {{"number", "number"}, {"pool", "pool"}, {"interval_ns", "interval"}}};
    sheet.rows.push_back({Cell::of(lease->number),
                          Cell::of(lease->pool),
                          answer.granted_ns != 0 ? Cell::duration(answer.granted_ns) : Cell()});
    output.show_record(sheet);
    return output.finish(kExitOk);
}

int run_cancel(int argc, char** argv) {
    std::string id;
    Arguments arguments("cancel",
                        "Ends a waiting claim from outside, as its user or an administrator. Its "
                        "session is told: cancelled (revoked).");
    arguments.operand("CLAIM", &id, "its number: dibs ls claims shows them");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    const Name name = parse_name(id);
    AdminClient client(output.socket());
    const auto claim = find_claim(client, name);
    admin::RequestT request;
    request.ask = admin::Ask::cancel;
    request.id = claim->id;
    (void)client.must(request, "claim " + id);
    output.show_record(done("dibs.cancel/1", claim->number, claim->pool, "cancelled"));
    return output.finish(kExitOk);
}

}  // namespace dibs::ctl
