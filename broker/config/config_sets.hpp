// broker/config/config_sets.hpp -- reads pool sets, [[set]], from the configuration file.
//
// Pools and sets share their names: `dibs exec NAME` says which of them is meant. Included by
// config_text.cpp alone: TOML is slow to compile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "broker/config/config.hpp"
#include "broker/config/config_section.hpp"
#include "shm/pool_name.hpp"

namespace dibs {

// What the name of a set and of its members is compared with.
struct KnownNames {
    std::set<std::string, std::less<>> pools;  // that a set may name
    std::map<std::string, toml::source_position, std::less<>> sets;
};

// Why `name` is no member of the set; empty: it is one.
inline std::string no_member(const std::string& name,
                             const SetSettings& set,
                             const KnownNames& known) {
    if (std::count(set.pools.begin(), set.pools.end(), name) != 0) {
        return "pool " + in_quotes(name) + " is in it already";
    }
    if (known.pools.contains(name)) return "";
    if (name == set.name) return "the set " + in_quotes(name) + " cannot contain itself";
    if (known.sets.contains(name)) {
        return in_quotes(name) + " is a set; the members of a set are pools";
    }
    std::string what = "there is no pool " + in_quotes(name);
    const std::set<std::string_view> words(known.pools.begin(), known.pools.end());
    if (const auto near = nearest_word(name, words)) {
        what += "; did you mean " + in_quotes(*near) + "?";
    }
    std::string all;
    for (const std::string_view word : words)
        all += (all.empty() ? "" : ", ") + std::string(word);
    const char* are = what.back() == '?' ? " There are: " : "; there are: ";
    return all.empty() ? what + "; there are none" : what + are + all;
}

inline void read_members(
    Section& section, const KnownNames& known, bool any, SetSettings& set, Mistakes& mistakes) {
    const toml::node* node = section.find("pools");
    if (node == nullptr) return section.missing("pools");
    const toml::array* array = node->as_array();
    if (array == nullptr || array->empty() || array->size() > shm::kSetMembersMax) {
        return mistakes.add(*node,
                            "pools: must be an array of 1 to " +
                                std::to_string(shm::kSetMembersMax) +
                                " names of pools, such as [\"a\", \"b\"]");
    }
    for (const toml::node& element : *array) {
        const auto name = element.value_exact<std::string>();
        if (!name) {
            mistakes.add(element, "pools: must hold names, not " + type_of(element));
            continue;
        }
        const std::string why = no_member(*name, set, known);
        const bool perhaps = any && why.starts_with("there is no pool");
        if (!why.empty() && !perhaps) mistakes.add(element, "pools: " + why);
        set.pools.push_back(*name);
    }
}

// A table of members: `each` hears of each with its number.
inline void read_of_members(Section& section,
                            const char* key,
                            const SetSettings& set,
                            int64_t least,
                            int64_t most,
                            Mistakes& mistakes,
                            const auto& each) {
    const toml::node* node = section.find(key);
    if (node == nullptr) return;
    const toml::table* table = node->as_table();
    if (table == nullptr) {
        return mistakes.add(*node, std::string(key) + ": must be a table, such as { a = 1 }");
    }
    for (const auto& [name, value] : *table) {
        const auto place = std::find(set.pools.begin(), set.pools.end(), name.str());
        const auto number = value.template value_exact<int64_t>();
        if (place == set.pools.end()) {
            mistakes.add(value,
                         std::string(key) + ": " + in_quotes(std::string(name.str())) +
                             " is no member of the set");
        } else if (!number || *number < least || *number > most) {
            mistakes.add(value,
                         std::string(key) + ": must be a whole number from " +
                             std::to_string(least) + " to " + std::to_string(most));
        } else {
            each(static_cast<size_t>(place - set.pools.begin()), *number);
        }
    }
}

// Behind its members.
inline void read_rank(Section& section,
                      const Config& config,
                      SetSettings& set,
                      Mistakes& mistakes) {
    constexpr int64_t kMost = 1'000'000;
    section.word<shm::SetRank>(
        "rank", set.rank, {{"order", shm::SetRank::kOrder}, {"load", shm::SetRank::kLoad}});
    if (set.rank == shm::SetRank::kOrder) {
        for (const char* key : {"priorities", "caps", "group_cap", "cool_down"})
            section.forbid(key, "only with rank = \"load\"");
        return;
    }
    set.members.resize(set.pools.size());
    read_of_members(
        section, "priorities", set, -kMost, kMost, mistakes, [&](size_t at, int64_t priority) {
            set.members[at].priority = static_cast<int32_t>(priority);
        });
    read_of_members(section, "caps", set, 0, kMost, mistakes, [&](size_t at, int64_t cap) {
        set.members[at].cap = static_cast<uint32_t>(cap);
    });
    section.count("group_cap", set.group_cap, 0, static_cast<uint32_t>(kMost));
    section.duration("cool_down", set.cool_down_ns, 0, uint64_t{3600} * 1'000'000'000);
    for (const PoolSettings& pool : config.pools) {
        if (std::count(set.pools.begin(), set.pools.end(), pool.name) == 0) continue;
        if (pool.values.order != shm::PoolOrder::kAccount) continue;
        section.mistake("rank",
                        "pool " + in_quotes(pool.name) +
                            " is ordered by account; such pools are not ranked by load");
    }
}

inline void check_set_name(const toml::node& node,
                           const SetSettings& set,
                           const Config& config,
                           const PoolsThere& there,
                           const KnownNames& known,
                           Mistakes& mistakes) {
    const auto same = [&](const PoolSettings& pool) { return pool.name == set.name; };
    const auto first = known.sets.find(set.name);
    if (!shm::is_pool_name(set.name.data(), set.name.size())) {
        mistakes.add(node, "name: as of a pool: " + std::string(shm::kPoolNameRule));
    } else if (std::any_of(config.pools.begin(), config.pools.end(), same)) {
        mistakes.add(node, "name: there is a pool " + in_quotes(set.name) + " in this file");
    } else if (there.all.contains(set.name)) {
        mistakes.add(
            node,
            "name: the broker has a pool " + in_quotes(set.name) +
                ", which this file does not name: a set may have its name once it is gone");
    } else if (first != known.sets.end() && first->second != node.source().begin) {
        mistakes.add(node,
                     "a second set " + in_quotes(set.name) + "; the first is in line " +
                         std::to_string(first->second.line));
    }
}

inline KnownNames known_names(const toml::array& sets,
                              const Config& config,
                              const PoolsThere& there) {
    KnownNames known;
    known.pools.insert(there.created.begin(), there.created.end());
    for (const PoolSettings& pool : config.pools)
        known.pools.insert(pool.name);
    for (const toml::node& element : sets) {
        const toml::table* table = element.as_table();
        const toml::node* name = table == nullptr ? nullptr : table->get("name");
        if (name == nullptr || !name->is_string()) continue;
        known.sets.emplace(name->value_or(std::string()), name->source().begin);
    }
    return known;
}

// Behind the pools, whose names it needs.
inline void read_sets(Section& top, const PoolsThere& there, Config& config, Mistakes& mistakes) {
    const toml::node* node = top.find("set");
    if (node == nullptr) return;
    const toml::array* array = node->as_array();
    if (array == nullptr) {
        return mistakes.add(*node, "set: must be an array of tables: write [[set]]");
    }
    if (array->size() > shm::kSetsMax) {
        mistakes.add(
            *node,
            std::to_string(array->size()) + " sets; there may be " + std::to_string(shm::kSetsMax));
    }
    const KnownNames known = known_names(*array, config, there);
    for (const toml::node& element : *array) {
        const toml::table* table = element.as_table();
        if (table == nullptr) {
            mistakes.add(element, "set: must be a table: write [[set]]");
            continue;
        }
        Section section(*table, "a set", mistakes);
        SetSettings set;
        if (!section.has("name")) section.missing("name");
        if (section.text("name", set.name)) {
            check_set_name(*section.find("name"), set, config, there, known, mistakes);
        }
        // Where lines were left out the pool may stand in one of them.
        read_members(section, known, there.unknown || mistakes.parts_are_missing, set, mistakes);
        read_rank(section, config, set, mistakes);
        section.finish();
        config.sets.push_back(std::move(set));
    }
}

}  // namespace dibs
