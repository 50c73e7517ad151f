// broker/config/file_accounts.hpp -- makes the file's accounts in the core, and deletes old ones.
//
// An account that the file names is marked so in its row, so that a later file that does not name
// it deletes it, also under a later broker; accounts that administrators have made stay. An
// existing account keeps its balance: the file's is the initial one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "broker/config/account_settings.hpp"
#include "broker/core/core.hpp"

namespace dibs {

class FileAccounts {
  public:
    explicit FileAccounts(core::Core& core) : core_(core) {}

    // `accounts` stay where they are until the last step. `keeps_own`: uids have accounts from a
    // template (broker/config/uid_accounts), which stay though no file names them.
    void begin(std::span<const AccountSettings> accounts, bool keeps_own = false);
    // As much as the log of this turn has room for. False: the rest is for the next one.
    bool step();

  private:
    bool delete_unnamed();

    core::Core& core_;
    std::span<const AccountSettings> accounts_;
    std::unordered_set<std::string_view> names_;
    bool keeps_own_ = false;
    uint32_t row_ = 0;  // next to be looked at
    size_t next_ = 0;   // next to be configured
    std::vector<core::AccountConfig::Limit> limits_;
};

}  // namespace dibs
