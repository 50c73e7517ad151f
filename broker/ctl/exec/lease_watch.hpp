// broker/ctl/exec/lease_watch.hpp -- keeps the command's lease alive and notices its loss.
// A keepalive goes out a third of the interval ahead of the lease's end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/ctl/attachment.hpp"
#include "broker/ctl/exec/options.hpp"

namespace dibs::ctl::exec {

class LeaseWatch {
  public:
    // Attaches and claims; `connect`: for another process, as Attachment has it, which has a tree
    // of its own or not. Failure.
    explicit LeaseWatch(const Options& options,
                        const std::function<shm::Descriptor()>& connect = {},
                        bool tree = false);

    [[nodiscard]] const Attachment& attachment() const { return attachment_; }
    // The lease lasts as long as the tree.
    [[nodiscard]] bool is_of_tree() const { return of_tree_; }
    // That granted it: of a pool set the member.
    [[nodiscard]] std::string pool_name() const { return attachment_.describe(pool_).name; }
    [[nodiscard]] const dibs_completion& granted() const { return granted_; }
    [[nodiscard]] std::vector<std::string> environment(const Options& options) const;
    [[nodiscard]] int fd() const { return dibs_fd(attachment_.session()); }
    // How long to wait for fd(), 0 if there is something to take; negative: for as long as it
    // takes.
    int poll_timeout_ms();
    // Takes what has come; keeps the lease alive if that is due and `may_keep`. False: the lease
    // is lost, and why_lost() says how.
    bool look(bool may_keep);
    // The command has done its work; what is wrong then is nobody's to hear.
    void give_back() { (void)dibs_release(attachment_.session(), &lease_, DIBS_SECOND); }
    // Asks the broker where the loss alone leaves it open whether a better claim was it.
    [[nodiscard]] std::string why_lost() const;
    // Why the broker has killed the holder, as it does where the pool's expiry is strict; empty: it
    // was not the broker.
    std::string why_killed();
    static constexpr const char* kReleased = "it was released from outside (dibs release)";
    static constexpr const char* kTaskEnded =
        "it was ended from outside (dibs release, dibs app complete or dibs app kill)";
    static constexpr const char* kDone =
        "its worker is done with this use; dibs worker --lines none or hold leaves that to the "
        "holder";
    // Once, when a better claim has begun to take it: what is left, in nanoseconds.
    std::optional<int64_t> newly_taken() { return std::exchange(taken_, std::nullopt); }
    // It has lost its slot, and its claim waits again; why_requeued() says how it came to that.
    [[nodiscard]] bool waits() const { return waits_; }
    [[nodiscard]] const std::string& why_requeued() const { return why_requeued_; }
    // Once, when it has waited again and was granted.
    bool newly_granted() { return std::exchange(regained_, false); }
    // Labels that were preferred and that a slot lacks.
    [[nodiscard]] const std::vector<std::string>& provision() const { return provision_; }

  private:
    int keep();
    [[nodiscard]] Options of_pool(const Options& options) const;
    bool lost(const std::string& why);
    bool take_completions();
    bool take(const dibs_completion& one);
    std::string revoked();
    void begin(const dibs_completion& granted);

    const Options& options_;
    bool of_tree_;
    Attachment attachment_;
    uint32_t pool_;
    dibs_completion granted_ = {};
    dibs_lease lease_ = {};
    int64_t interval_ns_ = 0;
    int64_t kept_ns_ = 0;  // last
    int64_t due_ns_ = 0;
    bool graced_ = false;  // it has expired since, and may be kept yet
    bool waits_ = false;
    std::string why_requeued_;
    bool regained_ = false;
    std::string why_;
    std::optional<int64_t> taken_;
    bool told_taken_ = false;  // of this lease
    bool perhaps_taken_ = false;
    std::vector<std::string> provision_;
};

}  // namespace dibs::ctl::exec
