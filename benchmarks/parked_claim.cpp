// benchmarks/parked_claim.cpp -- leases that their sessions put aside, and claims among many.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/parked_claim.hpp"

#include <atomic>
#include <stdexcept>

#include "benchmarks/bulk.hpp"
#include "benchmarks/tick_clock.hpp"

namespace dibs::bench {

namespace {

std::vector<SessionClient> attach(const ClientSetup& client, uint32_t count) {
    std::vector<SessionClient> clients;
    clients.reserve(count);
    for (uint32_t i = 0; i < count; ++i)
        clients.emplace_back(client);
    return clients;
}

// One sample for each kPairs of what `pair` does.
template <class Pair>
void measure_pairs(uint32_t operations, Samples& out, const Pair& pair) {
    for (uint32_t i = 0; i < operations / kPairs; ++i) {
        const uint64_t first = ticks();
        for (uint32_t k = 0; k < kPairs; ++k)
            pair();
        out.add(elapsed_ns(first, ticks()) / kPairs);
    }
}

}  // namespace

void SwapFloor::measure(uint32_t operations, Samples& out) {
    alignas(64) std::atomic<uint64_t> word{0};
    measure_pairs(operations, out, [&word] {
        for (const uint64_t next : {1U, 0U}) {
            uint64_t expected = 1 - next;
            if (!word.compare_exchange_strong(expected, next)) {
                throw std::logic_error("somebody else has changed the word");
            }
        }
    });
}

ParkedPair::ParkedPair(const ClientSetup& client)
    : client_(client), pool_(client_.pool("parked")) {}

void ParkedPair::measure(uint32_t operations, Samples& out) {
    dibs_session* session = client_.get();
    const auto pair = [this, session] {
        dibs_completion end;
        must(dibs_claim(session, pool_, nullptr, &end), "dibs_claim");
        must(dibs_release(session, &end.lease, DIBS_NOWAIT), "dibs_release");
    };
    for (uint32_t i = 0; i < kFirst; ++i)  // the first one asks: others have had the pool
        pair();
    measure_pairs(operations, out, pair);
}

RecalledClaim::RecalledClaim(const ClientSetup& client)
    : clients_(attach(client, 2)), pool_(clients_[0].pool("one")) {}

void RecalledClaim::measure(uint32_t operations, Samples& out) {
    for (uint32_t i = 0; i < operations + kFirst; ++i) {
        const SessionClient& client = clients_[i % 2];
        client.pace(Pace::kPaced, false);
        const double ns = client.claim(pool_, nullptr);
        if (i >= kFirst) out.add(ns);
    }
    for (const SessionClient& client : clients_)
        client.pace(Pace::kAsleep, false);
}

ClaimAmongMany::ClaimAmongMany(const ClientSetup& client, uint32_t attached, uint32_t active)
    : clients_(attach(client, attached)), active_(active), pool_(clients_[0].pool("counted")) {}

void ClaimAmongMany::measure(uint32_t operations, Samples& out) {
    for (uint32_t i = 0; i < operations + kFirst; ++i) {
        const SessionClient& client = clients_[i % active_];
        client.pace(Pace::kPaced, false);
        const double ns = client.claim(pool_, nullptr);
        if (i >= kFirst) out.add(ns);
    }
    clients_[0].pace(Pace::kAsleep, false);
}

}  // namespace dibs::bench
