// broker/ctl/worker/hand.hpp -- the state machine of one warm process and its slot.
//
//            start         ready          announced       assigned
//   resting ──────► starting ──► unposted ────────► idle ◄────────► busy ─────► cleaning
//      ▲                │            ▲                │    answer    │  revoked    │ hook
//      │ failed: later  ▼            └── broker lost ─┤              ▼             │ done
//      └──────────── stopping ◄───────────────────────┴─────────── ending ◄────────┘ (to idle)
//        planned: at once   │                                grace passed
//                           └──► gone, when draining
//
//   resting   no process; it starts when its back-off has passed, or with an order, where
//             processes run for orders (Orders)
//   starting  the process runs and has not said that it is ready
//   unposted  ready, but the broker has not taken its slot: tried again. Where processes run for
//             orders and its own is gone, as with a broker that began anew, it is warm: the next
//             order takes it, else it ends after a while
//   idle      its slot may be granted; also of a process that announces its slot itself, whose
//             uses are not seen here
//   busy      assigned; in answer mode until its line comes, else until the holder gives it back;
//             where its slot has several parts, until the last of their holders does
//   ending    the holder is gone; the process has a grace to finish what it does
//   cleaning  the command between uses runs
//   stopping  told to end; killed after the grace
//
// Where control groups can be had the process is in a leaf of its own with all that it starts, and
// so is the command between uses. Two more states are then passed, mostly in no time:
//
//   sweeping  before cleaning and behind it, or before idle: processes that have joined the leaf
//             since the use began end, or are killed
//   emptying  behind stopping: the process has ended, and the rest of its leaf was killed. No other
//             process is started until the leaf is empty
//
// If the process dies, at any time, the session of its slot ends first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/ctl/tree/tree_leaf.hpp"
#include "broker/ctl/worker/ground.hpp"
#include "broker/ctl/worker/line_reader.hpp"
#include "broker/ctl/worker/notify_socket.hpp"
#include "broker/ctl/worker/options.hpp"
#include "broker/ctl/worker/orders.hpp"
#include "broker/ctl/worker/post.hpp"
#include "broker/ctl/worker/process.hpp"
#include "broker/ctl/worker/relay.hpp"

namespace dibs::ctl::worker {

class Hand {
  public:
    enum class State : uint8_t {
        kResting,
        kStarting,
        kUnposted,
        kIdle,
        kBusy,
        kEnding,
        kSweeping,
        kCleaning,
        kStopping,
        kEmptying,
        kGone
    };

    // Starts with its first look(), or with an order. `wanted` may change: it is taken as it is
    // when a process starts.
    Hand(const Options& wanted, Ground& ground, uint32_t index);

    // What to poll, and until when; 0: do not sleep.
    void watch(std::vector<pollfd>* watched);
    [[nodiscard]] int64_t due_ns() const;

    // Takes in what has happened.
    void look(int64_t now_ns);
    // Takes no more uses, and ends with the present one.
    void drain(int64_t now_ns);
    // Ends now.
    void stop_now(int64_t now_ns);

    // Where processes run for orders: it has none, and takes this one.
    [[nodiscard]] bool is_free() const { return state_ == State::kResting; }
    // Its process is ending, and it is free soon.
    [[nodiscard]] bool is_ending() const {
        return state_ == State::kStopping || state_ == State::kEmptying;
    }
    // Its process is ready, and its order is gone: it can take one.
    [[nodiscard]] bool is_warm() const {
        return state_ == State::kUnposted && !options_.type.empty() && !order_;
    }
    // Until when it is so, at most; the first call counts.
    void limit_warmth(int64_t until_ns) {
        if (is_warm()) due_ns_ = std::min(due_ns_, until_ns);
    }
    void take_order(const Order& order, int64_t now_ns);
    // The order of a process that announces itself.
    [[nodiscard]] std::optional<uint64_t> own_order() const {
        return options_.session && state_ == State::kIdle ? order_ : std::nullopt;
    }
    // Its process, or the command between uses.
    [[nodiscard]] bool has_process(pid_t pid) const {
        return (process_ && process_->pid() == pid) || (cleaner_ && cleaner_->pid() == pid);
    }
    // The order whose process has not been announced yet.
    [[nodiscard]] std::optional<uint64_t> unannounced() const {
        return order_text_.empty() ? std::nullopt : order_;
    }
    // Whether its process runs for this order; then it is told to end.
    bool stop_order(uint64_t order, int64_t now_ns);
    // The order that has come to nothing since this was last asked.
    [[nodiscard]] std::optional<uint64_t> failed_order() {
        return std::exchange(failed_order_, std::nullopt);
    }
    // Its process has failed: none is to be started before that.
    [[nodiscard]] int64_t rests_until_ns() const { return rests_until_ns_; }

    [[nodiscard]] State state() const { return state_; }
    // Starts in a row that failed.
    [[nodiscard]] uint64_t failures() const { return failures_; }

  private:
    void start(int64_t now_ns);
    void adopt_options();
    // What each process of the slot starts with.
    [[nodiscard]] ProcessStart start_with() const;
    void become_ready(int64_t now_ns);
    void post(int64_t now_ns);
    void be_warm();
    void retry_post(int64_t now_ns, const std::string& why);
    void lose_post(int64_t now_ns);

    void take_assignments(int64_t now_ns);
    void take_use(const dibs_assignment& assignment, int64_t now_ns);
    void take_revocation(Round round, int64_t now_ns);
    void begin_ending(int64_t now_ns);
    void finish_use(int64_t now_ns);
    void be_idle(int64_t now_ns);
    [[nodiscard]] bool must_retire(int64_t now_ns) const;

    [[nodiscard]] bool ends_soon() const;
    void take_output(int64_t now_ns);
    void take_line(const std::string& line, int64_t now_ns);
    void take_answer(const std::string& line, int64_t now_ns);
    void take_stray(const std::string& line, int64_t now_ns);
    void feed(int64_t now_ns);

    void begin_use();
    [[nodiscard]] std::vector<uint32_t> leftovers() const;
    bool sweep(int64_t now_ns);
    void end_leftovers(int64_t now_ns);
    void make_leaf();
    [[nodiscard]] bool ran_out_of_memory() const;
    [[nodiscard]] shm::Descriptor leaf_entrance() const;
    void look_at_leaf(int64_t now_ns);
    void leave_leaf(int64_t now_ns);
    void take_rest(int64_t now_ns);
    void clean(int64_t now_ns);
    void look_at_cleaner(int64_t now_ns);
    void take_end(int status, int64_t now_ns);
    void take_due(int64_t now_ns);
    void stop(bool planned, int64_t now_ns);
    void rest(int64_t now_ns);
    void be_resting(int64_t due_ns);
    void say(const std::string& text) const;
    void fail(const std::string& text, int64_t now_ns);

    const Options& wanted_;
    Options options_;  // of its process
    Ground& ground_;
    uint32_t index_;
    std::string name_;
    State state_ = State::kResting;
    int64_t due_ns_ = 0;  // of the state; INT64_MAX: none
    bool draining_ = false;

    std::unique_ptr<TreeLeaf> leaf_;  // of the process, until it is empty
    std::vector<uint32_t> members_;   // processes when the use began, sorted
    uint64_t began_ticks_ = 0;        // the use
    shm::Descriptor leftover_;        // a process that the use has left

    std::unique_ptr<Process> process_;
    std::string process_id_;  // a variable that no other process has, but those that it starts
    std::unique_ptr<NotifySocket> notify_;
    std::unique_ptr<Relay> relay_;  // of a service
    LineReader reader_;
    std::string unsent_;   // to the process's input
    int64_t born_ns_ = 0;  // the process
    bool was_ready_ = false;
    bool planned_ = false;  // its end was wanted
    bool killed_ = false;   // because it did not end when it was told to
    bool told_leftovers_ = false;
    uint64_t uses_ = 0;
    uint64_t stray_bytes_ = 0;
    uint64_t failures_ = 0;
    std::optional<uint64_t> order_;  // that its process runs for
    std::string order_text_;         // until it is announced
    std::vector<std::string> order_variables_;
    std::optional<uint64_t> failed_order_;
    int64_t rests_until_ns_ = 0;

    std::unique_ptr<Post> post_;
    std::string post_trouble_;  // as last told
    bool armed_ = false;
    uint32_t slot_ = 0;
    Round round_;
    Round asked_round_;           // the last one, taken or not: ready is said of it
    std::vector<Round> present_;  // uses that go on: one, or as many as its slot has parts
    uint64_t claim_ = 0;
    uint32_t lines_due_ = 0;  // that the process owes
    bool confirmed_ = false;
    bool sweep_kills_ = false;
    bool cleaned_ = false;  // by the command between uses, behind this one

    std::unique_ptr<Process> cleaner_;
};

}  // namespace dibs::ctl::worker
