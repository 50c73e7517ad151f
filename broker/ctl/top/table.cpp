// broker/ctl/top/table.cpp -- turns facts into tables.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/top/table.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "broker/ctl/admin/account_sheet.hpp"
#include "broker/ctl/admin/listing.hpp"
#include "broker/ctl/admin/row_order.hpp"
#include "broker/ctl/top/bar.hpp"

namespace dibs::ctl::top {

namespace {

constexpr size_t kBarWidth = 24;

std::string per_second(double rate) {
    char text[32];
    std::snprintf(text, sizeof(text), rate < 10 ? "%.1f" : "%.0f", rate);
    return text;
}

Table pool_table(const Facts& facts) {
    Table table{{"",
                 {{"", "POOL"},
                  {"", "SLOTS"},
                  {"", "LEASED"},
                  {"", "OF"},
                  {"", "WAITING"},
                  {"", "OLDEST", 1},
                  {"", "GRANTS/S", 2},
                  {"", ""}}},
                {}};
    bool drains = false;
    for (const auto& pool : facts.pools) {
        const auto rate = facts.granted_per_second.find(pool->name);
        const bool known = rate != facts.granted_per_second.end();
        drains = drains || pool->draining;
        table.sheet.rows.push_back(
            {Cell::of(pool->name),
             Cell::of(bar(*pool, kBarWidth)),
             Cell::of(leased_slots(*pool)),
             Cell::of(pool->slots),
             Cell::of(pool->waiting),
             pool->waiting != 0 ? Cell::duration(pool->oldest_wait_ns) : Cell(),
             known ? Cell::of(per_second(rate->second)) : Cell(),
             pool->draining ? Cell::of("draining") : Cell::of(" ")});
        table.names.push_back(pool->name);
    }
    if (drains) table.sheet.columns.back().title = "STATE";
    return table;
}

Table account_table(const Facts& facts) {
    std::vector<const admin::AccountT*> told;
    std::vector<std::string> names;
    for (const auto& account : facts.accounts) {
        told.push_back(account.get());
        names.push_back(account->name);
    }
    return {account_sheet(facts.accounts, told), std::move(names)};
}

Table claim_table(const Facts& facts) {
    Table table{claim_sheet(facts.claims, facts.from), {}};
    table.sheet.rows.resize(std::min(table.sheet.rows.size(), kReasonsMost));
    table.sheet.columns.push_back({"", "REASON"});
    for (size_t i = 0; i < table.sheet.rows.size(); ++i) {
        const admin::ClaimT& claim = *facts.claims[i];
        const auto reason = facts.reasons.find(claim.number);
        const bool known = claim.full && reason != facts.reasons.end();
        table.sheet.rows[i].push_back(known ? Cell::of(reason->second) : Cell());
        table.names.push_back(claim.full ? number_text(Letter::kClaim, claim.number) : "");
    }
    return table;
}

Table lease_table(const Facts& facts, LeaseOrder order) {
    Table table{lease_sheet(facts.leases, facts.from), {}};
    if (order != LeaseOrder::kHeld) {
        const std::string by(word(order));
        sort_rows(&table.sheet, column_named(table.sheet, by), false);
    }
    for (const std::vector<Cell>& row : table.sheet.rows) {
        const Cell& number = row.front();
        const bool known = number.kind == Cell::Kind::kNamed;
        table.names.push_back(known ? number_text(Letter::kLease, number.number) : "");
    }
    return table;
}

}  // namespace

std::string_view word(LeaseOrder order) {
    static constexpr std::string_view kWords[] = {"held", "user", "pool", "command"};
    return kWords[static_cast<size_t>(order)];
}

std::array<Table, kParts> tables(const Facts& facts, LeaseOrder order) {
    return {pool_table(facts), account_table(facts), claim_table(facts), lease_table(facts, order)};
}

}  // namespace dibs::ctl::top
