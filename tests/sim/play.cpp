// tests/sim/play.cpp -- what is drawn for a play, how it goes, and how it ends.
//
// First the storm: processes come, die and come again, the broker is killed and started again.
// Then the calm: no more faults; every client has one more slot of every pool, and gives back all.
// That this ends, and that then everything is idle, is the progress that is promised.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/play.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include "tests/sim/actors.hpp"
#include "tests/sim/auditor.hpp"
#include "tests/sim/character.hpp"
#include "tests/sim/house.hpp"
#include "tests/sim/ledger.hpp"
#include "tests/sim/operator.hpp"
#include "tests/sim/world.hpp"

namespace dibs::sim {

namespace {

constexpr uint64_t kCalmNs = 60'000'000'000;  // more than enough to finish in

class Play {
  public:
    explicit Play(uint64_t seed)
        : draw_(seed),
          character_(draw_),
          config_(character_.configuration(draw_)),
          world_(seed ^ 0x5bd1e995U, character_.weather),
          auditor_(ledger_, character_.check_every),
          house_(world_, config_, seed, auditor_),
          scene_{world_, house_, ledger_, character_.pools, config_, character_.adoption} {
        scene_.operators = character_.operators;
        scene_.loud_deaths = character_.loud_deaths;
        for (uint32_t pool = 0; pool < character_.pools.size(); ++pool) {
            if (character_.pools[pool].expiry == shm::ExpiryMode::kStrict) strict_.insert(pool);
            if (character_.pools[pool].quantum_ns != 0) ledger_.parks(pool);
        }
    }

    ~Play() { world_.end(); }
    Play(const Play&) = delete;
    Play& operator=(const Play&) = delete;

    Outcome run(uint64_t commands) {
        house_.start();
        for (uint32_t i = 0; i < character_.clients + character_.workers + character_.operators;
             ++i)
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
        outcome.seen["killed"] = world_.kills;
        outcome.seen["died behind a store"] = house_.deaths_behind_a_store();
        outcome.seen["stood still and went on"] = house_.standstills();
        for (const auto& [what, times] : auditor_.seen())
            outcome.seen[what] += times;
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
        } else if (place < character_.clients + character_.workers) {
            actor = std::make_unique<Worker>(scene_, process);
        } else {
            actor = std::make_unique<Operator>(scene_, process);
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
            if (character_.loud_deaths) ledger_.broker_died(strict_);
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
        if (character_.operators != 0 && world_.dice.one_in(2)) {
            house_.kill_at_command(1 + world_.dice.below(80), world_.dice.one_in(2));
        } else if (world_.dice.one_in(2)) {
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
        house_.kill_at_command(0, false);
        house_.kill_at_command(0, true);
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
        if (!idle()) return ledger_.wrong("everybody has gone, and not everything is idle");
        if (!house_.configured()) ledger_.wrong("something of the configuration is not there");
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
    Config config_;
    World world_;
    Ledger ledger_;
    Auditor auditor_;
    House house_;
    Scene scene_;
    std::vector<std::unique_ptr<Actor>> actors_;
    uint32_t processes_ = 0;
    std::set<uint32_t> strict_;
    uint64_t start_at_ns_ = 0;
    uint64_t net_ = 0;
    bool quiet_next_ = false;  // after a loud death
};

}  // namespace

Outcome play(uint64_t seed, uint64_t commands) {
    return Play(seed).run(commands);
}

}  // namespace dibs::sim
