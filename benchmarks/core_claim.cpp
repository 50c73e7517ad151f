// benchmarks/core_claim.cpp -- the core alone.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/core_claim.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

#include "benchmarks/bulk.hpp"
#include "benchmarks/tick_clock.hpp"

namespace dibs::bench {

namespace {

constexpr size_t kLinesPerClaim = 10;
constexpr size_t kTableLines = 4096 * kLinesPerClaim;

core::Limits limits_of_pools(uint32_t slots, uint32_t pools) {
    core::Limits limits;
    limits.pools = pools;
    limits.sessions = 1;
    limits.slots = slots * pools;
    limits.claims = 4 * kBulk;
    limits.leases = 4 * kBulk * pools;
    limits.arena_blocks = 64;
    limits.log_images = 8192;
    limits.log_stores = 4096;
    return limits;
}

}  // namespace

LoneCore::LoneCore(uint32_t slots, uint32_t pools)
    : memory_(core::state_size(limits_of_pools(slots, pools))) {
    core::format_state(memory_.bytes(), limits_of_pools(slots, pools));
    core_ = std::make_unique<core::Core>(memory_.bytes());
    leases_.reserve(kBulk);

    core_->begin_turn(now_);
    for (uint32_t at = 0; at < pools; ++at) {
        const std::string name = "counted" + std::to_string(at);
        core::PoolConfig config;
        config.name = name;
        config.slots = slots;
        std::string why;
        const auto pool = core_->set_pool(config, &why);
        if (pool == shm::kNoRow) throw std::runtime_error("the core takes no pool: " + why);
        if (at == 0) {
            pool_ = pool;
        } else {
            also_.push_back({.pool = pool});
        }
    }
    session_ = core_->open_session({.uid = 1000, .pid = 1000});
    do {
        core_->decide();
        core_->commit();
        core_->clear();
        core_->begin_turn(++now_);
    } while (core_->work_left());
    core_->decide();
    core_->commit();
    core_->clear();
}

void LoneCore::finish_turn() {
    core_->decide();
    for (const core::Decision& decision : core_->decisions()) {
        if (decision.kind == core::DecisionKind::kGrant && decision.part == 0) {
            leases_.push_back({decision.id, decision.fence});
        }
    }
    core_->commit();
    core_->clear();
}

void LoneCore::claim(uint32_t count, uint32_t batch) {
    core::Claim command;
    command.session = session_;
    command.pool = pool_;
    command.also = also_;
    uint32_t tag = 0;
    while (tag < count) {
        core_->begin_turn(now_ += 100);
        for (uint32_t i = 0; i < batch && tag < count; ++i) {
            command.tag = static_cast<uint16_t>(tag++);
            core_->apply(command);
        }
        finish_turn();
    }
    if (leases_.size() != count) throw std::runtime_error("the core did not grant every claim");
}

uint64_t LoneCore::claim_alone(uint32_t count) {
    core::Claim command;
    command.session = session_;
    command.pool = pool_;
    uint64_t taken = 0;
    for (uint32_t tag = 0; tag < count; ++tag) {
        command.tag = static_cast<uint16_t>(tag);
        command.user_data = tag;
        core_->begin_turn(now_ += 100);
        const uint64_t first = ticks();
        core::Core::Foreseen seen;
        if (!core_->foresee(command, &seen)) throw std::runtime_error("no grant is foreseen");
        shm::Completion told = {};
        told.sequence = tag + 1;
        shm::set_grant(told, 1, command.tag, seen.reason, 0);
        told.user_data = command.user_data;
        told.id = seen.lease;
        told.fence = seen.fence;
        told.value = seen.interval_ns;
        told.claim = seen.claim;
        core_->pledge(command, told);
        taken += ticks() - first;
        core_->apply(command);
        finish_turn();
        const bool kept = leases_.size() == tag + 1 && leases_.back().id == told.id &&
                          leases_.back().fence == told.fence;
        if (!kept) throw std::runtime_error("the core did not keep its pledge");
    }
    return taken;
}

void LoneCore::release(uint32_t batch) {
    size_t next = 0;
    while (next < leases_.size()) {
        core_->begin_turn(now_ += 100);
        for (uint32_t i = 0; i < batch && next < leases_.size(); ++i, ++next) {
            core_->apply(core::Release{session_, false, leases_[next].id, leases_[next].fence, 0});
        }
        core_->decide();
        core_->commit();
        core_->clear();
    }
    leases_.clear();
}

CoreClaim::CoreClaim(uint32_t slots, uint32_t batch, Part part, uint32_t pools)
    : core_(slots, pools), batch_(batch), part_(part) {}

void CoreClaim::measure(uint32_t operations, Samples& out) {
    for (uint32_t done = 0; done < operations; done += kBulk) {
        const uint64_t first = ticks();
        uint64_t pledged = 0;
        if (part_ == Part::kPledge) {
            pledged = core_.claim_alone(kBulk);
        } else {
            core_.claim(kBulk, batch_);
        }
        const uint64_t granted = ticks();
        core_.release(batch_);
        const uint64_t last = ticks();
        const double ns = part_ == Part::kPledge    ? elapsed_ns(0, pledged)
                          : part_ == Part::kClaim   ? elapsed_ns(first, granted)
                          : part_ == Part::kRelease ? elapsed_ns(granted, last)
                                                    : elapsed_ns(first, last);
        out.add(ns / kBulk);
    }
}

void ClockFloor::measure(uint32_t operations, Samples& out) {
    for (uint32_t done = 0; done < operations; done += kBulk) {
        uint64_t taken = 0;
        for (uint32_t i = 0; i < kBulk; ++i) {
            const uint64_t first = ticks();
            taken += ticks() - first;
        }
        out.add(elapsed_ns(0, taken) / kBulk);
    }
}

CopyFloor::CopyFloor() : table_(kTableLines), log_(kLinesPerClaim) {}

void CopyFloor::measure(uint32_t operations, Samples& out) {
    constexpr size_t kBytes = kLinesPerClaim * sizeof(Line);
    for (uint32_t done = 0; done < operations; done += kBulk) {
        const uint64_t first = ticks();
        for (uint32_t i = 0; i < kBulk; ++i) {
            Line* lines = &table_[at_];
            std::memcpy(log_.data(), lines, kBytes);
            __asm__ __volatile__("" ::: "memory");  // both copies happen
            std::memcpy(lines, log_.data(), kBytes);
            __asm__ __volatile__("" ::: "memory");
            at_ = at_ + 2 * kLinesPerClaim <= kTableLines ? at_ + kLinesPerClaim : 0;
        }
        out.add(elapsed_ns(first, ticks()) / kBulk);
    }
}

}  // namespace dibs::bench
