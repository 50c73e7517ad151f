// demo/ideal.cpp -- runs the core on a trace's rows, event by event.
// SPDX-License-Identifier: Apache-2.0
#include "demo/ideal.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <queue>
#include <span>
#include <utility>

#include "broker/core/core.hpp"
#include "shm/lines.hpp"

namespace dibs::ctl::demo {

namespace {

using core::Core;
using core::Decision;
using core::DecisionKind;
using core::WorkerWord;

constexpr uint32_t kTags = shm::kTagsMax;

// The broker's time when the run begins; 0 is "never" in some rows.
constexpr uint64_t kStart = 1'000'000'000;

core::Limits limits_for(size_t rows, uint32_t slots) {
    core::Limits limits;
    const auto claims = static_cast<uint32_t>(rows + 1);
    limits.pools = 1;
    limits.sessions = claims / kTags + 3;
    limits.slots = slots + 1;
    limits.claims = claims;
    limits.leases = claims;
    return limits;
}

// A lease or an assignment that ends when its hold time is over.
struct HoldEnd {
    uint64_t time = 0;
    uint64_t order = 0;  // ties end in the order of the grants
    size_t row = 0;
    bool operator>(const HoldEnd& other) const {
        return time != other.time ? time > other.time : order > other.order;
    }
};

class IdealRun {
  public:
    IdealRun(const std::vector<TraceRow>& rows, PoolShape shape, uint32_t slots)
        : rows_(rows), shape_(shape), slots_(slots) {
        const core::Limits limits = limits_for(rows.size(), slots);
        memory_ = shm::Lines(core::state_size(limits));
        core::format_state(memory_.bytes(), limits);
        core_ = std::make_unique<Core>(memory_.bytes());
        grants_.resize(rows.size());
    }

    Ideal run() {
        set_up();
        while (failure_.empty() && more_to_do()) {
            turn();
        }
        if (failure_.empty() && waits_.size() != rows_.size()) {
            failure_ = "only " + std::to_string(waits_.size()) + " claims were granted";
        }
        return {sum_up(std::move(waits_), last_end_ - kStart), failure_};
    }

  private:
    struct Grant {
        uint64_t lease = 0;
        uint64_t fence = 0;
        std::vector<std::pair<uint64_t, uint32_t>> assigned;  // slot id, round
    };

    void set_up() {
        core_->begin_turn(kStart);
        core::PoolConfig pool;
        pool.name = "ideal";
        pool.kind =
            shape_ == PoolShape::kCounted ? shm::PoolKind::kCounted : shm::PoolKind::kWorker;
        pool.slots = shape_ == PoolShape::kCounted ? slots_ : 0;
        pool.backlog_max = static_cast<uint32_t>(rows_.size() + 1);
        pool.unconfirmed_max = slots_;
        pool_ = core_->set_pool(pool, &failure_);
        if (pool_ == shm::kNoRow) return;
        worker_ = open_session();
        const size_t sessions = rows_.size() / kTags + 1;
        for (size_t i = 0; i < sessions; ++i)
            sessions_.push_back(open_session());
        finish_turn();
        for (uint32_t i = 0; shape_ == PoolShape::kWorkers && i < slots_; ++i)
            announce(i);
    }

    uint32_t open_session() {
        core::SessionOpen open;
        open.pid = 1;
        open.tags_max = kTags;
        const uint32_t session = core_->open_session(open);
        if (session == shm::kNoRow) failure_ = "the session table is full";
        return session;
    }

    void announce(uint32_t number) {
        core_->begin_turn(kStart);
        core::Announce announce;
        announce.session = worker_;
        announce.pool = pool_;
        announce.worker_tag = number;
        announce.ready = true;
        core_->apply(announce);
        finish_turn();
    }

    // One turn at the time of the next event: what ends, then what workers say, then what arrives.
    void turn() {
        const uint64_t now = words_.empty() && !core_->work_left() ? next_event() : core_->now();
        core_->begin_turn(now);
        while (!ends_.empty() && ends_.top().time == now && !core_->turn_full()) {
            end_hold(ends_.top().row);
            last_end_ = now;
            ends_.pop();
        }
        while (!words_.empty() && !core_->turn_full()) {
            core_->apply(words_.front());
            words_.pop();
        }
        while (next_ < rows_.size() && arrival(next_) == now && !core_->turn_full()) {
            submit(next_++);
        }
        finish_turn();
    }

    bool more_to_do() const {
        return next_ < rows_.size() || !ends_.empty() || !words_.empty() || core_->work_left();
    }

    uint64_t arrival(size_t row) const { return kStart + rows_[row].arrival_ns; }

    uint64_t next_event() const {
        uint64_t time = shm::kNever;
        if (next_ < rows_.size()) time = arrival(next_);
        if (!ends_.empty()) time = std::min(time, ends_.top().time);
        return std::max(time, core_->now());
    }

    void submit(size_t row) {
        core::Claim claim;
        claim.session = sessions_[row / kTags];
        claim.tag = static_cast<uint16_t>(row % kTags);
        claim.units = static_cast<uint16_t>(rows_[row].units);
        claim.pool = pool_;
        claim.user_data = row;
        core_->apply(claim);
    }

    void end_hold(size_t row) {
        const Grant& grant = grants_[row];
        if (shape_ == PoolShape::kCounted) {
            core::Release release;
            release.session = sessions_[row / kTags];
            release.lease = grant.lease;
            release.fence = grant.fence;
            core_->apply(release);
            return;
        }
        // The first word ends the lease and frees the others; theirs are ready again as well.
        bool first = true;
        for (const auto& [slot, round] : grant.assigned) {
            WorkerWord word = word_of(slot, round);
            word.kind = first ? WorkerWord::Kind::kDone : WorkerWord::Kind::kReady;
            word.then_ready = first;
            core_->apply(word);
            first = false;
        }
    }

    WorkerWord word_of(uint64_t slot, uint32_t round) const {
        WorkerWord word;
        word.session = worker_;
        word.slot = slot;
        word.round = round;
        return word;
    }

    void finish_turn() {
        core_->decide();
        core_->commit();
        for (const Decision& decision : core_->decisions())
            learn(decision);
        core_->clear();
    }

    void learn(const Decision& decision) {
        switch (decision.kind) {
            case DecisionKind::kAssign: {
                const size_t row = row_of_claim(decision.claim);
                WorkerWord word = word_of(decision.id, decision.round);
                word.kind = WorkerWord::Kind::kConfirm;
                words_.push(word);
                grants_[row].assigned.emplace_back(decision.id, decision.round);
                return;
            }
            case DecisionKind::kGrant:
                granted(decision);
                return;
            case DecisionKind::kEnd:
                failure_ = "the core ended the claim of line " +
                           std::to_string(rows_[decision.user_data].line) + " with reason " +
                           std::to_string(static_cast<int>(decision.reason));
                return;
            default:
                return;
        }
    }

    void granted(const Decision& decision) {
        const size_t row = decision.user_data;
        grants_[row].lease = decision.id;
        grants_[row].fence = decision.fence;
        waits_.push_back(core_->now() - arrival(row));
        ends_.push({core_->now() + rows_[row].hold_ns, ++order_, row});
    }

    // Claims get their numbers in the order in which they are submitted, from 1: that of the rows.
    static size_t row_of_claim(uint64_t number) { return static_cast<size_t>(number - 1); }

    const std::vector<TraceRow>& rows_;
    PoolShape shape_;
    uint32_t slots_;
    shm::Lines memory_;
    std::unique_ptr<Core> core_;
    uint32_t pool_ = shm::kNoRow;
    uint32_t worker_ = shm::kNoRow;
    std::vector<uint32_t> sessions_;
    std::vector<Grant> grants_;
    std::priority_queue<HoldEnd, std::vector<HoldEnd>, std::greater<>> ends_;
    std::queue<WorkerWord> words_;  // what workers say next, at once
    std::vector<uint64_t> waits_;
    size_t next_ = 0;
    uint64_t order_ = 0;
    uint64_t last_end_ = kStart;
    std::string failure_;
};

}  // namespace

Ideal run_ideal(const std::vector<TraceRow>& rows, PoolShape shape, uint32_t slots) {
    if (rows.empty()) return {{}, "there are no rows to play"};
    return IdealRun(rows, shape, slots).run();
}

}  // namespace dibs::ctl::demo
