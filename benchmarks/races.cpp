// benchmarks/races.cpp -- who runs against which floor.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/races.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <initializer_list>
#include <stdexcept>
#include <utility>

#include "benchmarks/asked_claim.hpp"
#include "benchmarks/beset_claim.hpp"
#include "benchmarks/broker_process.hpp"
#include "benchmarks/bulk.hpp"
#include "benchmarks/core_claim.hpp"
#include "benchmarks/dispatch_core.hpp"
#include "benchmarks/elastic_core.hpp"
#include "benchmarks/futex_floor.hpp"
#include "benchmarks/gang_core.hpp"
#include "benchmarks/gang_round.hpp"
#include "benchmarks/instructions.hpp"
#include "benchmarks/parked_claim.hpp"
#include "benchmarks/part_core.hpp"
#include "benchmarks/ring_floor.hpp"
#include "benchmarks/rounds.hpp"
#include "benchmarks/route_core.hpp"
#include "benchmarks/snapshot.hpp"
#include "benchmarks/worker_claim.hpp"

namespace dibs::bench {

namespace {

constexpr uint32_t kActive = 10;
constexpr uint32_t kAttached = 1000;

// Of sessions attached here and at a broker that is started here.
void raise_descriptor_limit() {
    struct rlimit limit = {};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) throw std::runtime_error("getrlimit");
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) throw std::runtime_error("setrlimit");
}

uint32_t scaled(const Stage& stage, uint32_t operations) {
    return std::max(1U, static_cast<uint32_t>(operations * stage.options.scale));
}

// What asks for each claim, and two pools of parked leases.
std::string with_slots(uint32_t slots, uint32_t sessions = 16) {
    const std::string count = std::to_string(slots);
    return "[limits]\npools = 4\nsessions = " + std::to_string(sessions) +
           "\nslots = " + std::to_string(slots + 128) +
           "\n[[pool]]\nname = \"counted\"\nkind = \"counted\"\nquantum = \"0s\"\nslots = " +
           count +
           "\n[[pool]]\nname = \"parked\"\nkind = \"counted\"\nslots = 64"
           "\n[[pool]]\nname = \"one\"\nkind = \"counted\"\nslots = 1"
           "\n[[pool]]\nname = \"worker\"\nkind = \"worker\"\nrelease_is_ready = true\npayload_max "
           "= 256\n";
}

Lane floor_lane(std::string name, std::string placement, std::unique_ptr<Contender> floor) {
    Lane lane;
    lane.name = std::move(name);
    lane.placement = std::move(placement);
    lane.contender = std::move(floor);
    return lane;
}

Lane claim_lane(std::string name,
                std::string placement,
                const ClientSetup& client,
                const AskedClaim::Setup& setup) {
    Lane lane = floor_lane(
        std::move(name), std::move(placement), std::make_unique<AskedClaim>(client, setup));
    lane.floor = 0;
    return lane;
}

}  // namespace

void race_rings(const Stage& stage) {
    const std::string where = across(stage.placement);
    Race race;
    race.group = "asked claim, both sides awake";
    race.operations = scaled(stage, 4000);
    race.lanes.push_back(floor_lane(
        "floor: ring round trip", where, std::make_unique<RingFloor>(stage.placement.far_side)));
    race.lanes.push_back(floor_lane("ring round trip, mean of 256 that are not timed",
                                    where,
                                    std::make_unique<RingFloor>(stage.placement.far_side, kBulk)));
    race.lanes.back().floor = 0;
    // Peers are forked before there is any session: a child keeps what its parent had open.
    const BrokerProcess few({with_slots(1000), stage.placement.far_side});
    const BrokerProcess many({with_slots(100'000), stage.placement.far_side});
    const ClientSetup to_few = {.socket = few.socket()};
    const ClientSetup to_many = {.socket = many.socket()};

    race.lanes.push_back(claim_lane("10^3 slots, paced", where, to_few, {}));
    race.lanes.back().ratio_p50_max = 1.5;
    race.lanes.back().ratio_p99_max = 2.5;
    race.lanes.push_back(claim_lane("10^5 slots, paced", where, to_many, {}));
    race.lanes.back().ratio_p50_max = 1.8;
    race.lanes.back().ratio_p99_max = 2.5;
    race.lanes.push_back(
        claim_lane("10^3 slots, back to back", where, to_few, {.pace = Pace::kBackToBack}));
    race.lanes.push_back(
        claim_lane("10^5 slots, back to back", where, to_many, {.pace = Pace::kBackToBack}));
    race.lanes.push_back(
        claim_lane("10^3 slots, paced, timeout and keepalive", where, to_few, {.bounded = true}));
    race.lanes.push_back(floor_lane(
        "worker pool with confirmation, paced", where, std::make_unique<WorkerClaim>(to_few)));
    race.lanes.back().floor = 0;
    race.lanes.back().floor_times = 2;
    run(race, stage.options.rounds, stage.pair_probe, stage.report);
}

void race_parked(const Stage& stage) {
    const std::string where = across(stage.placement);
    raise_descriptor_limit();
    const BrokerProcess broker({with_slots(1000), stage.placement.far_side});
    const BrokerProcess few({with_slots(1000, kActive), stage.placement.far_side});
    const BrokerProcess many({with_slots(1000, kAttached), stage.placement.far_side});
    const ClientSetup client = {.socket = broker.socket()};

    Race pairs;
    pairs.group = "parked leases, taken and released";
    pairs.operations = scaled(stage, 400'000);
    pairs.lanes.push_back(
        floor_lane("floor: two compare-and-swaps", where, std::make_unique<SwapFloor>()));
    pairs.lanes.push_back(floor_lane(
        "take and release, in blocks of 64", where, std::make_unique<ParkedPair>(client)));
    pairs.lanes.back().floor = 0;
    pairs.lanes.back().p50_max_ns = 25;
    run(pairs, stage.options.rounds, stage.pair_probe, stage.report);

    Race recalled;
    recalled.group = "a slot that another session has put aside";
    recalled.operations = scaled(stage, 4000);
    recalled.lanes.push_back(floor_lane("floor: a claim of an idle slot",
                                        where,
                                        std::make_unique<AskedClaim>(client, AskedClaim::Setup{})));
    recalled.lanes.push_back(floor_lane(
        "a claim that recalls the only one", where, std::make_unique<RecalledClaim>(client)));
    recalled.lanes.back().floor = 0;
    run(recalled, stage.options.rounds, stage.pair_probe, stage.report);

    Race among;
    among.group = "ten sessions claim in turn";
    among.operations = scaled(stage, 4000);
    const auto lane = [&](const char* name, const BrokerProcess& asked, uint32_t attached) {
        among.lanes.push_back(
            floor_lane(name,
                       where,
                       std::make_unique<ClaimAmongMany>(
                           ClientSetup{.socket = asked.socket()}, attached, kActive)));
    };
    lane("floor: nobody else is attached", few, kActive);
    lane("of a thousand that are attached", many, kAttached);
    among.lanes.back().floor = 0;
    among.lanes.back().ratio_p50_max = 1.3;
    run(among, stage.options.rounds, stage.pair_probe, stage.report);
}

void race_beside_a_hostile_session(const Stage& stage) {
    const std::string where = across(stage.placement);
    Race race;
    race.group = "asked claim beside a hostile session";
    race.operations = scaled(stage, 2000);
    const BrokerProcess alone({with_slots(1000), stage.placement.far_side});
    const BrokerProcess beset({with_slots(1000), stage.placement.far_side});
    race.lanes.push_back(floor_lane(
        "floor: the same claim, nobody else attached",
        where,
        std::make_unique<AskedClaim>(ClientSetup{.socket = alone.socket()}, AskedClaim::Setup{})));
    for (const uint32_t entries : {0U, 1U, 8U, 64U}) {
        const std::string what =
            entries == 0 ? "it rings and lies before each claim"
                         : std::to_string(entries) + " of its entries before each claim";
        race.lanes.push_back(
            floor_lane(what, where, std::make_unique<BesetClaim>(beset.socket(), entries)));
        race.lanes.back().floor = 0;
        race.lanes.back().ratio_p99_max = 2;
    }
    run(race, stage.options.rounds, stage.pair_probe, stage.report);
}

void race_futexes(const Stage& stage) {
    const int here = stage.placement.near_side;
    const int there = stage.placement.far_side;
    for (const bool same_core : {true, false}) {
        const std::string where = same_core ? one_core(stage.placement) : across(stage.placement);
        const int cpu = same_core ? here : there;
        Race race;
        race.group = same_core ? "both sides asleep, one core" : "both sides asleep, across cores";
        race.operations = scaled(stage, 200);
        race.lanes.push_back(floor_lane(
            "floor: futex round trip", where, std::make_unique<FutexFloor>(cpu, same_core)));
        const BrokerProcess sleepy({"spin = \"0s\"\n" + with_slots(1000), cpu});
        const BrokerProcess usual({with_slots(1000), cpu});
        race.lanes.push_back(claim_lane("claim, nobody spins or yields",
                                        where,
                                        {.socket = sleepy.socket(), .spin_us = -1},
                                        {.pace = Pace::kAsleep, .same_core = same_core}));
        race.lanes.back().ratio_p50_max = same_core ? 1.5 : 1.2;
        race.lanes.push_back(claim_lane("claim as configured by default, broker asleep",
                                        where,
                                        {.socket = usual.socket()},
                                        {.pace = Pace::kAsleep, .same_core = same_core}));
        run(race, stage.options.rounds, stage.pair_probe, stage.report);
    }
}

namespace {

void count_instructions(const Stage& stage, uint32_t slots, uint32_t batch) {
    const std::string name = "instructions per claim, " + std::to_string(slots) +
                             " slots, turns of " + std::to_string(batch);
    const InstructionCounter counter;
    if (!counter.absent().empty()) {
        stage.report.absences.push_back({name, counter.absent()});
        return;
    }
    constexpr uint32_t kClaims = 256;
    LoneCore core(slots);
    core.claim(kClaims, batch);
    core.release(batch);
    const uint64_t first = counter.count();
    core.claim(kClaims, batch);
    const uint64_t last = counter.count();
    stage.report.facts.push_back({"core alone",
                                  name,
                                  static_cast<double>(last - first) / kClaims,
                                  "instructions",
                                  "outside the kernel, perf_event_open",
                                  {}});
}

template <class Core>
struct Served {
    const char* what;
    const char* waiting;
    typename Core::Part part;
};

// A pool of this kind at its most workers. `sizes`: what waits, workers.
template <class Core>
void race_full(const Stage& stage,
               const std::string& kind,
               const Served<Core>& served,
               std::initializer_list<std::pair<uint32_t, uint32_t>> sizes) {
    const std::string where = one_core(stage.placement);
    Race race;
    race.group = "core alone, " + kind + " pool at its most workers";
    race.operations = scaled(stage, 25'600);
    race.lanes.push_back(
        floor_lane("floor: ten lines copied out and back", where, std::make_unique<CopyFloor>()));
    for (const auto& [waiting, workers] : sizes) {
        for (const auto& [what, part] : {std::pair{"nothing to do", Core::Part::kNothing},
                                         std::pair{served.what, served.part}}) {
            const std::string name = std::string(what) + ", " + std::to_string(workers) +
                                     " workers, " + std::to_string(waiting) + " " + served.waiting +
                                     " wait";
            race.lanes.push_back(
                floor_lane(name, where, std::make_unique<Core>(waiting, workers, part)));
            race.lanes.back().floor = 0;
        }
    }
    run(race, stage.options.rounds, stage.core_probe, stage.report);
}

}  // namespace

void race_core(const Stage& stage) {
    const std::string where = one_core(stage.placement);
    Race race;
    race.group = "core alone, FIFO pool, per claim";
    race.operations = scaled(stage, 25'600);
    race.lanes.push_back(
        floor_lane("floor: ten lines copied out and back", where, std::make_unique<CopyFloor>()));
    const auto add = [&](const char* what, uint32_t slots, uint32_t batch, CoreClaim::Part part) {
        const std::string name = std::string(what) + ", " + std::to_string(slots) +
                                 " slots, turns of " + std::to_string(batch);
        race.lanes.push_back(
            floor_lane(name, where, std::make_unique<CoreClaim>(slots, batch, part)));
        race.lanes.back().floor = 0;
        if (part != CoreClaim::Part::kRelease) race.lanes.back().p50_max_ns = 60;
    };
    race.lanes.push_back(floor_lane(
        "the clock, read before and behind a pledge", where, std::make_unique<ClockFloor>()));
    for (const uint32_t slots : {1000U, 100'000U}) {
        for (const uint32_t batch : {1U, 8U, 64U, 256U}) {
            if (slots == 100'000 && batch != 1 && batch != 64) continue;
            // Whoever is alone in a turn is told as soon as the grant is pledged.
            if (batch == 1) add("claim to pledge", slots, batch, CoreClaim::Part::kPledge);
            add("claim to commit", slots, batch, CoreClaim::Part::kClaim);
            add("release", slots, batch, CoreClaim::Part::kRelease);
        }
    }
    run(race, stage.options.rounds, stage.core_probe, stage.report);
    count_instructions(stage, 1000, 1);
}

void race_several_pools(const Stage& stage) {
    const std::string where = one_core(stage.placement);
    constexpr uint32_t kSlots = 1000;
    constexpr auto kBoth = CoreClaim::Part::kBoth;
    Race race;
    race.group = "core alone, claims over several pools, per claim and release";
    race.operations = scaled(stage, 25'600);
    race.lanes.push_back(
        floor_lane("plain claim", where, std::make_unique<CoreClaim>(kSlots, 1, kBoth)));
    race.lanes.push_back(
        floor_lane("claim over 3 pools", where, std::make_unique<CoreClaim>(kSlots, 1, kBoth, 3)));
    race.lanes.back().floor = 0;
    race.lanes.back().ratio_p50_max = 3;
    run(race, stage.options.rounds, stage.core_probe, stage.report);
}

void race_parts(const Stage& stage) {
    const std::string where = one_core(stage.placement);
    Race race;
    race.group = "core alone, parts of slots, per claim";
    race.operations = scaled(stage, 25'600);
    race.lanes.push_back(
        floor_lane("floor: ten lines copied out and back", where, std::make_unique<CopyFloor>()));
    const auto add = [&](const char* what, uint32_t slots, uint32_t batch, PartClaim::Part part) {
        const std::string name = std::string(what) + ", " + std::to_string(slots) +
                                 " slots, 8 shapes, turns of " + std::to_string(batch);
        race.lanes.push_back(
            floor_lane(name, where, std::make_unique<PartClaim>(slots, batch, part)));
        race.lanes.back().floor = 0;
    };
    for (const uint32_t slots : {1000U, 10'000U}) {
        for (const uint32_t batch : {1U, 64U}) {
            add("claim to commit", slots, batch, PartClaim::Part::kClaim);
            if (slots == 10'000) race.lanes.back().p50_max_ns = 1000;
            add("release", slots, batch, PartClaim::Part::kRelease);
        }
    }
    run(race, stage.options.rounds, stage.core_probe, stage.report);
}

void race_routes(const Stage& stage) {
    const std::string where = one_core(stage.placement);
    Race race;
    race.group = "core alone, routes";
    race.operations = scaled(stage, 25'600);
    race.lanes.push_back(
        floor_lane("floor: ten lines copied out and back", where, std::make_unique<CopyFloor>()));
    race.lanes.push_back(floor_lane("ranking of 16 pools", where, std::make_unique<Ranking>()));
    race.lanes.back().floor = 0;
    race.lanes.back().p50_max_ns = 1000;
    run(race, stage.options.rounds, stage.core_probe, stage.report);
}

void race_elastic(const Stage& stage) {
    race_full<ElasticCore>(stage,
                           "elastic",
                           {"ready worker to grant", "claims", ElasticCore::Part::kServed},
                           {{1000, 100}, {100'000, 10'000}});
    race_full<DispatchCore>(stage,
                            "dispatched",
                            {"freed worker to start", "entries", DispatchCore::Part::kFreed},
                            {{1000, 100}, {10'000, 1000}, {50'000, 10'000}});
}

void race_gangs(const Stage& stage) {
    const std::string here = one_core(stage.placement);
    Race core;
    core.group = "core alone, gangs";
    core.operations = scaled(stage, 25'600);
    core.lanes.push_back(
        floor_lane("floor: ten lines copied out and back", here, std::make_unique<CopyFloor>()));
    const auto add = [&](const char* name, uint32_t applications, GangCore::Part part) {
        core.lanes.push_back(
            floor_lane(name, here, std::make_unique<GangCore>(applications, 64, part)));
        core.lanes.back().floor = 0;
    };
    add("gang of 64, from its addition to its last slot", 0, GangCore::Part::kDecided);
    core.lanes.back().p50_max_ns = 50'000;
    add("turn without news, no applications", 0, GangCore::Part::kNothing);
    add("turn without news, 10^4 applications of 10 tasks", 10'000, GangCore::Part::kNothing);
    run(core, stage.options.rounds, stage.core_probe, stage.report);

    const std::string where = across(stage.placement);
    Race library;
    library.group = "gangs through the library";
    library.operations = scaled(stage, 4000);
    library.lanes.push_back(floor_lane(
        "floor: ring round trip", where, std::make_unique<RingFloor>(stage.placement.far_side)));
    const BrokerProcess broker({with_slots(1000), stage.placement.far_side});
    library.lanes.push_back(
        floor_lane("gang of 4: added, running, completed, removed",
                   where,
                   std::make_unique<GangRound>(ClientSetup{.socket = broker.socket()})));
    library.lanes.back().floor = 0;
    library.lanes.back().p50_max_ns = 100'000;
    run(library, stage.options.rounds, stage.pair_probe, stage.report);
}

void race_board(const Stage& stage) {
    Race race;
    race.group = "pool snapshot";
    race.operations = scaled(stage, 256'000);
    race.lanes.push_back(floor_lane("floor: 64 bytes read without a look at a sequence",
                                    one_core(stage.placement),
                                    std::make_unique<LineReadFloor>()));
    const BrokerProcess broker({with_slots(1000), stage.placement.far_side});
    race.lanes.push_back(
        floor_lane("dibs_snapshot, broker idle",
                   across(stage.placement),
                   std::make_unique<Snapshot>(ClientSetup{.socket = broker.socket()})));
    race.lanes.back().floor = 0;
    race.lanes.back().p50_max_ns = 30;
    run(race, stage.options.rounds, stage.core_probe, stage.report);
}

}  // namespace dibs::bench
