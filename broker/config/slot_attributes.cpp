// broker/config/slot_attributes.cpp -- reads attributes of slots and the variables that they set.
// SPDX-License-Identifier: Apache-2.0
#include "broker/config/slot_attributes.hpp"

#include <algorithm>
#include <string>

#include "broker/text/line_wrap.hpp"

namespace dibs {

namespace {

constexpr size_t kAttributesMax = 200;  // slots of a pool that may have attributes: one step of
                                        // growing in broker/core/rules/pools.cpp

// One table of `attributes`: text keys and values, as they travel with a grant.
std::string read_attributes(const toml::table& table, Mistakes& mistakes) {
    std::string bytes;
    if (table.size() > shm::kOptionsMax) {
        mistakes.add(table, "attributes: more than " + std::to_string(shm::kOptionsMax));
    }
    for (const auto& [key, node] : table) {
        const auto value = node.value_exact<std::string>();
        if (!value) {
            mistakes.add(
                node,
                "attributes: " + in_quotes(key.str()) + " must be a string, is " + type_of(node));
            continue;
        }
        if (key.str().find('=') != std::string_view::npos ||
            key.str().find('\0') != std::string_view::npos ||
            value->find('\0') != std::string::npos) {
            mistakes.add(node, "attributes: no '=' in a key, no zero byte anywhere");
            continue;
        }
        bytes += std::string(key.str()) + "=" + *value + '\0';
    }
    return bytes;
}

// `environment` names variables that the slot's attributes set for a command under `dibs exec`.
// They travel as attributes of their own.
std::string read_environment(const toml::table& environment,
                             const toml::table& attributes,
                             Mistakes& mistakes) {
    std::string bytes;
    for (const auto& [variable, node] : environment) {
        const auto key = node.value_exact<std::string>();
        if (!key || variable.str().empty() || variable.str().find('=') != std::string_view::npos) {
            mistakes.add(node, "environment: must be VARIABLE = \"attribute\"");
            continue;
        }
        const auto value = attributes[*key].value_exact<std::string>();
        if (!value) {
            mistakes.add(attributes,
                         "attributes: no " + in_quotes(*key) + ", which environment." +
                             std::string(variable.str()) + " asks for");
            continue;
        }
        bytes += "env." + std::string(variable.str()) + "=" + *value + '\0';
    }
    return bytes;
}

}  // namespace

void read_slot_attributes(Section& section, PoolSettings& pool, Mistakes& mistakes) {
    const toml::node* node = section.find("attributes");
    const toml::node* environment = section.find("environment");
    if (environment != nullptr && environment->as_table() == nullptr) {
        mistakes.add(*environment, "environment: must be a table, VARIABLE = \"attribute\"");
        environment = nullptr;
    }
    const toml::array* tables = node == nullptr ? nullptr : node->as_array();
    if (environment != nullptr && tables != nullptr && tables->size() < pool.values.slots) {
        mistakes.add(*node,
                     "attributes: for " + counted(tables->size(), "slot") + ", but the pool has " +
                         std::to_string(pool.values.slots) +
                         ": environment needs those of every slot");
    }
    if (node == nullptr && environment != nullptr) {
        mistakes.add(*environment, "environment: the pool has no attributes");
    }
    if (node == nullptr) return;
    const toml::array* array = node->as_array();
    if (array == nullptr) {
        mistakes.add(*node, "attributes: must be an array of tables, one per slot");
        return;
    }
    if (array->size() > pool.values.slots) {
        mistakes.add(*node,
                     "attributes: for " + counted(array->size(), "slot") + ", but the pool " +
                         "has " + std::to_string(pool.values.slots));
    }
    if (array->size() > kAttributesMax) {
        mistakes.add(*node,
                     "attributes: for " + counted(array->size(), "slot") + "; at most the first " +
                         std::to_string(kAttributesMax) + " can have any");
    }
    uint32_t longest = 0;
    for (const toml::node& element : *array) {
        const toml::table* table = element.as_table();
        if (table == nullptr) {
            mistakes.add(element, "attributes: must be tables, one per slot");
            continue;
        }
        pool.slot_attributes.push_back(read_attributes(*table, mistakes));
        if (environment != nullptr) {
            pool.slot_attributes.back() +=
                read_environment(*environment->as_table(), *table, mistakes);
        }
        longest = std::max(longest, static_cast<uint32_t>(pool.slot_attributes.back().size()));
    }
    if (longest > shm::kPayloadMax) {
        mistakes.add(*node,
                     "attributes: one slot's take " + std::to_string(longest) +
                         " bytes, more than " + std::to_string(shm::kPayloadMax));
    } else if (!section.has("attributes_max")) {
        pool.values.attributes_max = longest;
    } else if (pool.values.attributes_max < longest) {
        section.mistake(
            "attributes_max",
            "the longest attributes of a slot take " + std::to_string(longest) + " bytes");
    }
}

}  // namespace dibs
