// benchmarks/account_races.cpp -- who of the pools ordered by account runs against which floor.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/account_races.hpp"

#include <malloc.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "benchmarks/account_core.hpp"
#include "benchmarks/bulk.hpp"
#include "benchmarks/core_claim.hpp"
#include "benchmarks/rounds.hpp"
#include "benchmarks/trace_replay.hpp"

namespace dibs::bench {

namespace {

uint32_t scaled(const Stage& stage, uint32_t operations) {
    return std::max(1U, static_cast<uint32_t>(operations * stage.options.scale));
}

Lane lane(std::string name, const Stage& stage, std::unique_ptr<Contender> contender) {
    Lane made;
    made.name = std::move(name);
    made.placement = one_core(stage.placement);
    made.contender = std::move(contender);
    return made;
}

std::unique_ptr<Contender> contender(const AccountSetup& setup, AccountClaim::Part part) {
    return std::make_unique<AccountClaim>(setup, part);
}

uint64_t allocated() {
    const struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}

}  // namespace

void race_accounts(const Stage& stage) {
    Race race;
    race.group = "core alone, 100 accounts, five classes, labels, per claim";
    race.operations = scaled(stage, 12'800);
    race.lanes.push_back(
        lane("floor: ten lines copied out and back", stage, std::make_unique<CopyFloor>()));
    for (const uint32_t batch : {1U, 8U, 64U}) {
        race.lanes.push_back(lane("claim to grant, turns of " + std::to_string(batch),
                                  stage,
                                  contender({.batch = batch}, AccountClaim::Part::kClaim)));
        race.lanes.back().floor = 0;
        if (batch == 64) race.lanes.back().p50_max_ns = 400;
    }
    run(race, stage.options.rounds, stage.core_probe, stage.report);
}

// Each exchange is a release, a claim and the grant of the first that waits.
void race_account_growth(const Stage& stage) {
    Race race;
    race.group = "core alone, 100 accounts, growth, per exchange";
    race.operations = scaled(stage, 2560);
    race.lanes.push_back(
        lane("floor: one lookup that no cache holds", stage, std::make_unique<MissFloor>()));
    const auto add = [&](const std::string& name, const AccountSetup& setup) {
        race.lanes.push_back(lane(name, stage, contender(setup, AccountClaim::Part::kExchange)));
        race.lanes.back().floor = 0;
    };
    for (const uint32_t waiting : {100U, 10'000U, 1'000'000U}) {
        add(std::to_string(waiting) + " waiting, 1000 slots", {.waiting = waiting});
    }
    for (const uint32_t slots : {100U, 10'000U, 100'000U}) {
        add("1000 waiting, " + std::to_string(slots) + " slots", {.slots = slots, .waiting = 1000});
    }
    for (const uint32_t waiting : {100U, 1'000'000U}) {
        race.lanes.push_back(
            lane("a turn in which only time passes, " + std::to_string(waiting) + " waiting",
                 stage,
                 contender({.waiting = waiting}, AccountClaim::Part::kAdvance)));
        race.lanes.back().floor = 0;
    }
    run(race, std::min(stage.options.rounds, 10U), stage.core_probe, stage.report);
}

void measure_account_memory(const Stage& stage) {
    constexpr uint32_t kWaiting = 1'000'000;
    const uint64_t before = allocated();
    const AccountCore core({.slots = 100, .waiting = kWaiting});
    const double mib = static_cast<double>(allocated() - before - core.bench_bytes()) / (1U << 20U);
    stage.report.facts.push_back(
        {"accounts",
         "STATE and private memory with 10^6 waiting claims",
         mib,
         "MiB",
         "what malloc gave to a core whose pool has 100 accounts and labels, STATE (" +
             std::to_string(core.state_bytes() >> 20U) + " MiB) included",
         {{"MiB", 256, mib}}});
}

void race_trace(const Stage& stage) {
    if (stage.options.trace.empty()) {
        stage.report.absences.push_back(
            {"a trace with an account per user", "no --trace FILE was given"});
        return;
    }
    auto replay = std::make_unique<TraceReplay>(stage.options.trace);
    Race race;
    race.group = "core alone, a trace with an account per user, per command";
    race.operations = kBulk;  // of the floor; the trace is played once a round
    race.lanes.push_back(
        lane("floor: ten lines copied out and back", stage, std::make_unique<CopyFloor>()));
    const std::string shape = replay->shape();
    race.lanes.push_back(lane(shape, stage, std::move(replay)));
    race.lanes.back().floor = 0;
    race.lanes.back().p50_max_ns = 1000;
    run(race, stage.options.rounds, stage.core_probe, stage.report);
}

}  // namespace dibs::bench
