// benchmarks/crew.cpp -- runs processes that claim a slot, work and release it, and counts tasks.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/crew.hpp"

#include <time.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <new>

#include "benchmarks/computation.hpp"
#include "benchmarks/process_figures.hpp"
#include "benchmarks/tick_clock.hpp"
#include "shm/futex.hpp"

namespace dibs::bench {

namespace {

constexpr double kWarmUpNs = 5'000'000;
// The CPU clocks are read at the begin and after this part of the counted time: the measuring
// process may have to wait for a CPU. What was used is divided by the time between the two
// readings.
constexpr double kCpuPart = 0.9;
// Per round; later claims of a process that has had its share are not timed.
constexpr uint32_t kClaimsMax = 65'536;  // of a process
constexpr uint32_t kClaimsOfAllMax = 262'144;
constexpr uint64_t kBarrierLookNs = 1'000'000'000;

void sleep_until(uint64_t when) {
    const uint64_t now = ticks();
    if (now >= when) return;
    const auto ns = static_cast<uint64_t>(elapsed_ns(now, when));
    const struct timespec left = {static_cast<time_t>(ns / 1'000'000'000),
                                  static_cast<long>(ns % 1'000'000'000)};
    nanosleep(&left, nullptr);
}

}  // namespace

struct Crew::Board {
    alignas(64) std::atomic<uint32_t> go;  // number of the run, written by the measuring process
    uint64_t begin;                        // in ticks; `go` publishes the other fields
    uint64_t end;
    uint64_t steps;
};

// Written by its worker, read by the measuring process after the run.
struct Crew::Sheet {
    alignas(64) uint64_t tasks;
    uint32_t claims;
    float claim_ns[];  // claims_max_
};

Crew::Crew(uint32_t count, std::unique_ptr<SlotSource> slots, const Placement& placement)
    : slots_(std::move(slots)),
      claims_max_(std::min(kClaimsMax, kClaimsOfAllMax / count / 16 * 16)),
      sheet_bytes_(sizeof(Sheet) + claims_max_ * sizeof(float)),
      memory_(sizeof(Board) + count * sheet_bytes_),
      board_(new (memory_.at<std::byte>(0)) Board{}) {
    for (uint32_t i = 0; i < count; ++i) {
        workers_.push_back(std::make_unique<Peer>(
            placement.near_side,
            [this, i](const Peer::Running& /*running*/) { attend(i); },
            placement.far_side));
    }
    for (const auto& worker : workers_) {
        worker->start();
        worker->stop();
    }
}

Crew::~Crew() = default;

Crew::Sheet& Crew::sheet_of(size_t worker) const {
    return *memory_.at<Sheet>(sizeof(Board) + worker * sheet_bytes_);
}

void Crew::attend(uint32_t worker) {
    if (!attached_) {
        slots_->attach(worker);
        attached_ = true;
        return;
    }
    Sheet& sheet = sheet_of(worker);
    std::memset(static_cast<void*>(&sheet), 0, sheet_bytes_);
    // Pairs with the store in work().
    while (board_->go.load(std::memory_order_acquire) == seen_)
        shm::futex_wait(board_->go, seen_, kBarrierLookNs);
    ++seen_;
    count_tasks(sheet);
}

void Crew::count_tasks(Sheet& sheet) {
    const uint64_t begin = board_->begin;
    const uint64_t end = board_->end;
    const uint64_t steps = board_->steps;
    for (uint64_t first = ticks(); first < end;) {
        slots_->claim();
        const uint64_t granted = ticks();
        compute(steps);
        slots_->release();
        const uint64_t done = ticks();
        if (first >= begin) {
            if (sheet.claims < claims_max_) {
                sheet.claim_ns[sheet.claims++] = static_cast<float>(elapsed_ns(first, granted));
            }
            if (done < end) ++sheet.tasks;
        }
        first = done;
    }
}

double Crew::used_cpu_ns() const {
    uint64_t sum = 0;
    for (const pid_t server : slots_->servers())
        sum += cpu_ns(server);
    for (const auto& worker : workers_)
        sum += cpu_ns(worker->pid());
    return static_cast<double>(sum);
}

Yield Crew::work(uint64_t steps, double counted_ns, Samples& claims) {
    for (const auto& worker : workers_)
        worker->start();
    board_->begin = ticks() + as_ticks(kWarmUpNs);
    board_->end = board_->begin + as_ticks(counted_ns);
    board_->steps = steps;
    board_->go.fetch_add(1, std::memory_order_release);  // pairs with the load in attend()
    shm::futex_wake(board_->go, INT_MAX);
    sleep_until(board_->begin);
    const uint64_t first = ticks();
    const double before_ns = used_cpu_ns();
    sleep_until(board_->begin + as_ticks(counted_ns * kCpuPart));
    const double cpus = (used_cpu_ns() - before_ns) / elapsed_ns(first, ticks());
    for (const auto& worker : workers_)
        worker->stop();

    uint64_t sum = 0;
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (size_t i = 0; i < workers_.size(); ++i) {
        const Sheet& sheet = sheet_of(i);
        sum += sheet.tasks;
        least = std::min(least, sheet.tasks);
        most = std::max(most, sheet.tasks);
        for (uint32_t claim = 0; claim < sheet.claims; ++claim)
            claims.add(static_cast<double>(sheet.claim_ns[claim]));
    }
    if (sum == 0) return {};
    return {static_cast<double>(sum) / counted_ns * 1e9,
            static_cast<double>(least) / static_cast<double>(most),
            cpus * counted_ns / static_cast<double>(sum),
            cpus};
}

}  // namespace dibs::bench
