// broker/journal/state_text.cpp -- writes rows as JSON, one function per table.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/state_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "broker/core/store/row_states.hpp"
#include "broker/journal/journal_error.hpp"
#include "broker/journal/json_text.hpp"
#include "broker/journal/state_rows.hpp"

namespace dibs::ctl {
namespace {

using core::Core;

std::string none_text(std::string_view table,
                      const std::string& name,
                      const std::string& pool = "") {
    JsonText json;
    json.open_object();
    json.open_object(table);
    json.text(table == "lease" ? "claim" : table, name);
    if (!pool.empty()) json.text("pool", pool);
    json.text("state", "none");
    json.close_object();
    json.close_object();
    return json.line();
}

void write_time(JsonText& json, std::string_view key, uint64_t time_ns) {
    if (time_ns != shm::kNever) json.number(key, time_ns);
}

void write_slot_name(JsonText& json,
                     std::string_view key,
                     const shm::SlotRow& slot,
                     const NameTables& names) {
    const auto named = names.slots.find({slot.pool, slot.number});
    if (named != names.slots.end()) return json.text(key, named->second);
    json.number(key, slot.number);
}

void write_chain(JsonText& json, const Core& core, const NameTables& names, uint32_t first) {
    json.open_list("slots");
    for (uint32_t row = first; row != shm::kNoRow; row = core.slot(row).holder_next)
        write_slot_name(json, {}, core.slot(row), names);
    json.close_list();
}

std::string pool_line(const Core& core, const NameTables& names, uint32_t row) {
    const shm::PoolRow& pool = core.pool(row);
    JsonText json;
    json.open_object();
    json.open_object("pool");
    json.text("pool", names.pool(row));
    json.text("kind", pool.kind == shm::PoolKind::kCounted ? "counted" : "worker");
    json.text("state", pool_state_word(pool));
    json.number("slots", pool.slots);
    json.number("idle", pool.idle);
    json.number("reserved", pool.reserved);
    json.number("leased", pool.leased);
    json.number("recovering", pool.recovering);
    json.number("unknown", pool.unknown);
    json.number("queued", uint64_t{pool.waiting} + pool.confirming);
    json.number("waiting", pool.waiting);
    json.number("confirming", pool.confirming);
    json.number("unconfirmed", pool.unconfirmed);
    json.number("last_dispatch_ns", pool.last_dispatch_ns);
    json.signed_number("demand", pool.demand_published);
    json.number("accepted", pool.accepted_total);
    json.number("granted", pool.granted_total);
    json.number("requeued", pool.requeued_total);
    json.number("expired", pool.expired_total);
    json.number("cancelled", pool.cancelled_total);
    json.number("rejected", pool.rejected_total);
    json.number("turned_away", pool.turned_away_total);
    json.number("released", pool.released_total);
    json.number("refused", pool.refused_total);
    json.number("hits", pool.hit_total);
    json.number("skipped", pool.skipped_total);
    json.number("unqualified", pool.unqualified_total);
    const uint64_t until_ns = pool.saturated_until_ns;
    if (until_ns > core.now()) json.number("saturated_until_ns", until_ns);
    json.number("kills", pool.kills_total);
    json.number("kills_failed", pool.kills_failed_total);
    write_elastic(json, core, row);
    if (pool.resources_count != 0) {
        json.number("shared", pool.shared);
        json.number("parts", pool.parts);
    }
    json.open_list("ready");
    for (uint32_t slot = pool.ready_head; slot != shm::kNoRow; slot = core.slot(slot).ready_next) {
        write_slot_name(json, {}, core.slot(slot), names);
    }
    json.close_list();
    json.close_object();
    json.close_object();
    return json.line();
}

void write_slot_holder(JsonText& json,
                       const Core& core,
                       const NameTables& names,
                       const shm::SlotRow& slot) {
    if (slot.holder == shm::kNoRow) return;
    if (slot.state == shm::SlotState::kReserved) {
        json.text("claim", names.claim(core.claim(slot.holder).arrival));
    } else {
        json.text("claim", names.claim(core.lease(slot.holder).arrival));
    }
}

void write_attributes(JsonText& json, const Core& core, const shm::SlotRow& slot) {
    if (slot.attributes == shm::kNoRow) return;
    std::string bytes(slot.attributes_size, '\0');
    core.copy_chain(
        slot.attributes, slot.attributes_size, reinterpret_cast<std::byte*>(bytes.data()));
    json.open_list("attributes");
    for (size_t place = 0; place < bytes.size();) {
        const std::string attribute = bytes.c_str() + place;
        json.text({}, attribute);
        place += attribute.size() + 1;
    }
    json.close_list();
}

bool by_account(const Core& core, uint32_t pool) {
    return core.pool(pool).order == shm::PoolOrder::kAccount;
}

std::string_view claim_state_word(const shm::ClaimRow& claim) {
    if (claim.state == shm::ClaimState::kReserved) return "confirming";
    if (claim.state == shm::ClaimState::kRunning) return "running";
    if (claim.state == shm::ClaimState::kHeld) return "held";
    if ((claim.flags & shm::ClaimFlag::kLocked) != 0) return "locked";
    return claim.state == shm::ClaimState::kPromised ? "promised" : "waiting";
}

std::string_view account_name(const Core& core, uint32_t row) {
    return {core.account(row).name, core.account(row).name_size};
}

void write_money(JsonText& json,
                 std::string_view key,
                 const std::array<int64_t, shm::kClasses>& money) {
    json.open_list(key);
    for (const int64_t amount : money)
        json.signed_number({}, amount);
    json.close_list();
}

void write_account_terms(JsonText& json, const Core& core, uint32_t row) {
    const shm::ClaimRow& claim = core.claim(row);
    if (claim.account != shm::kNoRow) json.text("account", account_name(core, claim.account));
    json.number("class", core.class_of(row));
    json.number("enqueued_ns", claim.enqueued_ns);
    json.number("confirmed_ns", claim.confirmed_ns);
    json.number("examined_ns", core.examined_ns(row));
    const std::string_view error = core.claim_error(claim.arrival);
    if (!error.empty()) json.text("error", error);
}

void write_reported(JsonText& json, const Core& core, const NameTables& names, uint32_t row) {
    const uint64_t aborted = core.slot(row).worker_tag;
    const bool is_reported = core.slot(row).session == shm::kNoRow &&
                             core.pool(core.slot(row).pool).kind == shm::PoolKind::kWorker;
    const bool aborts = is_reported && aborted != 0;
    if (aborts) json.text("abort", names.claim(aborted));
    json.open_list("labels");
    for (std::string_view text = core.slot_labels(row); !text.empty();) {
        const size_t end = text.find('\0');
        json.text({}, text.substr(0, end));
        text.remove_prefix(end + 1);
    }
    json.close_list();
    json.number("confirmed_ns", core.slot(row).confirmed_ns);
    json.number("modified_ns", core.slot(row).modified_ns);
}

std::string slot_line(const Core& core, const NameTables& names, uint32_t row) {
    const shm::SlotRow& slot = core.slot(row);
    const auto flag = [&](uint8_t bit) { return (slot.flags & bit) != 0; };
    JsonText json;
    json.open_object();
    json.open_object("slot");
    write_slot_name(json, "slot", slot, names);
    json.text("pool", names.pool(slot.pool));
    json.number("number", slot.number);
    json.text("state", slot_state_word(slot.state));
    if (slot.session != shm::kNoRow) json.text("session", names.session(slot.session));
    write_slot_holder(json, core, names, slot);
    json.number("round", slot.round);
    json.number("fence", slot.fence);
    json.truth("protected", flag(shm::SlotFlag::kProtected));
    json.truth("unqualified", flag(shm::SlotFlag::kUnqualified));
    json.truth("draining", flag(shm::SlotFlag::kDraining));
    if (slot.behaviour == shm::Behaviour::kDrain) json.truth("drained", true);
    json.truth("confirmed", flag(shm::SlotFlag::kConfirmed));
    if (core::is_kept(slot)) json.number("kept_until_ns", slot.reserved_until_ns);
    write_placeholder(json, core, slot);
    write_attributes(json, core, slot);
    const auto resources = core.resources(slot.pool, row);
    const bool is_part = slot.part_of != shm::kNoRow;
    if (!resources.empty()) write_resources(json, is_part ? "resources" : "available", resources);
    if (by_account(core, slot.pool)) write_reported(json, core, names, row);
    json.close_object();
    json.close_object();
    return json.line();
}

std::string claim_line(const Core& core, const NameTables& names, uint32_t row) {
    const shm::ClaimRow& claim = core.claim(row);
    const bool confirming = claim.state == shm::ClaimState::kReserved;
    const bool ranked = core.pool(claim.pool).order == shm::PoolOrder::kPriority &&
                        claim.state == shm::ClaimState::kWaiting;
    const uint32_t position = ranked ? core.explain(row).position : shm::kNoRow;
    JsonText json;
    json.open_object();
    json.open_object("claim");
    json.text("claim", names.claim(claim.arrival));
    if (claim.session != shm::kNoRow) json.text("session", names.session(claim.session));
    json.text("pool", names.pool(claim.pool));
    json.text("state", position == 0 ? "held" : claim_state_word(claim));
    json.number("number", claim.arrival);
    json.number("units", claim.units);
    json.number("confirmed", claim.confirmed);
    json.number("attempts", claim.attempts);
    write_time(json, "deadline_ns", claim.deadline_ns);
    if (confirming) {
        json.number("reserved_until_ns", claim.reserved_until_ns);
        write_chain(json, core, names, claim.first_slot);
    }
    if (ranked) json.number("position", position);
    const bool several = (claim.flags & shm::ClaimFlag::kSeveral) != 0;
    if (several && claim.state == shm::ClaimState::kWaiting) {
        const core::Explanation why = core.explain(row);
        json.text("stopped_in", names.pool(why.pool));
        json.number("holds_back", why.holds_back);
    }
    if (by_account(core, claim.pool)) write_account_terms(json, core, row);
    write_member(json, core, claim);
    json.close_object();
    json.close_object();
    return json.line();
}

std::string_view lease_state_word(shm::LeaseState state) {
    constexpr std::string_view kWords[] = {
        "none", "live", "grace", "expired", "revoking", "killing"};
    return kWords[static_cast<size_t>(state)];
}

std::string lease_line(const Core& core, const NameTables& names, uint32_t row) {
    const shm::LeaseRow& lease = core.lease(row);
    const bool grace = lease.state == shm::LeaseState::kGrace;
    JsonText json;
    json.open_object();
    json.open_object("lease");
    json.text("claim", names.claim(lease.arrival));
    json.text("session", names.session(lease.session));
    json.text("pool", names.pool(lease.pool));
    json.text("state", lease_state_word(lease.state));
    write_chain(json, core, names, lease.first_slot);
    json.number("fence", lease.fence);
    json.number("granted_ns", lease.granted_ns);
    json.number("kept_ns", lease.kept_ns);
    json.number("interval_ns", lease.interval_ns);
    write_time(json, "expires_ns", lease.expires_ns);
    const bool revoking = lease.state == shm::LeaseState::kRevoking;
    if (grace || revoking) json.number("grace_until_ns", lease.grace_until_ns);
    if (lease.state == shm::LeaseState::kKilling) {
        json.truth("kill_failed", (lease.flags & shm::LeaseFlag::kKillFailed) != 0);
    }
    if ((lease.flags & shm::LeaseFlag::kByWord) != 0) json.truth("by_word", true);
    if (const std::string meta = core::Look::meta_of_lease(core, row); !meta.empty())
        json.text("meta", meta);
    if (lease.first_slot != shm::kNoRow && core.slot(lease.first_slot).part_of != shm::kNoRow) {
        write_resources(json, "resources", core.resources(lease.pool, lease.first_slot));
    }
    if (by_account(core, lease.pool)) {
        if (lease.account != shm::kNoRow) json.text("account", account_name(core, lease.account));
        json.number("class", lease.account_class);
        write_money(json, "cost_micros", core.cost(row));
    }
    json.close_object();
    json.close_object();
    return json.line();
}

std::string account_line(const Core& core, uint32_t row) {
    const shm::AccountRow& account = core.account(row);
    const bool configured = (account.flags & shm::AccountFlag::kConfigured) != 0;
    JsonText json;
    json.open_object();
    json.open_object("account");
    json.text("account", account_name(core, row));
    json.text("state", configured ? "configured" : "known");
    write_money(json, "balance_micros", core.balance(row));
    json.open_list("running");
    for (const uint32_t slots : account.running)
        json.number({}, slots);
    json.close_list();
    json.number("place", row);
    json.close_object();
    json.close_object();
    return json.line();
}

std::string worker_line(const Core& core, const NameTables& names, uint32_t row) {
    const shm::SlotRow& slot = core.slot(row);
    const bool leased = slot.state == shm::SlotState::kLeased;
    JsonText json;
    json.open_object();
    json.open_object("worker");
    write_slot_name(json, "worker", slot, names);
    json.text("pool", names.pool(slot.pool));
    if (core::Look::is_dispatched(core, slot.pool)) {
        write_dispatched_worker(json, core, row);
    } else {
        const bool is_idle = slot.state == shm::SlotState::kIdle;
        json.text("state", leased ? "running" : is_idle ? "idle" : "unknown");
        write_slot_holder(json, core, names, slot);
        write_reported(json, core, names, row);
    }
    json.close_object();
    json.close_object();
    return json.line();
}

std::string session_line(const Core& core, const NameTables& names, uint32_t row) {
    const shm::SessionRow& session = core.session(row);
    JsonText json;
    json.open_object();
    json.open_object("session");
    json.text("session", names.session(row));
    const bool dying = session.state == shm::SessionState::kDying;
    const bool outlived = session.state == shm::SessionState::kOutlived;
    json.text("state", dying ? "dying" : outlived ? "outlived" : "open");
    json.number("uid", session.uid);
    json.number("pid", session.pid);
    json.number("claims", session.claims);
    json.number("leases", session.leases);
    json.number("slots", session.slots);
    json.close_object();
    json.close_object();
    return json.line();
}

}  // namespace

std::vector<std::string> state_text(const Core& core, const NameMap& map) {
    const NameTables& names = map.names();
    std::vector<std::string> lines = {broker_text(core)};
    for (uint32_t row = 0; row < core.pools(); ++row) {
        if (!core.pool_lives(row)) continue;
        lines.push_back(pool_line(core, names, row));
    }
    for (uint32_t row : slot_rows(core))
        lines.push_back(slot_line(core, names, row));
    for (uint32_t row : claim_rows(core))
        lines.push_back(claim_line(core, names, row));
    add_applications(core, names, &lines);
    add_entries(core, names, &lines);
    for (uint32_t row : lease_rows(core))
        lines.push_back(lease_line(core, names, row));
    for (uint32_t row = 0; row < core.sessions_max(); ++row) {
        if (core.session(row).state == shm::SessionState::kFree) continue;
        lines.push_back(session_line(core, names, row));
    }
    for (uint32_t row = 0; row < core.accounts_max(); ++row) {
        if (core.account(row).state != 0) lines.push_back(account_line(core, row));
    }
    return lines;
}

std::string broker_text(const Core& core) {
    const shm::StateHead& head = core.head();
    const auto& place = head.table[static_cast<uint32_t>(shm::Table::kCounters)];
    const auto& counters = *reinterpret_cast<const shm::CountersRow*>(
        reinterpret_cast<const std::byte*>(&head) + place.offset);
    JsonText json;
    json.open_object();
    json.open_object("broker");
    json.number("now_ns", core.now());
    write_time(json, "next_due_ns", core.next_turn());
    json.truth("draining", core.draining());
    json.number("sessions_free", counters.sessions_free);
    json.number("slots_free", counters.slots_free);
    json.number("claims_free", counters.claims_free);
    json.number("leases_free", counters.leases_free);
    json.number("arena_free", uint64_t{counters.arena_free} + counters.arena_freed);
    json.close_object();
    json.close_object();
    return json.line();
}

std::string pool_text(const Core& core, const NameMap& map, const std::string& pool) {
    const uint32_t row = core.find_pool(pool);
    if (row == shm::kNoRow) return none_text("pool", pool);
    return pool_line(core, map.names(), row);
}

std::string slot_text(const Core& core,
                      const NameMap& map,
                      const std::string& pool,
                      const std::string& slot) {
    if (const NameMap::Slot* named = map.find_slot(slot); named != nullptr) {
        const uint32_t row = core::row_of(named->id);
        const bool there = !named->id.is_none() && core.slot(row).state != shm::SlotState::kFree &&
                           core.slot(row).head.generation == core::generation_of(named->id);
        return there ? slot_line(core, map.names(), row) : none_text("slot", slot);
    }
    const uint32_t pool_row = core.find_pool(pool);
    if (pool_row == shm::kNoRow) throw JournalError("there is no slot \"" + slot + "\"");
    for (uint32_t row : slot_rows(core)) {
        if (slot_is(core.slot(row), pool_row, slot)) return slot_line(core, map.names(), row);
    }
    return none_text("slot", slot);
}

std::string claim_text(const Core& core,
                       const NameMap& map,
                       const std::string& claim,
                       const std::string& pool) {
    const uint64_t number = map.claim(claim).number;
    for (uint32_t row : claim_rows(core)) {
        if (core.claim(row).arrival != number || is_other(core, core.claim(row), row, pool))
            continue;
        return claim_line(core, map.names(), row);
    }
    return none_text("claim", claim);
}

std::string lease_text(const Core& core,
                       const NameMap& map,
                       const std::string& claim,
                       const std::string& pool) {
    const uint64_t number = map.claim(claim).number;
    for (uint32_t row : lease_rows(core)) {
        if (core.lease(row).arrival != number || is_other(core, core.lease(row), row, pool))
            continue;
        return lease_line(core, map.names(), row);
    }
    return none_text("lease", claim);
}

std::string account_text(const Core& core, const std::string& account) {
    const uint32_t row = core.find_account(account);
    if (row == shm::kNoRow) return none_text("account", account);
    return account_line(core, row);
}

std::string worker_text(const Core& core,
                        const NameMap& map,
                        const std::string& pool,
                        const std::string& worker) {
    const uint32_t pool_row = core.find_pool(pool);
    if (pool_row == shm::kNoRow) throw JournalError("there is no pool \"" + pool + "\"");
    const uint32_t row = core.find_slot(pool_row, worker);
    if (row != shm::kNoRow) return worker_line(core, map.names(), row);
    return none_text("worker", worker, pool);
}

std::string session_text(const Core& core, const NameMap& map, const std::string& session) {
    const NameMap::Session* named = map.find_session(session);
    if (named == nullptr) throw JournalError("there is no session \"" + session + "\"");
    const shm::SessionRow& row = core.session(named->row);
    const bool there =
        row.state != shm::SessionState::kFree && map.names().session(named->row) == session;
    return there ? session_line(core, map.names(), named->row) : none_text("session", session);
}

}  // namespace dibs::ctl
