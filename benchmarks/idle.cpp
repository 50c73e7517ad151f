// benchmarks/idle.cpp -- what a broker with nothing to do does.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/idle.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <stdexcept>
#include <vector>

#include "benchmarks/broker_process.hpp"
#include "benchmarks/process_figures.hpp"
#include "benchmarks/session_client.hpp"
#include "shm/descriptor.hpp"

namespace dibs::bench {

namespace {

constexpr uint32_t kIdleSessions = 100;

// Time itself is what is waited for; the broker's end would cut it short.
void let_pass(const BrokerProcess& broker, uint32_t seconds) {
    const shm::Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, broker.pid(), 0U)));
    pollfd ended = {process.get(), POLLIN, 0};
    if (poll(&ended, 1, static_cast<int>(seconds * 1000)) != 0) {
        throw std::runtime_error("the broker ended while it was idle");
    }
}

}  // namespace

void watch_idleness(const Placement& placement, uint32_t seconds, Report& report) {
    const BrokerProcess broker(
        {"[limits]\nsessions = 128\n[[pool]]\nname = \"counted\"\nkind = \"counted\"\nslots = 4\n",
         placement.far_side});
    std::vector<SessionClient> clients;
    clients.reserve(kIdleSessions);
    for (uint32_t i = 0; i < kIdleSessions; ++i) {
        clients.emplace_back(ClientSetup{.socket = broker.socket()});
        (void)clients.back().claim(clients.back().pool("counted"), nullptr);
        clients.back().pace(Pace::kAsleep, false);
    }
    const uint64_t before = voluntary_switches(broker.pid());
    let_pass(broker, seconds);
    const auto moved = static_cast<double>(voluntary_switches(broker.pid()) - before);
    report.facts.push_back({"idle",
                            "voluntary context switches of the broker",
                            moved,
                            "",
                            "all threads, " + std::to_string(kIdleSessions) +
                                " sessions attached and silent for " + std::to_string(seconds) +
                                " s",
                            {{"count", 0, moved}}});
}

}  // namespace dibs::bench
