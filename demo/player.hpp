// demo/player.hpp -- plays rows against a broker, in one event loop for all tenants.
//
// Each round: submit what is due · give back what has been held long enough · take completions ·
// look at the counters · wait for the next instant or descriptor. It never waits for one thing
// only: a broker or worker that dies, a signal, and a stall all end the run with a sentence.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <cstddef>
#include <cstdint>

#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "demo/child.hpp"
#include "demo/child_output.hpp"
#include "demo/client_session.hpp"
#include "demo/ideal.hpp"
#include "demo/sampler.hpp"
#include "demo/trace/trace.hpp"
#include "demo/witness.hpp"

namespace dibs::ctl::demo {

struct PlayResult {
    uint64_t submitted = 0;
    uint64_t granted = 0;
    uint64_t expired = 0;
    uint64_t cancelled = 0;
    uint64_t rejected = 0;
    uint64_t broker_lost = 0;
    uint64_t ended_twice = 0;  // a claim that had a second outcome
    uint64_t leases_ended = 0;
    uint64_t bad_ends = 0;   // leases that ended otherwise than they should
    uint64_t held_back = 0;  // claims that waited in the client for a place in their session
    uint64_t units_granted = 0;
    std::vector<uint64_t> waits_ns;
    uint64_t makespan_ns = 0;
    std::string first_bad;  // what happened to the first claim that was not granted and given back
    std::string failure;    // why the run was ended before its time
    bool interrupted = false;
};

// What a player watches beside its sessions. Nothing here is owned.
struct Surroundings {
    Child* broker = nullptr;
    ChildOutput* broker_output = nullptr;
    std::vector<Child>* workers = nullptr;
    ChildOutput* worker_output = nullptr;
    Witness* witness = nullptr;  // used here for counted pools; workers have their own map
    int signal_fd = -1;          // readable: stop
    bool shows_progress = false;
};

class Player {
  public:
    Player(const std::vector<TraceRow>& rows,
           PoolShape shape,
           std::vector<std::unique_ptr<ClientSession>>* sessions,
           Sampler* sampler,
           const Surroundings& around);

    PlayResult play();

  private:
    enum class Phase : uint8_t { kToCome, kGranted, kReleasing, kOver };  // granted or ended
    struct RowState {
        Phase phase = Phase::kToCome;
        dibs_lease lease{};
        std::vector<uint32_t> slots;  // of a counted pool, for the witness
    };
    // When a lease's hold time is over.
    struct HoldEnd {
        uint64_t time;
        size_t row;
        bool operator>(const HoldEnd& other) const { return time > other.time; }
    };

    bool finished() const;
    void submit_due(uint64_t now);
    void release_due(uint64_t now);
    bool take_completions();
    void take(const dibs_completion& completion, uint64_t now);
    void claim_ended(const dibs_completion& completion, size_t row, uint64_t now);
    void granted(const dibs_completion& completion, size_t row, uint64_t now);
    void lease_over(size_t row, uint64_t now, bool as_it_should, const std::string& why);
    void witness_slots(size_t row);
    void wait(uint64_t now);
    void look_around(const std::vector<pollfd>& watched);
    void look_at_children();
    void session_lost(int code);
    void check_stall(uint64_t now);
    uint64_t next_instant() const;
    uint64_t arrival(size_t row) const { return start_ns_ + rows_[row].arrival_ns; }
    ClientSession& session_of(size_t row);
    void note_bad(size_t row, const std::string& what);
    void fail(const std::string& why);
    void show_progress(uint64_t now);

    const std::vector<TraceRow>& rows_;
    PoolShape shape_;
    std::vector<std::unique_ptr<ClientSession>>& sessions_;
    Sampler& sampler_;
    Surroundings around_;

    uint64_t start_ns_ = 0;
    size_t next_ = 0;  // the next row to arrive
    std::vector<RowState> states_;
    std::priority_queue<HoldEnd, std::vector<HoldEnd>, std::greater<>> holds_;
    std::vector<dibs_completion> batch_;
    uint64_t over_ = 0;  // rows that have come to their end
    uint64_t progress_ns_ = 0;
    uint64_t shown_ns_ = 0;
    PlayResult result_;
};

}  // namespace dibs::ctl::demo
