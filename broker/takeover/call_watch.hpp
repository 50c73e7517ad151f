// broker/takeover/call_watch.hpp -- checks that the broker still accepts connections.
//
//   idle ── a client connects: ask() ──► asked ── here: answered() ──► quiet ── kQuietNs ──► idle
//                                          │
//                                          └── no answer for kAnswersWithinNs: overdue()
//
// The hang watch is off while the broker sleeps and nothing is due, so it does not see a broker
// that is stopped then while a client connects. The keeper holds the listening socket, too. Once a
// connection arrives there, the keeper asks the broker whether it is there, at most about once a
// second; without connections it does not ask.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <system_error>

#include "broker/control/epoll.hpp"
#include "shm/layout.hpp"

namespace dibs {

class CallWatch {
  public:
    static constexpr uint64_t kAnswersWithinNs = 2'000'000'000;
    static constexpr uint64_t kQuietNs = 1'000'000'000;
    static constexpr uint64_t kExcusedNs = 60'000'000'000;

    CallWatch() = default;  // watches nothing
    // As long as the kernel has room for it: without, it watches nothing.
    explicit CallWatch(int listener) {
        try {
            arrivals_.emplace();
            if (!arrivals_->add(listener, EPOLLIN | EPOLLET, 0)) arrivals_.reset();
        } catch (const std::system_error&) {
            arrivals_.reset();
        }
    }

    // Readable once a client has connected, if that is to be known at `now`; else −1.
    [[nodiscard]] int fd(uint64_t now) const {
        return arrivals_ && !asked() && now >= quiet_until_ns_ ? arrivals_->fd() : -1;
    }
    // False: a false alarm, the client has been let in.
    [[nodiscard]] bool arrived() { return !arrivals_->wait(0).empty(); }
    void ask(uint64_t now) { answers_by_ns_ = std::max(now + kAnswersWithinNs, excused_until_ns_); }
    // It has said that it may not answer for a while.
    void excuse(uint64_t now) {
        excused_until_ns_ = now + kExcusedNs;
        if (asked()) answers_by_ns_ = excused_until_ns_;
    }
    [[nodiscard]] bool asked() const { return answers_by_ns_ != shm::kNever; }
    void answered(uint64_t now) {
        answers_by_ns_ = shm::kNever;
        excused_until_ns_ = 0;
        quiet_until_ns_ = now + kQuietNs;
    }
    [[nodiscard]] bool overdue(uint64_t now) const { return now >= answers_by_ns_; }
    void end() { *this = CallWatch(); }
    // It is looked again.
    void put_off(uint64_t until_ns) { answers_by_ns_ = until_ns; }
    // When fd() or overdue() change by themselves.
    [[nodiscard]] uint64_t next_due(uint64_t now) const {
        if (asked()) return answers_by_ns_;
        return arrivals_ && now < quiet_until_ns_ ? quiet_until_ns_ : shm::kNever;
    }

  private:
    std::optional<Epoll> arrivals_;
    uint64_t answers_by_ns_ = shm::kNever;
    uint64_t quiet_until_ns_ = 0;
    uint64_t excused_until_ns_ = 0;
};

}  // namespace dibs
