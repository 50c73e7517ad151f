// broker/admin/desk_accounts.cpp -- lists, configures, resets and deletes accounts for admins.
//
// All users see names and shares, which are on the BOARD too; an account's balance and limits are
// shown to its own users and to administrators, and only administrators change them. An account may
// be deleted while it is in use.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "broker/admin/desk.hpp"
#include "broker/config/account_settings.hpp"

namespace dibs {

namespace AccountFlag = shm::AccountFlag;
using admin::Code;

namespace {

constexpr uint32_t kLimitsARow = 4;  // so many label limits take as much of an answer as a row

std::string name_of(const shm::AccountRow& account) {
    return {account.name, account.name_size};
}

bool is_configured(const shm::AccountRow& account) {
    return account.state != 0 && (account.flags & AccountFlag::kConfigured) != 0;
}

// As it is configured now.
AccountSettings settings_of(const core::Core& core, uint32_t row) {
    const shm::AccountRow& account = core.account(row);
    AccountSettings settings;
    settings.rate.assign(std::begin(account.rate), std::end(account.rate));
    settings.charge_max_ns = account.charge_max_ns;
    settings.fanout_max = account.fanout_max;
    settings.free_tasks_disabled = (account.flags & AccountFlag::kFreeTasksDisabled) != 0;
    settings.label_limits = core.label_limits(row);
    return settings;
}

void change_limit(AccountSettings& settings, const std::string& key, uint32_t limit) {
    std::erase_if(settings.label_limits, [&](const auto& known) { return known.first == key; });
    if (limit != shm::kNoRow) settings.label_limits.emplace_back(key, limit);
}

void apply_change(const admin::AccountChangeT& change, AccountSettings& settings) {
    if (change.rate_given) settings.rate = change.rate;
    if (change.balance_given) settings.balance = change.balance;
    if (change.charge_max_ns) settings.charge_max_ns = *change.charge_max_ns;
    if (change.fanout_max) settings.fanout_max = *change.fanout_max;
    if (change.free_tasks_disabled) settings.free_tasks_disabled = *change.free_tasks_disabled;
    const size_t limits = std::min(change.label_keys.size(), change.label_limits.size());
    for (size_t i = 0; i < limits; ++i)
        change_limit(settings, change.label_keys[i], change.label_limits[i]);
}

}  // namespace

std::unique_ptr<admin::AccountT> Desk::account_row(const AdminJob& job, uint32_t row) const {
    const shm::AccountRow& account = core_.account(row);
    auto told = std::make_unique<admin::AccountT>();
    told->name = ::dibs::name_of(account);
    told->configured = is_configured(account);
    told->of_file = (account.flags & AccountFlag::kOfFile) != 0;
    for (const int64_t rate : account.rate)
        told->rate_sum += static_cast<uint64_t>(rate);
    told->held = account.held;
    told->waiting = core_.waiting_of(row);
    told->used_us = core_.used_us(row);
    told->counted_ns = age(account.counted_since_ns);
    told->full = job.is_admin || quotas_.account_of(job.uid) == told->name;
    if (!told->full) return told;
    const auto balance = core_.balance(row);
    told->rate.assign(std::begin(account.rate), std::end(account.rate));
    told->balance.assign(balance.begin(), balance.end());
    told->running.assign(std::begin(account.running), std::end(account.running));
    told->class_now = core_.best_class(row);
    told->charge_max_ns = account.charge_max_ns;
    told->fanout_max = account.fanout_max;
    told->free_tasks_disabled = (account.flags & AccountFlag::kFreeTasksDisabled) != 0;
    for (const auto& [key, limit] : core_.label_limits(row)) {
        told->label_keys.push_back(key);
        told->label_limits.push_back(limit);
    }
    return told;
}

void Desk::accounts(AdminJob& job) const {
    if (!job.request.account.empty()) {
        const uint32_t row = core_.find_account(job.request.account);
        if (row == shm::kNoRow) return unknown_account(job);
        job.answer.accounts.push_back(account_row(job, row));
        return;
    }
    const uint32_t rows = core_.accounts_max();
    auto row = static_cast<uint32_t>(std::min<uint64_t>(job.request.cursor, rows));
    const uint32_t end = row + std::min(kRowsSeen, rows - row);
    for (uint32_t told = 0; row < end && told < kRowsTold; ++row) {
        if (core_.account(row).state == 0) continue;
        job.answer.accounts.push_back(account_row(job, row));
        told +=
            1 + static_cast<uint32_t>(job.answer.accounts.back()->label_keys.size()) / kLimitsARow;
    }
    job.answer.more = row < rows;
    job.answer.cursor = row;
}

void Desk::unknown_account(AdminJob& job) const {
    job.answer.code = Code::unknown_account;
    for (uint32_t row = 0; row < core_.accounts_max(); ++row) {
        if (job.answer.names.size() == kRowsTold) return;
        if (is_configured(core_.account(row))) {
            job.answer.names.push_back(::dibs::name_of(core_.account(row)));
        }
    }
}

uint32_t Desk::configured_account(AdminJob& job) const {
    const uint32_t row = core_.find_account(job.request.account);
    if (!job.is_admin) {
        job.answer.code = Code::denied;
        return shm::kNoRow;
    }
    if (row != shm::kNoRow && is_configured(core_.account(row))) return row;
    unknown_account(job);
    return shm::kNoRow;
}

// A new one, or one that is there: what the change does not name stays as it is.
void Desk::set_account(AdminJob& job) {
    if (!job.is_admin) {
        job.answer.code = Code::denied;
        return;
    }
    const uint32_t known = core_.find_account(job.request.account);
    const bool configured = known != shm::kNoRow && is_configured(core_.account(known));
    AccountSettings settings = configured ? settings_of(core_, known) : AccountSettings{};
    settings.name = job.request.account;
    if (job.request.change != nullptr) apply_change(*job.request.change, settings);
    std::vector<core::AccountConfig::Limit> limits;
    core::AccountConfig config = settings.view(limits);
    config.keep_balance = job.request.change == nullptr || !job.request.change->balance_given;
    config.of_file = configured && (core_.account(known).flags & AccountFlag::kOfFile) != 0;
    std::string why;
    if (!fit_name(settings.name)) {
        why = "an account's name has 1 to 63 bytes and no control characters";
    } else if (core_.set_account(config, &why)) {
        job.answer.accounts.push_back(account_row(job, core_.find_account(settings.name)));
        return;
    }
    job.answer.code = Code::refused;
    job.answer.names.push_back(why);
}

void Desk::reset_account(AdminJob& job) {
    const uint32_t row = configured_account(job);
    if (row == shm::kNoRow) return;
    std::vector<int64_t> balance;
    if (job.request.change != nullptr) balance = job.request.change->balance;
    std::string why;
    if (core_.reset_balance(job.request.account, balance, &why)) {
        job.answer.accounts.push_back(account_row(job, row));
        return;
    }
    job.answer.code = Code::refused;
    job.answer.names.push_back(why);
}

// What it holds stays, and its claims wait on, in the free class.
void Desk::delete_account(AdminJob& job) {
    const uint32_t row = configured_account(job);
    if (row == shm::kNoRow) return;
    core_.delete_account(job.request.account);
    if (core_.account(row).state != 0) job.answer.accounts.push_back(account_row(job, row));
}

}  // namespace dibs
