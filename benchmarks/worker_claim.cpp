// benchmarks/worker_claim.cpp -- a claim on a worker pool.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/worker_claim.hpp"

#include <stdexcept>

#include "benchmarks/bulk.hpp"
#include "benchmarks/tick_clock.hpp"

namespace dibs::bench {

namespace {

constexpr uint32_t kSlots = 16;

}  // namespace

WorkerClaim::WorkerClaim(const ClientSetup& client)
    : client_(client), pool_(client_.pool("worker")) {
    for (uint32_t i = 0; i < kSlots; ++i) {
        dibs_announce_options options = {};
        options.size = sizeof options;
        options.ready = 1;
        uint64_t slot = 0;
        must(dibs_announce(client_.get(), pool_, &options, DIBS_SECOND, &slot), "dibs_announce");
    }
}

void WorkerClaim::measure(uint32_t operations, Samples& out) {
    for (uint32_t i = 0; i < operations + kFirst; ++i) {
        client_.pace(Pace::kPaced, false);
        const double ns = claim();
        if (i >= kFirst) out.add(ns);
    }
    client_.pace(Pace::kAsleep, false);
}

double WorkerClaim::claim() const {
    dibs_op op = {};
    op.size = sizeof op;
    op.kind = DIBS_OP_CLAIM;
    op.pool = pool_;
    dibs_assignment assignment;
    dibs_completion end;
    const uint64_t first = ticks();
    must(dibs_submit(client_.get(), &op, 1), "dibs_submit");
    must(dibs_next_assignment(client_.get(), DIBS_SECOND, &assignment), "dibs_next_assignment");
    must(dibs_confirm(client_.get(), assignment.slot, assignment.round, nullptr, 0, DIBS_NOWAIT),
         "dibs_confirm");
    const int reaped = must(dibs_reap(client_.get(), &end, 1, DIBS_SECOND), "dibs_reap");
    const uint64_t last = ticks();
    if (reaped != 1 || end.outcome != DIBS_GRANTED) {
        throw std::runtime_error("a claim on the worker pool was not granted");
    }
    must(dibs_release(client_.get(), &end.lease, DIBS_NOWAIT), "dibs_release");
    return elapsed_ns(first, last);
}

}  // namespace dibs::bench
