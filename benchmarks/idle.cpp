// benchmarks/idle.cpp -- what a broker with nothing to do does.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/idle.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchmarks/broker_process.hpp"
#include "benchmarks/process_figures.hpp"
#include "benchmarks/session_client.hpp"
#include "benchmarks/tick_clock.hpp"
#include "shm/descriptor.hpp"

namespace dibs::bench {

namespace {

constexpr uint32_t kIdleSessions = 100;
constexpr uint32_t kTouchesAtOnce = 1024;  // between two looks at the clock

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
        {"[limits]\nsessions = 128\n[[pool]]\nname = \"counted\"\nkind = \"counted\"\nslots = 4\n"
         "quantum = \"0s\"\n",
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

void watch_parking(const Placement& placement, uint32_t seconds, Report& report) {
    const BrokerProcess broker(
        {"[[pool]]\nname = \"parked\"\nkind = \"counted\"\nslots = 4\n", placement.far_side});
    const SessionClient clients[] = {SessionClient(ClientSetup{.socket = broker.socket()}),
                                     SessionClient(ClientSetup{.socket = broker.socket()})};
    const uint32_t pool = clients[0].pool("parked");
    uint64_t takes = 0;
    uint64_t before = 0;
    // A second first: until then the broker may still poll, and what it does is of the first
    // claims.
    for (const uint32_t part : {1U, seconds}) {
        before = voluntary_switches(broker.pid());
        takes = 0;
        const uint64_t first = ticks();
        while (elapsed_ns(first, ticks()) < part * 1e9) {
            for (const SessionClient& client : clients)
                (void)client.claim(pool, nullptr);
            takes += std::size(clients);
        }
    }
    const auto woken = static_cast<double>(voluntary_switches(broker.pid()) - before);
    const double per_second = woken / seconds;
    report.facts.push_back({"parked",
                            "voluntary context switches of the broker per second",
                            per_second,
                            "",
                            "all threads, while two sessions took and released parked leases " +
                                std::to_string(takes) + " times in " + std::to_string(seconds) +
                                " s",
                            {{"count", 1, per_second}}});
}

void watch_touches(const Placement& placement, uint32_t seconds, Report& report) {
    const BrokerProcess broker(
        {"[[pool]]\nname = \"kept\"\nkind = \"counted\"\nslots = 1\n", placement.far_side});
    const SessionClient client(ClientSetup{.socket = broker.socket()});
    dibs_claim_options options = {};
    options.size = sizeof options;
    options.timeout_ns = DIBS_FOREVER;
    options.interval_ns = 3600 * DIBS_SECOND;
    options.keep = DIBS_KEEP_BY_WORD;
    dibs_completion end = {};
    must(dibs_claim(client.get(), client.pool("kept"), &options, &end), "dibs_claim");
    uint64_t touches = 0;
    uint64_t switches = 0;
    uint64_t used_ns = 0;
    for (const uint32_t part : {1U, seconds}) {  // as above
        touches = 0;
        switches = voluntary_switches(broker.pid());
        used_ns = cpu_ns(broker.pid());
        const uint64_t first = ticks();
        for (; elapsed_ns(first, ticks()) < part * 1e9; touches += kTouchesAtOnce) {
            for (uint32_t i = 0; i < kTouchesAtOnce; ++i)
                must(dibs_touch(client.get(), &end.lease), "dibs_touch");
        }
    }
    const auto woken = static_cast<double>(voluntary_switches(broker.pid()) - switches);
    const double used_ms = static_cast<double>(cpu_ns(broker.pid()) - used_ns) / 1e6;
    const std::string while_touching = "while a holder touched its lease " +
                                       std::to_string(touches) + " times in " +
                                       std::to_string(seconds) + " s";
    report.facts.push_back({"parked",
                            "touches of a lease per second",
                            static_cast<double>(touches) / seconds,
                            "",
                            "one thread",
                            {}});
    report.facts.push_back({"parked",
                            "voluntary context switches of the broker",
                            woken,
                            "",
                            "all threads, " + while_touching,
                            {{"count", 0, woken}}});
    report.facts.push_back(
        {"parked", "CPU time of the broker", used_ms, "ms", "all threads, " + while_touching, {}});
}

}  // namespace dibs::bench
