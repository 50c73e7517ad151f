// benchmarks/route_core.cpp -- the core alone with pools that one claim may be served from.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/route_core.hpp"

#include <stdexcept>
#include <string>

#include "benchmarks/bulk.hpp"
#include "benchmarks/tick_clock.hpp"
#include "broker/core/look.hpp"

namespace dibs::bench {

namespace {

core::Limits limits() {
    core::Limits limits;
    limits.pools = shm::kSetMembersMax;
    limits.sessions = 1;
    limits.slots = 1024;
    limits.claims = 64;
    limits.leases = 64;
    limits.arena_blocks = 64;
    limits.log_images = 8192;
    limits.log_stores = 4096;
    return limits;
}

}  // namespace

Ranking::Ranking() : memory_(core::state_size(limits())) {
    core::format_state(memory_.bytes(), limits());
    core_ = std::make_unique<core::Core>(memory_.bytes());
    core_->begin_turn(1);
    for (uint32_t at = 0; at < members_.size(); ++at) {
        const std::string name = "pool" + std::to_string(at);
        core::PoolConfig config;
        config.name = name;
        config.slots = 1 + at * 7 % 16;  // in no order
        std::string why;
        members_[at].pool = core_->set_pool(config, &why);
        if (members_[at].pool.is_none()) throw std::runtime_error("no pool: " + why);
    }
    core_->decide();
    core_->commit();
    core_->clear();
}

void Ranking::measure(uint32_t operations, Samples& out) {
    const core::Route route{.members = members_};
    for (uint32_t done = 0; done < operations; done += kBulk) {
        uint32_t ranked = 0;
        const uint64_t first = ticks();
        for (uint32_t i = 0; i < kBulk; ++i)
            ranked += core::Look::ranking(*core_, route).count;
        const uint64_t last = ticks();
        if (ranked != kBulk * members_.size()) throw std::runtime_error("a member is missing");
        out.add(elapsed_ns(first, last) / kBulk);
    }
}

}  // namespace dibs::bench
