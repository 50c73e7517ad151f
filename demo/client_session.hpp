// demo/client_session.hpp -- one tenant's session: submits claims in order, and releases.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "demo/trace/trace.hpp"
#include "dibs/dibs.h"

namespace dibs::ctl::demo {

struct SessionSizes {
    uint32_t claims = 1024;    // of its rows that may be outstanding at once
    uint32_t units_max = 1;    // of its largest claim
    uint32_t slot_bytes = 16;  // of one granted slot's attributes in memory
    bool tells_hold = false;   // its claims carry the hold time for a worker
};

class ClientSession {
  public:
    // Throws std::runtime_error.
    ClientSession(const std::string& socket, const std::string& pool, const SessionSizes& sizes);
    ClientSession(const ClientSession&) = delete;
    ClientSession& operator=(const ClientSession&) = delete;
    ~ClientSession();

    // A row whose time has come. It goes out with the next submit(), or waits here in order.
    void enqueue(size_t row) { waiting_.push_back(row); }
    // Submits what the session's limits allow; how many claims went out. Negative: a code that is
    // not about limits.
    int submit(const std::vector<TraceRow>& rows);
    [[nodiscard]] size_t held_back() const { return waiting_.size(); }
    // Gives a lease back; its result comes as a completion with the row as user data. False: not
    // now, the ring is full.
    bool release(size_t row, const dibs_lease& lease);
    // Takes at most one batch of completions; dibs_reap's answer.
    int reap(std::vector<dibs_completion>* completions);

    // Ready to be polled; false: there is something to take first.
    bool arm();
    void dispatch();
    [[nodiscard]] int fd() const { return dibs_fd(session_); }
    [[nodiscard]] dibs_session* handle() { return session_; }
    [[nodiscard]] uint32_t pool() const { return pool_; }

  private:
    dibs_session* session_ = nullptr;
    uint32_t pool_ = 0;
    bool tells_hold_;
    std::deque<size_t> waiting_;
};

// Sentences for a failed call.
std::string call_failure(const std::string& call, int code);

}  // namespace dibs::ctl::demo
