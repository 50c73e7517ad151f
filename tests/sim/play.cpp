// tests/sim/play.cpp -- what is drawn for a play, how it goes, and how it ends.
//
// First the storm: processes come, die and come again, the broker is killed and started again.
// Then the calm: no more faults; every client has one more slot of every pool, and gives back all.
// That this ends, and that then everything is idle, is the progress that is promised.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/play.hpp"

#include <algorithm>
#include <memory>
#include <sstream>

#include "tests/sim/actors.hpp"
#include "tests/sim/house.hpp"
#include "tests/sim/ledger.hpp"
#include "tests/sim/world.hpp"

namespace dibs::sim {

namespace {

constexpr uint64_t kCalmNs = 60'000'000'000;  // more than enough to finish in

// Each play leaves out some of the faults, so that they cannot hide behind one another.
struct Character {
    Weather weather;
    core::Limits limits;
    uint32_t clients = 4;
    uint32_t workers = 2;
    uint64_t process_dies_one_in = 0;  // of steps
    uint64_t broker_dies_one_in = 0;
    bool loud_deaths = false;
    bool scarce = false;

    explicit Character(Dice& dice) {
        const auto some = [&](uint64_t value) { return dice.one_in(2) ? value : uint64_t{0}; };
        weather.switch_one_in = 1 + dice.below(8);
        weather.step_ns = 1U << (6 + dice.below(9));
        weather.stall_one_in = some(200 + dice.below(2000));
        weather.stall_ns = dice.one_in(2) ? 20'000'000 : 500'000'000;
        weather.lose_one_in = some(50 + dice.below(200));
        weather.double_one_in = some(20 + dice.below(50));
        weather.spurious_one_in = some(100 + dice.below(500));
        clients = static_cast<uint32_t>(2 + dice.below(8));
        workers = static_cast<uint32_t>(dice.below(5));
        process_dies_one_in = some(3000 + dice.below(10'000));
        broker_dies_one_in = some(8000 + dice.below(20'000));
        loud_deaths = dice.one_in(3);
        scarce = dice.one_in(3);
        limits = {.pools = 4,
                  .sessions = scarce ? 6U : 32U,
                  .slots = scarce ? 12U : 64U,
                  .claims = scarce ? 6U : 256U,
                  .leases = scarce ? 4U : 128U,
                  .arena_blocks = scarce ? 6U : 64U};
    }

    [[nodiscard]] std::string text() const {
        std::ostringstream out;
        out << clients << " clients, " << workers << " workers, step " << weather.step_ns
            << " ns; one in: stall " << weather.stall_one_in << " (" << weather.stall_ns / 1'000'000
            << " ms), lost " << weather.lose_one_in << ", doubled " << weather.double_one_in
            << ", spurious " << weather.spurious_one_in << ", process dies " << process_dies_one_in
            << ", broker dies " << broker_dies_one_in << (loud_deaths ? ", loudly" : "")
            << (scarce ? "; scarce rows" : "");
        return out.str();
    }
};

std::vector<PoolPlan> plans() {
    return {{"tokens", false, false, 4, 40'000'000},
            {"gpus", false, false, 2, 300'000'000},
            {"web", true, false, 0, 200'000'000},
            {"quick", true, true, 0, 200'000'000}};
}

Config configuration(const Character& character, Dice& dice) {
    Config config;
    config.limits = character.limits;
    config.spin_ns = dice.one_in(2) ? 0 : 5000;
    for (const PoolPlan& plan : plans()) {
        PoolSettings pool;
        pool.name = plan.name;
        pool.values.kind = plan.has_workers ? shm::PoolKind::kWorker : shm::PoolKind::kCounted;
        pool.values.slots = plan.slots;
        pool.values.backlog_max = character.scarce ? 4 : 64;
        pool.values.payload_max = 512;
        pool.values.answer_max = plan.has_workers ? 32 : 0;
        pool.values.attributes_max = 16;
        pool.values.reservation_ttl_ns = 10'000'000;
        pool.values.interval_max_ns = plan.interval_max_ns;
        pool.values.grace_ns = dice.one_in(2) ? 0 : 3'000'000;
        pool.values.release_is_ready = plan.release_is_ready;
        config.pools.push_back(pool);
    }
    return config;
}

class Play {
  public:
    explicit Play(uint64_t seed)
        : draw_(seed),
          character_(draw_),
          world_(seed ^ 0x5bd1e995U, character_.weather),
          house_(world_, configuration(character_, draw_), seed),
          scene_{world_, house_, ledger_, plans()} {
        scene_.loud_deaths = character_.loud_deaths;
    }

    ~Play() { world_.end(); }
    Play(const Play&) = delete;
    Play& operator=(const Play&) = delete;

    Outcome run(uint64_t commands) {
        house_.start();
        for (uint32_t i = 0; i < character_.clients + character_.workers; ++i)
            actors_.push_back(next(i));
        while (scene_.commands < commands && well()) {
            storm();
            if (!world_.step()) ledger_.wrong("nobody will ever run again");
        }
        if (well()) calm();
        Outcome outcome;
        outcome.wrongs = ledger_.wrongs();
        outcome.character = character_.text();
        outcome.hash = ledger_.hash() ^ world_.now();
        outcome.commands = scene_.commands;
        outcome.faults = world_.faults;
        outcome.deaths = house_.lives() - 1;
        outcome.net_found_work = net_;
        outcome.seen = scene_.seen;
        return outcome;
    }

  private:
    [[nodiscard]] bool well() {
        if (!house_.broken.empty()) ledger_.wrong(house_.broken);
        house_.broken.clear();
        return ledger_.wrongs().empty();
    }

    std::unique_ptr<Actor> next(uint32_t place) {
        std::unique_ptr<Actor> actor;
        const uint32_t process = ++processes_;
        if (place < character_.clients) {
            actor = std::make_unique<Client>(scene_, process);
        } else {
            actor = std::make_unique<Worker>(scene_, process);
        }
        actor->start();
        return actor;
    }

    // Whoever is gone is followed by the next; a dead broker, after a while, too.
    void renew(bool all) {
        for (uint32_t place = 0; place < actors_.size(); ++place) {
            if (actors_[place]->gone() && (all || !actors_[place]->finished())) {
                actors_[place] = next(place);
            }
        }
        if (house_.died()) {
            net_ += house_.net_found_work();
            house_.bury();
            if (character_.loud_deaths) ledger_.broker_died();  // sessions may have ended with it
            start_at_ns_ = world_.now() + world_.dice.below(50'000'000);
        }
        if (house_.dead() && world_.now() >= start_at_ns_) house_.start();
    }

    void storm() {
        renew(true);
        if (world_.dice.one_in(character_.process_dies_one_in)) {
            ++world_.faults;
            actors_[world_.dice.below(actors_.size())]->kill();
        }
        if (house_.dead()) return;
        if (world_.dice.one_in(character_.broker_dies_one_in)) death();
    }

    // After a loud death a quiet one, unless the play allows two loud ones running: an entry that
    // two brokers running had in hand ends its session.
    void death() {
        if (quiet_next_ || world_.dice.one_in(3)) {
            if (!house_.kill_at_rest()) return;
            ++world_.faults;
            quiet_next_ = false;
            return;
        }
        if (world_.dice.one_in(2)) {
            house_.kill_at_store(1 + world_.dice.below(60));
        } else {
            ++world_.faults;
            house_.kill_at_moment(1 + world_.dice.below(20));
        }
        quiet_next_ = !character_.loud_deaths;
    }

    void calm() {
        world_.weather = Weather{};
        house_.kill_at_store(0);
        scene_.calm = true;
        const uint64_t until = world_.now() + kCalmNs;
        const auto all_finished = [&](bool clients) {
            for (uint32_t i = 0; i < actors_.size(); ++i) {
                if ((i < character_.clients) == clients && !actors_[i]->finished()) return false;
            }
            return true;
        };
        while (well() && !(all_finished(true) && all_finished(false))) {
            renew(false);
            if (all_finished(true)) scene_.workers_leave = true;
            if (!world_.step() || world_.now() > until) return stuck();
        }
        // What the last ones have said is read.
        for (int i = 0; i < 100'000 && well() && !idle(); ++i)
            (void)world_.step();
        if (!well()) return;
        for (const std::string& wrong : house_.check_all())
            ledger_.wrong(wrong);
        if (!idle()) ledger_.wrong("everybody has gone, and not everything is idle");
        if (ledger_.open_claims() != 0) ledger_.wrong("a claim has no outcome");
        net_ += house_.net_found_work();
        if (net_ != 0) ledger_.wrong("the net found work, and the broker had not been rung");
    }

    [[nodiscard]] bool idle() const { return house_.open() && house_.all_idle(); }

    void stuck() {
        for (const auto& actor : actors_) {
            if (actor->finished()) continue;
            ledger_.wrong("no progress: process " + std::to_string(actor->process()) + " is " +
                          actor->doing() + " since " +
                          std::to_string((world_.now() - actor->doing_since()) / 1'000'000) +
                          " ms");
        }
    }

    Dice draw_;
    Character character_;
    World world_;
    House house_;
    Ledger ledger_;
    Scene scene_;
    std::vector<std::unique_ptr<Actor>> actors_;
    uint32_t processes_ = 0;
    uint64_t start_at_ns_ = 0;
    uint64_t net_ = 0;
    bool quiet_next_ = false;  // after a loud death
};

}  // namespace

Outcome play(uint64_t seed, uint64_t commands) {
    return Play(seed).run(commands);
}

}  // namespace dibs::sim
