// tests/naive/journal_of_trace.cpp -- jobs of a batch system as gangs: each runs all or none.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/journal_of_trace.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "tests/naive/dice.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/player.hpp"

namespace dibs::naive {

namespace {

using Event = core::ApplicationEvent::Kind;

constexpr uint32_t kUid = 1000;
constexpr uint64_t kSecond = 1'000'000'000;

core::Limits limits_for(uint32_t slots) {
    core::Limits limits;
    limits.pools = 1;
    limits.sessions = 1024;
    limits.slots = slots;
    limits.claims = 16384;
    limits.leases = 2 * slots;
    limits.applications = 4096;  // a quarter of them of one user's that have ended
    limits.groups = 2048;
    limits.tasks = 16384;
    return limits;
}

class TraceWriter {
  public:
    TraceWriter(const std::vector<TraceJob>& jobs, uint32_t slots) : jobs_(jobs) {
        Journal& journal = made_.journal;
        journal.limits = limits_for(slots);
        PoolSpec nodes;
        nodes.name = "nodes";
        nodes.config.slots = slots;
        nodes.config.quantum_ns = 0;
        nodes.config.gang_max = shm::kGangMax;
        nodes.config.backlog_max = journal.limits.claims;
        journal.pools.push_back(nodes);
        core_.emplace(journal.limits);
        player_.emplace(*core_, journal);
    }

    GangJournal write() {
        core_->begin_turn(1);
        Step pool;
        pool.kind = StepKind::kSetPool;
        pool.label = 0;
        put(pool);
        for (uint32_t next = 0;;) {
            end_turn();
            if (next == jobs_.size() && running_.empty()) break;
            const bool comes =
                next < jobs_.size() && (running_.empty() || at_of(next) <= running_.begin()->first);
            open_turn(comes ? at_of(next) : running_.begin()->first);
            if (comes) {
                submit(next++);
            } else {
                finish(running_.begin()->second);
                running_.erase(running_.begin());
            }
        }
        open_turn(now_);
        return std::move(made_);
    }

  private:
    struct Waiting {
        uint32_t job = 0;
        uint32_t session = 0;
        std::vector<uint32_t> claims;  // labels
    };

    [[nodiscard]] uint64_t at_of(uint32_t job) const {
        return std::max(now_, 1000 + jobs_[job].submitted_s * kSecond);
    }
    [[nodiscard]] static std::string name_of(uint32_t job) { return "job-" + std::to_string(job); }

    uint32_t put(Step step) {
        if (step.label == kNoLabel) step.label = static_cast<uint32_t>(made_.journal.steps.size());
        player_->play(step);
        made_.journal.steps.push_back(std::move(step));
        return made_.journal.steps.back().label;
    }

    void submit(uint32_t job) {
        const uint32_t members = (jobs_[job].processors + 1) / 2;
        Waiting waiting;
        waiting.job = job;
        Step open;
        open.kind = StepKind::kOpen;
        open.open.uid = kUid;
        open.open.pid = 100;
        open.open.tags_max = static_cast<uint16_t>(members);
        waiting.session = put(open);
        Step added;
        added.kind = StepKind::kApplication;
        added.session = waiting.session;
        added.pool = 0;
        added.gang.application = name_of(job);
        added.gang.placeholder_timeout_ns = shm::kNever;
        added.gang.groups.push_back({.name = "rank", .members = members, .resource = {}});
        put(added);
        for (uint32_t rank = 0; rank < members; ++rank) {
            Step claim;
            claim.kind = StepKind::kClaim;
            claim.session = waiting.session;
            claim.pool = 0;
            claim.claim.tag = static_cast<uint16_t>(rank);
            claim.gang.is_member = true;
            claim.gang.application = name_of(job);
            claim.gang.task = std::to_string(rank);
            claim.gang.group = "rank";
            waiting.claims.push_back(put(claim));
        }
        waiting_.push_back(std::move(waiting));
    }

    void finish(const Waiting& done) {
        for (const uint32_t claim : done.claims) {
            Step release;
            release.kind = StepKind::kRelease;
            release.session = done.session;
            release.subject = claim;
            put(release);
        }
        for (const Event kind : {Event::kComplete, Event::kRemove}) {
            Step event;
            event.kind = StepKind::kApplicationEvent;
            event.session = done.session;
            event.gang.kind = kind;
            event.gang.application = name_of(done.job);
            put(event);
        }
        Step died;
        died.kind = StepKind::kDied;
        died.session = done.session;
        put(died);
    }

    void decide() {
        core_->decide();
        player_->listen();
        player_->forget_lines();
    }

    void end_turn() {
        decide();
        while (core_->wants_turn()) {
            core_->begin_turn(core_->model().now);
            player_->turn_opened();
            decide();
        }
        look();
    }

    void open_turn(uint64_t at) {
        now_ = std::max(now_, at);
        Step end;
        end.kind = StepKind::kTurnEnd;
        end.at_ns = now_;
        made_.journal.steps.push_back(end);
        core_->begin_turn(now_);
        player_->turn_opened();
    }

    // What has become whole runs from now on.
    void look() {
        std::map<std::string_view, const Application*> apps;
        size_t partial = 0;
        for (const auto& [number, app] : core_->model().applications) {
            apps[app.name] = &app;
            partial += app.state == shm::AppState::kReserving && app.placeholders() != 0;
        }
        made_.most_partial = std::max(made_.most_partial, partial);
        for (auto each = waiting_.begin(); each != waiting_.end();) {
            const std::string name = name_of(each->job);
            if (apps.at(name)->state != shm::AppState::kRunning) {
                ++each;
                continue;
            }
            const TraceJob& job = jobs_[each->job];
            ++made_.started;
            made_.waits_s.push_back((now_ - 1000) / kSecond - job.submitted_s);
            running_.emplace(now_ + std::max<uint64_t>(1, job.runs_s) * kSecond, std::move(*each));
            each = waiting_.erase(each);
        }
    }

    const std::vector<TraceJob>& jobs_;
    GangJournal made_;
    std::optional<NaiveCore> core_;
    std::optional<Player<NaiveCore>> player_;
    uint64_t now_ = 1;
    std::deque<Waiting> waiting_;
    std::multimap<uint64_t, Waiting> running_;  // by when they have run
};

}  // namespace

std::vector<TraceJob> read_swf(std::istream& file) {
    std::vector<TraceJob> jobs;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line.front() == ';') continue;
        std::istringstream fields(line);
        int64_t number = 0;
        int64_t submitted = 0;
        int64_t waited = 0;
        double ran = 0;
        int64_t processors = 0;
        if (!(fields >> number >> submitted >> waited >> ran >> processors)) continue;
        if (submitted < 0 || ran < 0 || processors <= 0) continue;
        jobs.push_back({static_cast<uint64_t>(submitted),
                        static_cast<uint64_t>(ran),
                        static_cast<uint32_t>(processors)});
    }
    return jobs;
}

std::vector<TraceJob> made_jobs(uint64_t seed, size_t count) {
    Dice dice(seed);
    std::vector<TraceJob> jobs;
    uint64_t submitted_s = 0;
    while (jobs.size() < count) {
        submitted_s += dice.percent(30) ? 0 : dice.below(400);
        const uint32_t processors = dice.percent(5) ? 240U : dice.one_of({1U, 1U, 2U, 4U, 8U, 30U});
        const uint64_t runs_s = dice.percent(50) ? dice.below(60) : dice.below(8000);
        jobs.push_back({submitted_s, runs_s, processors});
    }
    return jobs;
}

GangJournal gangs_of(const std::vector<TraceJob>& jobs, uint32_t slots) {
    return TraceWriter(jobs, slots).write();
}

}  // namespace dibs::naive
