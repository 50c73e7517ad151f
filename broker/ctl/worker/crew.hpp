// broker/ctl/worker/crew.hpp -- the processes of one command: N all the time, or of one type of an
// elastic pool, as they are ordered.
//
//   serving ── drain ──► draining: no more uses, orders given back ── last process ends ──► gone
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "broker/ctl/worker/ground.hpp"
#include "broker/ctl/worker/hand.hpp"
#include "broker/ctl/worker/options.hpp"
#include "broker/ctl/worker/orders.hpp"

namespace dibs::ctl::worker {

class Crew {
  public:
    // Failure: what it needs cannot be had; of a service, what only the broker lacks is waited for.
    Crew(const Options& options, Ground& ground);
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    // What to poll, and until when.
    void watch(std::vector<pollfd>* watched);
    [[nodiscard]] int64_t due_ns() const;
    // Takes in what has happened: `watched` as polled, or null if nothing has.
    void look(const std::vector<pollfd>* watched, int64_t now_ns);
    // Of the same pool and type; applies to processes that start from now on. Failure.
    void take_options(const Options& options);
    // Takes no more uses and orders, and ends with the present ones.
    void drain(int64_t now_ns);
    void stop_now(int64_t now_ns);

    [[nodiscard]] const Options& options() const { return options_; }
    [[nodiscard]] bool draining() const { return drain_due_ns_ != INT64_MAX || stopped_; }
    [[nodiscard]] bool gone() const;
    // Every process fails (tries_max).
    [[nodiscard]] bool gave_up() const;
    [[nodiscard]] bool has_process(pid_t pid) const;

  private:
    struct Span {
        size_t begin;
        size_t end;
    };

    void add_hands();
    void take_orders(int64_t now_ns);
    bool take_order(int64_t now_ns);
    void keep_warm(int64_t now_ns);
    void check_own_orders(int64_t now_ns);
    void give_up_orders();
    [[nodiscard]] bool is_failing(int64_t now_ns) const;
    void tell_when_ready();

    Options options_;
    Ground& ground_;
    std::vector<std::unique_ptr<Hand>> hands_;
    std::unique_ptr<Orders> orders_;  // null: processes run all the time
    std::deque<Order> waiting_;
    std::vector<Span> spans_;
    bool told_ready_ = false;
    bool stopped_ = false;
    int64_t drain_due_ns_ = INT64_MAX;
    int64_t check_due_ns_ = INT64_MAX;  // orders of processes that announce themselves
};

}  // namespace dibs::ctl::worker
