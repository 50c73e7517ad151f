// tests/sim/character.cpp -- what is drawn for a play.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/character.hpp"

#include <sstream>

namespace dibs::sim {

namespace {

constexpr uint64_t kMillisecond = 1'000'000;

const char* name_of(shm::ExpiryMode mode) {
    if (mode == shm::ExpiryMode::kStrict) return "strict";
    return mode == shm::ExpiryMode::kLazy ? "lazy" : "cooperative";
}

std::vector<PoolPlan> draw_pools(Dice& dice, bool by_account) {
    using shm::ExpiryMode;
    const auto one_of = [&](ExpiryMode one, ExpiryMode other) {
        return dice.one_in(2) ? one : other;
    };
    std::vector<PoolPlan> pools = {
        {.name = "tokens", .slots = 4, .interval_max_ns = 40 * kMillisecond},
        {.name = "gpus", .slots = 2, .interval_max_ns = 300 * kMillisecond},
        {.name = "web", .has_workers = true, .interval_max_ns = 200 * kMillisecond},
        {.name = "quick",
         .has_workers = true,
         .release_is_ready = true,
         .interval_max_ns = 200 * kMillisecond}};
    if (dice.one_in(2)) pools[1].expiry = one_of(ExpiryMode::kStrict, ExpiryMode::kLazy);
    if (dice.one_in(3)) pools[2].expiry = one_of(ExpiryMode::kStrict, ExpiryMode::kLazy);
    // Not every play parks: it would hide what happens to each claim in its own turn.
    for (PoolPlan& pool : pools) {
        if (pool.expiry == ExpiryMode::kStrict || dice.one_in(2)) continue;
        pool.quantum_ns = (1 + dice.below(dice.one_in(2) ? 100 : 20'000)) * 1'000;
    }
    if (!by_account) return pools;
    pools.push_back({.name = "shares",
                     .slots = 3,
                     .interval_max_ns = 100 * kMillisecond,
                     .by_account = true,
                     .expiry = dice.one_in(3) ? ExpiryMode::kStrict : ExpiryMode::kCooperative});
    pools.push_back({.name = "boxes",
                     .has_workers = true,
                     .release_is_ready = dice.one_in(3),
                     .interval_max_ns = 100 * kMillisecond,
                     .by_account = true});
    return pools;
}

// Whoever takes nothing for free earns so much that he does not stay in debt.
std::vector<AccountSettings> draw_accounts(Dice& dice) {
    std::vector<AccountSettings> accounts;
    for (uint32_t i = 0; i + 1 < kUids; ++i) {
        AccountSettings account;
        account.name = "uid:" + std::to_string(kFirstUid + i);
        account.free_tasks_disabled = dice.one_in(4);
        const auto slots = static_cast<int64_t>(account.free_tasks_disabled ? 20 : dice.below(4));
        for (uint64_t p = dice.below(3); p > 0; --p)
            account.rate.push_back(static_cast<int64_t>(dice.below(2)) * kMicros / 2);
        account.rate.push_back(slots * kMicros);
        account.charge_max_ns = (1 + dice.below(200)) * kMillisecond;
        for (uint64_t p = dice.below(4); p > 0; --p)
            account.balance.push_back((static_cast<int64_t>(dice.below(70)) - 20) * kMicros / 1000);
        if (dice.one_in(3)) account.fanout_max = static_cast<uint32_t>(1 + dice.below(2));
        if (dice.one_in(3)) account.label_limits = {{"size", 1}};
        accounts.push_back(account);
    }
    return accounts;
}

}  // namespace

Character::Character(Dice& dice) {
    const auto some = [&](uint64_t value) { return dice.one_in(2) ? value : uint64_t{0}; };
    weather.switch_one_in = 1 + dice.below(8);
    weather.step_ns = 1U << (6 + dice.below(9));
    weather.stall_one_in = some(200 + dice.below(2000));
    weather.stall_ns = dice.one_in(2) ? 20'000'000 : 500'000'000;
    weather.lose_one_in = some(50 + dice.below(200));
    weather.double_one_in = some(20 + dice.below(50));
    weather.spurious_one_in = some(100 + dice.below(500));
    weather.spare_one_in = some(2 + dice.below(5));
    clients = static_cast<uint32_t>(2 + dice.below(8));
    workers = static_cast<uint32_t>(dice.below(5));
    check_every = dice.one_in(4) ? 1 : 16;
    process_dies_one_in = some(3000 + dice.below(10'000));
    broker_dies_one_in = some((dice.one_in(2) ? 2000 : 8000) + dice.below(20'000));
    loud_deaths = dice.one_in(3);
    scarce = dice.one_in(3);
    adoption = dice.one_in(2);
    pools = draw_pools(dice, !dice.one_in(3));
    if (pools.back().by_account) accounts = draw_accounts(dice);
    if (pools.back().by_account || dice.one_in(8)) {
        operators = static_cast<uint32_t>(dice.below(3));
    }
    limits = {.pools = 6,
              .sessions = scarce ? 6U : 32U,
              .slots = scarce ? 14U : 64U,
              .claims = scarce ? 6U : 256U,
              .leases = scarce ? 4U : 128U,
              .arena_blocks = scarce ? 6U : 64U,
              .accounts = scarce ? 5U : 16U,
              .label_sets = scarce ? 3U : 32U,
              .applications = 1,
              .groups = 1,
              .tasks = 1};
}

std::string Character::text() const {
    std::ostringstream out;
    out << clients << " clients, " << workers << " workers, " << operators << " operators, step "
        << weather.step_ns << " ns; one in: stall " << weather.stall_one_in << " ("
        << weather.stall_ns / kMillisecond << " ms), lost " << weather.lose_one_in << ", doubled "
        << weather.double_one_in << ", spurious " << weather.spurious_one_in << ", spared "
        << weather.spare_one_in << ", process dies " << process_dies_one_in << ", broker dies "
        << broker_dies_one_in << (loud_deaths ? ", loudly" : "") << (scarce ? "; scarce rows" : "")
        << (adoption ? "; adoption" : "");
    for (const PoolPlan& pool : pools)
        out << "; " << pool.name << ' ' << name_of(pool.expiry) << ", quantum "
            << pool.quantum_ns / 1000 << " us";
    return out.str();
}

Config Character::configuration(Dice& dice) const {
    Config config;
    config.limits = limits;
    config.spin_ns = dice.one_in(2) ? 0 : 5000;
    config.accounts = accounts;
    for (const PoolPlan& plan : pools) {
        PoolSettings pool;
        pool.name = plan.name;
        pool.values.kind = plan.has_workers ? shm::PoolKind::kWorker : shm::PoolKind::kCounted;
        pool.values.slots = plan.slots;
        pool.values.backlog_max = scarce ? 4 : 64;
        pool.values.payload_max = 512;
        pool.values.answer_max = plan.has_workers ? 32 : 0;
        pool.values.attributes_max = 16;
        pool.values.reservation_ttl_ns = 10 * kMillisecond;
        pool.values.interval_max_ns = plan.interval_max_ns;
        const bool graceful = plan.expiry == shm::ExpiryMode::kCooperative;
        pool.values.grace_ns = graceful && dice.one_in(2) ? 3 * kMillisecond : 0;
        pool.values.release_is_ready = plan.release_is_ready;
        pool.values.expiry = plan.expiry;
        pool.values.quantum_ns = plan.quantum_ns;
        pool.values.park = plan.has_workers && plan.quantum_ns != 0;
        if (plan.by_account) {
            pool.values.order = shm::PoolOrder::kAccount;
            pool.values.preemption_disabled = dice.one_in(4);
            pool.values.promote_threshold = static_cast<int64_t>(dice.below(20)) * 1000;
            pool.values.demote_threshold = -static_cast<int64_t>(dice.below(20)) * 1000;
            pool.values.account_expiry_ns = (1 + dice.below(60)) * kMillisecond;
            pool.values.queue_timeout_ns = (1 + dice.below(30)) * kMillisecond;
            pool.values.request_age_max_ns = (1 + dice.below(200)) * kMillisecond;
        }
        config.pools.push_back(pool);
    }
    return config;
}

}  // namespace dibs::sim
