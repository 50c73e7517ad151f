// broker/config/config_text.cpp -- parses the configuration file and reports every mistake in it.
//
// TOML is known to this folder and broker/ctl/runner/command_file.cpp alone.
// SPDX-License-Identifier: Apache-2.0
#include "broker/config/config.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "broker/config/config_account.hpp"
#include "broker/config/config_amounts.hpp"
#include "broker/config/config_section.hpp"
#include "broker/config/config_sets.hpp"
#include "broker/config/config_types.hpp"
#include "broker/config/slot_attributes.hpp"
#include "broker/text/line_wrap.hpp"
#include "shm/pool_name.hpp"

namespace dibs {

namespace {

constexpr uint64_t kOneSecond = 1'000'000'000;
constexpr uint64_t kYear = 365ULL * 24 * 3600 * kOneSecond;
constexpr uint32_t kManyRows = 16U << 20;

// How long a lease is parked and taken again although others wait.
void read_quantum(Section& section, core::PoolConfig& values) {
    constexpr core::TimeNs kHour = 3'600'000'000'000;
    const bool strict = values.expiry == shm::ExpiryMode::kStrict;
    const bool never = strict || values.order == shm::PoolOrder::kAccount;
    if (values.kind == shm::PoolKind::kCounted && !never) values.quantum_ns = core::kQuantumNs;
    section.duration("quantum", values.quantum_ns, 0, kHour);
    if (values.quantum_ns % 1'000 != 0) section.mistake("quantum", "whole microseconds count");
    if (values.quantum_ns != 0 && never) {
        section.forbid("quantum",
                       strict ? "in a pool with strict expiry no lease is parked"
                              : "in a pool ordered by account no lease is parked");
    }
}

void read_counted(Section& section, PoolSettings& pool, Mistakes& mistakes) {
    core::PoolConfig& values = pool.values;
    section.count("slots", values.slots, 1, kManyRows);
    if (!section.has("slots")) section.missing("slots");
    read_slot_attributes(section, pool, mistakes);
    read_resources(section, pool, mistakes);
    for (const char* key :
         {"reservation_ttl", "unconfirmed_max", "release_is_ready", "required_label"}) {
        section.forbid(key, "only a worker pool has it; this one is counted");
    }
    for (const char* key : kElasticKeys)
        section.forbid(key, "only a worker pool has it; this one is counted");
    for (const char* key : kDispatchKeys)
        section.forbid(key, "only a worker pool has it; this one is counted");
    section.forbid("answer_max", "nobody answers behind a counted pool");
    section.forbid("park",
                   "a counted pool needs it not: its quantum says whether leases are parked");
}

void read_worker_keys(Section& section, PoolSettings& pool) {
    core::PoolConfig& values = pool.values;
    section.duration("reservation_ttl", values.reservation_ttl_ns, 1, kYear);
    section.count("unconfirmed_max", values.unconfirmed_max, 1, kManyRows);
    section.flag("release_is_ready", values.release_is_ready);
    section.flag("park", values.park);
    if (values.park && values.quantum_ns == 0) {
        section.mistake("park",
                        "needs a quantum above 0: how long a lease is kept while others wait");
    }
    section.size("answer_max", values.answer_max, 0, shm::kPayloadMax);
    section.text("required_label", pool.required_label);
    if (pool.required_label.size() > shm::kNameMax) {
        section.mistake("required_label", "longer than 63 bytes");
    }
}

void read_worker(Section& section, PoolSettings& pool, Mistakes& mistakes) {
    read_worker_keys(section, pool);
    read_elastic(section, pool.values, kManyRows, mistakes);
    read_resources(section, pool, mistakes);
    read_create_min(section, pool, mistakes);
    if (section.has("resources") && pool.values.expiry == shm::ExpiryMode::kLazy) {
        section.mistake("resources",
                        "parts of workers' slots are not collected: expiry is not lazy");
    }
    if (section.has("resources") && pool.values.park) {
        section.mistake("park", "no lease of a pool with resources is parked");
    }
    if (!pool.values.park && pool.values.quantum_ns != 0) {
        section.mistake("quantum", "leases of workers are parked with park = true alone");
    }
    section.forbid("slots", "a worker pool has the slots that its workers announce");
    section.forbid("attributes", "the workers announce them");
    section.forbid("environment", "what a worker announces sets no variables");
}

// Of a pool that could be either: each key as the kind has it that knows the key.
void check_either(Section& section, PoolSettings& pool, Mistakes& mistakes) {
    core::PoolConfig& values = pool.values;
    values.slots = kManyRows;
    section.count("slots", values.slots, 1, kManyRows);
    read_slot_attributes(section, pool, mistakes);
    values.slots = 0;  // they are compared with no limit
    read_worker_keys(section, pool);
    read_elastic(section, values, kManyRows, mistakes);
}

PoolSettings read_pool(const toml::table& table, Mistakes& mistakes) {
    Section section(table, "a pool", mistakes);
    PoolSettings pool;
    core::PoolConfig& values = pool.values;
    section.text("name", pool.name);
    if (!section.has("name")) {
        section.missing("name");
    } else if (table.get("name")->is_string() &&
               !shm::is_pool_name(pool.name.data(), pool.name.size())) {
        section.mistake("name", shm::kPoolNameRule);
    }
    values.kind = shm::PoolKind::kCounted;
    const bool known_kind =
        section.word("kind",
                     values.kind,
                     {{"counted", shm::PoolKind::kCounted}, {"worker", shm::PoolKind::kWorker}});
    section.word("when_busy",
                 values.when_busy,
                 {{"wait", shm::WhenBusy::kWait},
                  {"reject", shm::WhenBusy::kReject},
                  {"cold", shm::WhenBusy::kCold}});
    section.word("expiry",
                 values.expiry,
                 {{"cooperative", shm::ExpiryMode::kCooperative},
                  {"strict", shm::ExpiryMode::kStrict},
                  {"lazy", shm::ExpiryMode::kLazy}});
    section.count("units_max", values.units_max, 1, shm::kUnitsMax);
    section.count("gang_max", values.gang_max, 1, shm::kGangMax);
    section.count("backlog_max", values.backlog_max, 1, kManyRows);
    section.size("payload_max", values.payload_max, 0, shm::kPayloadMax);
    section.size("attributes_max", values.attributes_max, 0, shm::kPayloadMax);
    section.duration("retry_after", values.retry_after_ns, 0, kYear);
    section.duration("interval_max", values.interval_max_ns, 1, kYear);
    section.duration("grace", values.grace_ns, 0, kYear);
    if (values.expiry != shm::ExpiryMode::kCooperative) {
        section.forbid("grace", "only cooperative expiry has one");
    }
    read_order(section, pool, mistakes);
    read_quantum(section, values);
    if (!section.has("kind")) section.missing("kind");
    if (!known_kind) {
        check_either(section, pool, mistakes);
    } else if (values.kind == shm::PoolKind::kCounted) {
        read_counted(section, pool, mistakes);
    } else {
        read_worker(section, pool, mistakes);
    }
    section.finish();
    return pool;
}

void read_limits(Section& top, Config& config, Mistakes& mistakes) {
    const toml::node* node = top.find("limits");
    if (node == nullptr) return;
    const toml::table* table = node->as_table();
    if (table == nullptr) {
        mistakes.add(*node, "limits: must be a table");
        return;
    }
    Section section(*table, "[limits]", mistakes);
    core::Limits& limits = config.limits;
    section.count("pools", limits.pools, 1, shm::kPoolsMax);
    section.count("sessions", limits.sessions, 1, 65536);
    section.count("slots", limits.slots, 1, kManyRows);
    section.count("claims", limits.claims, 1, kManyRows);
    section.count("leases", limits.leases, 1, kManyRows);
    section.count("accounts", limits.accounts, 1, kManyRows);
    section.count("label_sets", limits.label_sets, 1, core::kLabelSetsMax);
    section.count("entries", limits.entries, 1, 65536);
    section.count("applications", limits.applications, 1, 65536);
    section.count("groups", limits.groups, 1, 65536);
    section.count("tasks", limits.tasks, 1, kManyRows);
    uint64_t arena = uint64_t{limits.arena_blocks} * sizeof(shm::ArenaBlock);
    section.size("arena", arena, sizeof(shm::ArenaBlock), 4ULL << 30);
    limits.arena_blocks = static_cast<uint32_t>(arena / sizeof(shm::ArenaBlock));
    section.count("log_images", limits.log_images, 2048, 1U << 20);
    section.count("log_stores", limits.log_stores, 1024, 1U << 20);
    section.finish();
}

// What only shows when all pools are known.
void check_pools(const toml::node& node, const Config& config, Mistakes& mistakes) {
    uint64_t slots = 0;
    for (const PoolSettings& pool : config.pools)
        slots += pool.values.slots;
    if (slots > config.limits.slots) {
        mistakes.add(node,
                     "the counted pools have " + counted(slots, "slot") +
                         " together, but limits.slots is " + std::to_string(config.limits.slots));
    }
    const auto with_resources =
        std::find_if(config.pools.begin(), config.pools.end(), [](const PoolSettings& pool) {
            return !pool.resources.empty();
        });
    if (slots == config.limits.slots && with_resources != config.pools.end()) {
        mistakes.add(node,
                     "the counted pools have all " + counted(slots, "slot") +
                         " of limits.slots: pool \"" + with_resources->name +
                         "\" has resources, and each part of a slot takes one");
    }
    uint64_t blocks = 0;
    for (const PoolSettings& pool : config.pools) {
        for (const std::string& attributes : pool.slot_attributes)
            blocks += (attributes.size() + sizeof(shm::ArenaBlock::bytes) - 1) /
                      sizeof(shm::ArenaBlock::bytes);
    }
    if (blocks > config.limits.arena_blocks) {
        mistakes.add(node,
                     "the attributes of all slots take " +
                         show_size(blocks * sizeof(shm::ArenaBlock)) + ", but limits.arena is " +
                         show_size(uint64_t{config.limits.arena_blocks} * sizeof(shm::ArenaBlock)));
    }
    if (config.pools.size() > config.limits.pools) {
        mistakes.add(node,
                     std::to_string(config.pools.size()) + " pools, but limits.pools is " +
                         std::to_string(config.limits.pools));
    }
}

void read_pools(Section& top, Config& config, Mistakes& mistakes) {
    const toml::node* node = top.find("pool");
    if (node == nullptr) return;
    const toml::array* array = node->as_array();
    if (array == nullptr) {
        mistakes.add(*node, "pool: must be an array of tables: write [[pool]]");
        return;
    }
    std::map<std::string, toml::source_position> first;
    for (const toml::node& element : *array) {
        const toml::table* table = element.as_table();
        if (table == nullptr) {
            mistakes.add(element, "pool: must be a table: write [[pool]]");
            continue;
        }
        PoolSettings pool = read_pool(*table, mistakes);
        const toml::node* name = table->get("name");
        if (name != nullptr && !pool.name.empty()) {
            const auto [place, fresh] = first.emplace(pool.name, name->source().begin);
            if (!fresh) {
                mistakes.add(*name,
                             "a second pool " + in_quotes(pool.name) + "; the first is in line " +
                                 std::to_string(place->second.line));
            }
        }
        config.pools.push_back(std::move(pool));
    }
    check_pools(*node, config, mistakes);
}

// A list of names.
void read_names(Section& section,
                std::string_view key,
                std::optional<std::vector<std::string>>& out,
                Mistakes& mistakes) {
    const toml::node* node = section.find(key);
    if (node == nullptr) return;
    const toml::array* array = node->as_array();
    if (array == nullptr) {
        return mistakes.add(*node, std::string(key) + ": must be an array of names");
    }
    out.emplace();
    for (const toml::node& element : *array) {
        if (const auto name = element.value_exact<std::string>()) {
            out->push_back(*name);
        } else {
            mistakes.add(element, std::string(key) + ": must hold names, not " + type_of(element));
        }
    }
}

// A user or group by name or number.
std::optional<uint32_t> read_id(Section& section,
                                std::string_view key,
                                std::optional<uint32_t> (*look_up)(const std::string&),
                                Mistakes& mistakes) {
    const toml::node* node = section.find(key);
    if (node == nullptr) return std::nullopt;
    if (const auto number = node->value_exact<int64_t>()) {
        if (*number >= 0 && *number < shm::kNoRow) return static_cast<uint32_t>(*number);
        mistakes.add(*node, std::string(key) + ": is no number of a user or group");
        return std::nullopt;
    }
    const auto name = node->value_exact<std::string>();
    if (!name) {
        mistakes.add(*node, std::string(key) + ": must be a name or a number");
        return std::nullopt;
    }
    const auto id = look_up(*name);
    if (!id) mistakes.add(*node, std::string(key) + ": this host knows no " + in_quotes(*name));
    return id;
}

Allowance read_allowance(Section& section,
                         const std::vector<AccountSettings>& accounts,
                         Mistakes& mistakes) {
    Allowance allowance;
    if (section.text("account", allowance.account)) {
        if (fit_name(allowance.account)) {
            check_account_name(section, allowance.account, accounts);
        } else {
            section.mistake("account", "must have 1 to 63 bytes and no control characters");
        }
    }
    read_names(section, "pools", allowance.pools, mistakes);
    read_names(section, "offers", allowance.offers, mistakes);
    read_names(section, "provisions", allowance.provisions, mistakes);
    uint32_t priority = 1U << 30;
    section.count("priority_max", priority, 0, priority);
    if (section.has("priority_max")) allowance.priority_max = static_cast<int32_t>(priority);
    section.count("sessions", allowance.sessions, 0, kManyRows);
    section.count("leases", allowance.leases, 0, kManyRows);
    section.count("backlog", allowance.backlog, 0, kManyRows);
    section.count("slots", allowance.slots, 0, kManyRows);
    section.count("label_sets", allowance.label_sets, 0, kManyRows);
    section.size("arena", allowance.arena, uint64_t{0}, uint64_t{1} << 40);
    section.size("memory", allowance.memory, uint64_t{0}, uint64_t{1} << 40);
    section.count("handshakes", allowance.handshakes, 1, 1'000'000);
    return allowance;
}

void read_rule(const toml::table& table,
               const std::vector<AccountSettings>& accounts,
               Policy& policy,
               bool& fallback,
               Mistakes& mistakes) {
    Section section(table, "a policy", mistakes);
    const auto user = read_id(section, "user", user_id, mistakes);
    const auto group = read_id(section, "group", group_id, mistakes);
    bool others = false;
    section.flag("default", others);
    Allowance allowance = read_allowance(section, accounts, mistakes);
    section.finish();
    const int kinds = int{section.has("user")} + int{section.has("group")} + int{others};
    if (kinds != 1) return section.mistake("user", "a policy has one of user, group, default");
    if (user) {
        if (!policy.users.emplace(*user, std::move(allowance)).second) {
            section.mistake("user", "a second policy for this user");
        }
    } else if (group) {
        policy.groups.emplace_back(*group, std::move(allowance));
    } else if (others) {
        if (fallback) section.mistake("default", "a second default policy");
        fallback = true;
        policy.others = std::move(allowance);
    }
}

void read_policy(Section& top, Config& config, Mistakes& mistakes) {
    auto policy = std::make_shared<Policy>();
    policy->admin_group = read_id(top, "admin_group", group_id, mistakes);
    if (const toml::node* node = top.find("policy")) {
        const toml::array* array = node->as_array();
        if (array == nullptr) {
            mistakes.add(*node, "policy: must be an array of tables: write [[policy]]");
            return;
        }
        bool fallback = false;
        for (const toml::node& element : *array) {
            if (const toml::table* table = element.as_table()) {
                read_rule(*table, config.accounts, *policy, fallback, mistakes);
            } else {
                mistakes.add(element, "policy: must be a table: write [[policy]]");
            }
        }
    }
    config.policy = std::move(policy);
}

void read_mode(Section& top, Config& config) {
    std::string text;
    top.text("socket_mode", text);
    if (text.empty()) return;
    const bool octal = text.size() <= 4 && text.find_first_not_of("01234567") == std::string::npos;
    const unsigned long mode = octal ? std::stoul(text, nullptr, 8) : 01000;
    if (mode > 0777) {
        top.mistake("socket_mode",
                    in_quotes(text) + " is not three octal digits, such as \"0660\"");
        return;
    }
    config.socket_mode = static_cast<uint32_t>(mode);
}

void read_top(const toml::table& table,
              const PoolsThere& there,
              Config& config,
              Mistakes& mistakes) {
    Section top(table, "the configuration", mistakes);
    top.text("socket", config.socket);
    if (config.socket.size() > 107) {  // sizeof(sockaddr_un::sun_path) less its terminator
        top.mistake("socket", "a socket's path has at most 107 bytes");
    }
    top.text("state_dir", config.state_dir);
    top.text("cluster", config.cluster);
    if (config.cluster.size() > shm::kClusterNameMax ||
        !shm::is_pool_name(config.cluster.data(), config.cluster.size())) {
        top.mistake("cluster",
                    "has 1 to 31 letters, digits, \".\", \"_\" and \"-\", a letter first");
    }
    read_mode(top, config);
    top.word<std::string>("log_level",
                          config.log_level,
                          {{"trace", "trace"},
                           {"debug", "debug"},
                           {"info", "info"},
                           {"warning", "warning"},
                           {"error", "error"},
                           {"off", "off"}});
    top.duration("drain_timeout", config.drain_timeout_ns, 0, kYear);
    top.duration("ended_leases_for", config.ended_leases_for_ns, 0, kYear);
    top.duration("created_pool_idle", config.created_pool_idle_ns, kOneSecond, kYear);
    top.duration("manager_timeout", config.manager_timeout_ns, 1, kYear);
    top.flag("peer_pidfd", config.peer_pidfd);
    top.duration("spin", config.spin_ns, 0, kOneSecond);
    top.duration("throttle", config.throttle_ns, 0, kOneSecond);
    top.word<HardeningMode>("hardening",
                            config.hardening,
                            {{"on", HardeningMode::kOn},
                             {"strict", HardeningMode::kStrict},
                             {"off", HardeningMode::kOff}});
    read_limits(top, config, mistakes);
    read_pools(top, config, mistakes);
    read_sets(top, there, config, mistakes);
    read_types(top, config, mistakes);
    read_accounts(top, config, mistakes);
    read_account_default(top, config, mistakes);
    read_policy(top, config, mistakes);
    top.finish();
}

}  // namespace

ConfigResult parse_config(std::string_view text, const std::string& name, const PoolsThere& there) {
    ConfigResult result;
    result.config.file = name;
    Mistakes mistakes{name};
    std::string rest(text);
    if (const auto table = parsed(rest, mistakes)) {
        read_top(*table, there, result.config, mistakes);
    } else if (const auto others = parsed_without_mistakes(rest, mistakes)) {
        mistakes.parts_are_missing = true;
        read_top(*others, there, result.config, mistakes);
    }
    result.mistakes = std::move(mistakes.lines);
    return result;
}

}  // namespace dibs
