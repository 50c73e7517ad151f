// benchmarks/trace_replay.cpp -- an archive's workload through the core, an account per user.
//
// Standard Workload Format: a job arrives, wants processors, runs. Each is a claim of as many
// units, released after its run time; a machine of 240 processors, as the archive's head says.
// Commands of one instant share a turn, as in a broker. Reading the file is not measured.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/trace_replay.hpp"

#include <algorithm>
#include <fstream>
#include <memory>
#include <queue>
#include <span>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "benchmarks/tick_clock.hpp"
#include "broker/core/core.hpp"

namespace dibs::bench {

namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint32_t kProcessors = 240;

struct Job {
    uint64_t arrival_ns;
    uint64_t run_ns;
    uint16_t units;
    uint32_t user;
};

std::vector<Job> read_jobs(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read " + path);
    std::vector<Job> jobs;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line.front() == ';') continue;
        std::istringstream words(line);
        double field[12] = {};
        for (double& value : field)
            words >> value;
        if (!words || field[3] <= 0 || field[4] <= 0 || field[4] > kProcessors) continue;
        jobs.push_back({static_cast<uint64_t>(field[1]) * kSecond,
                        static_cast<uint64_t>(field[3]) * kSecond,
                        static_cast<uint16_t>(field[4]),
                        static_cast<uint32_t>(field[11])});
    }
    std::stable_sort(jobs.begin(), jobs.end(), [](const Job& one, const Job& other) {
        return one.arrival_ns < other.arrival_ns;
    });
    return jobs;
}

class ReplayedMachine {
  public:
    explicit ReplayedMachine(const std::vector<Job>& jobs) : jobs_(jobs) {
        core::Limits limits;
        limits.pools = 1;
        limits.slots = kProcessors;
        limits.claims = 16384;
        limits.leases = 1024;
        limits.sessions = 16;
        storage_.resize(core::state_size(limits) / sizeof(Line) + 1);
        const std::span<std::byte> state(storage_.front().bytes, storage_.size() * sizeof(Line));
        core::format_state(state, limits);
        core_ = std::make_unique<core::Core>(state);
        open();
    }

    void play() {
        size_t next = 0;
        while (next < jobs_.size() || !ends_.empty()) {
            uint64_t now = next < jobs_.size() ? jobs_[next].arrival_ns : shm::kNever;
            if (!ends_.empty()) now = std::min(now, ends_.top().at_ns);
            core_->begin_turn(now + kSecond);
            for (; !ends_.empty() && ends_.top().at_ns <= now; ends_.pop())
                release(ends_.top());
            for (; next < jobs_.size() && jobs_[next].arrival_ns <= now; ++next)
                claim(static_cast<uint32_t>(next));
            finish(now);
        }
    }
    [[nodiscard]] uint64_t commands() const { return commands_; }
    [[nodiscard]] uint64_t turns() const { return turns_; }
    [[nodiscard]] uint64_t accounts() const { return names_.size(); }

  private:
    struct alignas(64) Line {
        std::byte bytes[64];
    };
    struct End {
        uint64_t at_ns;
        uint64_t id;
        uint64_t fence;
        uint32_t session;
        uint16_t tag;
        bool operator>(const End& other) const {
            return at_ns != other.at_ns ? at_ns > other.at_ns : fence > other.fence;
        }
    };
    struct Place {
        uint32_t session;
        uint16_t tag;
    };

    void open() {
        uint32_t users = 0;
        for (const Job& job : jobs_)
            users = std::max(users, job.user + 1);
        names_.resize(users);
        core::PoolConfig config;
        config.name = "cluster";
        config.order = shm::PoolOrder::kAccount;
        config.slots = kProcessors;
        config.backlog_max = 16384;
        core_->begin_turn(1);
        pool_ = core_->set_pool(config, nullptr);
        for (uint32_t user = 0; user < users; ++user) {
            names_[user] = "user" + std::to_string(user);
            const int64_t rate = int64_t{kProcessors} * 1'000'000 / users;
            (void)core_->set_account(
                {.name = names_[user], .rate = {&rate, 1}, .charge_max_ns = 86'400 * kSecond},
                nullptr);
        }
        for (uint32_t session = 0; session < 10; ++session) {
            const uint32_t row = core_->open_session({.uid = 1000, .pid = 1000});
            for (uint32_t tag = 0; tag < shm::kTagsMax; ++tag)
                free_.push_back({row, static_cast<uint16_t>(tag)});
        }
        finish(0);
        turns_ = 0;
    }

    void claim(uint32_t job) {
        core::ClaimTerms terms;
        terms.account = names_[jobs_[job].user];
        terms.requeue = true;
        core::Claim command;
        command.session = free_.back().session;
        command.tag = free_.back().tag;
        command.units = jobs_[job].units;
        command.pool = pool_;
        command.user_data = job;
        command.terms = &terms;
        free_.pop_back();
        core_->apply(command);
        ++commands_;
    }

    // The lease of a preempted job has another fence by now, or is over: the core says so.
    void release(const End& end) {
        core_->apply(core::Release{end.session, false, end.id, end.fence, 0});
        ++commands_;
    }

    void finish(uint64_t now) {
        for (;;) {
            core_->decide();
            for (const core::Decision& told : core_->decisions()) {
                if (told.kind == core::DecisionKind::kGrant) {
                    const uint64_t end_ns = now + jobs_[told.user_data].run_ns;
                    ends_.push({end_ns, told.id, told.fence, told.session, told.tag});
                }
            }
            core_->commit();
            core_->clear();
            ++turns_;
            if (!core_->work_left()) return;
            core_->begin_turn(now + kSecond);
        }
    }

    const std::vector<Job>& jobs_;
    std::vector<Line> storage_;
    std::unique_ptr<core::Core> core_;
    uint32_t pool_ = 0;
    std::vector<std::string> names_;
    std::vector<Place> free_;
    std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
    uint64_t commands_ = 0;
    uint64_t turns_ = 0;
};

}  // namespace

struct Jobs {
    std::vector<Job> all;
};

TraceReplay::TraceReplay(const std::string& path)
    : jobs_(std::make_unique<Jobs>(Jobs{read_jobs(path)})) {
    if (jobs_->all.empty()) throw std::runtime_error("no job in " + path);
}

TraceReplay::~TraceReplay() = default;

void TraceReplay::measure(uint32_t /*operations*/, Samples& out) {
    ReplayedMachine machine(jobs_->all);
    const uint64_t first = ticks();
    machine.play();
    out.add(elapsed_ns(first, ticks()) / static_cast<double>(machine.commands()));
}

std::string TraceReplay::shape() const {
    ReplayedMachine machine(jobs_->all);
    machine.play();
    return std::to_string(machine.commands()) + " claims and releases of " +
           std::to_string(machine.accounts()) + " accounts in " + std::to_string(machine.turns()) +
           " turns";
}

}  // namespace dibs::bench
