// broker/ctl/admin/listing.cpp -- fills the columns and cells of each kind of row.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/admin/listing.hpp"

#include <algorithm>
#include <string>

#include "broker/config/quantity.hpp"
#include "broker/ctl/output/who.hpp"

namespace dibs::ctl {

std::string amounts_text(const std::vector<std::string>& names,
                         const std::vector<uint64_t>& counts) {
    std::string text;
    for (size_t at = 0; at < std::min(names.size(), counts.size()); ++at)
        text += (at == 0 ? "" : " ") + names[at] + "=" + show_amount(counts[at]);
    return text;
}

namespace {

constexpr std::string_view kOwnAccount = "uid:";

// What is another user's: not known, rather than 0.
template <class T>
Cell seen(bool full, const T& value) {
    return full ? Cell::of(value) : Cell();
}

Cell seen_id(bool full, Letter letter, uint64_t id) {
    return full ? Cell::identifier(letter, id) : Cell();
}

Cell seen_number(bool full, Letter letter, uint64_t number) {
    return full ? Cell::numbered(letter, number) : Cell();
}

Cell seen_duration(bool full, uint64_t ns) {
    return full ? Cell::duration(ns) : Cell();
}

Cell since(const Viewpoint& from, uint64_t age_ns) {
    return Cell::instant(from.wall_ns - std::min(from.wall_ns, age_ns));
}

// Where the account is the user's own it names the user of rows that show no more.
Cell seen_user(bool full, uint32_t uid, std::string_view account) {
    if (full) return Cell::of(user_name(uid));
    if (!account.starts_with(kOwnAccount)) return {};
    const auto number = parse_number(account.substr(kOwnAccount.size()), {0, UINT32_MAX - 1});
    return number ? Cell::of(user_name(static_cast<uint32_t>(*number))) : Cell();
}

// Of a process of the broker's machine that has gone, or that is not seen from here: not known.
Cell seen_command(const Viewpoint& from, bool full, uint32_t pid) {
    const std::string name = full && from.processes ? command_name(pid) : "";
    return name.empty() ? Cell() : Cell::of(name);
}

std::vector<uint64_t> numbers(const std::vector<uint32_t>& narrow) {
    return {narrow.begin(), narrow.end()};
}

std::string use(uint32_t used, uint32_t most) {
    return std::to_string(used) + " of " + std::to_string(most);
}

}  // namespace

Sheet status_sheet(const admin::StatusT& status, const std::string& socket) {
    Sheet sheet{"dibs.status/1",
                {{"socket", "socket"},
                 {"pid", "pid"},
                 {"version", "version"},
                 {"layout", ""},
                 {"epoch", "epoch"},
                 {"uptime_ns", "up"},
                 {"draining", "draining"},
                 {"stops_in_ns", "stops within"},
                 {"admin", "you administer"},
                 {"turns", "turns"},
                 {"", "sessions"},
                 {"", "pools"},
                 {"", "slots"},
                 {"", "claims waiting"},
                 {"", "leases"},
                 {"", "arena blocks"},
                 {"sessions", ""},
                 {"sessions_max", ""},
                 {"pools", ""},
                 {"pools_max", ""},
                 {"slots", ""},
                 {"slots_max", ""},
                 {"claims", ""},
                 {"claims_max", ""},
                 {"leases", ""},
                 {"leases_max", ""},
                 {"arena_blocks", ""},
                 {"arena_blocks_max", ""},
                 {"hardening", "restricted by"}}};
    sheet.rows.push_back({Cell::of(socket),
                          Cell::of(status.pid),
                          Cell::of(status.version),
                          Cell::of(status.layout),
                          Cell::of(status.epoch),
                          Cell::duration(status.uptime_ns),
                          Cell::of(status.draining),
                          status.stopping && status.stops_in_ns != shm::kNever
                              ? Cell::duration(status.stops_in_ns)
                              : Cell(),
                          Cell::of(status.is_admin),
                          Cell::of(status.turns),
                          Cell::of(use(status.sessions, status.sessions_max)),
                          Cell::of(use(status.pools, status.pools_max)),
                          Cell::of(use(status.slots, status.slots_max)),
                          Cell::of(use(status.claims, status.claims_max)),
                          Cell::of(use(status.leases, status.leases_max)),
                          Cell::of(use(status.arena_blocks, status.arena_blocks_max)),
                          Cell::of(status.sessions),
                          Cell::of(status.sessions_max),
                          Cell::of(status.pools),
                          Cell::of(status.pools_max),
                          Cell::of(status.slots),
                          Cell::of(status.slots_max),
                          Cell::of(status.claims),
                          Cell::of(status.claims_max),
                          Cell::of(status.leases),
                          Cell::of(status.leases_max),
                          Cell::of(status.arena_blocks),
                          Cell::of(status.arena_blocks_max),
                          Cell::of(status.hardening)});
    return sheet;
}

Sheet pool_sheet(const std::vector<std::unique_ptr<admin::PoolT>>& pools) {
    Sheet sheet{"dibs.pools/1",
                {{"pool", "POOL"},
                 {"kind", "KIND", 5},
                 {"draining", "DRAINING", 9},
                 {"slots", "SLOTS", 2},
                 {"idle", "IDLE"},
                 {"leased", "LEASED", 1},
                 {"parked", "PARKED", 4},
                 {"shared", "SHARED", 9},
                 {"reserved", "RESERVED", 7},
                 {"recovering", "RECOVERING", 6},
                 {"unknown", ""},
                 {"ordered", ""},
                 {"waiting", "WAITING"},
                 {"confirming", ""},
                 {"oldest_wait_ns", "OLDEST WAIT", 3},
                 {"oldest_lease_ns", "OLDEST LEASE", 4},
                 {"last_grant_ns", ""},
                 {"accepted", ""},
                 {"granted", "GRANTED", 8},
                 {"hits", ""},
                 {"expired", ""},
                 {"cancelled", ""},
                 {"rejected", ""},
                 {"turned_away", ""},
                 {"released", ""},
                 {"refused", ""},
                 {"units_max", ""},
                 {"backlog_max", ""},
                 {"interval_max_ns", ""},
                 {"grace_ns", ""},
                 {"reservation_ttl_ns", ""},
                 {"quantum_ns", ""},
                 {"resources", ""}}};
    for (const auto& row : pools) {
        const bool waits = row->waiting != 0;
        const bool held = row->leased != 0;
        const bool has_vector = !row->resources.empty();
        sheet.rows.push_back({Cell::of(row->name),
                              Cell::of(row->kind),
                              Cell::of(row->draining),
                              Cell::of(row->slots),
                              Cell::of(row->idle),
                              Cell::of(row->leased),
                              Cell::of(row->parked),
                              Cell::of(row->shared),
                              Cell::of(row->reserved),
                              Cell::of(row->recovering),
                              Cell::of(row->unknown),
                              row->elastic ? Cell::of(row->elastic->ordered) : Cell(),
                              Cell::of(row->waiting),
                              Cell::of(row->confirming),
                              seen_duration(waits, row->oldest_wait_ns),
                              seen_duration(held, row->oldest_lease_ns),
                              Cell::duration(row->last_grant_ns),
                              Cell::of(row->accepted),
                              Cell::of(row->granted),
                              Cell::of(row->hits),
                              Cell::of(row->expired),
                              Cell::of(row->cancelled),
                              Cell::of(row->rejected),
                              Cell::of(row->turned_away),
                              Cell::of(row->released),
                              Cell::of(row->refused),
                              Cell::of(row->units_max),
                              Cell::of(row->backlog_max),
                              Cell::duration(row->interval_max_ns),
                              Cell::duration(row->grace_ns),
                              Cell::duration(row->reservation_ttl_ns),
                              Cell::duration(row->quantum_ns),
                              seen(has_vector, amounts_text(row->resources, row->capacity))});
    }
    return sheet;
}

void add_elastic(const admin::ElasticT& elastic, Sheet types, Sheet* pool) {
    const std::pair<std::string_view, Cell> cells[] = {
        {"workers_max", Cell::of(elastic.workers_max)},
        {"workers_min", Cell::of(elastic.workers_min)},
        {"spare", Cell::of(elastic.spare)},
        {"idle_timeout_ns", Cell::duration(elastic.idle_timeout_ns)},
        {"boot_timeout_ns", Cell::duration(elastic.boot_timeout_ns)},
        {"limit", Cell::of(elastic.limit)},
        {"headroom", Cell::of(elastic.headroom)},
        {"at_quota", Cell::of(elastic.at_quota)},
        {"quota_left_ns", seen_duration(elastic.quota_ns != 0, elastic.quota_ns)},
        {"quota_below", seen(elastic.quota_below != 0, elastic.quota_below)},
        {"types", Cell::of(std::move(types))}};
    for (const auto& [key, cell] : cells) {
        pool->columns.push_back({key, key});
        pool->rows.front().push_back(cell);
    }
}

Sheet type_sheet(const std::vector<std::unique_ptr<admin::TypeT>>& types) {
    Sheet sheet{"dibs.types/1",
                {{"pool", "POOL"},
                 {"type", "TYPE"},
                 {"cost", "COST", 5},
                 {"provisioner", "PROVISIONER"},
                 {"account", ""},
                 {"uid", ""},
                 {"user", "USER", 3},
                 {"pid", "PID", 4},
                 {"ordered", "ORDERED"},
                 {"workers", "WORKERS"},
                 {"capacity_left_ns", "AT CAPACITY", 1},
                 {"failed_left_ns", "FAILED", 2},
                 {"going", ""}}};
    for (const auto& row : types) {
        sheet.rows.push_back({Cell::of(row->pool),
                              Cell::of(row->name),
                              Cell::of(row->cost),
                              seen(row->full, row->client),
                              seen(row->provided, row->account),
                              seen(row->full, row->uid),
                              seen_user(row->full, row->uid, row->account),
                              seen(row->full, row->pid),
                              Cell::of(row->ordered),
                              Cell::of(row->workers),
                              seen_duration(row->capacity_ns != 0, row->capacity_ns),
                              seen_duration(row->failed_ns != 0, row->failed_ns),
                              Cell::of(row->going)});
    }
    return sheet;
}

Sheet set_sheet(const std::vector<std::unique_ptr<admin::SetT>>& sets) {
    Sheet sheet{"dibs.sets/1",
                {{"set", "SET"},
                 {"pools", "POOLS"},
                 {"rank", "RANK"},
                 {"ranked", ""},
                 {"saturated", "SATURATED"},
                 {"left_out", "LEFT OUT"}}};
    for (const auto& row : sets) {
        std::vector<std::string> left_out;
        for (size_t at = 0; at < std::min(row->pools.size(), row->left_out.size()); ++at) {
            const std::string& why = row->left_out[at];
            if (!why.empty()) left_out.push_back(row->pools[at] + " " + why);
        }
        sheet.rows.push_back({Cell::of(row->name),
                              Cell::of(row->pools),
                              Cell::of(row->rank),
                              Cell::of(row->ranked),
                              Cell::of(row->saturated),
                              Cell::of(std::move(left_out))});
    }
    return sheet;
}

Sheet slot_sheet(const std::vector<std::unique_ptr<admin::SlotT>>& slots, const Viewpoint& from) {
    Sheet sheet{"dibs.slots/1",
                {{"id", "SLOT"},
                 {"pool", ""},
                 {"number", ""},
                 {"slot", ""},
                 {"state", "STATE"},
                 {"name", "NAME", 6},
                 {"holder", "HOLDER"},
                 {"account", "ACCOUNT", 2},
                 {"held_ns", "HELD", 1},
                 {"holder_pid", "HOLDER PID", 5},
                 {"holder_command", "COMMAND", 5},
                 {"fence", "FENCE", 7},
                 {"worker", "WORKER", 4},
                 {"announcer_pid", "", 0},
                 {"round", "", 0},
                 {"protected", "", 0},
                 {"unqualified", "", 0},
                 {"draining", "", 0},
                 {"drained", "", 0},
                 {"attributes", "ATTRIBUTES", 3},
                 {"resources", "RESOURCES", 3},
                 {"type", ""},
                 {"held", ""},
                 {"application", "APPLICATION", 1},
                 {"group", "GROUP", 1}}};
    for (const auto& row : slots) {
        const bool rests = row->account.empty() && row->state == "recovering";
        const bool held = !row->account.empty();
        const bool known = held && row->holder != 0;
        const bool has_worker = !row->worker.empty();
        const bool has_vector = !row->resources.empty();
        sheet.rows.push_back({Cell::of(row->pool + "/" + std::to_string(row->number)),
                              Cell::of(row->pool),
                              Cell::of(row->number),
                              seen_id(row->full, Letter::kSlot, row->id),
                              Cell::of(rests && row->drained ? "drained"
                                       : rests && row->held  ? "held"
                                                             : row->state),
                              seen(row->full && !row->name.empty(), row->name),
                              seen_number(known, Letter::kLease, row->holder),
                              seen(held, row->account),
                              seen_duration(held && row->held_ns != 0, row->held_ns),
                              seen(known, row->holder_pid),
                              seen_command(from, known, row->holder_pid),
                              seen(known && row->fence != 0, row->fence),
                              seen(has_worker, row->worker),
                              seen(has_worker, row->worker_pid),
                              seen(row->full, row->round),
                              seen(row->full, row->protected_),
                              seen(row->full, row->unqualified),
                              seen(row->full, row->draining),
                              Cell::of(row->drained),
                              seen(row->full, row->attributes),
                              seen(has_vector, amounts_text(row->resources, row->amounts)),
                              seen(!row->type.empty(), row->type),
                              Cell::of(row->held),
                              seen(!row->application.empty(), row->application),
                              seen(!row->group.empty(), row->group)});
    }
    return sheet;
}

Sheet claim_sheet(const std::vector<std::unique_ptr<admin::ClaimT>>& claims,
                  const Viewpoint& from) {
    Sheet sheet{"dibs.claims/1",
                {{"number", "CLAIM"},
                 {"id", ""},
                 {"pool", "POOL"},
                 {"state", "STATE", 7},
                 {"position", "POSITION", 1},
                 {"units", "UNITS", 6},
                 {"age_ns", "WAITS"},
                 {"since", "SINCE", 9},
                 {"left_ns", "LEFT", 5},
                 {"account", "ACCOUNT", 4},
                 {"uid", ""},
                 {"user", "USER", 2},
                 {"pid", "PID", 3},
                 {"command", "COMMAND", 3},
                 {"client", "CLIENT", 8},
                 {"attempts", ""},
                 {"has_key", ""},
                 {"meta", "META", 9},
                 {"application", "APPLICATION", 5},
                 {"task", "TASK", 5},
                 {"group", "GROUP", 9}}};
    for (const auto& row : claims) {
        const bool full = row->full;
        sheet.rows.push_back({seen_number(full, Letter::kClaim, row->number),
                              seen_id(full, Letter::kClaim, row->id),
                              Cell::of(row->pool),
                              seen(full, row->state),
                              seen(full && row->position != 0, row->position),
                              seen(full, row->units),
                              Cell::duration(row->age_ns),
                              since(from, row->age_ns),
                              seen_duration(full, row->left_ns),
                              Cell::of(row->account),
                              seen(full, row->uid),
                              seen_user(full, row->uid, row->account),
                              seen(full && row->pid != 0, row->pid),
                              seen_command(from, full && row->pid != 0, row->pid),
                              seen(full && !row->client.empty(), row->client),
                              seen(full, row->attempts),
                              seen(full, row->has_key),
                              row->meta.empty() ? Cell() : Cell::of(row->meta),
                              seen(!row->application.empty(), row->application),
                              seen(!row->task.empty(), row->task),
                              seen(!row->group.empty(), row->group)});
    }
    return sheet;
}

Sheet lease_sheet(const std::vector<std::unique_ptr<admin::LeaseT>>& leases,
                  const Viewpoint& from) {
    Sheet sheet{
        "dibs.leases/1",
        {{"number", "LEASE"},     {"id", "ID", 10},  // that of DIBS_LEASE
         {"pool", "POOL"},        {"state", "STATE", 7},     {"slots", "SLOTS", 3},
         {"units", ""},           {"age_ns", "HELD"},        {"since", "SINCE", 9},
         {"left_ns", "LEFT", 6},  {"account", "ACCOUNT", 4}, {"uid", ""},
         {"user", "USER", 2},     {"pid", "PID", 1},         {"command", "COMMAND", 3},
         {"client", "CLIENT", 8}, {"fence", "FENCE", 5},     {"interval_ns", ""},
         {"kept_ns", ""},         {"meta", "META", 11},      {"application", "APPLICATION", 6},
         {"task", "TASK", 6},     {"group", "GROUP", 11}}};
    for (const auto& row : leases) {
        const bool full = row->full;
        sheet.rows.push_back({seen_number(full, Letter::kLease, row->number),
                              seen_id(full, Letter::kLease, row->id),
                              Cell::of(row->pool),
                              seen(full, row->state),
                              seen(full, numbers(row->slots)),
                              seen(full, row->units),
                              Cell::duration(row->age_ns),
                              since(from, row->age_ns),
                              seen_duration(full, row->left_ns),
                              Cell::of(row->account),
                              seen(full, row->uid),
                              seen_user(full, row->uid, row->account),
                              seen(full, row->pid),
                              seen_command(from, full, row->pid),
                              seen(full, row->client),
                              seen(full, row->fence),
                              seen_duration(full, row->interval_ns),
                              seen_duration(full, row->kept_ns),
                              row->meta.empty() ? Cell() : Cell::of(row->meta),
                              seen(!row->application.empty(), row->application),
                              seen(!row->task.empty(), row->task),
                              seen(!row->group.empty(), row->group)});
    }
    return sheet;
}

Sheet client_sheet(const std::vector<std::unique_ptr<admin::ClientT>>& clients,
                   bool workers,
                   const Viewpoint& from) {
    Sheet sheet{workers ? "dibs.workers/1" : "dibs.clients/1",
                {{"id", workers ? "WORKER" : "CLIENT"},
                 {"pid", "PID"},
                 {"user", "USER", 3},
                 {"command", "COMMAND", 4},
                 {"account", "ACCOUNT", 7},
                 {"age_ns", workers ? "SINCE" : "ATTACHED", 4},
                 {"state", "STATE", 5},
                 {"slots", "SLOTS", workers ? uint32_t{0} : uint32_t{6}},
                 {"claims", "CLAIMS", 1},
                 {"leases", "LEASES", 2},
                 {"uid", ""},
                 {"gid", ""}}};
    for (const auto& row : clients) {
        const bool full = row->full;
        const bool reported = !row->name.empty();
        const bool attached = full && !reported;
        sheet.rows.push_back({seen(attached, row->id),
                              seen(attached, row->pid),
                              seen_user(attached, row->uid, row->account),
                              seen_command(from, attached, row->pid),
                              seen(!row->account.empty(), row->account),
                              Cell::duration(row->age_ns),
                              seen(full, row->state),
                              seen(full, row->slots),
                              seen(full, row->claims),
                              seen(full, row->leases),
                              seen(attached, row->uid),
                              seen(attached, row->gid)});
        if (!workers) continue;
        sheet.rows.back().push_back(seen(reported, row->pool));
        sheet.rows.back().push_back(seen(reported, row->name));
    }
    // Of one that is known by reports.
    if (workers) sheet.columns.insert(sheet.columns.end(), {{"pool", "POOL", 6}, {"name", "NAME"}});
    return sheet;
}

}  // namespace dibs::ctl
