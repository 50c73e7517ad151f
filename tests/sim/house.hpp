// tests/sim/house.hpp -- the broker's process in a simulated world, one life after the other, and
// what outlives it: STATE, and the descriptors that a keeper would hold.
//
// The turn, the core and everything they use are real. What the control thread does at a handshake
// is done here by a task of its own, with the real functions for each packet; and the keeper is a
// map of descriptors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "broker/admin/admin.hpp"
#include "broker/config/config.hpp"
#include "broker/core/core.hpp"
#include "broker/takeover/inheritance.hpp"
#include "broker/turn/turn.hpp"
#include "shm/lines.hpp"
#include "tests/sim/auditor.hpp"
#include "tests/sim/world.hpp"

namespace dibs::sim {

class House {
  public:
    House(World& world, const Config& config, uint64_t hash_seed, Auditor& auditor);
    ~House();
    House(const House&) = delete;
    House& operator=(const House&) = delete;

    void start();  // a new life; there is none
    // Where it rests with nothing in hand; false if it does not.
    bool kill_at_rest();
    // Behind the n-th store to STATE from now, or at the n-th moment, whatever it is doing.
    void kill_at_store(uint64_t n) { store_ = n; }
    void kill_at_moment(uint64_t n);
    // Behind the n-th store to STATE after an administrator's next command has been asked for, or,
    // if `heard`, after the core has heard it.
    void kill_at_command(uint64_t n, bool heard);
    // Asks the turn and waits for its answer: an administrator's task. False: there is none, since
    // the broker has died, or is not there; whether it was done is not known.
    bool administer(AdminJob& job);
    // The file is another one from now on, and the broker, if it lives, is told to read it.
    void reload(const Config& config);
    // Its process is gone, and what it had is given back.
    [[nodiscard]] bool dead() const { return life_ == nullptr; }
    void bury();  // after a death: the kernel's part
    [[nodiscard]] bool died() const;

    [[nodiscard]] bool open() const;  // serves
    [[nodiscard]] uint64_t lives() const { return lives_; }
    [[nodiscard]] uint64_t deaths_behind_a_store() const { return deaths_behind_a_store_; }
    // Of brokers that went on: their clocks are behind what they began with.
    [[nodiscard]] uint64_t standstills() const { return standstills_; }
    [[nodiscard]] uint64_t net_found_work() const;
    [[nodiscard]] std::vector<std::string> check_all() const;
    [[nodiscard]] bool all_idle() const;    // nobody holds, waits or offers anything
    [[nodiscard]] bool configured() const;  // has all that its file says

    // --- calls.cpp
    int call();  // socket(): one end is the caller's
    [[nodiscard]] bool owns(int fd) const;

    static House* here;
    std::string broken;  // what must not happen, once it has

  private:
    struct Life;
    struct Caller {
        shm::Descriptor socket;
        int lifeline;
        uint32_t uid;
    };
    static void stored();
    void heard_command();
    void serve();
    void control();
    void take_reports();
    void hear_callers();
    [[nodiscard]] Session* session_for(Peer peer, const shm::SessionSizes& sizes);
    void pass_on();
    void welcome(Session* session);
    void forget(Session* session);
    void keep(const Session& session);
    void inherit(Inheritance& inheritance);

    World& world_;
    Auditor& auditor_;
    Config config_;
    uint64_t hash_seed_;
    shm::Lines state_;
    std::unique_ptr<Life> life_;
    uint64_t lives_ = 0;
    uint64_t deaths_behind_a_store_ = 0;
    uint64_t standstills_ = 0;
    uint64_t store_ = 0;
    uint64_t store_of_asked_ = 0;  // of the next command
    uint64_t store_of_heard_ = 0;
    std::vector<std::unique_ptr<Session>> refused_;  // as they were made, but for the peer

    // The keeper's: by row and generation, in the order of SessionDescriptor.
    using Key = std::pair<uint32_t, uint32_t>;
    std::map<Key, std::array<shm::Descriptor, kKeptMax>> kept_;
    shm::Descriptor board_;
    uint64_t death_ns_ = 0;
    uint64_t clock_offset_ = 0;
};

}  // namespace dibs::sim
