// tests/naive/journal_character.cpp -- pools small and large, strict and lenient; limits that are
// reached and limits that are not.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/journal_character.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace dibs::naive {

namespace {

using shm::WhenBusy;

Character choose_frequencies(Dice& dice) {
    Character character;
    character.turn_percent = dice.one_of<uint64_t>({3, 8, 15, 30, 60});
    character.death_permille = dice.one_of<uint64_t>({0, 3, 10, 25});
    character.delete_permille = dice.one_of<uint64_t>({0, 0, 10, 60});
    character.drain_permille = dice.one_of<uint64_t>({0, 0, 5, 20});
    character.change_permille = dice.one_of<uint64_t>({0, 0, 0, 5, 20});
    character.refusal_permille = dice.one_of<uint64_t>({0, 0, 10, 40});
    character.claim_weight = dice.one_of<uint64_t>({15, 30, 60});
    character.release_weight = dice.one_of<uint64_t>({3, 12, 30});
    character.time_max = dice.one_of<uint64_t>({2, 5, 12, 60});
    character.sessions = dice.one_of<size_t>({1, 2, 3, 4, 5, 6});
    character.restarts = dice.percent(25);
    character.large = dice.percent(5);
    if (character.large) {
        character.change_permille = 0;
        character.sessions = 2;
        character.turn_percent = 5;
        character.death_permille = 30;
        character.claim_weight = 90;
        character.time_max = 60;
        character.restarts = dice.percent(60);
    }
    return character;
}

// Nothing that keeps a rich account from taking an attached worker's slot, and nobody else is
// there.
void choose_promises(Dice& dice, Character& character) {
    character.promises = true;
    character.preemption = true;
    character.attached = true;
    character.reported = false;
    character.labels = false;
    character.limits = false;
    character.units = false;
    character.grace = dice.percent(25);
    character.strict = false;
    character.release_weight = 1;
    character.death_permille = 2;
    character.drain_permille = 0;
}

// Small enough that what they forbid comes up, and often enough something else entirely.
Character choose_account_frequencies(Dice& dice) {
    Character character = choose_frequencies(dice);
    character.large = false;
    character.drain_permille = dice.one_of<uint64_t>({0, 0, 0, 4});
    character.claim_weight = dice.one_of<uint64_t>({30, 60});
    character.release_weight = dice.one_of<uint64_t>({1, 3, 12});
    character.sessions = dice.one_of<size_t>({1, 2, 3, 4});
    character.time_unit = dice.one_of<uint64_t>({1, 300, 1000, 1000, 7000});
    character.change_permille = dice.one_of<uint64_t>({0, 0, 5, 20});
    character.accounts = true;
    character.labels = dice.percent(60);
    character.limits = character.labels && dice.percent(60);
    character.fanout = dice.percent(50);
    character.preemption = dice.percent(70);
    character.requeue = dice.percent(50);
    character.units = dice.percent(50);
    character.attached = dice.percent(55);
    character.reported = !character.attached || dice.percent(60);
    character.grace = dice.percent(50);
    character.pulls = dice.percent(60);
    character.strict = dice.percent(40);
    character.account_weight = dice.one_of<uint64_t>({2, 6, 20});
    if (dice.percent(25)) choose_promises(dice, character);
    character.report_weight = character.reported ? dice.one_of<uint64_t>({10, 30, 60}) : 0;
    return character;
}

void choose_account_order(Dice& dice, const Character& character, core::PoolConfig& config) {
    config.order = shm::PoolOrder::kAccount;
    const bool strict = character.strict && dice.percent(70);
    config.expiry = strict ? shm::ExpiryMode::kStrict : shm::ExpiryMode::kCooperative;
    if (strict) config.grace_ns = 0;
    config.backlog_max = dice.one_of<uint32_t>({5, 20, 64});
    config.unconfirmed_max = dice.one_of<uint32_t>({1, 1, 2, 4, 16, 16});
    config.preemption_disabled = !character.preemption || dice.percent(10);
    config.promote_threshold = dice.one_of<int64_t>({0, 3, 20, 600'000'000});
    config.demote_threshold = dice.one_of<int64_t>({0, -3, -20, -600'000'000});
    config.account_expiry_ns = dice.one_of<uint64_t>({0, 50, 3000, 40'000});
    config.request_age_max_ns = dice.one_of<uint64_t>({100, 10'000, 165'600'000'000'000});
    config.queue_timeout_ns = dice.one_of<uint64_t>({50, 4000, 600'000'000'000});
    if (!character.promises) return;
    config.unconfirmed_max = dice.one_of<uint32_t>({1, 1, 2});
    config.reservation_ttl_ns = dice.one_of<uint64_t>({8, 50'000, 500'000});
}

void choose_limits(Dice& dice, const Character& character, core::Limits& limits) {
    limits.pools = dice.one_of<uint32_t>({8, 8, 4, 3});
    limits.sessions = dice.one_of<uint32_t>({2, 16, 16, 16});
    limits.slots = character.large ? 8192 : dice.one_of<uint32_t>({0, 40, 60});
    limits.claims = dice.one_of<uint32_t>({4, 16, 64, 64, 64, 64});
    limits.leases = dice.one_of<uint32_t>({3, 8, 64, 64, 64, 64});
    limits.arena_blocks = dice.one_of<uint32_t>({2, 6, 20, 200, 200, 200});
    limits.log_images = 2048;
    limits.log_stores = 1024;
    if (!character.gangs) limits.applications = limits.groups = limits.tasks = 1;
    if (character.large) {
        limits.claims = 256;
        limits.leases = 256;
        limits.arena_blocks = 400;
        limits.log_stores = 8192;
    }
}

void choose_common(Dice& dice, core::PoolConfig& config) {
    config.when_busy = dice.one_of(
        {WhenBusy::kWait, WhenBusy::kWait, WhenBusy::kWait, WhenBusy::kReject, WhenBusy::kCold});
    config.backlog_max = dice.one_of<uint32_t>({1, 2, 5, 20, 64});
    config.payload_max = dice.one_of<uint32_t>({64, 600, shm::kPayloadMax});
    config.retry_after_ns = dice.one_of<uint64_t>({1, 7, 1000});
    config.interval_max_ns = dice.one_of<uint64_t>({3, 20, 100, shm::kNever});
    config.expiry = dice.one_of({shm::ExpiryMode::kCooperative,
                                 shm::ExpiryMode::kCooperative,
                                 shm::ExpiryMode::kStrict,
                                 shm::ExpiryMode::kLazy});
    const uint64_t grace_ns = dice.one_of<uint64_t>({0, 0, 1, 4, 15});
    if (config.expiry == shm::ExpiryMode::kCooperative) config.grace_ns = grace_ns;
    // The core only asks whether it is a microsecond: who recalls leases looks at the rest.
    if (dice.percent(45))
        config.quantum_ns = dice.one_of<uint64_t>({999, 1000, 1000, 1000, 70'000});
    config.park = dice.percent(60);
}

// Few enough of each that claims meet.
std::vector<core::Amount> choose_resources(Dice& dice) {
    std::vector<core::Amount> vector = {{"cpu", static_cast<int64_t>(dice.between(1, 4))}};
    if (dice.percent(60)) vector.push_back({"mem", static_cast<int64_t>(dice.between(2, 9))});
    if (dice.percent(30)) vector.push_back({"disk", dice.one_of<int64_t>({1, 3, 1000})});
    return vector;
}

PoolSpec counted_pool(Dice& dice, const Character& character) {
    PoolSpec pool;
    pool.config.kind = shm::PoolKind::kCounted;
    choose_common(dice, pool.config);
    pool.config.slots = static_cast<uint32_t>(character.large ? 3800 : dice.between(1, 7));
    const uint32_t most = std::min(pool.config.slots, shm::kUnitsMax);
    pool.config.units_max = dice.percent(60) ? most : static_cast<uint32_t>(dice.between(1, 9));
    if (character.large) {
        pool.config.units_max = 256;
        pool.config.backlog_max = 64;
    }
    const bool has_resources = !character.large && !character.accounts && dice.percent(25);
    if (has_resources) pool.vector = choose_resources(dice);
    return pool;
}

PoolSpec worker_pool(Dice& dice, const Character& character) {
    PoolSpec pool;
    pool.config.kind = shm::PoolKind::kWorker;
    choose_common(dice, pool.config);
    pool.config.units_max = static_cast<uint32_t>(dice.between(1, 5));
    pool.config.unconfirmed_max = dice.one_of<uint32_t>({1, 2, 4, 16});
    pool.config.answer_max = dice.one_of<uint32_t>({0, 8, 64});
    pool.config.attributes_max = dice.one_of<uint32_t>({0, 64, 600});
    pool.config.reservation_ttl_ns = dice.one_of<uint64_t>({1, 3, 8, 20, 60});
    pool.config.release_is_ready = dice.percent(35);
    if (dice.percent(30)) pool.required_label = "gpu";
    const bool is_lazy = pool.config.expiry == shm::ExpiryMode::kLazy;
    if (!is_lazy && !character.accounts && dice.percent(35)) pool.vector = choose_resources(dice);
    return pool;
}

// Small and short, so that all of it is met.
void choose_elastic(Dice& dice, core::PoolConfig& config) {
    if (config.order != shm::PoolOrder::kAccount) config.order = shm::PoolOrder::kPriority;
    config.park = false;
    config.workers_max = dice.one_of<uint32_t>({1, 2, 3, 3, 4, 6, 12});
    config.workers_min = static_cast<uint32_t>(dice.below(std::min(config.workers_max, 3U) + 1));
    if (dice.percent(60)) config.workers_min = 0;
    config.spare = static_cast<uint32_t>(dice.below(std::min(config.workers_max, 3U) + 1));
    if (dice.percent(60)) config.spare = 0;
    config.quota_estimate = dice.one_of<uint32_t>({0, 0, 0, 1, 2, 20});
    config.price_factor_permille = dice.one_of<uint32_t>({0, 0, 1000, 1500, 2000});
    config.creates_max = dice.one_of<uint32_t>({0, 0, 1, 1, 2});
    config.create_throttle_ns = dice.one_of<uint64_t>({0, 0, 3, 10, 60});
    config.quiet_ns = dice.one_of<uint64_t>({0, 5, 30, shm::kNever});
    config.quota_error_ns = dice.one_of<uint64_t>({0, 3, 20, 80});
    config.capacity_error_ns = dice.one_of<uint64_t>({0, 3, 20, 80});
    config.idle_timeout_ns = dice.one_of<uint64_t>({0, 4, 15, 60, shm::kNever});
    config.boot_timeout_ns = dice.one_of<uint64_t>({4, 20, 80, 80, shm::kNever});
    if (dice.percent(80)) config.backlog_max = dice.one_of<uint32_t>({20, 64});
    if (dice.percent(80)) config.when_busy = WhenBusy::kWait;
}

// Workers of their own size: mostly a while is waited for claims.
void choose_sizes(Dice& dice, PoolSpec& pool) {
    pool.config.gather_ns = dice.one_of<uint64_t>({0, 2, 5, 5, 30});
    pool.create_min.clear();
    for (const core::Amount& amount : pool.vector) {
        const auto most = static_cast<uint64_t>(amount.amount) + 2;
        if (dice.percent(35))
            pool.create_min.push_back({amount.name, static_cast<int64_t>(dice.below(most))});
    }
}

void choose_elastic_frequencies(Dice& dice, Character& character) {
    character.elastic = true;
    character.large = false;
    character.sessions = dice.one_of<size_t>({2, 3, 4, 5, 6});
    character.turn_percent = dice.one_of<uint64_t>({8, 15, 30, 60});
    character.change_permille = dice.one_of<uint64_t>({0, 0, 0, 5, 20});
    character.death_permille = dice.one_of<uint64_t>({0, 3, 10});
    character.delete_permille = dice.one_of<uint64_t>({0, 0, 3});
    character.drain_permille = dice.one_of<uint64_t>({0, 0, 3, 8});
    character.provide_percent = dice.one_of<uint64_t>({3, 10, 30});
    character.answer_percent = dice.one_of<uint64_t>({5, 15, 40});
    character.announce_percent = dice.one_of<uint64_t>({5, 15, 40});
    character.created_weight = dice.one_of<uint64_t>({10, 40, 200});
    character.claim_weight = dice.one_of<uint64_t>({30, 60, 90});
}

// Of pools ordered by account.
void choose_elastic_accounts(Dice& dice, Character& character) {
    character.elastic = character.attached;
    character.provide_percent = dice.one_of<uint64_t>({3, 10});
    character.answer_percent = dice.one_of<uint64_t>({5, 15});
    character.announce_percent = dice.one_of<uint64_t>({5, 15, 40});
    character.created_weight = dice.one_of<uint64_t>({10, 40, 200});
}

// Small and short, too.
void choose_dispatch(Dice& dice, core::PoolConfig& config) {
    config.dispatch = true;
    config.supervisor_permille = dice.one_of<uint32_t>({0, 300, 500, 500, 1000});
    config.attempts_max = dice.one_of<uint32_t>({0, 1, 2, 3, 10});
    config.stale_lock_timeout_ns = dice.one_of<uint64_t>({0, 5, 20, 80, shm::kNever});
    config.probe_timeout_ns = dice.one_of<uint64_t>({0, 5, 20, 80, shm::kNever});
    config.price_factor_permille = dice.one_of<uint32_t>({0, 0, 1000, 1500, 2000});
}

void choose_dispatch_frequencies(Dice& dice, Character& character) {
    character.dispatched = true;
    character.entries = dice.one_of<uint64_t>({2, 4, 7, 12, 12});
    character.supervisor_percent = dice.one_of<uint64_t>({0, 30, 60});
    character.named_percent = dice.one_of<uint64_t>({60, 95, 100});
    character.entry_weight = dice.one_of<uint64_t>({15, 40, 90});
    character.first_read_weight = dice.one_of<uint64_t>({1, 3, 20});
    character.read_weight = dice.one_of<uint64_t>({2, 8, 20});
    character.operation_weight = dice.one_of<uint64_t>({15, 40, 120});
    character.worker_weight = dice.one_of<uint64_t>({10, 30, 70});
    character.process_weight = dice.one_of<uint64_t>({5, 20, 50});
}

// Pools that take such claims, more than one.
void choose_several(Dice& dice, Character& character) {
    character.several = true;
    character.sessions = dice.one_of<size_t>({2, 3, 4, 6});
    character.claim_weight = dice.one_of<uint64_t>({30, 60, 90});
    character.release_weight = dice.one_of<uint64_t>({12, 30, 60});
}

void choose_of_several(Dice& dice, PoolSpec& pool) {
    if (dice.percent(6)) return;
    pool.vector.clear();
    pool.config.expiry = shm::ExpiryMode::kCooperative;
    pool.required_label.clear();
    if (dice.percent(80)) pool.config.when_busy = WhenBusy::kWait;
    if (dice.percent(70)) pool.config.backlog_max = 64;
}

// Few rows of each, so that they run out; pools that suit.
void choose_gangs(Dice& dice, Character& character, core::Limits& limits) {
    character.gangs = true;
    character.large = false;
    character.priorities = character.elastic || dice.percent(35);
    character.sessions = dice.one_of<size_t>({2, 3, 4, 6});
    character.claim_weight = dice.one_of<uint64_t>({30, 60, 90});
    character.release_weight = dice.one_of<uint64_t>({12, 30, 60});
    limits.applications = dice.one_of<uint32_t>({4, 8, 16, 64});
    limits.groups = dice.one_of<uint32_t>({3, 8, 64, 64});
    limits.tasks = dice.one_of<uint32_t>({4, 16, 64, 64});
}

void choose_of_gangs(Dice& dice, PoolSpec& pool) {
    pool.config.gang_max = dice.one_of<uint32_t>({2, 4, 64, 64});
    if (dice.percent(80)) pool.config.when_busy = WhenBusy::kWait;
    if (dice.percent(80)) pool.config.backlog_max = 64;
    if (dice.percent(70)) pool.required_label.clear();
}

void choose_pools(Dice& dice, const Character& character, std::vector<PoolSpec>& pools) {
    const size_t most = character.accounts || character.elastic ? 2 : character.gangs ? 3 : 5;
    const size_t least = character.several ? 2 : 1;
    const size_t count = character.large ? 2 : dice.between(least, most);
    for (size_t i = 0; i < count; ++i) {
        uint64_t counted_percent = character.large ? 80 : 40;
        if (character.promises) counted_percent = 0;
        if (character.elastic && !character.accounts) counted_percent = 5;
        PoolSpec pool = dice.percent(counted_percent) ? counted_pool(dice, character)
                                                      : worker_pool(dice, character);
        if (character.accounts && dice.percent(90)) {
            choose_account_order(dice, character, pool.config);
        }
        if (character.priorities && dice.percent(80)) pool.config.order = shm::PoolOrder::kPriority;
        const bool counted = pool.config.kind == shm::PoolKind::kCounted;
        if (character.elastic && !counted && dice.percent(90)) {
            choose_elastic(dice, pool.config);
            const bool is_dispatched = character.dispatched && dice.percent(95);
            if (is_dispatched || character.accounts ||
                pool.config.expiry == shm::ExpiryMode::kLazy || dice.percent(50)) {
                pool.vector.clear();
            }
            choose_sizes(dice, pool);
            if (is_dispatched) choose_dispatch(dice, pool.config);
        }
        if (character.several) choose_of_several(dice, pool);
        if (character.gangs) choose_of_gangs(dice, pool);
        pool.name = "pool" + std::to_string(i);
        pools.push_back(pool);
    }
}

}  // namespace

Character choose_character(Dice& dice, Journal& journal, Flavour flavour) {
    Character character =
        flavour == Flavour::kAccounts ? choose_account_frequencies(dice) : choose_frequencies(dice);
    const bool is_elastic = flavour == Flavour::kElastic || flavour == Flavour::kDispatched ||
                            flavour == Flavour::kElasticGangs;
    const bool has_gangs = flavour == Flavour::kGangs || flavour == Flavour::kElasticGangs;
    character.priorities = flavour == Flavour::kPriorities || is_elastic;
    if (is_elastic) choose_elastic_frequencies(dice, character);
    if (flavour == Flavour::kSeveral) choose_several(dice, character);
    if (has_gangs) character.large = false;
    if (flavour == Flavour::kDispatched) choose_dispatch_frequencies(dice, character);
    if (flavour == Flavour::kAccounts && dice.percent(40)) choose_elastic_accounts(dice, character);
    choose_limits(dice, character, journal.limits);
    if (has_gangs) choose_gangs(dice, character, journal.limits);
    choose_pools(dice, character, journal.pools);
    if (character.dispatched) journal.limits.entries = dice.one_of<uint32_t>({3, 8, 64, 64, 64});
    uint32_t counted = 0;
    for (const PoolSpec& pool : journal.pools)
        counted += pool.config.slots;
    journal.limits.slots = std::max(journal.limits.slots, counted + 8);  // and some to announce
    if (character.accounts) {
        // Labels, limits and costs lie in the arena too, and how they do is not for the document.
        journal.limits.arena_blocks = 4000;
        journal.limits.claims = 256;
        journal.limits.leases = dice.one_of<uint32_t>({8, 64, 64, 64});
        journal.limits.slots = counted + 40;
    }
    return character;
}

PoolSpec changed_pool(Dice& dice, const Character& character, const PoolSpec& pool) {
    const bool counted = pool.config.kind == shm::PoolKind::kCounted;
    PoolSpec other = counted ? counted_pool(dice, character) : worker_pool(dice, character);
    const bool by_account = pool.config.order == shm::PoolOrder::kAccount;
    if (by_account) choose_account_order(dice, character, other.config);
    if (!by_account) other.config.order = pool.config.order;
    other.name = pool.name;
    if (pool.config.workers_max != 0) choose_elastic(dice, other.config);
    if (pool.config.dispatch) choose_dispatch(dice, other.config);
    if (dice.percent(5)) return other;  // it may be that its expiry cannot change
    const core::PoolConfig& old = pool.config;
    other.config.expiry = old.expiry;
    if (old.expiry != shm::ExpiryMode::kCooperative) other.config.grace_ns = 0;
    const uint32_t resized = old.slots + static_cast<uint32_t>(dice.below(3)) - 1;
    other.config.slots = counted ? std::max(1U, resized) : 0;
    other.vector = pool.vector;
    if (character.gangs) choose_of_gangs(dice, other);
    // One made anew may have no resources, and be lazy, as no worker pool with resources may be.
    if (!counted && old.expiry == shm::ExpiryMode::kLazy) other.vector.clear();
    if (pool.config.workers_max != 0) choose_sizes(dice, other);
    other.config.payload_max = old.payload_max;
    other.config.answer_max = old.answer_max;
    other.config.attributes_max = old.attributes_max;
    return other;
}

}  // namespace dibs::naive
