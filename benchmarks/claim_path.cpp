// benchmarks/claim_path.cpp -- page faults and allocations of claims, on both sides.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/claim_path.hpp"

#include <sys/resource.h>

#include <string>

#include "benchmarks/allocations.h"
#include "benchmarks/broker_process.hpp"
#include "benchmarks/process_figures.hpp"
#include "benchmarks/session_client.hpp"

namespace dibs::bench {

namespace {

constexpr uint32_t kWarm = 20'000;  // after start-up: each ring, row and room has been used
constexpr uint32_t kClaims = 100'000;

uint64_t own_faults() {
    struct rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<uint64_t>(usage.ru_minflt);
}

struct Costs {
    uint64_t own_faults;
    uint64_t own_allocations;
    uint64_t broker_faults;
    uint64_t broker_allocations;
};

// In this order, and the reverse afterwards, so that reading /proc does not count itself.
Costs costs_before(const BrokerProcess& broker) {
    Costs costs = {};
    costs.broker_allocations = broker.allocations();
    costs.broker_faults = minor_faults(broker.pid());
    costs.own_allocations = dibs_allocations();
    costs.own_faults = own_faults();
    return costs;
}

Costs costs_after(const BrokerProcess& broker) {
    Costs costs = {};
    costs.own_faults = own_faults();
    costs.own_allocations = dibs_allocations();
    costs.broker_faults = minor_faults(broker.pid());
    costs.broker_allocations = broker.allocations();
    return costs;
}

void add_fact(Report& report, const char* name, uint64_t before, uint64_t after) {
    const auto grown = static_cast<double>(after - before);
    report.facts.push_back({"claim path after start-up",
                            name,
                            grown,
                            "",
                            "over " + std::to_string(kClaims) + " claims and releases",
                            {{"count", 0, grown}}});
}

}  // namespace

void count_claim_path(const Placement& placement, Report& report) {
    const BrokerProcess broker(
        {"[[pool]]\nname = \"counted\"\nkind = \"counted\"\nslots = 1000\n"
         "quantum = \"0s\"\n",
         placement.far_side,
         true});
    const SessionClient client(ClientSetup{.socket = broker.socket()});
    const uint32_t pool = client.pool("counted");
    dibs_claim_options options = {};
    options.size = sizeof options;
    options.timeout_ns = DIBS_SECOND;
    options.interval_ns = 30 * DIBS_SECOND;
    options.body = "what the worker is to do";
    options.body_size = 24;
    for (uint32_t i = 0; i < kWarm; ++i)
        (void)client.claim(pool, &options);
    client.pace(Pace::kAsleep, false);
    const Costs before = costs_before(broker);
    for (uint32_t i = 0; i < kClaims; ++i)
        (void)client.claim(pool, &options);
    client.pace(Pace::kAsleep, false);
    const Costs after = costs_after(broker);
    add_fact(report, "page faults of the client", before.own_faults, after.own_faults);
    add_fact(report, "allocations of the client", before.own_allocations, after.own_allocations);
    add_fact(report, "page faults of the broker", before.broker_faults, after.broker_faults);
    add_fact(
        report, "allocations of the broker", before.broker_allocations, after.broker_allocations);
}

}  // namespace dibs::bench
