// broker/ctl/admin/list.cpp -- `dibs ls`: lists pools, slots, claims, leases and so on.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/admin/listing.hpp"
#include "broker/ctl/admin/name.hpp"
#include "broker/ctl/admin/row_order.hpp"
#include "broker/ctl/admin/watch.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/output/who.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/spelling.hpp"

namespace dibs::ctl {

namespace {

const std::set<std::string_view> kListedKinds = {
    "pools", "sets", "types", "slots", "workers", "entries", "claims", "leases", "clients"};

void check_kind(const std::string& kind) {
    if (kListedKinds.contains(kind)) return;
    std::string text = "\"" + kind + "\" cannot be listed";
    if (const auto near = nearest_word(kind, kListedKinds)) {
        text += "; did you mean " + std::string(*near) + "? There are ";
    } else {
        text += "; there are ";
    }
    throw Failure(kExitUsage,
                  text + "pools, sets, types, slots, workers, entries, claims, leases and clients");
}

// Rows of several users.
bool has_users(const std::string& kind) {
    return kind != "pools" && kind != "sets" && kind != "types" && kind != "slots" &&
           kind != "entries";
}

// Without its rows.
Sheet columns_of_kind(const std::string& kind) {
    if (kind == "pools") return pool_sheet({});
    if (kind == "sets") return set_sheet({});
    if (kind == "types") return type_sheet({});
    if (kind == "slots") return slot_sheet({}, {});
    if (kind == "entries") return entry_sheet({});
    if (kind == "claims") return claim_sheet({}, {});
    if (kind == "leases") return lease_sheet({}, {});
    return client_sheet({}, kind == "workers", {});
}

uint32_t user_named(const std::string& text) {
    if (const auto uid = user_number(text)) return *uid;
    throw Failure(kExitUsage, "--user: there is no user \"" + text + "\"");
}

Sheet rows_of_pool(AdminClient& client, const std::string& kind, const std::string& pool) {
    const Viewpoint from = client.viewpoint();
    if (kind == "sets") return set_sheet(client.sets());
    if (kind == "types") return type_sheet(client.types(pool));
    if (kind == "entries") return entry_sheet(client.entries(pool));
    if (kind == "pools") return pool_sheet(client.pools(pool));
    if (kind == "slots") return slot_sheet(client.slots(pool, 0), from);
    if (kind == "claims") return claim_sheet(client.claims(pool, 0), from);
    if (kind == "leases") return lease_sheet(client.leases(pool, 0), from);
    return client_sheet(client.clients(kind == "workers"), kind == "workers", from);
}

// Of a pool set its members, in their order; another name is a pool's. Failure: one of them takes
// no claims, so that the list would not be the set's.
std::vector<std::string> pools_named(AdminClient& client, const std::string& name) {
    client.take_sets();
    for (const auto& set : client.sets()) {
        if (set->name != name) continue;
        for (size_t at = 0; at < std::min(set->pools.size(), set->left_out.size()); ++at) {
            if (set->left_out[at].empty()) continue;
            throw Failure(kExitNotFound,
                          "pool \"" + set->pools[at] + "\" of set \"" + name + "\" " +
                              set->left_out[at] + ": list the other pools one by one");
        }
        return set->pools;
    }
    return {name};
}

Sheet listed(AdminClient& client, const std::string& kind, const std::string& name) {
    if (name.empty()) return rows_of_pool(client, kind, name);
    Sheet sheet = columns_of_kind(kind);
    for (const std::string& pool : pools_named(client, name)) {
        Sheet more = rows_of_pool(client, kind, pool);
        std::move(more.rows.begin(), more.rows.end(), std::back_inserter(sheet.rows));
    }
    return sheet;
}

}  // namespace

int run_list(int argc, char** argv) {
    std::string kind;
    std::string pool;
    Arguments arguments(
        "ls",
        "Lists pools, pool sets, types of workers that provisioners make, slots, workers, entries "
        "of the queues of dispatched pools, claims (that wait), leases or clients. Of what belongs "
        "to another user only account and age are shown, unless you "
        "administer.");
    arguments.operand(
        "KIND", &kind, "pools, sets, types, slots, workers, entries, claims, leases or clients");
    std::vector<std::string> of;
    arguments.words("POOL", &of, "as --pool");
    arguments.text("-p,--pool", &pool, "of this pool only, or of the pools of this set");
    std::string user;
    arguments.text("-u,--user", &user, "of this user only, by name or uid", "USER");
    std::string by;
    arguments.text("-s,--sort",
                   &by,
                   "by this column: numbers and times from the largest on, names from A to Z",
                   "COLUMN");
    bool reversed = false;
    arguments.flag("-r,--reverse", &reversed, "the other way round");
    int64_t period_ns = 0;
    arguments.seconds("-w,--watch", &period_ns, "2", "again every so many seconds, or 2");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    check_kind(kind);
    if (of.size() > 1 || (!of.empty() && arguments.given("--pool"))) {
        throw Failure(kExitUsage, "one pool, or pool set, at a time");
    }
    if (!of.empty()) pool = of.front();
    if (arguments.given("--pool") || !of.empty()) {
        check_named(pool);
        if (kind == "workers" || kind == "clients" || kind == "sets") {
            throw Failure(kExitUsage, "--pool: " + kind + " belong to no pool; list slots instead");
        }
    }
    std::optional<uint32_t> uid;
    if (arguments.given("--user")) {
        if (!has_users(kind)) {
            throw Failure(kExitUsage,
                          "--user: " + kind + " belong to no user; list leases instead");
        }
        uid = user_named(user);
    }
    std::optional<size_t> column;
    if (arguments.given("--sort")) column = column_named(columns_of_kind(kind), by);
    if (reversed && !column) throw Failure(kExitUsage, "--reverse is for --sort COLUMN");
    const auto show = [&](AdminClient& client) {
        Sheet sheet = listed(client, kind, pool);
        if (uid) keep_user(&sheet, *uid);
        if (column) sort_rows(&sheet, *column, reversed);
        output.show_rows(sheet);
    };
    if (period_ns != 0) return watch(output, "dibs ls " + kind, period_ns, show);
    AdminClient client(output.socket());
    show(client);
    return output.finish(kExitOk);
}

}  // namespace dibs::ctl
