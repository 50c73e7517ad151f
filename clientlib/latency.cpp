// clientlib/latency.cpp -- reports claim latencies, of the session and the BOARD, and wake-ups.
// SPDX-License-Identifier: Apache-2.0
#include "clientlib/session.hpp"
#include "shm/board.hpp"
#include "shm/histogram.hpp"

namespace dibs::client {
namespace {

constexpr uint32_t kAll = 1'000'000;

int64_t percentile(const uint64_t (&counts)[shm::kHistogramBuckets], uint32_t millionths) {
    return static_cast<int64_t>(shm::histogram_percentile(counts, millionths));
}

// Counts are statistics: one that is read a moment later than another one is as good.
template <typename Count>
int tell(const std::atomic<Count> (&buckets)[shm::kHistogramBuckets], dibs_latency* latency) {
    uint64_t counts[shm::kHistogramBuckets];
    latency->count = 0;
    for (uint32_t i = 0; i < shm::kHistogramBuckets; ++i) {
        counts[i] = buckets[i].load(std::memory_order_relaxed);
        latency->count += counts[i];
    }
    latency->p50_ns = percentile(counts, kAll / 2);
    latency->p90_ns = percentile(counts, kAll / 10 * 9);
    latency->p99_ns = percentile(counts, kAll / 100 * 99);
    latency->p999_ns = percentile(counts, kAll / 1000 * 999);
    latency->longest_ns = percentile(counts, kAll);
    return DIBS_OK;
}

int check_latency(const dibs_session* session, const dibs_latency* latency) {
    const int code = check(session);
    if (code != DIBS_OK) return code;
    if (latency == nullptr) return DIBS_EARGUMENT;
    return latency->size < sizeof *latency ? DIBS_ESIZE : DIBS_OK;
}

const shm::BoardHead& head_of(const Session& session) {
    return *reinterpret_cast<const shm::BoardHead*>(session.board);
}

}  // namespace
}  // namespace dibs::client

using namespace dibs::client;

int dibs_pool_latency(dibs_session* session, uint32_t pool, dibs_latency* latency) {
    const int code = check_latency(session, latency);
    if (code != DIBS_OK) return code;
    // Pairs with the turn's store: makes the pool's histogram visible.
    const uint32_t pools = head_of(*session).pools.load(std::memory_order_acquire);
    if (pool >= pools || pool >= session->pools_max) return DIBS_EPOOL;
    const uint64_t array = dibs::shm::plan_board(session->pools_max).histograms;
    using Histogram = const dibs::shm::BoardHistogram;
    return tell(
        dibs::shm::board_array<const std::byte, Histogram>(session->board, array)[pool].bucket,
        latency);
}

int dibs_reported_latency(dibs_session* session, dibs_latency* latency) {
    const int code = check_latency(session, latency);
    return code != DIBS_OK ? code : tell(head_of(*session).self_reported.bucket, latency);
}

int dibs_session_latency(dibs_session* session, dibs_latency* latency) {
    const int code = check_latency(session, latency);
    return code != DIBS_OK ? code : tell(session->histogram->bucket, latency);
}

int dibs_session_wakeups(dibs_session* session, dibs_wakeups* wakeups) {
    const int code = check(session);
    if (code != DIBS_OK) return code;
    if (wakeups == nullptr) return DIBS_EARGUMENT;
    if (wakeups->size < sizeof *wakeups) return DIBS_ESIZE;
    const size_t size = wakeups->size;
    *wakeups = session->wakeups;
    wakeups->size = size;
    return DIBS_OK;
}
