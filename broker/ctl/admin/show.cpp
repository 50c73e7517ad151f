// broker/ctl/admin/show.cpp -- `dibs show`: shows everything about one thing.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/admin/listing.hpp"
#include "broker/ctl/admin/name.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

namespace {

template <class Row>
std::vector<std::unique_ptr<Row>> one(std::unique_ptr<Row> row) {
    std::vector<std::unique_ptr<Row>> rows;
    rows.push_back(std::move(row));
    return rows;
}

// In a record every value is shown, under the name that it has in JSON.
Sheet with_all_titles(Sheet sheet) {
    for (Column& column : sheet.columns) {
        std::string_view name = column.key;
        if (name.ends_with("_ns")) name.remove_suffix(3);
        column.title = name;
    }
    return sheet;
}

Sheet pool_of(AdminClient& client, const Name& name, Sheet* types) {
    const auto pools = client.pools(name.pool);
    Sheet sheet = pool_sheet(pools);
    if (pools.empty() || pools.front()->elastic == nullptr) return sheet;
    *types = type_sheet(client.types(name.pool));
    add_elastic(*pools.front()->elastic, *types, &sheet);
    return sheet;
}

Sheet client_of(AdminClient& client, const std::string& id) {
    auto rows = client.clients(false);
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row->id == id; });
    if (found == rows.end()) {
        throw Failure(kExitNotFound,
                      "there is no client " + id + "; dibs ls clients shows those that are");
    }
    return client_sheet(one(std::move(*found)), false, client.viewpoint());
}

Sheet slot_of(AdminClient& client, const Name& name) {
    Sheet sheet = slot_sheet(client.slots(name.pool, name.number + 1), client.viewpoint());
    if (!sheet.rows.empty()) return sheet;
    throw Failure(kExitNotFound,
                  "pool " + name.pool + " has no slot " + std::to_string(name.number) +
                      "; dibs ls slots --pool " + name.pool + " shows those that are");
}

Sheet slot_by_id(AdminClient& client, const Name& name) {
    auto rows = client.slots(name.pool, 0);
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const auto& row) {
        return row->full && row->id == name.number;
    });
    if (found != rows.end()) return slot_sheet(one(std::move(*found)), client.viewpoint());
    throw Failure(kExitNotFound,
                  "there is no slot " + shown(name) +
                      " that you may see; dibs ls slots -o json "
                      "shows those that are");
}

// What it is, with the types of an elastic pool.
Sheet sheet_of(AdminClient& client, const Name& name, Sheet* types) {
    switch (name.kind) {
        case Name::Kind::kPool:
            return pool_of(client, name, types);
        case Name::Kind::kSlot:
            return slot_of(client, name);
        case Name::Kind::kClient:
            return client_of(client, name.pool);
        case Name::Kind::kClaim:
            return claim_sheet(one(find_claim(client, name)), client.viewpoint());
        case Name::Kind::kLease:
            return lease_sheet(one(find_lease(client, name)), client.viewpoint());
        case Name::Kind::kSlotId:
            break;
    }
    return slot_by_id(client, name);
}

}  // namespace

int run_show(int argc, char** argv) {
    std::string id;
    Arguments arguments("show", "Shows everything about one pool, slot, claim, lease or client.");
    arguments.operand("ID",
                      &id,
                      "POOL, POOL/SLOT, a claim (c12), a lease (l12), one of these or a slot by "
                      "its id (l0x100000000), each alone or behind POOL/, or a client (s3.1)");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    const Name name = parse_name(id);
    AdminClient client(output.socket());
    Sheet types;
    output.show_record(with_all_titles(sheet_of(client, name, &types)));
    if (output.form() == Form::kTable && !types.rows.empty()) {
        output.say("");
        output.show_rows(types);
    }
    return output.finish(kExitOk);
}

}  // namespace dibs::ctl
