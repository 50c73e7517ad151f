// broker/ctl/admin/account_sheet.cpp -- lays out accounts in columns.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/admin/account_sheet.hpp"

#include <string>

namespace dibs::ctl {

namespace {

constexpr uint64_t kWhole = 1'000'000;

// In millionths; nothing where there is nothing to share.
Cell share(uint64_t part, unsigned __int128 whole) {
    if (whole == 0) return {};
    return Cell::of(static_cast<uint64_t>(static_cast<unsigned __int128>(part) * kWhole / whole));
}

// "33.3 %"
Cell percent(const Cell& millionths) {
    if (millionths.kind == Cell::Kind::kNothing) return {};
    const uint64_t tenths = (millionths.number + 500) / 1000;
    return Cell::of(std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %");
}

Cell class_of(const admin::AccountT& account) {
    if (!account.full) return {};
    if (account.class_now >= 5) return Cell::of("free");
    return Cell::of("P" + std::to_string(account.class_now));
}

std::vector<std::string> limits_of(const admin::AccountT& account) {
    std::vector<std::string> limits;
    for (size_t i = 0; i < account.label_keys.size() && i < account.label_limits.size(); ++i) {
        limits.push_back(account.label_keys[i] + "=" + std::to_string(account.label_limits[i]));
    }
    return limits;
}

}  // namespace

Sheet account_sheet(const Accounts& all, const std::vector<const admin::AccountT*>& told) {
    unsigned __int128 rates = 0;
    unsigned __int128 used = 0;
    for (const auto& account : all) {
        rates += account->rate_sum;
        used += account->used_us;
    }
    Sheet sheet{"dibs.accounts/1",
                {{"account", "ACCOUNT"},
                 {"configured", ""},
                 {"of_file", ""},
                 {"rate_micros", "RATE", 4},
                 {"", "SHARE"},
                 {"", "GOT"},
                 {"share_ppm", ""},
                 {"got_ppm", ""},
                 {"held", "SLOTS", 1},
                 {"waiting", "WAITING", 2},
                 {"class", "CLASS", 3},
                 {"balance_micros", "BALANCE", 5},
                 {"used_ns", "USED", 6},
                 {"counted_ns", ""},
                 {"running", ""},
                 {"charge_max_ns", ""},
                 {"fanout_max", ""},
                 {"free_tasks_disabled", ""},
                 {"label_limits", ""}}};
    for (const admin::AccountT* account : told) {
        const bool full = account->full;
        const Cell wanted = share(account->rate_sum, rates);
        const Cell got = share(account->used_us, used);
        const std::vector<uint64_t> running(account->running.begin(), account->running.end());
        sheet.rows.push_back({Cell::of(account->name),
                              Cell::of(account->configured),
                              Cell::of(account->of_file),
                              full ? Cell::money(account->rate) : Cell(),
                              percent(wanted),
                              percent(got),
                              wanted,
                              got,
                              Cell::of(account->held),
                              Cell::of(account->waiting),
                              class_of(*account),
                              full ? Cell::money(account->balance) : Cell(),
                              Cell::duration(account->used_us * 1000),
                              Cell::duration(account->counted_ns),
                              full ? Cell::of(running) : Cell(),
                              full ? Cell::duration(account->charge_max_ns) : Cell(),
                              full ? Cell::of(account->fanout_max) : Cell(),
                              full ? Cell::of(account->free_tasks_disabled) : Cell(),
                              full ? Cell::of(limits_of(*account)) : Cell()});
    }
    return sheet;
}

}  // namespace dibs::ctl
