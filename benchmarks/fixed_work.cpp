// benchmarks/fixed_work.cpp -- work of a fixed size, untimed.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/fixed_work.hpp"

#include <string>

#include "benchmarks/broker_process.hpp"
#include "benchmarks/core_claim.hpp"
#include "benchmarks/session_client.hpp"

namespace dibs::bench {

namespace {

constexpr uint32_t kBulk = 256;

void work_core(const Options& options) {
    LoneCore core(options.slots);
    for (uint32_t done = 0; done < options.operations; done += kBulk) {
        core.claim(kBulk, options.batch);
        core.release(options.batch);
    }
}

void work_claim(const Options& options, const Placement& placement) {
    const std::string slots = std::to_string(options.slots);
    const BrokerProcess broker(
        {"[limits]\nslots = " + slots +
             "\n[[pool]]\nname = \"counted\"\nkind = \"counted\"\nslots = " + slots + "\n",
         placement.far_side});
    const SessionClient client(ClientSetup{.socket = broker.socket()});
    const uint32_t pool = client.pool("counted");
    for (uint32_t done = 0; done < options.operations; ++done) {
        (void)client.claim(pool, nullptr);
        client.pace(Pace::kPaced, false);
    }
}

}  // namespace

void do_fixed_work(const Options& options, const Placement& placement) {
    if (options.work == "core") return work_core(options);
    work_claim(options, placement);
}

}  // namespace dibs::bench
