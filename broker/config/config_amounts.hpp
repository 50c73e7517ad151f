// broker/config/config_amounts.hpp -- reads what a pool's slots have of resources, and the least
// that is ordered of them, from the configuration file.
//
// Included by config_text.cpp alone: TOML is slow to compile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "broker/config/config.hpp"
#include "broker/config/config_section.hpp"

namespace dibs {

using Amounts = std::vector<std::pair<std::string, int64_t>>;

// NAME = amount each: whole numbers, or sizes.
inline Amounts read_amounts(Section& section, const char* key, Mistakes& mistakes) {
    Amounts amounts;
    const toml::node* node = section.find(key);
    if (node == nullptr) return amounts;
    const toml::table* table = node->as_table();
    if (table == nullptr) {
        section.mistake(key, "must be a table, NAME = amount");
        return amounts;
    }
    for (const auto& [its_key, amount] : *table) {
        const std::string name{its_key.str()};
        const std::string what = std::string(key) + "." + name + ": ";
        const auto text = amount.value_exact<std::string>();
        if (text ? !parse_size(*text) : !amount.is_integer()) {
            mistakes.add(amount, what + "must be a whole number, or a size such as \"80GiB\"");
            continue;
        }
        const uint64_t most = text ? parse_size(*text).value_or(0)
                                   : static_cast<uint64_t>(amount.value_or(int64_t{0}));
        if (most == 0 || most > shm::kAmountMax) {  // what is negative is large, too
            mistakes.add(amount, what + "must be from 1 to 2^53");
            continue;
        }
        if (!core::is_resource_name(name)) {
            mistakes.add(amount, what + "a name has 1 to 31 letters, digits, '_', '-' and '.'");
        }
        amounts.emplace_back(name, static_cast<int64_t>(most));
    }
    if (table->empty() || table->size() > shm::kResourcesMax) {
        section.mistake(key, "a slot has 1 to " + std::to_string(shm::kResourcesMax));
    }
    return amounts;
}

// No worker is made that has less.
inline void read_create_min(Section& section, PoolSettings& pool, Mistakes& mistakes) {
    pool.create_min = read_amounts(section, "create_min", mistakes);
    for (const auto& least : pool.create_min) {
        const auto its =
            std::find_if(pool.resources.begin(), pool.resources.end(), [&](const auto& known) {
                return known.first == least.first;
            });
        if (its == pool.resources.end() || its->second < least.second) {
            section.mistake("create_min",
                            least.first + ": of resources, and at most so much as they say");
        }
    }
}

// What each slot has, of which claims may want a part.
inline void read_resources(Section& section, PoolSettings& pool, Mistakes& mistakes) {
    pool.resources = read_amounts(section, "resources", mistakes);
    if (!section.has("resources")) return;
    uint32_t bytes = 0;  // of a grant's attributes: what it has of each
    for (const auto& [name, amount] : pool.resources) {
        bytes += static_cast<uint32_t>(sizeof "resource." - 1 + name.size() +
                                       sizeof "=9007199254740992");
    }
    if (pool.values.order == shm::PoolOrder::kAccount) {
        section.forbid("resources", "slots of a pool ordered by account have none");
    }
    if (section.has("quantum") && pool.values.quantum_ns != 0) {
        section.mistake("quantum", "no lease of a pool with resources is parked");
    }
    pool.values.quantum_ns = 0;
    if (!section.has("attributes_max")) {
        pool.values.attributes_max += bytes;
    } else {
        size_t longest = 0;
        for (const std::string& attributes : pool.slot_attributes)
            longest = std::max(longest, attributes.size());
        if (pool.values.attributes_max >= longest + bytes) return;
        section.mistake("attributes_max",
                        "a grant's attributes take " + std::to_string(longest + bytes) +
                            " bytes with what it has of each resource");
    }
}

}  // namespace dibs
