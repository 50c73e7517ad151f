// benchmarks/dispatch_core.cpp -- the core alone with a dispatched pool.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/dispatch_core.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "benchmarks/bulk.hpp"
#include "benchmarks/core_turn.hpp"
#include "benchmarks/tick_clock.hpp"

namespace dibs::bench {

namespace {

constexpr uint32_t kReportsInTurn = 64;

core::Limits dispatch_limits(uint32_t waiting, uint32_t workers) {
    core::Limits limits;
    limits.pools = 1;
    limits.slots = workers + 1;
    limits.entries = waiting + workers;
    limits.claims = limits.leases = limits.sessions = kReportsInTurn;
    limits.arena_blocks = 64;
    limits.log_images = 8192;
    limits.log_stores = 4096;
    return limits;
}

}  // namespace

DispatchCore::DispatchCore(uint32_t waiting, uint32_t workers, Part part)
    : memory_(core::state_size(dispatch_limits(waiting, workers))),
      part_(part),
      runs_on_(workers, shm::kNoRow) {
    core::format_state(memory_.bytes(), dispatch_limits(waiting, workers));
    core_ = std::make_unique<core::Core>(memory_.bytes());
    for (uint32_t entry = 0; entry < waiting + workers; ++entry)
        entries_.push_back("e" + std::to_string(entry));
    for (uint32_t worker = 0; worker < workers; ++worker)
        workers_.push_back("w" + std::to_string(worker));
    core::PoolConfig config;
    config.name = "far";
    config.kind = shm::PoolKind::kWorker;
    config.order = shm::PoolOrder::kPriority;
    config.workers_max = workers;
    config.dispatch = true;
    turn([&] {
        std::string why;
        pool_ = core_->set_pool(config, &why);
        if (pool_ == shm::kNoRow || !core_->set_type({.name = "vm", .pool = "far"}, &why)) {
            throw std::runtime_error("the core takes no dispatched pool: " + why);
        }
        const core::SessionId cloud = core_->open_session({.uid = 1000, .pid = 1000});
        core_->apply(core::Provide{.session = cloud, .pool = pool_, .type = "vm"});
        core_->apply(core::QueueRead{.pool = pool_, .started_ns = now_});
    });
    for (uint32_t worker = 0; worker < workers;) {
        turn([&] {
            for (uint32_t i = 0; i < kReportsInTurn && worker < workers; ++i, ++worker)
                report_worker(worker, core::WorkerReport::State::kIdle);
        });
    }
    for (uint32_t entry = 0; entry < waiting + workers || !locks_.empty() || !started_.empty();) {
        turn([&] {
            for (const uint32_t locked : std::exchange(locks_, {}))
                core_->apply(core::OperationDone{.pool = pool_, .claim = entries_[locked]});
            run_started();
            for (uint32_t i = 0; i < kReportsInTurn && entry < waiting + workers; ++i, ++entry)
                report_entry(entry, core::QueueState::kQueued);
        });
    }
    if (std::find(runs_on_.begin(), runs_on_.end(), shm::kNoRow) != runs_on_.end())
        throw std::runtime_error("not every worker runs an entry");
}

template <class Commands>
void DispatchCore::turn(const Commands& commands) {
    play_turn(*core_, now_, commands, [&] { follow(); });
}

void DispatchCore::follow() {
    for (const core::Decision& told : core_->decisions()) {
        if (told.kind != core::DecisionKind::kLock && told.kind != core::DecisionKind::kStart)
            continue;
        const auto entry = static_cast<uint32_t>(std::stoul(std::string(told.entry.substr(1))));
        if (told.kind == core::DecisionKind::kLock) {
            locks_.push_back(entry);
        } else {
            started_.push_back({entry, told.slot_number});
        }
    }
}

void DispatchCore::report_worker(uint32_t worker, core::WorkerReport::State seen) {
    core_->apply(
        core::WorkerReport{.pool = pool_, .worker = workers_[worker], .type = "vm", .state = seen});
}

void DispatchCore::report_entry(uint32_t entry, core::QueueState seen) {
    core_->apply(core::EntryReport{
        .pool = pool_, .claim = entries_[entry], .state_given = true, .state = seen});
}

void DispatchCore::run_started() {
    for (const Start& start : std::exchange(started_, {})) {
        core_->apply(core::ProcessReport{
            .pool = pool_, .worker = workers_[start.worker], .claim = entries_[start.entry]});
        report_entry(start.entry, core::QueueState::kRunning);
        runs_on_[start.worker] = start.entry;
    }
}

void DispatchCore::look() {
    turn([&] { report_worker(0, core::WorkerReport::State::kRunning); });
}

// The entry that has ended is forgotten, and comes once more, behind all that wait.
double DispatchCore::free_one() {
    next_ = (next_ + 1) % static_cast<uint32_t>(runs_on_.size());
    const uint32_t ended = runs_on_[next_];
    const uint64_t first = ticks();
    turn([&] {
        core_->apply(core::ProcessReport{
            .pool = pool_, .worker = workers_[next_], .claim = entries_[ended], .exited_ns = now_});
        report_entry(ended, core::QueueState::kComplete);
    });
    turn([&] {
        for (const uint32_t locked : locks_)
            core_->apply(core::OperationDone{.pool = pool_, .claim = entries_[locked]});
    });
    const double spent_ns = elapsed_ns(first, ticks());
    if (locks_.size() != 1 || started_.size() != 1)
        throw std::runtime_error("a freed worker had no entry");
    locks_.clear();
    turn([&] {
        run_started();
        report_entry(ended, core::QueueState::kQueued);
    });
    return spent_ns;
}

void DispatchCore::measure(uint32_t operations, Samples& out) {
    for (uint32_t done = 0; done < operations; done += kBulk) {
        double spent_ns = 0;
        if (part_ == Part::kFreed) {
            for (uint32_t i = 0; i < kBulk; ++i)
                spent_ns += free_one();
        } else {
            const uint64_t first = ticks();
            for (uint32_t i = 0; i < kBulk; ++i)
                look();
            spent_ns = elapsed_ns(first, ticks());
        }
        out.add(spent_ns / kBulk);
    }
}

}  // namespace dibs::bench
