// tests/sim/actors.hpp -- processes that claim and processes that offer, through the real library.
//
// An actor plays one process: it connects, does what the dice say, and dies or closes; its place is
// then taken by the next. What it is told it writes into the ledger, in the order of a careful
// program: what it gives back it no longer holds before it says so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dibs/dibs.h"
#include "tests/sim/house.hpp"
#include "tests/sim/ledger.hpp"
#include "tests/sim/world.hpp"

namespace dibs::sim {

struct PoolPlan {
    std::string name;
    bool has_workers = false;
    bool release_is_ready = false;
    uint32_t slots = 0;
    uint64_t interval_max_ns = 0;
};

// What all actors of a play share.
struct Scene {
    World& world;
    House& house;
    Ledger& ledger;
    std::vector<PoolPlan> pools;
    uint64_t commands = 0;
    bool calm = false;  // no more faults; everybody finishes what he has begun
    bool workers_leave = false;
    bool loud_deaths = false;                   // two brokers may die with the same entry in hand
    std::map<std::string, uint64_t> seen = {};  // what has happened how often
};

class Actor {
  public:
    Actor(Scene& scene, uint32_t process);
    virtual ~Actor();
    Actor(const Actor&) = delete;
    Actor& operator=(const Actor&) = delete;

    void start();
    void kill();
    [[nodiscard]] bool gone() const { return task_->fiber->ended(); }
    [[nodiscard]] bool finished() const { return finished_; }
    [[nodiscard]] uint32_t process() const { return process_; }
    [[nodiscard]] const std::string& doing() const { return doing_; }
    [[nodiscard]] uint64_t doing_since() const { return doing_since_; }

  protected:
    virtual void live() = 0;
    // True if the session is over, and that it may be.
    bool over(int code);
    void expect(bool holds, const std::string& what);
    void doing(const std::string& what);
    Dice& dice() { return scene_.world.dice; }
    uint64_t now() const { return scene_.world.now(); }

    Scene& scene_;
    uint32_t process_;
    dibs_session* session_ = nullptr;
    bool finished_ = false;  // did all that it had to

  private:
    bool connect();
    void bury();

    std::shared_ptr<Task> task_;
    int lifeline_ = -1;
    std::string doing_;
    uint64_t doing_since_ = 0;
};

class Client final : public Actor {
  public:
    using Actor::Actor;

  private:
    struct Held {
        dibs_lease lease;
        uint32_t pool;
    };
    void live() override;
    bool finish();
    bool claim(uint32_t pool, int64_t timeout_ns);
    bool batch();
    bool give_back(bool wait);
    bool keep_alive();
    bool wait_for_events();
    bool reap(int64_t timeout_ns);
    bool take(const dibs_completion& end);
    void granted(const dibs_completion& end, uint32_t pool, uint64_t asked_ns, bool cancelled);
    dibs_claim_options wish(uint32_t pool, int64_t timeout_ns);

    struct Asked {
        uint32_t pool;
        uint64_t at_ns;
        uint64_t ticket;
        bool cancelled;
    };
    std::vector<Held> held_;
    std::map<uint64_t, Asked> asked_;
    uint64_t number_ = 0;
};

class Worker final : public Actor {
  public:
    using Actor::Actor;

  private:
    struct Slot {
        uint32_t pool;
        uint64_t round;
        enum { kIdle, kBusy, kSilent } state;
        uint64_t since_ns;
    };
    void live() override;
    bool announce();
    bool hear();
    bool work();
    bool told(int code, const char* what);

    std::map<uint64_t, Slot> slots_;
    uint64_t names_ = 0;
};

}  // namespace dibs::sim
