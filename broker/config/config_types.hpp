// broker/config/config_types.hpp -- reads elastic pools and their types of workers, [[type]], from
// the configuration file.
//
// An elastic pool whose types the file does not say has one, of its own name. Included by
// config_text.cpp alone: TOML is slow to compile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "broker/config/config.hpp"
#include "broker/config/config_account.hpp"
#include "broker/config/config_section.hpp"
#include "shm/pool_name.hpp"

namespace dibs {

inline constexpr uint64_t kBootTimeoutMaxNs = 86'400'000'000'000;

inline constexpr const char* kElasticKeys[] = {"workers_max",
                                               "workers_min",
                                               "spare",
                                               "idle_timeout",
                                               "boot_timeout",
                                               "creates_max",
                                               "quota_estimate",
                                               "quota_retry",
                                               "capacity_retry",
                                               "overload_quiet",
                                               "price_factor",
                                               "dispatch",
                                               "gather",
                                               "create_min"};

// "1.5": types are made that cost one and a half times what the cheapest does at most.
inline void read_price_factor(Section& section, uint32_t& permille, Mistakes& mistakes) {
    const toml::node* node = section.find("price_factor");
    if (node == nullptr) return;
    const auto micros = read_money(*node, "price_factor", 1, 1'000'000, mistakes);
    if (!micros) return;
    permille = static_cast<uint32_t>(*micros / 1000);
    if (*micros % 1000 != 0) section.mistake("price_factor", "must have at most three decimals");
}

inline constexpr const char* kDispatchKeys[] = {
    "supervisors", "attempts_max", "stale_lock_timeout", "probe_timeout"};

// What a pool says whose claims and workers are known by reports alone.
inline void read_dispatch(Section& section, core::PoolConfig& values, Mistakes& mistakes) {
    const uint64_t year = 365 * kBootTimeoutMaxNs;
    section.flag("dispatch", values.dispatch);
    if (!values.dispatch) {
        for (const char* key : kDispatchKeys)
            section.forbid(key, "only a pool with dispatch = true has it");
        return;
    }
    if (const toml::node* node = section.find("supervisors")) {
        const auto micros = read_money(*node, "supervisors", 0, 1, mistakes);
        if (micros && *micros % 1000 != 0) {
            section.mistake("supervisors", "must have at most three decimals");
        }
        values.supervisor_permille = static_cast<uint32_t>(micros.value_or(0) / 1000);
    }
    section.count("attempts_max", values.attempts_max, 0, 1'000'000);
    section.duration("stale_lock_timeout", values.stale_lock_timeout_ns, 0, year);
    section.duration("probe_timeout", values.probe_timeout_ns, 1'000'000, year);
}

// What a worker pool says of its size. Without workers_max it has what its workers announce.
inline void read_elastic(Section& section,
                         core::PoolConfig& values,
                         uint32_t most,
                         Mistakes& mistakes) {
    section.count("workers_max", values.workers_max, 1, most);
    if (!section.has("workers_max")) {
        for (const char* key : kElasticKeys)
            section.forbid(key, "only an elastic pool has it, which says workers_max");
        for (const char* key : kDispatchKeys)
            section.forbid(key, "only a pool with dispatch = true has it");
        return;
    }
    read_dispatch(section, values, mistakes);
    section.count("workers_min", values.workers_min, 0, values.workers_max);
    section.count("spare", values.spare, 0, values.workers_max);
    section.count("quota_estimate", values.quota_estimate, 1, values.workers_max);
    values.creates_max = 16;
    values.create_throttle_ns = 0;
    values.boot_timeout_ns = 60'000'000'000;
    section.count("creates_max", values.creates_max, 1, most);
    const uint64_t year = 365 * kBootTimeoutMaxNs;
    section.duration("idle_timeout", values.idle_timeout_ns, 1, year);
    section.duration("boot_timeout", values.boot_timeout_ns, 1'000'000, kBootTimeoutMaxNs);
    section.duration("quota_retry", values.quota_error_ns, 1'000'000, year);
    section.duration("capacity_retry", values.capacity_error_ns, 1'000'000, year);
    section.duration("overload_quiet", values.quiet_ns, 1'000'000, year);
    read_price_factor(section, values.price_factor_permille, mistakes);
    if (!section.has("order")) values.order = shm::PoolOrder::kPriority;
    if (values.order == shm::PoolOrder::kArrival) {
        section.mistake("order",
                        "an elastic pool is ordered by account, or by priority, in which claims "
                        "that bring none are served as they come");
    }
    if (values.park) section.mistake("park", "no lease of an elastic pool is parked");
    section.duration("gather", values.gather_ns, 0, 60'000'000'000);
    for (const char* key : {"gather", "create_min"}) {
        if (!section.has("resources")) section.forbid(key, "only a pool with resources has it");
    }
}

// What each worker of a type of a pool ordered by account has.
inline void read_type_labels(Section& section, TypeSettings& type) {
    const toml::node* node = section.find("labels");
    if (node == nullptr) return;
    const toml::array* array = node->as_array();
    bool good = array != nullptr && array->size() <= shm::kLabelsMax;
    for (size_t i = 0; good && i < array->size(); ++i) {
        const auto label = (*array)[i].value_exact<std::string>();
        good = label && !label->empty() && label->size() <= shm::kNameMax &&
               label->find('\0') == std::string::npos;
        if (good) type.labels.push_back(*label);
    }
    if (!good) {
        section.mistake("labels",
                        "write an array of at most 32 labels, of 1 to 63 bytes each, such as "
                        "[\"gpu\"]");
    }
}

inline void read_type(Section& section, Config& config, Mistakes& mistakes) {
    TypeSettings type;
    section.text("name", type.name);
    section.text("pool", type.pool);
    for (const char* key : {"name", "pool"}) {
        if (!section.has(key)) section.missing(key);
    }
    if (section.has("name") && !shm::is_pool_name(type.name.data(), type.name.size())) {
        section.mistake("name", "as of a pool: " + std::string(shm::kPoolNameRule));
    }
    section.count("cost", type.cost, 1, 1'000'000'000);
    section.flag("preemptible", type.preemptible);
    for (const auto& [key, text] : {std::pair{"provider_type", &type.provider_type},
                                    std::pair{"quota_group", &type.quota_group}}) {
        section.text(key, *text);
        if (text->size() > shm::kTypeWordMax) section.mistake(key, "at most 31 bytes");
    }
    read_type_labels(section, type);
    section.finish();
    const auto pool = std::find_if(config.pools.begin(), config.pools.end(), [&](const auto& it) {
        return it.name == type.pool;
    });
    if (pool == config.pools.end()) {
        if (section.has("pool") && !mistakes.parts_are_missing) {
            section.mistake("pool", "there is no pool " + in_quotes(type.pool) + " in this file");
        }
    } else if (pool->values.workers_max == 0) {
        section.mistake("pool",
                        in_quotes(type.pool) + " is not elastic: its [[pool]] has no workers_max");
    } else if (!type.labels.empty() && pool->values.order != shm::PoolOrder::kAccount) {
        section.mistake("labels",
                        in_quotes(type.pool) +
                            " is not ordered by account: any of its workers "
                            "serves any claim");
    }
    const bool again = std::any_of(config.types.begin(), config.types.end(), [&](const auto& it) {
        return it.name == type.name && it.pool == type.pool;
    });
    if (again) section.mistake("name", "a second type of this name in this pool");
    config.types.push_back(std::move(type));
}

// Behind the pools.
inline void read_types(Section& top, Config& config, Mistakes& mistakes) {
    if (const toml::node* node = top.find("type")) {
        const toml::array* array = node->as_array();
        if (array == nullptr) {
            return mistakes.add(*node, "type: must be an array of tables: write [[type]]");
        }
        for (const toml::node& element : *array) {
            const toml::table* table = element.as_table();
            if (table == nullptr) {
                mistakes.add(element, "type: must be a table: write [[type]]");
                continue;
            }
            Section section(*table, "a type", mistakes);
            read_type(section, config, mistakes);
        }
    }
    for (const PoolSettings& pool : config.pools) {
        const bool has_one = std::any_of(config.types.begin(),
                                         config.types.end(),
                                         [&](const auto& it) { return it.pool == pool.name; });
        if (pool.values.workers_max != 0 && !has_one) {
            TypeSettings only;
            only.name = only.pool = pool.name;
            config.types.push_back(std::move(only));
        }
    }
}

}  // namespace dibs
