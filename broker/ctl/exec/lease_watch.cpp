// broker/ctl/exec/lease_watch.cpp -- keepalives by the clock, losses by the session's events.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/exec/lease_watch.hpp"

#include <time.h>

#include <algorithm>
#include <array>

#include "broker/ctl/exec/grant.hpp"
#include "broker/ctl/exec/holder.hpp"
#include "broker/ctl/exec/lease_environment.hpp"

namespace dibs::ctl::exec {

namespace {

constexpr int64_t kPollMax = 100 * DIBS_MILLISECOND;  // as dibs/dibs.h asks of event loops

int64_t monotonic_ns() {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * DIBS_SECOND + now.tv_nsec;
}

}  // namespace

LeaseWatch::LeaseWatch(const Options& options)
    : attachment_(options.socket, small_session()), pool_(attachment_.pool(options.pool.name)) {
    granted_ = claim(attachment_, pool_, options);
    lease_ = granted_.lease;
    interval_ns_ = granted_.interval_ns;
    due_ns_ = monotonic_ns() + interval_ns_ / 3;
    for (size_t i = 0; i < options.prefer.size(); ++i) {
        if ((granted_.provision >> i & 1U) != 0) provision_.push_back(options.prefer[i]);
    }
    tell_grant(options, lease_);
}

std::vector<std::string> LeaseWatch::environment(const Options& options) const {
    return lease_environment(attachment_, pool_, lease_, options);
}

int LeaseWatch::poll_timeout_ms() {
    if (dibs_arm(attachment_.session()) != DIBS_OK) return 0;
    // A lease that is bound to its holder's life needs no keepalive.
    const int64_t left_ns =
        interval_ns_ == 0 ? kPollMax : std::clamp<int64_t>(due_ns_ - monotonic_ns(), 0, kPollMax);
    return static_cast<int>((left_ns + DIBS_MILLISECOND - 1) / DIBS_MILLISECOND);
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
            const dibs_completion& one = taken[static_cast<size_t>(i)];
            const bool again = one.kind == DIBS_LEASE_REQUEUED;  // nobody here waits for that
            if (again || one.kind == DIBS_LEASE_ENDED) return lost(dibs_strerror(one.code));
            if (one.kind == DIBS_LEASE_GRACE) due_ns_ = 0;
            if (one.kind == DIBS_LEASE_REVOKING) taken_ = one.interval_ns;
        }
    }
}

bool LeaseWatch::look(bool keep) {
    dibs_dispatch(attachment_.session());
    if (!take_completions()) return false;
    const int64_t now = monotonic_ns();
    if (!keep || interval_ns_ == 0 || now < due_ns_) return true;
    due_ns_ = now + interval_ns_ / 3;
    const int code = dibs_keepalive(attachment_.session(), &lease_, 0, DIBS_NOWAIT, nullptr);
    return code == DIBS_OK || code == DIBS_EFULL ? true : lost(dibs_strerror(code));
}

}  // namespace dibs::ctl::exec
