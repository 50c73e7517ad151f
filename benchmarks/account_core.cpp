// benchmarks/account_core.cpp -- the core alone with a pool ordered by account.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/account_core.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>

#include "benchmarks/bulk.hpp"
#include "benchmarks/tick_clock.hpp"

namespace dibs::bench {

namespace {

constexpr uint32_t kSpare = 1024;
constexpr size_t kMissCells = size_t{32} << 20U;  // 128 MiB

// What a slot has, and what a claim wants: every slot can serve some of the claims that want more
// than nothing.
constexpr std::array<std::array<std::string_view, 2>, 4> kSlotLabels = {
    {{"arm", "gpu"}, {"arm", "large"}, {"gpu", "x86"}, {"large", "x86"}}};
constexpr std::array<std::string_view, 8> kWanted = {"", "arm", "", "gpu", "", "large", "", "x86"};

core::Limits limits_for(const AccountSetup& setup) {
    core::Limits limits;
    limits.pools = 1;
    limits.slots = setup.slots;
    limits.claims = setup.slots + setup.waiting + kSpare;
    limits.leases = setup.slots + kSpare;
    limits.sessions = limits.claims / shm::kTagsMax + 2;
    limits.arena_blocks = 2048;
    limits.log_images = 8192;
    limits.log_stores = 4096;
    limits.accounts = setup.accounts;
    return limits;
}

}  // namespace

AccountCore::AccountCore(const AccountSetup& setup) : setup_(setup) {
    const core::Limits limits = limits_for(setup);
    storage_.resize(core::state_size(limits) / sizeof(Line) + 1);
    const std::span<std::byte> state(storage_.front().bytes, storage_.size() * sizeof(Line));
    core::format_state(state, limits);
    core_ = std::make_unique<core::Core>(state);
    open_pool();
    open_accounts();
    open_sessions();
    report_workers();
    if (setup.waiting == 0) return;
    for (uint32_t left = setup.slots + setup.waiting; left != 0;) {
        const uint32_t some = std::min(left, setup.batch);
        turn([&] {
            for (uint32_t i = 0; i < some; ++i)
                claim_one();
        });
        left -= some;
    }
    if (leases_.size() != setup.slots) throw std::runtime_error("not every slot is leased");
}

template <class Commands>
void AccountCore::turn(const Commands& commands) {
    core_->begin_turn(now_ += 100);
    commands();
    for (;;) {
        core_->decide();
        follow();
        core_->commit();
        core_->clear();
        if (!core_->cut()) return;
        core_->begin_turn(now_ += 100);
    }
}

void AccountCore::follow() {
    for (const core::Decision& told : core_->decisions()) {
        if (told.kind != core::DecisionKind::kGrant) continue;
        leases_.push_back({told.session, told.tag, told.id, told.fence});
    }
}

void AccountCore::open_pool() {
    core::PoolConfig config;
    config.name = "workers";
    config.order = shm::PoolOrder::kAccount;
    config.kind = shm::PoolKind::kWorker;
    config.release_is_ready = true;
    config.backlog_max = setup_.waiting + kSpare;
    turn([&] {
        std::string why;
        pool_ = core_->set_pool(config, &why);
        if (pool_ == shm::kNoRow) throw std::runtime_error("the core takes no pool: " + why);
    });
}

// Twenty accounts of each class, with more than they will use.
void AccountCore::open_accounts() {
    for (uint32_t i = 0; i < setup_.accounts; ++i)
        names_.push_back("account" + std::to_string(i));
    for (uint32_t i = 0; i < setup_.accounts; ++i) {
        std::array<int64_t, shm::kClasses> balance = {};
        std::array<int64_t, shm::kClasses> rate = {};
        balance[i % shm::kClasses] = 500'000'000;
        rate[i % shm::kClasses] = 1'000'000;
        turn([&] {
            std::string why;
            if (!core_->set_account({.name = names_[i],
                                     .rate = rate,
                                     .charge_max_ns = 500'000'000'000,
                                     .balance = balance},
                                    &why)) {
                throw std::runtime_error("the core takes no account: " + why);
            }
        });
    }
}

void AccountCore::open_sessions() {
    const uint32_t tags = setup_.slots + setup_.waiting + kSpare;
    for (uint32_t tag = 0; tag < tags; tag += shm::kTagsMax) {
        turn([&] {
            const uint32_t session = core_->open_session({.uid = 1000, .pid = 1000});
            for (uint32_t i = 0; i < shm::kTagsMax; ++i)
                free_.push_back({session, static_cast<uint16_t>(i)});
        });
    }
}

void AccountCore::report_workers() {
    for (uint32_t first = 0; first < setup_.slots; first += kBulk) {
        turn([&] {
            for (uint32_t i = first; i < std::min(first + kBulk, setup_.slots); ++i) {
                const std::string name = "w" + std::to_string(i);
                core::Report report;
                report.pool = pool_;
                report.worker = name;
                report.labels = kSlotLabels[i % kSlotLabels.size()];
                core_->apply(report);
            }
        });
    }
}

void AccountCore::claim_one() {
    const uint64_t turn_of = claims_++;
    const std::string_view label = kWanted[turn_of / names_.size() % kWanted.size()];
    core::ClaimTerms terms;
    terms.account = names_[turn_of % names_.size()];
    if (!label.empty()) terms.labels = {&label, 1};
    terms.preempt_mode = shm::PreemptMode::kForbidden;
    core::Claim command;
    command.session = free_.back().session;
    command.tag = free_.back().tag;
    command.pool = pool_;
    command.terms = &terms;
    free_.pop_back();
    core_->apply(command);
}

void AccountCore::release_one() {
    const Lease lease = leases_.front();
    leases_.pop_front();
    free_.push_back({lease.session, lease.tag});
    core_->apply(core::Release{lease.session, false, lease.id, lease.fence, 0});
}

void AccountCore::claim(uint32_t count) {
    for (uint32_t done = 0; done < count; done += setup_.batch) {
        turn([&] {
            for (uint32_t i = done; i < std::min(done + setup_.batch, count); ++i)
                claim_one();
        });
    }
    if (leases_.size() != count) throw std::runtime_error("the core did not grant every claim");
}

void AccountCore::release() {
    while (!leases_.empty()) {
        turn([&] {
            for (uint32_t i = 0; i < setup_.batch && !leases_.empty(); ++i)
                release_one();
        });
    }
}

void AccountCore::exchange(uint32_t count) {
    for (uint32_t done = 0; done < count; done += setup_.batch) {
        turn([&] {
            for (uint32_t i = 0; i < setup_.batch; ++i) {
                release_one();
                claim_one();
            }
        });
    }
}

void AccountCore::advance(uint32_t turns) {
    for (uint32_t i = 0; i < turns; ++i)
        turn([&] { now_ += 10'000; });
}

void AccountClaim::measure(uint32_t operations, Samples& out) {
    for (uint32_t done = 0; done < operations; done += kBulk) {
        const uint64_t first = ticks();
        switch (part_) {
            case Part::kClaim:
                core_.claim(kBulk);
                break;
            case Part::kExchange:
                core_.exchange(kBulk);
                break;
            case Part::kAdvance:
                core_.advance(kBulk);
                break;
        }
        out.add(elapsed_ns(first, ticks()) / kBulk);
        if (part_ == Part::kClaim) core_.release();
    }
}

// One cycle through all cells, in an order that no prefetcher guesses.
MissFloor::MissFloor() : next_(kMissCells) {
    std::vector<uint32_t> order(kMissCells / 16);  // one cell of each line
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    for (size_t i = 0; i < order.size(); ++i)
        next_[size_t{order[i]} * 16] = order[(i + 1) % order.size()] * 16;
}

void MissFloor::measure(uint32_t operations, Samples& out) {
    for (uint32_t done = 0; done < operations; done += kBulk) {
        const uint64_t first = ticks();
        for (uint32_t i = 0; i < kBulk; ++i)
            at_ = next_[at_];
        out.add(elapsed_ns(first, ticks()) / kBulk);
    }
}

}  // namespace dibs::bench
