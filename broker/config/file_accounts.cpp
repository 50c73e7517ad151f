// broker/config/file_accounts.cpp -- makes the file's accounts in the core, and deletes old ones.
// SPDX-License-Identifier: Apache-2.0
#include "broker/config/file_accounts.hpp"

#include <string>

#include "broker/text/log.hpp"

namespace dibs {

namespace AccountFlag = shm::AccountFlag;

void FileAccounts::begin(std::span<const AccountSettings> accounts, bool keeps_own) {
    accounts_ = accounts;
    keeps_own_ = keeps_own;
    names_.clear();
    for (const AccountSettings& account : accounts)
        names_.insert(account.name);
    row_ = 0;
    next_ = 0;
}

bool FileAccounts::step() {
    if (!delete_unnamed()) return false;  // first: their rows may be wanted
    for (; next_ < accounts_.size(); ++next_) {
        if (core_.turn_full()) return false;
        core::AccountConfig config = accounts_[next_].view(limits_);
        config.keep_balance = true;
        config.of_file = true;
        std::string why;
        if (!core_.set_account(config, &why)) log::warning(why + "; it stays as it was");
    }
    return true;
}

bool FileAccounts::delete_unnamed() {
    constexpr auto kBoth = uint8_t{AccountFlag::kConfigured | AccountFlag::kOfFile};
    for (; row_ < core_.accounts_max(); ++row_) {
        const shm::AccountRow& account = core_.account(row_);
        if (account.state == 0 || (account.flags & kBoth) != kBoth) continue;
        const std::string name{account.name, account.name_size};
        if (names_.count(name) != 0 || (keeps_own_ && is_own_account(name))) continue;
        if (core_.turn_full()) return false;
        core_.delete_account(name);
    }
    return true;
}

}  // namespace dibs
