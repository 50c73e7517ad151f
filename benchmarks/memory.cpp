// benchmarks/memory.cpp -- bytes of an attached session, and of a claim that waits.
//
// STATE is laid out at the start, so a broker's size hardly moves when claims come. What a waiting
// claim costs is therefore found by two brokers with the same sessions attached: one that has room
// for hardly any claim, and one with room for all of them and all of them waiting.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/memory.hpp"

#include <unistd.h>

#include <stdexcept>
#include <vector>

#include "benchmarks/broker_process.hpp"
#include "benchmarks/process_figures.hpp"
#include "benchmarks/session_client.hpp"
#include "shm/pause.hpp"

namespace dibs::bench {

namespace {

constexpr uint32_t kMeasuredSessions = 98;
constexpr uint32_t kClaimsEach = 1024;
constexpr uint32_t kBatch = 64;

std::string setup_for(uint32_t claims) {
    const std::string count = std::to_string(claims);
    return "[limits]\nsessions = 128\nslots = 16\nleases = 16\nclaims = " + count +
           "\n[[pool]]\nname = \"counted\"\nkind = \"counted\"\nslots = 1\nbacklog_max = " + count +
           "\n";
}

std::vector<SessionClient> attach(const BrokerProcess& broker, uint32_t count) {
    const ClientSetup setup = {.socket = broker.socket(),
                               .leases_max = kClaimsEach,
                               .completion_entries = 2048,
                               .down_payload = 128 * 1024};
    std::vector<SessionClient> clients;
    clients.reserve(count);
    for (uint32_t i = 0; i < count; ++i)
        clients.emplace_back(setup);
    return clients;
}

// Claims that wait: the pool's one slot is held.
void submit_claims(const SessionClient& client, uint32_t pool, uint32_t count) {
    std::vector<dibs_op> ops(kBatch);
    for (dibs_op& op : ops) {
        op = {};
        op.size = sizeof op;
        op.kind = DIBS_OP_CLAIM;
        op.pool = pool;
    }
    uint32_t submitted = 0;
    while (submitted < count) {
        const uint32_t want = count - submitted < kBatch ? count - submitted : kBatch;
        const int accepted = dibs_submit(client.get(), ops.data(), want);
        if (accepted != DIBS_EFULL)
            submitted += static_cast<uint32_t>(must(accepted, "dibs_submit"));
        if (accepted == DIBS_EFULL) shm::pause();
    }
    client.pace(Pace::kAsleep, false);
}

uint32_t waiting(const SessionClient& client, uint32_t pool) {
    dibs_counters counters = {};
    counters.size = sizeof counters;
    must(dibs_snapshot(client.get(), pool, &counters), "dibs_snapshot");
    return counters.queued;
}

std::string mib(uint64_t bytes) {
    return std::to_string(bytes / 1024) + " KiB";
}

}  // namespace

void measure_session_memory(const Placement& placement, Report& report) {
    const BrokerProcess broker(
        {"[limits]\nsessions = 128\n[[pool]]\nname = \"counted\"\nkind = \"counted\"\nslots = 4\n",
         placement.far_side});
    const uint64_t own_before = private_bytes(getpid());
    const uint64_t broker_before = private_bytes(broker.pid());
    std::vector<SessionClient> clients;
    clients.reserve(kMeasuredSessions);
    for (uint32_t i = 0; i < kMeasuredSessions; ++i)
        clients.emplace_back(ClientSetup{.socket = broker.socket()});
    const uint64_t up = mapped_bytes("memfd:dibs-up") / kMeasuredSessions;
    const uint64_t down = mapped_bytes("memfd:dibs-down") / kMeasuredSessions;
    const uint64_t own = (private_bytes(getpid()) - own_before) / kMeasuredSessions;
    const uint64_t brokers = (private_bytes(broker.pid()) - broker_before) / kMeasuredSessions;
    const auto mapped = static_cast<double>(up + down) / 1024;
    report.facts.push_back({"memory",
                            "shared memory mapped per attached session",
                            mapped,
                            "KiB",
                            "UP " + mib(up) + " + DOWN " + mib(down) +
                                "; beside it private, resident: library " + mib(own) + ", broker " +
                                mib(brokers),
                            {{"KiB", 192, mapped}}});
}

void measure_waiting_claims(const Placement& placement, Report& report) {
    constexpr uint32_t kClaims = kMeasuredSessions * kClaimsEach;
    uint64_t without = 0;
    {
        const BrokerProcess broker({setup_for(16), placement.far_side});
        const std::vector<SessionClient> clients = attach(broker, kMeasuredSessions + 1);
        without = resident_bytes(broker.pid());
    }
    const BrokerProcess broker({setup_for(kClaims), placement.far_side});
    const std::vector<SessionClient> clients = attach(broker, kMeasuredSessions + 1);
    const uint64_t empty = resident_bytes(broker.pid());
    const uint32_t pool = clients.back().pool("counted");
    dibs_completion held;
    must(dibs_claim(clients.back().get(), pool, nullptr, &held), "dibs_claim");
    for (uint32_t i = 0; i < kMeasuredSessions; ++i)
        submit_claims(clients[i], pool, kClaimsEach);
    if (waiting(clients.back(), pool) != kClaims) {
        throw std::runtime_error("not every claim waits");
    }
    const uint64_t full = resident_bytes(broker.pid());
    const double each = (static_cast<double>(full) - static_cast<double>(without)) / kClaims;
    report.facts.push_back({"memory",
                            "broker's bytes per waiting claim, without payload",
                            each,
                            "bytes",
                            "(" + mib(full) + " with " + std::to_string(kClaims) + " waiting - " +
                                mib(without) + " of a broker with room for 16) / " +
                                std::to_string(kClaims) + "; " + mib(empty) +
                                " with the room and none waiting; STATE's row is 192 of them",
                            {{"bytes", 256, each}}});
}

}  // namespace dibs::bench
