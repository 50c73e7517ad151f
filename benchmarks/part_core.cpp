// benchmarks/part_core.cpp -- the core alone with a pool whose slots have resources.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/part_core.hpp"

#include <array>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "benchmarks/bulk.hpp"
#include "benchmarks/tick_clock.hpp"

namespace dibs::bench {

namespace {

constexpr std::array<core::Amount, 2> kSlot = {{{"memory", 80}, {"sm", 100}}};
constexpr std::array<std::array<core::Amount, 2>, 8> kShapes = {{
    {{{"memory", 5}, {"sm", 5}}},
    {{{"memory", 10}, {"sm", 5}}},
    {{{"memory", 10}, {"sm", 20}}},
    {{{"memory", 20}, {"sm", 10}}},
    {{{"memory", 20}, {"sm", 30}}},
    {{{"memory", 30}, {"sm", 20}}},
    {{{"memory", 40}, {"sm", 10}}},
    {{{"memory", 40}, {"sm", 50}}},
}};
constexpr uint32_t kPartsPerSlot = 2;  // held, in the middle

core::Limits limits_for(uint32_t slots) {
    const uint32_t parts = slots * kPartsPerSlot + kBulk;
    core::Limits limits;
    limits.pools = 1;
    limits.sessions = parts / shm::kTagsMax + 1;
    limits.slots = slots + parts;
    limits.claims = 2 * kBulk;
    limits.leases = parts;
    limits.arena_blocks = 64;
    limits.log_images = 8192;
    limits.log_stores = 4096;
    return limits;
}

}  // namespace

PartClaim::PartClaim(uint32_t slots, uint32_t batch, Part part)
    : memory_(core::state_size(limits_for(slots))), batch_(batch), part_(part) {
    const core::Limits limits = limits_for(slots);
    core::format_state(memory_.bytes(), limits);
    core_ = std::make_unique<core::Core>(memory_.bytes());
    core::PoolConfig config;
    config.name = "hosts";
    config.slots = slots;
    config.vector = kSlot;
    std::string why;
    core_->begin_turn(now_);
    pool_ = core_->set_pool(config, &why);
    if (pool_ == shm::kNoRow) throw std::runtime_error("the core takes no pool: " + why);
    for (uint32_t session = 0; session < limits.sessions; ++session)
        (void)core_->open_session({.uid = 1000, .pid = 1000, .tags_max = shm::kTagsMax});
    do {
        finish_turn();
        core_->begin_turn(++now_);
    } while (core_->work_left());
    finish_turn();
    for (uint32_t place = limits.leases; place > 0; --place)
        places_.push_back(place - 1);
    claim(slots * kPartsPerSlot, kBulk);
}

void PartClaim::finish_turn() {
    core_->decide();
    for (const core::Decision& decision : core_->decisions()) {
        if (decision.kind != core::DecisionKind::kGrant) continue;
        leases_.push_back({decision.id, decision.fence, static_cast<uint32_t>(decision.user_data)});
    }
    core_->commit();
    core_->clear();
}

void PartClaim::claim(uint32_t count, uint32_t batch) {
    const size_t wanted = leases_.size() + count;
    core::Claim command;
    command.pool = pool_;
    for (uint32_t done = 0; done < count;) {
        core_->begin_turn(now_ += 100);
        for (uint32_t i = 0; i < batch && done < count; ++i, ++done) {
            const uint32_t place = places_.back();
            places_.pop_back();
            command.session = place / shm::kTagsMax;
            command.tag = static_cast<uint16_t>(place % shm::kTagsMax);
            command.user_data = place;
            command.least = kShapes[random_() % kShapes.size()];
            core_->apply(command);
        }
        finish_turn();
    }
    if (leases_.size() != wanted) throw std::runtime_error("the core did not grant every part");
}

void PartClaim::release(uint32_t count) {
    for (uint32_t done = 0; done < count;) {
        core_->begin_turn(now_ += 100);
        for (uint32_t i = 0; i < batch_ && done < count; ++i, ++done) {
            std::swap(leases_[random_() % leases_.size()], leases_.back());
            const Lease lease = leases_.back();
            leases_.pop_back();
            places_.push_back(lease.place);
            core_->apply(
                core::Release{lease.place / shm::kTagsMax, false, lease.id, lease.fence, 0});
        }
        finish_turn();
    }
}

void PartClaim::measure(uint32_t operations, Samples& out) {
    for (uint32_t done = 0; done < operations; done += kBulk) {
        const uint64_t first = ticks();
        release(kBulk);
        const uint64_t released = ticks();
        claim(kBulk, batch_);
        const uint64_t last = ticks();
        const double ns =
            part_ == Part::kClaim ? elapsed_ns(released, last) : elapsed_ns(first, released);
        out.add(ns / kBulk);
    }
}

}  // namespace dibs::bench
