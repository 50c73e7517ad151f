// broker/ctl/worker/orders.hpp -- takes the orders for workers of one type of an elastic pool, as
// its provisioner, and answers them.
//
//   away ── session, role ──► present ── session lost ──► away: tried again
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <climits>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/ctl/attachment.hpp"
#include "broker/ctl/worker/options.hpp"

namespace dibs::ctl::worker {

// A process is to be started for it.
struct Order {
    uint64_t slot = 0;
    std::string text;
    std::vector<std::string> variables;  // DIBS_ORDER_NAME=amount of what its worker is to have
};
Order order_of(const dibs_assignment& told);

class Orders {
  public:
    // Takes the role; Failure: it cannot be had. A service tries again.
    explicit Orders(const Options& options);

    [[nodiscard]] int fd() const { return attachment_ ? dibs_fd(attachment_->session()) : -1; }
    [[nodiscard]] bool arm() { return !attachment_ || dibs_arm(attachment_->session()) == DIBS_OK; }
    [[nodiscard]] int64_t due_ns() const { return due_ns_; }
    // False: there is none. Takes the role again where the session has been lost.
    bool next(dibs_assignment* order, int64_t now_ns);
    void answer(uint64_t order, int answer);
    // It has the role, as far as is known.
    [[nodiscard]] bool is_present() const { return attachment_ != nullptr; }
    // Whether the broker knows it no more, nor the slot that it has become. Waits for the answer,
    // if there is a broker to give one.
    [[nodiscard]] std::optional<bool> is_over(uint64_t order);
    // Orders no more: workers that it made stay.
    void leave() {
        attachment_.reset();
        due_ns_ = INT64_MAX;
    }

  private:
    void take_role();
    [[nodiscard]] bool try_role(int64_t now_ns);

    const Options& options_;
    std::unique_ptr<Attachment> attachment_;
    std::string trouble_;  // as last told
    bool had_role_ = false;
    int64_t due_ns_;
    int64_t retry_ns_ = 0;
};

}  // namespace dibs::ctl::worker
