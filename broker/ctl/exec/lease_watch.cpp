// broker/ctl/exec/lease_watch.cpp -- sends keepalives by the clock and reads the session's events.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/exec/lease_watch.hpp"

#include <time.h>

#include <algorithm>
#include <array>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/clock.hpp"
#include "broker/ctl/exec/grant.hpp"
#include "broker/ctl/exec/holder.hpp"
#include "broker/ctl/exec/lease_environment.hpp"
#include "broker/ctl/exec/refusal.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/sheet.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl::exec {

namespace {

constexpr int64_t kPollMax = 100 * DIBS_MILLISECOND;  // as dibs/dibs.h asks of event loops

// A worker that does not attach gives up a claim by reports: dibs report unassign, or what else
// says that it does not run it.
std::string how_requeued(int code) {
    if (code == DIBS_EREVOKED) return "a better claim has taken the slot";
    if (code == DIBS_EWORKERLOST) return "its worker does not run it any more";
    return dibs_strerror(code);
}

dibs_connect_options session_of(const Options& options) {
    dibs_connect_options session = small_session();
    session.timeout_ns = answer_timeout_ns(options);
    return session;
}

// *tree: asked for; then whether the broker knows it. It may have no sight of control groups.
Attachment attach(const Options& options,
                  const std::function<shm::Descriptor()>& connect,
                  bool* tree) {
    dibs_connect_options session = session_of(options);
    session.tree = *tree ? 1 : 0;
    try {
        return Attachment(options.socket, session, connect);
    } catch (const Failure& refusal) {
        if (!*tree || options.tree == Tree::kRequired || refusal.exit_code() != kExitDenied) throw;
    }
    *tree = false;
    session.tree = 0;
    return Attachment(options.socket, session, connect);
}

}  // namespace

LeaseWatch::LeaseWatch(const Options& options,
                       const std::function<shm::Descriptor()>& connect,
                       bool tree)
    : options_(options),
      of_tree_(tree),
      attachment_(attach(options, connect, &of_tree_)),
      pool_(attachment_.pool_or_set(options.pool.name)) {
    begin(claim(attachment_, pool_, options));
    tell_grant(of_pool(options), lease_);
}

Options LeaseWatch::of_pool(const Options& options) const {
    Options named = options;
    named.pool.name = pool_name();
    return named;
}

void LeaseWatch::begin(const dibs_completion& granted) {
    granted_ = granted;
    pool_ = granted.pool;
    lease_ = granted.lease;
    interval_ns_ = granted.interval_ns;
    told_taken_ = false;
    // When a claim that waited was granted, only the broker knows; when it was last kept, we do.
    if (interval_ns_ != 0) (void)keep();
    provision_.clear();
    for (size_t i = 0; i < options_.prefer.size(); ++i) {
        if ((granted.provision >> i & 1U) != 0) provision_.push_back(options_.prefer[i]);
    }
}

std::vector<std::string> LeaseWatch::environment(const Options& options) const {
    return lease_environment(attachment_, pool_, lease_, of_pool(options));
}

int LeaseWatch::poll_timeout_ms() {
    if (dibs_arm(attachment_.session()) != DIBS_OK) return 0;
    // A lease that is bound to its holder's life needs no keepalive: nothing of this session's is
    // unread, and what ends the lease makes the descriptor readable.
    if (interval_ns_ == 0 && !waits_) return -1;
    const int64_t left_ns =
        waits_ ? kPollMax : std::clamp<int64_t>(due_ns_ - monotonic_ns(), 0, kPollMax);
    return static_cast<int>((left_ns + DIBS_MILLISECOND - 1) / DIBS_MILLISECOND);
}

int LeaseWatch::keep() {
    kept_ns_ = monotonic_ns();
    due_ns_ = kept_ns_ + interval_ns_ / 3;
    graced_ = false;
    return dibs_keepalive(attachment_.session(), &lease_, 0, DIBS_NOWAIT, nullptr);
}

// Where expiry is strict no notice comes before: the holder is dead by then.
std::string LeaseWatch::why_killed() {
    (void)take_completions();
    if (told_taken_) return "a better claim has taken the slot";
    const bool lives_on = interval_ns_ == 0 || graced_;
    if (lives_on || monotonic_ns() < after(kept_ns_, interval_ns_)) return "";
    return "it was not kept alive for " + duration_text(static_cast<uint64_t>(interval_ns_));
}

bool LeaseWatch::lost(const std::string& why) {
    why_ = why;
    return false;
}

bool LeaseWatch::take_completions() {
    std::array<dibs_completion, 8> taken{};
    for (;;) {
        const int count = dibs_reap(attachment_.session(), taken.data(), taken.size(), DIBS_NOWAIT);
        if (count < 0) return lost(dibs_strerror(count));
        if (count == 0) return true;
        for (int i = 0; i < count; ++i) {
            if (!take(taken[static_cast<size_t>(i)])) return false;
        }
    }
}

// Preemption is announced, except to a lease that may be revoked at once; leases of other kinds are
// not taken.
std::string LeaseWatch::revoked() {
    if (told_taken_) return "a better claim has taken the slot";
    if (!options_.application.empty()) return kTaskEnded;  // of which no slot is taken
    perhaps_taken_ =
        options_.preempt == DIBS_PREEMPT_AT_ONCE || options_.preempt == DIBS_PREEMPT_AS_POOL;
    return perhaps_taken_ ? "a better claim took the slot, or dibs release ended it" : kReleased;
}

std::string LeaseWatch::why_lost() const {
    if (!perhaps_taken_) return why_;
    try {
        const auto rows = AdminClient(options_.socket).pools(pool_name());
        if (!rows.empty() && !rows.front()->by_account) return kReleased;
    } catch (const Failure&) {  // then it stays open
    }
    return why_;
}

bool LeaseWatch::take(const dibs_completion& one) {
    switch (one.kind) {
        case DIBS_LEASE_GRACE:
            due_ns_ = 0;
            graced_ = true;
            return true;
        case DIBS_LEASE_REVOKING:
            taken_ = one.interval_ns;
            told_taken_ = true;
            return true;
        case DIBS_LEASE_REQUEUED:
            if (!options_.requeue) return lost(dibs_strerror(one.code));
            waits_ = true;
            why_requeued_ = how_requeued(one.code);
            taken_.reset();
            return true;
        case DIBS_CLAIM_ENDED:  // the claim's that waited again
            if (one.outcome == DIBS_CANCELLED && one.code == DIBS_EREVOKED) {
                return lost("its claim waited again, and was cancelled (dibs cancel)");
            }
            if (one.code == DIBS_EDRAINING) {
                return lost("its claim waited again, and " + what_drains(of_pool(options_)));
            }
            if (one.outcome != DIBS_GRANTED) return lost(dibs_strerror(one.code));
            waits_ = false;
            regained_ = true;
            begin(one);
            return true;
        case DIBS_LEASE_ENDED:
            if (one.code == DIBS_EREVOKED) return lost(revoked());
            if (one.code == DIBS_EDONE) return lost(kDone);
            return lost(dibs_strerror(one.code));
        default:
            return true;
    }
}

bool LeaseWatch::look(bool may_keep) {
    dibs_dispatch(attachment_.session());
    if (!take_completions()) return false;
    if (!may_keep || interval_ns_ == 0 || waits_ || monotonic_ns() < due_ns_) return true;
    const uint64_t kept = lease_.fence;
    const int code = keep();
    if (code == DIBS_OK || code == DIBS_EFULL) return true;
    // What ended it since has been taken in, and says why, or that its claim waits again.
    if (!take_completions()) return false;
    return waits_ || lease_.fence != kept ? true : lost(dibs_strerror(code));
}

}  // namespace dibs::ctl::exec
