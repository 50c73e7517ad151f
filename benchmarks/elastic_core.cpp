// benchmarks/elastic_core.cpp -- the core alone with an elastic pool.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/elastic_core.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "benchmarks/bulk.hpp"
#include "benchmarks/core_turn.hpp"
#include "benchmarks/tick_clock.hpp"

namespace dibs::bench {

namespace {

constexpr uint32_t kBatch = 64;

core::Limits limits_for(uint32_t waiting, uint32_t workers) {
    core::Limits limits;
    limits.pools = 1;
    limits.slots = workers + 1;
    limits.claims = waiting + workers + kBatch;
    limits.leases = workers + kBatch;
    limits.sessions = limits.claims / shm::kTagsMax + 2;
    limits.arena_blocks = 64;
    limits.log_images = 8192;
    limits.log_stores = 4096;
    return limits;
}

}  // namespace

ElasticCore::ElasticCore(uint32_t waiting, uint32_t workers, Part part)
    : memory_(core::state_size(limits_for(waiting, workers))), part_(part) {
    const core::Limits limits = limits_for(waiting, workers);
    core::format_state(memory_.bytes(), limits);
    core_ = std::make_unique<core::Core>(memory_.bytes());
    core::PoolConfig config;
    config.name = "vm";
    config.kind = shm::PoolKind::kWorker;
    config.order = shm::PoolOrder::kPriority;
    config.release_is_ready = true;
    config.backlog_max = limits.claims;
    config.workers_max = workers;
    config.creates_max = 0;
    turn([&] {
        std::string why;
        pool_ = core_->set_pool(config, &why);
        if (pool_ == shm::kNoRow || !core_->set_type({.name = "vm", .pool = "vm"}, &why)) {
            throw std::runtime_error("the core takes no elastic pool: " + why);
        }
        host_ = core_->open_session({.uid = 1000, .pid = 1000});
    });
    for (uint32_t left = waiting + workers; left != 0;) {
        turn([&] {
            const core::SessionId session =
                core_->open_session({.uid = 1000, .pid = 1000, .tags_max = shm::kTagsMax});
            for (uint16_t tag = 0; tag < shm::kTagsMax && left != 0; ++tag, --left)
                claim(session, tag);
        });
    }
    turn([&] { core_->apply(core::Provide{.session = host_, .pool = pool_, .type = "vm"}); });
    while (!orders_.empty() || !confirmed_.empty()) {
        turn([&] {
            for (uint32_t i = 0; i < kBatch && !orders_.empty(); ++i) {
                core::Announce worker{.session = host_, .pool = pool_, .ready = true};
                worker.order = worker_ = orders_.back();
                orders_.pop_back();
                core_->apply(worker);
            }
            for (const core::WorkerWord& word : std::exchange(confirmed_, {}))
                core_->apply(word);
        });
    }
    if (leases_.size() != workers) throw std::runtime_error("not every worker is leased");
}

template <class Commands>
void ElasticCore::turn(const Commands& commands) {
    play_turn(*core_, now_, commands, [&] { follow(); });
}

void ElasticCore::follow() {
    for (const core::Decision& told : core_->decisions()) {
        if (told.kind == core::DecisionKind::kCreate) orders_.push_back(told.id);
        if (told.kind == core::DecisionKind::kGrant) {
            leases_.push_back({told.session, told.tag, told.id, told.fence});
        }
        if (told.kind != core::DecisionKind::kAssign) continue;
        core::WorkerWord word{.kind = core::WorkerWord::Kind::kConfirm, .session = host_};
        word.slot = told.id;
        word.round = told.round;
        confirmed_.push_back(word);
    }
}

void ElasticCore::claim(core::SessionId session, uint16_t tag) {
    core::Claim command;
    command.session = session;
    command.tag = tag;
    command.pool = pool_;
    core_->apply(command);
}

void ElasticCore::look() {
    turn([&] { core_->apply(core::Provisioned{.session = host_, .slot = worker_}); });
}

// Whose lease has ended waits again, at the backlog's end.
void ElasticCore::serve() {
    oldest_ = (oldest_ + 1) % (leases_.size() - 1);
    std::swap(leases_[oldest_], leases_.back());
    const Lease lease = leases_.back();
    leases_.pop_back();
    turn([&] {
        core_->apply(core::Release{lease.session, false, lease.id, lease.fence, 0});
        claim(lease.session, lease.tag);
    });
    turn([&] {
        for (const core::WorkerWord& word : std::exchange(confirmed_, {}))
            core_->apply(word);
    });
}

void ElasticCore::measure(uint32_t operations, Samples& out) {
    const size_t leased = leases_.size();
    for (uint32_t done = 0; done < operations; done += kBulk) {
        const uint64_t first = ticks();
        for (uint32_t i = 0; i < kBulk; ++i)
            part_ == Part::kNothing ? look() : serve();
        out.add(elapsed_ns(first, ticks()) / kBulk);
    }
    if (leases_.size() != leased) throw std::runtime_error("a ready worker had no claim");
}

}  // namespace dibs::bench
