// demo/troupe.cpp -- starts and stops the processes and sessions of a run.
// SPDX-License-Identifier: Apache-2.0
#include "demo/troupe.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <stdexcept>

#include "demo/instant.hpp"

namespace dibs::ctl::demo {

namespace {

constexpr size_t kSessionsMax = 128;  // more tenants than that share sessions
constexpr uint32_t kTagsMax = 1024;   // claims and leases of one session at once
constexpr auto kWorkersReadyWithin = std::chrono::seconds(60);
constexpr int kStopWithinMs = 60'000;
constexpr int kTotalsTries = 10000;
constexpr uint64_t kTotalsPause = 2'000'000;
constexpr uint32_t kSlotBytesCounted = 16;
constexpr uint32_t kSlotBytesWorker = 96;  // with attributes

size_t sessions_for(const Workload& workload) {
    return std::clamp<size_t>(workload.trace.tenants.size(), 1, kSessionsMax);
}

BrokerSizes broker_sizes(const Workload& workload) {
    BrokerSizes sizes;
    sizes.shape = workload.shape;
    sizes.slots = workload.slots;
    const auto sessions = static_cast<uint32_t>(sessions_for(workload));
    sizes.sessions = sessions + (workload.shape == PoolShape::kWorkers ? workload.slots : 0) + 4;
    const size_t at_once =
        std::min<size_t>(workload.trace.rows.size(), size_t{sessions} * kTagsMax);
    sizes.claims = static_cast<uint32_t>(at_once) + 16;
    return sizes;
}

}  // namespace

Troupe::Troupe(const Workload& workload)
    : workload_(workload), witness_(Witness::create(workload.slots)), sampler_(workload.slots) {
    adopt_orphans();
    broker_ = std::make_unique<PrivateBroker>(folder_.path(), broker_sizes(workload));
    start_workers();
    open_sessions();
}

void Troupe::start_workers() {
    if (workload_.shape == PoolShape::kCounted) {
        worker_output_.close_write_end();
        return;
    }
    for (uint32_t device = 0; device < workload_.slots; ++device) {
        ChildConfig config;
        config.command = {own_program(),
                          "demo-worker",
                          broker_->socket(),
                          kPoolName,
                          std::to_string(witness_.fd()),
                          std::to_string(workload_.slots),
                          std::to_string(device)};
        config.output = worker_output_.write_end();
        config.kept = witness_.fd();
        workers_.emplace_back("worker " + std::to_string(device), config);
    }
    worker_output_.close_write_end();
    if (!worker_output_.await_ready(workload_.slots, kWorkersReadyWithin)) {
        throw std::runtime_error("the workers were not ready within a minute; they said:\n" +
                                 worker_output_.last_words() + "the broker said:\n" +
                                 broker_->output().last_words());
    }
}

void Troupe::open_sessions() {
    const bool counted = workload_.shape == PoolShape::kCounted;
    const size_t count = sessions_for(workload_);
    std::vector<SessionSizes> sizes(count);
    for (SessionSizes& one : sizes) {
        one.claims = 0;
        one.slot_bytes = counted ? kSlotBytesCounted : kSlotBytesWorker;
        one.tells_hold = !counted;
    }
    for (const TraceRow& row : workload_.trace.rows) {
        SessionSizes& one = sizes[row.tenant % count];
        ++one.claims;
        one.units_max = std::max(one.units_max, row.units);
    }
    for (const SessionSizes& one : sizes) {
        sessions_.push_back(std::make_unique<ClientSession>(broker_->socket(), kPoolName, one));
    }
}

std::string Troupe::describe() const {
    return "playing   broker process " + std::to_string(broker_->process().pid()) + ", " +
           std::to_string(workers_.size()) + " worker processes, " +
           std::to_string(sessions_.size()) + " sessions that claim\n";
}

PlayResult Troupe::play(int signal_fd, bool shows_progress) {
    Surroundings around;
    around.broker = &broker_->process();
    around.broker_output = &broker_->output();
    around.workers = &workers_;
    around.worker_output = &worker_output_;
    around.witness = &witness_;
    around.signal_fd = signal_fd;
    around.shows_progress = shows_progress;
    return Player(workload_.trace.rows, workload_.shape, &sessions_, &sampler_, around).play();
}

std::optional<dibs_totals> Troupe::totals(const PlayResult& result) {
    ClientSession& session = *sessions_.front();
    std::optional<dibs_totals> read;
    // The broker publishes after its answers, and may be put aside before or while it does.
    for (int tries = 0; tries < kTotalsTries; ++tries) {
        dibs_totals totals{};
        totals.size = sizeof totals;
        if (dibs_pool_totals(session.handle(), session.pool(), &totals) == 0) {
            read = totals;
            if (totals.accepted == result.submitted && totals.granted == result.granted) break;
        }
        poll_for(nullptr, 0, kTotalsPause);
    }
    return read;
}

Departure Troupe::leave() {
    Departure departure;
    sessions_.clear();
    for (const Child& worker : workers_)
        worker.signal(SIGTERM);
    for (Child& worker : workers_) {
        const auto status = worker.wait(kStopWithinMs);
        if (status && *status == 0) continue;
        ++departure.workers_failed;
        worker_output_.read();
        if (departure.first_failure.empty()) {
            departure.first_failure = worker.name() + ": " +
                                      (status ? shown_status(*status) : "did not end") + "\n" +
                                      worker_output_.last_words();
        }
    }
    workers_.clear();
    broker_->process().signal(SIGTERM);
    departure.broker_status = broker_->process().wait(kStopWithinMs);
    broker_->output().read();
    if (departure.broker_status != 0 && departure.first_failure.empty()) {
        departure.first_failure = "the broker said:\n" + broker_->output().last_words();
    }
    broker_.reset();
    departure.children_left = children_left();
    departure.folder_gone = folder_.remove();
    return departure;
}

}  // namespace dibs::ctl::demo
