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

core::Limits limits_for(uint32_t slots) {
    core::Limits limits;
    limits.pools = 1;
    limits.sessions = 1;
    limits.slots = slots;
    limits.claims = 4 * kBulk;
    limits.leases = 4 * kBulk;
    limits.arena_blocks = 64;
    limits.log_images = 8192;
    limits.log_stores = 4096;
    return limits;
}

}  // namespace

LoneCore::LoneCore(uint32_t slots) {
    const core::Limits limits = limits_for(slots);
    storage_.resize(core::state_size(limits) / sizeof(Line) + 1);
    const std::span<std::byte> state(storage_.front().bytes, storage_.size() * sizeof(Line));
    core::format_state(state, limits);
    core_ = std::make_unique<core::Core>(state);
    leases_.reserve(kBulk);

    core::PoolConfig config;
    config.name = "counted";
    config.slots = slots;
    std::string why;
    core_->begin_turn(now_);
    pool_ = core_->set_pool(config, &why);
    if (pool_ == shm::kNoRow) throw std::runtime_error("the core takes no pool: " + why);
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

void LoneCore::claim(uint32_t count, uint32_t batch) {
    core::Claim command;
    command.session = session_;
    command.pool = pool_;
    uint32_t tag = 0;
    while (tag < count) {
        core_->begin_turn(now_ += 100);
        for (uint32_t i = 0; i < batch && tag < count; ++i) {
            command.tag = static_cast<uint16_t>(tag++);
            core_->apply(command);
        }
        core_->decide();
        for (const core::Decision& decision : core_->decisions()) {
            if (decision.kind == core::DecisionKind::kGrant) {
                leases_.push_back({decision.id, decision.fence});
            }
        }
        core_->commit();
        core_->clear();
    }
    if (leases_.size() != count) throw std::runtime_error("the core did not grant every claim");
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

CoreClaim::CoreClaim(uint32_t slots, uint32_t batch, Part part)
    : core_(slots), batch_(batch), part_(part) {}

void CoreClaim::measure(uint32_t operations, Samples& out) {
    for (uint32_t done = 0; done < operations; done += kBulk) {
        const uint64_t first = ticks();
        core_.claim(kBulk, batch_);
        const uint64_t granted = ticks();
        core_.release(batch_);
        const uint64_t last = ticks();
        const double ns =
            part_ == Part::kClaim ? elapsed_ns(first, granted) : elapsed_ns(granted, last);
        out.add(ns / kBulk);
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
