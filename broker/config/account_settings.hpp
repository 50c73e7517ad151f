// broker/config/account_settings.hpp -- settings of an account as a file or request gives them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/core/command.hpp"

namespace dibs {

inline constexpr int64_t kMicros = 1'000'000;
inline constexpr int64_t kRateMax = 1'000'000;             // slots
inline constexpr int64_t kBalanceMax = 1'000'000'000'000;  // slot-seconds

// 1 to 63 bytes, no control characters: of a pool, an account, the key of a label.
bool fit_name(std::string_view name);
// "uid:" and digits: what a uid pays from that has no other account.
bool is_own_account(std::string_view name);

// Owns its text; core::AccountConfig is a view of it. Money in micro-units.
struct AccountSettings {
    std::string name;
    std::vector<int64_t> rate = {};  // P0 first; what is missing is 0
    std::vector<int64_t> balance = {};
    core::TimeNs charge_max_ns = 60'000'000'000;
    uint32_t fanout_max = 0;
    bool free_tasks_disabled = false;
    std::vector<std::pair<std::string, uint32_t>> label_limits = {};

    [[nodiscard]] bool saves_too_much() const;
    // For one call: the view holds `limits`, which the caller keeps.
    [[nodiscard]] core::AccountConfig view(std::vector<core::AccountConfig::Limit>& limits) const;
};

}  // namespace dibs
