// broker/ctl/admin/list.cpp -- `dibs ls`: what there is, kind by kind.
// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string_view>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/admin/listing.hpp"
#include "broker/ctl/admin/name.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/spelling.hpp"

namespace dibs::ctl {

namespace {

const std::set<std::string_view> kListedKinds = {
    "pools", "slots", "workers", "claims", "leases", "clients"};

void check_kind(const std::string& kind) {
    if (kListedKinds.contains(kind)) return;
    std::string text = "\"" + kind + "\" cannot be listed";
    if (const auto near = nearest_word(kind, kListedKinds)) {
        text += "; did you mean " + std::string(*near) + "? There are ";
    } else {
        text += "; there are ";
    }
    throw Failure(kExitUsage, text + "pools, slots, workers, claims, leases and clients");
}

Sheet listed(AdminClient& client, const std::string& kind, const std::string& pool) {
    const Viewpoint from = client.viewpoint();
    if (kind == "pools") return pool_sheet(client.pools(pool));
    if (kind == "slots") return slot_sheet(client.slots(pool, 0), from);
    if (kind == "claims") return claim_sheet(client.claims(pool, 0), from);
    if (kind == "leases") return lease_sheet(client.leases(pool, 0), from);
    return client_sheet(client.clients(kind == "workers"), kind == "workers", from);
}

}  // namespace

int run_list(int argc, char** argv) {
    std::string kind;
    std::string pool;
    Arguments arguments("ls",
                        "Lists pools, slots, workers, claims (that wait), leases or clients. Of "
                        "what belongs to another user only account and age are shown, unless you "
                        "administer.");
    arguments.operand("KIND", &kind, "pools, slots, workers, claims, leases or clients");
    arguments.text("-p,--pool", &pool, "of this pool only");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    check_kind(kind);
    if (arguments.given("--pool")) {
        check_named(pool);
        if (kind == "workers" || kind == "clients") {
            throw Failure(kExitUsage, "--pool: " + kind + " belong to no pool; list slots instead");
        }
    }
    AdminClient client(output.socket());
    output.show_rows(listed(client, kind, pool));
    return output.finish(kExitOk);
}

}  // namespace dibs::ctl
