// broker/config/config_account.hpp -- reads accounts and account pools from the configuration file.
//
// It reads [[account]] and the keys of a pool that is ordered by account.
//
// Money is written in slots and slot-seconds, as a number with at most six decimals: a rate of 2
// sustains two slots, a balance of 60 pays for one slot for a minute. Included by config_text.cpp
// alone: TOML is slow to compile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/config/account_settings.hpp"
#include "broker/config/config.hpp"
#include "broker/config/config_section.hpp"

namespace dibs {

inline constexpr uint64_t kAccountYearNs = 365ULL * 24 * 3600 * 1'000'000'000;

// A number of slots or slot-seconds in millionths, between `least` and `most` of them.
inline std::optional<int64_t> read_money(
    const toml::node& node, std::string_view key, int64_t least, int64_t most, Mistakes& mistakes) {
    const auto whole = node.value_exact<int64_t>();
    const auto broken = node.value_exact<double>();
    const std::string name{key};
    if (!whole && !broken) {
        mistakes.add(node, name + ": must be a number, is " + type_of(node));
        return std::nullopt;
    }
    const double value = whole ? static_cast<double>(*whole) : *broken;
    const bool fits = value >= static_cast<double>(least) && value <= static_cast<double>(most);
    if (!fits) {
        mistakes.add(
            node,
            name + ": must be between " + std::to_string(least) + " and " + std::to_string(most));
        return std::nullopt;
    }
    if (whole) return *whole * kMicros;
    const double micros = value * static_cast<double>(kMicros);
    const double rounded = std::round(micros);
    if (std::abs(micros - rounded) > 0.001) {
        mistakes.add(node, name + ": must have at most six decimals");
        return std::nullopt;
    }
    return static_cast<int64_t>(rounded);
}

// One number, of P0, or an array of up to five, P0 first.
inline void read_classes(Section& section,
                         std::string_view key,
                         std::vector<int64_t>& out,
                         int64_t least,
                         int64_t most,
                         Mistakes& mistakes) {
    const toml::node* node = section.find(key);
    if (node == nullptr) return;
    const toml::array* array = node->as_array();
    if (array == nullptr) {
        if (const auto one = read_money(*node, key, least, most, mistakes)) out.push_back(*one);
        return;
    }
    if (array->size() > shm::kClasses) {
        mistakes.add(*array->get(shm::kClasses),
                     std::string(key) + ": has " + std::to_string(array->size()) +
                         " numbers; there are five classes, P0 to P4");
        return;
    }
    for (const toml::node& element : *array) {
        const auto one = read_money(element, key, least, most, mistakes);
        if (!one) return;
        out.push_back(*one);
    }
}

inline void read_label_limits(Section& section, AccountSettings& account, Mistakes& mistakes) {
    const toml::node* node = section.find("label_limits");
    if (node == nullptr) return;
    const toml::table* table = node->as_table();
    if (table == nullptr) {
        return mistakes.add(*node, "label_limits: must be a table, such as { gpu = 2 }");
    }
    for (const auto& [key, value] : *table) {
        const std::string name{key.str()};
        const auto limit = value.value_exact<int64_t>();
        if (!limit || *limit < 0 || *limit > shm::kNoRow) {
            mistakes.add(value, "label_limits." + name + ": must be a number of slots");
        } else if (!fit_name(name)) {
            mistakes.add(key.source().begin,
                         "label_limits: a key must have 1 to 63 bytes and no control characters");
        } else {
            account.label_limits.emplace_back(name, static_cast<uint32_t>(*limit));
        }
    }
}

// All that an account has but its name.
inline void read_account_terms(Section& section, AccountSettings& account, Mistakes& mistakes) {
    read_classes(section, "rate", account.rate, 0, kRateMax, mistakes);
    read_classes(section, "balance", account.balance, -kBalanceMax, kBalanceMax, mistakes);
    section.duration("charge_max", account.charge_max_ns, 0, kAccountYearNs);
    section.count("fanout_max", account.fanout_max, 0, 65535);
    section.flag("free_tasks_disabled", account.free_tasks_disabled);
    read_label_limits(section, account, mistakes);
    uint32_t running_max = 0;
    section.count("running_max", running_max, 1, 65535);
    if (running_max != 0) account.label_limits.emplace_back("*", running_max);
    if (account.label_limits.size() > shm::kLabelsMax) {
        section.mistake("label_limits",
                        "has " + std::to_string(account.label_limits.size()) +
                            (running_max != 0 ? " with running_max" : "") + ", at most " +
                            std::to_string(shm::kLabelsMax) + " can be");
    }
    if (account.saves_too_much()) {
        section.mistake("charge_max", "rate times charge_max is more than can be counted");
    }
}

inline AccountSettings read_account(const toml::table& table, Mistakes& mistakes) {
    Section section(table, "an account", mistakes);
    AccountSettings account;
    section.text("name", account.name);
    if (!section.has("name")) {
        section.missing("name");
    } else if (table.get("name")->is_string() && !fit_name(account.name)) {
        section.mistake("name", "must have 1 to 63 bytes and no control characters");
    }
    read_account_terms(section, account, mistakes);
    section.finish();
    return account;
}

// What each uid gets that has no account of its own. A pool with an equal share gives it its rate.
inline void read_account_default(Section& top, Config& config, Mistakes& mistakes) {
    const toml::node* node = top.find("account_default");
    const bool equal = std::any_of(config.pools.begin(), config.pools.end(), [](const auto& pool) {
        return pool.equal_share;
    });
    if (node == nullptr && !equal) return;
    AccountSettings& account = config.account_default.emplace();
    if (equal) account.charge_max_ns = 1'000'000'000;
    if (node == nullptr) return;
    const toml::table* table = node->as_table();
    if (table == nullptr) {
        return mistakes.add(*node, "account_default: must be a table: write [account_default]");
    }
    Section section(*table, "[account_default]", mistakes);
    section.forbid("name", "each user's account has its own, \"uid:<n>\"");
    if (equal) {
        for (const char* key : {"rate", "balance"})
            section.forbid(key, "a pool with share = \"equal\" says it");
    }
    read_account_terms(section, account, mistakes);
    section.finish();
}

inline void read_accounts(Section& top, Config& config, Mistakes& mistakes) {
    const toml::node* node = top.find("account");
    if (node == nullptr) return;
    const toml::array* array = node->as_array();
    if (array == nullptr) {
        return mistakes.add(*node, "account: must be an array of tables: write [[account]]");
    }
    std::map<std::string, toml::source_position> first;
    for (const toml::node& element : *array) {
        const toml::table* table = element.as_table();
        if (table == nullptr) {
            mistakes.add(element, "account: must be a table: write [[account]]");
            continue;
        }
        AccountSettings account = read_account(*table, mistakes);
        const toml::node* name = table->get("name");
        if (name != nullptr && !account.name.empty()) {
            const auto [place, fresh] = first.emplace(account.name, name->source().begin);
            if (!fresh) {
                mistakes.add(*name,
                             "a second account " + in_quotes(account.name) +
                                 "; the first is in line " + std::to_string(place->second.line));
            }
        }
        config.accounts.push_back(std::move(account));
    }
    if (config.accounts.size() > config.limits.accounts) {
        mistakes.add(*node,
                     std::to_string(config.accounts.size()) + " accounts, but limits.accounts is " +
                         std::to_string(config.limits.accounts));
    }
}

// A policy's account, once all accounts are known: where the file has any, it has that one, unless
// it is a uid's own.
inline void check_account_name(Section& section,
                               const std::string& account,
                               const std::vector<AccountSettings>& accounts) {
    if (accounts.empty() || account.empty() || is_own_account(account)) return;
    std::set<std::string_view> names;
    for (const AccountSettings& known : accounts)
        names.insert(known.name);
    if (names.count(account) != 0) return;
    std::string what = "no [[account]] is named " + in_quotes(account);
    if (const auto near = nearest_word(account, names)) {
        what += "; did you mean " + in_quotes(*near) + "?";
    }
    section.mistake("account", what);
}

// What a lease lets happen whose claim did not say.
inline void read_preempt(Section& section, PoolPreempt& preempt, Mistakes& mistakes) {
    std::string word;
    if (!section.text("preempt", word) || word == "never") return;
    preempt.mode = shm::PreemptMode::kAtOnce;
    if (word == "at-once") return;
    const auto grace = parse_duration(word);
    if (!grace || *grace > kAccountYearNs) {
        return mistakes.add(*section.find("preempt"),
                            "preempt: invalid value " + in_quotes(word) +
                                ": expected never, at-once or a grace such as \"10s\"");
    }
    preempt.mode = shm::PreemptMode::kWithGrace;
    preempt.grace_ns = *grace;
}

// The keys of a pool that say how it is ordered.
inline void read_order(Section& section, PoolSettings& pool, Mistakes& mistakes) {
    core::PoolConfig& values = pool.values;
    section.word("order",
                 values.order,
                 {{"arrival", shm::PoolOrder::kArrival},
                  {"priority", shm::PoolOrder::kPriority},
                  {"account", shm::PoolOrder::kAccount}});
    if (values.order != shm::PoolOrder::kAccount) {
        for (const char* key : {"share",
                                "preempt",
                                "preemption_disabled",
                                "promote_threshold",
                                "demote_threshold",
                                "account_expiry",
                                "request_age_max",
                                "queue_timeout"}) {
            section.forbid(key, "only a pool with order = \"account\" has it");
        }
        return;
    }
    if (values.expiry == shm::ExpiryMode::kLazy) {
        section.mistake("expiry", "a pool ordered by account has cooperative or strict expiry");
    }
    section.flag("preemption_disabled", values.preemption_disabled);
    read_preempt(section, pool.preempt, mistakes);
    section.word("share", pool.equal_share, {{"rates", false}, {"equal", true}});
    // What a user holds beyond its means is charged as soon as it has some: its share is its bound.
    if (pool.equal_share) values.promote_threshold = 0;
    const auto threshold = [&](const char* key, int64_t& out) {
        const toml::node* node = section.find(key);
        if (node == nullptr) return;
        if (const auto read = read_money(*node, key, -kBalanceMax, kBalanceMax, mistakes)) {
            out = *read;
        }
    };
    threshold("promote_threshold", values.promote_threshold);
    threshold("demote_threshold", values.demote_threshold);
    if (values.promote_threshold < values.demote_threshold) {
        // Of one of them, the other's default may be the reason.
        section.mistake(
            section.find("promote_threshold") != nullptr ? "promote_threshold" : "demote_threshold",
            "promote_threshold is below demote_threshold");
    }
    section.duration("account_expiry", values.account_expiry_ns, 1, kAccountYearNs);
    section.duration("request_age_max", values.request_age_max_ns, 1, kAccountYearNs);
    section.duration("queue_timeout", values.queue_timeout_ns, 1, kAccountYearNs);
}

}  // namespace dibs
