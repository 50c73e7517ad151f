// broker/config/account_settings.cpp -- checks account settings from outside the core.
// SPDX-License-Identifier: Apache-2.0
#include "broker/config/account_settings.hpp"

#include <algorithm>

namespace dibs {

bool fit_name(std::string_view name) {
    return !name.empty() && name.size() <= shm::kNameMax &&
           std::none_of(name.begin(), name.end(), [](char c) {
               return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
           });
}

bool is_own_account(std::string_view name) {
    return name.starts_with("uid:") && name.size() > 4 &&
           name.find_first_not_of("0123456789", 4) == std::string_view::npos;
}

bool AccountSettings::saves_too_much() const {
    return std::any_of(rate.begin(), rate.end(), [&](int64_t each) {
        return static_cast<__int128>(each) * (charge_max_ns / 1000) / 1'000'000 >
               static_cast<__int128>(kBalanceMax) * 1'000'000;
    });
}

core::AccountConfig AccountSettings::view(std::vector<core::AccountConfig::Limit>& limits) const {
    limits.clear();
    for (const auto& [key, limit] : label_limits)
        limits.push_back({key, limit});
    core::AccountConfig config;
    config.name = name;
    config.rate = rate;
    config.charge_max_ns = charge_max_ns;
    config.fanout_max = fanout_max;
    config.label_limits = limits;
    config.free_tasks_disabled = free_tasks_disabled;
    config.balance = balance;
    return config;
}

}  // namespace dibs
