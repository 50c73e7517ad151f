// broker/ctl/amounts.cpp -- applies the rules of dibs/dibs.h for amounts of resources.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/amounts.hpp"

#include <algorithm>
#include <string_view>

#include "broker/config/quantity.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/labels.hpp"
#include "broker/ctl/subcommand.hpp"
#include "dibs/dibs.h"

namespace dibs::ctl {

void check_amounts(const std::string& option, const std::vector<std::string>& amounts) {
    check_count(option, amounts.size(), DIBS_RESOURCES_MAX);
    for (const std::string& amount : amounts) {
        const size_t equals = amount.find('=');
        const bool is_one = equals != std::string::npos && equals != 0 &&
                            parse_size(std::string_view(amount).substr(equals + 1)).has_value();
        if (is_one) continue;
        throw Failure(kExitUsage,
                      option + " " + amount + ": write NAME=AMOUNT, such as memory=10GiB or sm=20");
    }
}

void check_part(const std::vector<std::string>& least, const std::vector<std::string>& most) {
    check_amounts("--want", least);
    check_amounts("--up-to", most);
    if (!least.empty() || most.empty()) return;
    throw Failure(kExitUsage, "--up-to: say with --want how much it is at least");
}

std::vector<std::string> full_most(const std::vector<std::string>& least,
                                   const std::vector<std::string>& most) {
    std::vector<std::string> full = most;
    for (const std::string& amount : least) {
        const std::string name = amount.substr(0, amount.find('=') + 1);
        const bool named = std::any_of(most.begin(), most.end(), [&](const std::string& other) {
            return other.starts_with(name);
        });
        if (!most.empty() && !named) full.push_back(amount);
    }
    return full;
}

}  // namespace dibs::ctl
