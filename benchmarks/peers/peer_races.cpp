// benchmarks/peers/peer_races.cpp -- races of dibs against what programs use in its place.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/peers/peer_races.hpp"

#include <time.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bulk.hpp"
#include "benchmarks/dibs_slots.hpp"
#include "benchmarks/peers/kinds.hpp"
#include "benchmarks/peers/local_slots.hpp"
#include "benchmarks/rounds.hpp"
#include "benchmarks/tick_clock.hpp"
#include "benchmarks/worker_races.hpp"

namespace dibs::bench {

namespace {

constexpr uint32_t kPairs = 200;  // of each contender in each round
constexpr uint32_t kSlots = 64;   // as many as the most clients: none waits for another's slot
constexpr uint32_t kClients[] = {1, 2, 4, 8, 16, 32, 64};

Kind dibs_kind(std::string name, const DibsSlots::Setting& setting) {
    return {std::move(name), "", [setting](uint32_t slots, const Cpus& cpus) {
                return std::make_unique<DibsSlots>(slots, cpus, setting);
            }};
}

template <typename Slots>
Kind local_kind(std::string name) {
    return {std::move(name), "", [](uint32_t slots, const Cpus& /*server*/) {
                return std::make_unique<Slots>(slots);
            }};
}

// What is missing here goes into the report.
std::vector<Kind> kinds(Report& report) {
    std::vector<Kind> all = {
        dibs_kind("dibs, as configured by default", {}),
        dibs_kind("dibs, quantum 0", {.quantum = "0s"}),
        dibs_kind("dibs, quantum 0, clients do not spin", {.client_us = -1, .quantum = "0s"}),
        local_kind<MutexSlots>("robust mutex and condition"),
        local_kind<PosixSemaphoreSlots>("POSIX semaphore"),
        local_kind<SystemVSemaphoreSlots>("System V semaphore"),
        local_kind<FlockSlots>("flock"),
        local_kind<PipeSlots>("jobserver pipe"),
        redis_kind(RedisWay::kMove),
        redis_kind(RedisWay::kScript),
        beanstalkd_kind(),
        nats_kind(),
        zeromq_kind(),
        postgresql_kind()};
    for (const Kind& kind : all) {
        if (!kind.absent.empty()) report.absences.push_back({kind.name, kind.absent});
    }
    return all;
}

// None if it is missing, or does not start, which goes into the report once.
std::unique_ptr<SlotSource> started(Kind& kind, const Cpus& server, Report& report) {
    if (!kind.absent.empty()) return nullptr;
    try {
        return kind.make(kSlots, server);
    } catch (const std::exception& error) {
        kind.absent = error.what();
        report.absences.push_back({kind.name, kind.absent});
        return nullptr;
    }
}

class TakeAndReturn final : public Contender {
  public:
    explicit TakeAndReturn(std::unique_ptr<SlotSource> slots) : slots_(std::move(slots)) {}
    void measure(uint32_t operations, Samples& out) override {
        if (!attached_) slots_->attach(0);
        attached_ = true;
        for (uint32_t i = 0; i < operations + kFirst; ++i) {
            const uint64_t first = ticks();
            slots_->claim();
            slots_->release();
            if (i >= kFirst) out.add(elapsed_ns(first, ticks()));
        }
        // A broker that spins falls asleep before the next contender begins.
        const struct timespec moment = {0, 1'000'000};
        nanosleep(&moment, nullptr);
    }

  private:
    std::unique_ptr<SlotSource> slots_;
    bool attached_ = false;
};

void race_one_client(const Stage& stage, std::vector<Kind>& kinds, bool same_core) {
    const Cpus server = {same_core ? stage.placement.near_side : stage.placement.far_side};
    Race race;
    race.group =
        std::string("peers: take and return a slot, ") + (same_core ? "one core" : "across cores");
    race.operations = std::max(1U, static_cast<uint32_t>(kPairs * stage.options.scale));
    for (Kind& kind : kinds) {
        std::unique_ptr<SlotSource> slots = started(kind, server, stage.report);
        if (slots == nullptr) continue;
        Lane lane;
        lane.name = kind.name;
        lane.placement = same_core ? one_core(stage.placement) : across(stage.placement);
        lane.contender = std::make_unique<TakeAndReturn>(std::move(slots));
        if (!race.lanes.empty()) lane.floor = 0;
        race.lanes.push_back(std::move(lane));
    }
    run(race, stage.options.rounds, stage.pair_probe, stage.report);
}

void race_clients(const Stage& stage, std::vector<Kind>& kinds, uint32_t clients) {
    const Cpus server = {stage.placement.far_side, stage.placement.near_side};
    std::vector<Side> sides;
    const auto add = [&](const std::string& name, std::unique_ptr<SlotSource> slots) {
        if (slots == nullptr) return;
        sides.push_back({name, std::make_unique<Crew>(clients, std::move(slots), stage.placement)});
    };
    add("ideal: only work", std::make_unique<NoSlots>());
    for (Kind& kind : kinds)
        add(kind.name, started(kind, server, stage.report));
    WorkersRow cell;
    cell.group = "peers: " + std::to_string(clients) + (clients == 1 ? " client" : " clients") +
                 " at once, no work";
    cell.processes = clients;
    cell.slots = kSlots;
    race_crews(stage, cell, sides);
}

}  // namespace

void race_peers(const Stage& stage) {
    std::vector<Kind> measured = kinds(stage.report);
    for (const bool same_core : {true, false})
        race_one_client(stage, measured, same_core);
    for (const uint32_t clients : kClients)
        race_clients(stage, measured, clients);
}

}  // namespace dibs::bench
