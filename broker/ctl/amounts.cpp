// broker/ctl/amounts.cpp -- applies the rules of dibs/dibs.h for amounts of resources.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/amounts.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "broker/config/quantity.hpp"
#include "broker/ctl/attachment.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/labels.hpp"
#include "broker/ctl/subcommand.hpp"
#include "dibs/dibs.h"
#include "shm/layout.hpp"

namespace dibs::ctl {

namespace {

std::string name_of(const std::string& amount) {
    return amount.substr(0, amount.find('='));
}

std::optional<uint64_t> value_of(const std::string& amount) {
    return parse_size(std::string_view(amount).substr(amount.find('=') + 1));
}

void check_amount(const std::string& option, const std::string& amount) {
    const std::string start = option + " " + amount + ": ";
    const size_t equals = amount.find('=');
    const bool named = equals != std::string::npos && equals != 0;
    const std::optional<uint64_t> value = named ? value_of(amount) : std::nullopt;
    if (value && *value <= shm::kAmountMax) return;
    const std::string why =
        named ? no_size(std::string_view(amount).substr(equals + 1), shm::kAmountMax) : "";
    throw Failure(kExitUsage,
                  start + (why.empty() ? "write NAME=AMOUNT, such as memory=10GiB or sm=20" : why));
}

}  // namespace

void check_amounts(const std::string& option, const std::vector<std::string>& amounts) {
    check_count(option, amounts.size(), DIBS_RESOURCES_MAX);
    std::set<std::string> names;
    for (const std::string& amount : amounts) {
        check_amount(option, amount);
        if (names.insert(name_of(amount)).second) continue;
        throw Failure(kExitUsage, option + " names " + name_of(amount) + " twice");
    }
}

void check_part(const std::vector<std::string>& least, const std::vector<std::string>& most) {
    check_amounts("--want", least);
    check_amounts("--up-to", most);
    if (least.empty() && !most.empty()) {
        throw Failure(kExitUsage, "--up-to: say with --want how much it is at least");
    }
    for (const std::string& low : least) {
        for (const std::string& high : most) {
            if (name_of(low) != name_of(high) || *value_of(low) <= *value_of(high)) continue;
            throw Failure(kExitUsage, "--want " + low + " is more than --up-to " + high);
        }
    }
    const auto is_nothing = [](const std::string& amount) { return *value_of(amount) == 0; };
    if (!least.empty() && std::all_of(least.begin(), least.end(), is_nothing)) {
        throw Failure(kExitUsage,
                      "--want " + least.front() + ": it wants nothing; say more than 0 of one");
    }
}

std::string no_part(const std::vector<std::string>& resources,
                    const std::vector<std::string>& least,
                    const std::vector<std::string>& most) {
    if (resources.empty()) {
        return std::string("its slots have no resources: each is claimed as a whole") +
               (least.empty() ? "" : ", without --want");
    }
    for (const auto* amounts : {&least, &most}) {
        for (const std::string& amount : *amounts) {
            const std::string name = name_of(amount);
            if (std::find(resources.begin(), resources.end(), name) != resources.end()) continue;
            return unknown("resource", name, resources);
        }
    }
    return "";
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
