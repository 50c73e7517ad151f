// benchmarks/fixed_work.cpp -- work of a fixed size, untimed.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/fixed_work.hpp"

#include <string>

#include "benchmarks/account_core.hpp"
#include "benchmarks/broker_process.hpp"
#include "benchmarks/bulk.hpp"
#include "benchmarks/core_claim.hpp"
#include "benchmarks/session_client.hpp"
#include "benchmarks/trace_replay.hpp"

namespace dibs::bench {

namespace {

void work_core(const Options& options, uint32_t pools) {
    LoneCore core(options.slots, pools);
    for (uint32_t done = 0; done < options.operations; done += kBulk) {
        core.claim(kBulk, options.batch);
        core.release(options.batch);
    }
}

void work_accounts(const Options& options) {
    AccountCore core({.slots = options.slots, .batch = options.batch});
    for (uint32_t done = 0; done < options.operations; done += kBulk) {
        core.claim(kBulk);
        core.release();
    }
}

// All slots are leased, 10,000 claims wait.
AccountCore busy_core(const Options& options) {
    return AccountCore({.slots = options.slots, .waiting = 10'000, .batch = options.batch});
}

void work_exchange(const Options& options) {
    AccountCore core = busy_core(options);
    for (uint32_t done = 0; done < options.operations; done += kBulk)
        core.exchange(kBulk);
}

void work_claim(const Options& options, const Placement& placement) {
    const std::string slots = std::to_string(options.slots);
    const BrokerProcess broker({"[limits]\nslots = " + slots +
                                    "\n[[pool]]\nname = \"counted\"\nkind = \"counted\"\nslots = " +
                                    slots + "\nquantum = \"0s\"\n",
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
    if (options.work == "core") return work_core(options, 1);
    if (options.work == "several") return work_core(options, 3);
    if (options.work == "accounts") return work_accounts(options);
    if (options.work == "exchange") return work_exchange(options);
    if (options.work == "advance") return busy_core(options).advance(options.operations);
    if (options.work == "trace") {
        Samples untold;
        return TraceReplay(options.trace).measure(1, untold);
    }
    work_claim(options, placement);
}

}  // namespace dibs::bench
