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
#include "tests/sim/character.hpp"
#include "tests/sim/house.hpp"
#include "tests/sim/ledger.hpp"
#include "tests/sim/world.hpp"

namespace dibs::sim {

inline constexpr int64_t kMs = DIBS_MILLISECOND;

// A lease as its holder has it in mind.
struct Held {
    dibs_lease lease = {};
    uint32_t pool = 0;
    uint64_t interval_ns = 0;  // kForever: no keepalives
    // For how long from its grant nobody may take it, however much better his claim is.
    uint64_t safe_ns = kForever;
    uint64_t number = 0;  // of the process's claim, if it is told of it by one
    uint64_t ticket = 0;
    uint64_t claim = 0;    // the broker's number of its claim, if that was this process's
    bool requeue = false;  // its claim has asked to wait again
    bool adopted = false;
};

// One whose id a holder has passed on.
struct Offer {
    uint32_t process;
    uint32_t uid;
    Held held;
};

// What all actors of a play share.
struct Scene {
    World& world;
    House& house;
    Ledger& ledger;
    std::vector<PoolPlan> pools;
    Config config;  // as it is at first, and in the end
    bool adoption = false;
    uint32_t operators = 0;
    std::vector<uint64_t> numbers = {};  // of claims that somebody was told of, the latest ones
    std::vector<Offer> offers = {};
    uint64_t commands = 0;
    bool calm = false;  // no more faults; everybody finishes what he has begun
    bool workers_leave = false;
    bool loud_deaths = false;                   // two brokers may die with the same entry in hand
    std::map<std::string, uint64_t> seen = {};  // what has happened how often

    void know(uint64_t number) {
        numbers.push_back(number);
        if (numbers.size() > 24) numbers.erase(numbers.begin());
    }
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
    [[nodiscard]] uint32_t uid() const { return kFirstUid + process_ % kUids; }
    [[nodiscard]] const std::string& doing() const { return doing_; }
    [[nodiscard]] uint64_t doing_since() const { return doing_since_; }

  protected:
    virtual bool connect();
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
    void bury();

    std::shared_ptr<Task> task_;
    int lifeline_[2] = {-1, -1};
    uint64_t inode_ = 0;  // the pipe's
    std::string doing_;
    uint64_t doing_since_ = 0;
};

class Client final : public Actor {
  public:
    using Actor::Actor;

  private:
    struct Asked {
        uint32_t pool = 0;
        uint64_t at_ns = 0;
        uint64_t ticket = 0;
        uint64_t safe_ns = kForever;
        bool cancelled = false;
        bool may_wait_again = false;
        bool waits_again = false;
    };
    void live() override;
    bool one_thing();
    bool finish();
    bool claim(uint32_t pool, int64_t timeout_ns);
    bool batch();
    bool give_back(bool wait);
    bool keep_alive();
    bool wait_for_events();
    bool reap(int64_t timeout_ns);
    bool offer();
    bool adopt();
    void take(const dibs_completion& end);
    void claim_ended(const dibs_completion& end);
    void waits_again(size_t held, uint64_t claim);
    void granted(const dibs_completion& end, uint64_t number, const Asked& asked);
    dibs_claim_options wish(uint32_t pool, int64_t timeout_ns);
    void wish_by_account(uint32_t pool, dibs_claim_options& options);
    [[nodiscard]] uint64_t certain_until(const Held& held, uint64_t from_ns) const;
    [[nodiscard]] size_t find_held(const dibs_lease& lease) const;

    std::vector<Held> held_;
    std::map<uint64_t, Asked> asked_;
    // Claims that were cancelled, by number, and their pools: what they had come to by then, or
    // come to when an administrator has let them wait again, is told, and is nobody's.
    std::map<uint64_t, uint32_t> given_up_;
    // Claims that were given up when they had to wait again, by the broker's number, and their
    // pools.
    std::map<uint64_t, uint32_t> unwanted_;
    std::map<uint64_t, bool> leases_;  // of its claims, one by one: have they an interval?
    uint64_t number_ = 0;
    std::string account_;  // that its claim names
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
