// broker/ctl/worker/ground.hpp -- what all processes of one `dibs worker` or `dibs-runner` share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "broker/ctl/tree/tree_leaf.hpp"
#include "broker/ctl/worker/guard.hpp"
#include "broker/ctl/worker/notify_socket.hpp"
#include "broker/ctl/worker/options.hpp"

namespace dibs::ctl::worker {

class Ground {
  public:
    // Of a service: without a control group it says so. Failure.
    explicit Ground(bool service);
    // What is left at once, not one after the other as its leaf is waited for.
    ~Ground();
    Ground(const Ground&) = delete;
    Ground& operator=(const Ground&) = delete;

    // Has what these options need, or Failure; says what of it cannot be had.
    void prepare(const Options& options);

    // Of a service without control groups: kills what a process with this variable has left,
    // "NAME=value".
    void end_orphans(const std::string& variable) const;
    // Of a process: no other one of this host has it.
    [[nodiscard]] std::string next_id();

    // Of all processes; null: there is none.
    [[nodiscard]] const TreeLeaf* tree() const { return tree_.get(); }
    [[nodiscard]] const Guard& guard() const { return *guard_; }
    void reap_guard() { guard_->reap(); }
    // It was killed: another one, which is said.
    void renew_guard(int64_t now_ns);
    // Of a socket that is not there yet.
    [[nodiscard]] std::string notify_path();
    [[nodiscard]] bool limits_memory() const { return memory_.is_there; }
    [[nodiscard]] bool limits_cpu() const { return cpu_.is_there; }

  private:
    struct Controller {
        bool is_there = false;
        bool is_missed = false;  // it has been said
    };
    void enable(const std::string& name, const std::string& key, Controller* controller);

    bool service_;
    std::string why_;  // there is no tree
    std::unique_ptr<TreeLeaf> tree_;
    std::unique_ptr<Guard> guard_;
    int64_t guard_renewed_ns_ = INT64_MIN;
    std::unique_ptr<NotifyFolder> folder_;
    uint64_t paths_ = 0;
    uint64_t ids_ = 0;
    Controller memory_;
    Controller cpu_;
};

}  // namespace dibs::ctl::worker
