// tests/process/lease_watch_test.cpp -- a lease that ends between the last look at what has come
// and its keepalive, which is the first to hear of it: why it ended is said all the same.
//
// The linker puts the keepalive of this program between the watch and the library's (--wrap).
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/exec/lease_watch.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <functional>
#include <string>
#include <utility>

#include "tests/process/client_attached.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/tool.hpp"

namespace {

// Done once, ahead of the next keepalive.
std::function<void()> ahead;  // NOLINT: what is linked in between has no other way to it

}  // namespace

extern "C" {
int __real_dibs_keepalive(  // NOLINT: the linker's name for it, here and below
    dibs_session* session,
    const dibs_lease* lease,
    int64_t interval_ns,
    int64_t wait_ns,
    int64_t*);

int __wrap_dibs_keepalive(  // NOLINT
    dibs_session* session,
    const dibs_lease* lease,
    int64_t interval_ns,
    int64_t wait_ns,
    int64_t* granted_ns) {
    if (ahead) {
        std::exchange(ahead, nullptr)();
        while (dibs_lease_state(session, lease, nullptr) != DIBS_ENDED)
            sched_yield();
    }
    return __real_dibs_keepalive(session, lease, interval_ns, wait_ns, granted_ns);
}
}

namespace dibs::test {
namespace {

constexpr const char* kShared =
    "[[account]]\nname = \"urgent\"\nbalance = 1000\n"
    "[[pool]]\nname = \"one\"\nkind = \"counted\"\nslots = 1\norder = \"account\"\n"
    "grace = \"1h\"\n";

struct LeaseWatch : testing::Test {
    LeaseWatch() {
        options.pool = {"one", 1};
        options.socket = dibsd.socket();
        options.keepalive_ns = 3 * DIBS_SECOND;  // looked at until a third has passed
    }
    // Whether it holds, after the first keepalive; `before` ends the lease.
    static bool kept(ctl::exec::LeaseWatch* watch, const std::function<void()>& before) {
        ahead = before;
        while (watch->look(true)) {
            if (!ahead) return true;
            sched_yield();
        }
        return false;
    }

    Folder folder;
    Dibsd dibsd{folder, kShared};
    ctl::exec::Options options;
};

TEST_F(LeaseWatch, SaysOfALeaseThatEndsAheadOfItsKeepaliveWhyItEnded) {
    options.preempt = DIBS_PREEMPT_NEVER;
    ctl::exec::LeaseWatch watch(options);
    const std::string lease = "l" + std::to_string(watch.granted().claim);
    const auto release = [&] { EXPECT_EQ(Tool(dibsd.socket(), {"release", lease}).wait(), 0); };
    EXPECT_FALSE(kept(&watch, release));
    EXPECT_EQ(watch.why_lost(), ctl::exec::LeaseWatch::kReleased);
}

TEST_F(LeaseWatch, WaitsAgainWhereABetterClaimTakesTheSlotAheadOfTheKeepalive) {
    options.requeue = true;
    options.preempt = DIBS_PREEMPT_AT_ONCE;
    ctl::exec::LeaseWatch watch(options);
    const Attached better(dibsd.socket(), "one");
    dibs_completion taken = {};
    ASSERT_TRUE(kept(&watch, [&] {
        dibs_claim_options urgent = Attached::asking(DIBS_FOREVER);
        urgent.account = "urgent";
        taken = better.claim(urgent);
    })) << watch.why_lost();
    EXPECT_EQ(taken.outcome, DIBS_GRANTED);
    EXPECT_TRUE(watch.waits());
    EXPECT_EQ(dibs_release(better, &taken.lease, DIBS_FOREVER), DIBS_OK);
    while (!watch.newly_granted()) {
        ASSERT_TRUE(watch.look(true)) << watch.why_lost();
        sched_yield();
    }
    EXPECT_GT(watch.granted().lease.fence, taken.lease.fence);
}

}  // namespace
}  // namespace dibs::test
