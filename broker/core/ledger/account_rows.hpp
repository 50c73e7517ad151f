// broker/core/ledger/account_rows.hpp -- holds what is derived of each account, by its row.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "broker/core/ledger/tenant.hpp"
#include "broker/core/store/index.hpp"
#include "broker/core/store/state.hpp"

namespace dibs::core {

struct AccountRows {
    explicit AccountRows(const State& state)
        : account_uses(state.accounts.size()),
          account_waits(state.accounts.size()),
          is_changed(state.accounts.size()),
          caps(state.accounts.size()),
          limits(state.accounts.size()),
          label_units(state.accounts.size()),
          limits_set(state.accounts.size(), 1),
          held_since(state.slots.size()),
          moving(state.accounts.size()),
          above_cap(state.accounts.size()),
          account_by_name(state.accounts.size()) {}

    std::vector<uint32_t> account_uses;
    std::vector<uint32_t> account_waits;  // claims
    std::vector<uint32_t> changed;        // those changed since they were last published
    std::vector<uint8_t> is_changed;
    std::vector<std::array<int64_t, shm::kClasses>> caps;
    std::vector<std::vector<LabelLimit>> limits;
    std::vector<std::unordered_map<uint64_t, uint32_t>> label_units;  // (pool, label) → slots held
    // How often its limits have been set, and, by slot row, as of which of these times the account
    // that holds the slot came to hold it. What it held before may be more than they allow;
    // check_all() asks for nothing else.
    std::vector<uint32_t> limits_set;
    std::vector<uint32_t> held_since;
    std::vector<uint8_t> moving;     // a bit for each class that earns or pays
    std::vector<uint8_t> above_cap;  // is stepped turn by turn
    std::vector<uint32_t> above;     // those rows
    Index account_by_name;
    uint64_t stepped_us = 0;  // time of the last opening

    void change_account(uint32_t account) {
        if (is_changed[account] != 0) return;
        is_changed[account] = 1;
        changed.push_back(account);
    }
    // The account comes to hold the slot, or to hold it at a class below free.
    void come_to_hold(uint32_t account, uint32_t slot) {
        if (account != shm::kNoRow) held_since[slot] = limits_set[account];
    }
    // What it holds, it held before them.
    void excuse_holdings(uint32_t account) { ++limits_set[account]; }
    void count_waiting(uint32_t account, int32_t claims) {
        if (account == shm::kNoRow) return;
        account_waits[account] += static_cast<uint32_t>(claims);
        change_account(account);
    }
};

}  // namespace dibs::core
