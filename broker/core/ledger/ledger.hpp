// broker/core/ledger/ledger.hpp -- keeps accounts, their money and limits, and what runs cost them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "broker/core/match/account_book.hpp"
#include "broker/core/module.hpp"

namespace dibs::core {

struct Ledger : Module<Ledger> {
    explicit Ledger(const State& rows) : Module(rows) {}

    // accounts.cpp
    AccountBook& open_book();
    bool set_account(const AccountConfig& config, std::string* why);
    void delete_account(std::string_view name);
    bool reset_balance(std::string_view name, std::span<const int64_t> balance, std::string* why);
    [[nodiscard]] uint32_t find_account(std::string_view name) const;
    void index_account(uint32_t account);
    [[nodiscard]] static std::string account_name_refusal(std::string_view name);
    uint32_t make_account(std::string_view name);
    void learn_account(uint32_t account);
    // The account of that name, or `otherwise` if it is empty; used once more. kNoRow: no room.
    uint32_t hold_account(std::string_view name, uint32_t otherwise);
    void release_account(uint32_t account);
    [[nodiscard]] int64_t balance_at(uint32_t account, uint32_t at_class) const;
    [[nodiscard]] uint64_t used_us(uint32_t account) const;
    void pay(uint32_t account, const Cost& amount, bool refund);
    void step_accounts();
    [[nodiscard]] uint8_t best_class(uint32_t account) const;

    // runs.cpp
    [[nodiscard]] bool cheaper(uint32_t left, uint32_t right) const;
    [[nodiscard]] Cost cost_of(uint32_t lease) const;
    [[nodiscard]] bool may_be_preempted(uint32_t lease) const;
    void list_lease(uint32_t lease, bool in);
    void begin_run(uint32_t claim, uint32_t lease);
    void end_run(uint32_t lease);
    void after_run(uint32_t claim, bool again);

    // reprioritisation.cpp
    void begin_watch(uint32_t pool);
    bool reprioritise();

  private:
    // accounts.cpp
    void learn_movements(uint32_t account);
    void watch_account(uint32_t account);
    void forget_unused_account(uint32_t account);
    shm::AccountRow& settle(uint32_t account);
    void count_at(uint32_t account, shm::AccountRow* row, uint8_t at_class, int32_t units);
    void count_run(uint32_t account, uint8_t at_class, int32_t units);
    void count_move(uint32_t account, uint8_t from, uint8_t to, int32_t units);

    // runs.cpp
    class ClassLists;
    void move_class(uint32_t lease, uint8_t to);

    // reprioritisation.cpp
    [[nodiscard]] uint64_t quiet_us(const Tenant& tenant) const;
    void look_at_stale_tenants(uint32_t pool);
    void look_at_tenant(uint32_t pool, uint32_t tenant);
    bool reprioritise_account(uint32_t account, uint32_t tenant);
    [[nodiscard]] bool may_be_promoted(uint32_t lease) const;
};

}  // namespace dibs::core
