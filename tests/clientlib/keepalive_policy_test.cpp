// tests/clientlib/keepalive_policy_test.cpp -- when to call dibs_keepalive, and when to give up
// (S3.16 to S3.19), with numbers worked out by hand.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "dibs/dibs.h"

namespace dibs::test {
namespace {

constexpr uint64_t kMostRandom = UINT64_MAX;  // no wait is shortened by more than a nanosecond

int64_t ms(int64_t count) {
    return count * DIBS_MILLISECOND;
}

struct KeepalivePolicy : testing::Test {
    KeepalivePolicy() { policy.size = sizeof policy; }

    // What it says, and how long it says to wait.
    int next(int code, int64_t left_ns, uint64_t random = kMostRandom) {
        wait_ns = -1;
        return dibs_keepalive_next(&policy, code, left_ns, random, &wait_ns);
    }
    void expect_wait(int code, int64_t left_ns, int64_t expected_ns) {
        EXPECT_EQ(next(code, left_ns), DIBS_KEEPALIVE_WAIT);
        EXPECT_GE(wait_ns, expected_ns - 1);
        EXPECT_LE(wait_ns, expected_ns);
    }

    dibs_keepalive_policy policy = {};
    int64_t wait_ns = 0;
};

// S3.16: two minutes were granted: 120 - 30 = 90. Of an hour it sleeps 5 minutes.
TEST_F(KeepalivePolicy, SleepsUntilTheMarginBegins) {
    expect_wait(DIBS_OK, DIBS_KEEPALIVE_INTERVAL, ms(90'000));
    expect_wait(DIBS_OK, ms(330'000), ms(300'000));
    expect_wait(DIBS_OK, ms(3'600'000), ms(300'000));
    expect_wait(DIBS_OK, DIBS_FOREVER, ms(300'000));
    expect_wait(DIBS_OK, ms(31'500), ms(1'500));
}

// S3.16: an interval of the margin or less would have it call in a loop.
TEST_F(KeepalivePolicy, PausesForASecondBetweenCalls) {
    for (const int64_t left_ns : {ms(31'000), ms(30'001), ms(30'000), ms(20'000), ms(0)})
        expect_wait(DIBS_OK, left_ns, ms(1'000));
    policy.pause_ns = ms(3'000);
    expect_wait(DIBS_OK, ms(32'000), ms(3'000));
    expect_wait(DIBS_ETIMEDOUT, ms(29'000), ms(3'000));  // and not 2
}

// S3.17: waits of 2, 3, 4.5, 6.75, 10.125, 15.1875, 22.78125 seconds, then 30.
TEST_F(KeepalivePolicy, WaitsHalfAsLongAgainAfterEachFailure) {
    const int64_t plenty = ms(3'600'000);
    for (const int64_t expected_us : {2'000'000,
                                      3'000'000,
                                      4'500'000,
                                      6'750'000,
                                      10'125'000,
                                      15'187'500,
                                      22'781'250,
                                      30'000'000,
                                      30'000'000}) {
        expect_wait(DIBS_ETIMEDOUT, plenty, expected_us * 1'000);
    }
    // A call that succeeds ends the series.
    expect_wait(DIBS_OK, DIBS_KEEPALIVE_INTERVAL, ms(90'000));
    expect_wait(DIBS_EFULL, plenty, ms(2'000));
    expect_wait(DIBS_EUNREAD, plenty, ms(3'000));
}

// [0.8 w, w): 1.6 s at the least of 2 s, 1.8 in the middle, 2.4 of 3.
TEST_F(KeepalivePolicy, ShortensAWaitByAFifthAtMost) {
    EXPECT_EQ(next(DIBS_ETIMEDOUT, ms(60'000), 0), DIBS_KEEPALIVE_WAIT);
    EXPECT_EQ(wait_ns, ms(1'600));
    EXPECT_EQ(next(DIBS_ETIMEDOUT, ms(60'000), 0), DIBS_KEEPALIVE_WAIT);
    EXPECT_EQ(wait_ns, ms(2'400));
    policy.failures = 0;
    EXPECT_EQ(next(DIBS_ETIMEDOUT, ms(60'000), uint64_t{1} << 63U), DIBS_KEEPALIVE_WAIT);
    EXPECT_EQ(wait_ns, ms(1'800));
    policy.failures = 0;
    EXPECT_EQ(next(DIBS_ETIMEDOUT, ms(60'000), kMostRandom), DIBS_KEEPALIVE_WAIT);
    EXPECT_EQ(wait_ns, ms(2'000) - 1);
}

// S3.18: 30 s are left at the first call, and every call fails at once. Waits of 2, 3, 4.5, 6.75
// end with 13.75 s left. The next one would be of 10.125 s, but a call takes up to 10: so 3.75, and
// then there is nothing to wait for.
TEST_F(KeepalivePolicy, TriesAsLongAsAWholeCallFits) {
    int64_t left_ns = ms(30'000);
    for (const int64_t expected_ms : {2'000, 3'000, 4'500, 6'750, 3'750}) {
        expect_wait(DIBS_ETIMEDOUT, left_ns, ms(expected_ms));
        left_ns -= ms(expected_ms);
    }
    EXPECT_EQ(left_ns, ms(10'000));
    EXPECT_EQ(next(DIBS_ETIMEDOUT, left_ns), DIBS_KEEPALIVE_LOST);
    EXPECT_EQ(wait_ns, 0);
}

// S3.18: the same, and every call takes its 10 s: 20 are left after the first one, 8 after the
// second. Six of them, as many as there were waits, would have taken 60.
TEST_F(KeepalivePolicy, BudgetsByWhatIsLeftAndNotByNumber) {
    expect_wait(DIBS_ETIMEDOUT, ms(20'000), ms(2'000));
    EXPECT_EQ(next(DIBS_ETIMEDOUT, ms(8'000)), DIBS_KEEPALIVE_LOST);
}

// A second pause, and no less, lies before the last one.
TEST_F(KeepalivePolicy, BeginsNoCallThatCannotEndInTime) {
    expect_wait(DIBS_ETIMEDOUT, ms(11'000), ms(1'000));
    EXPECT_EQ(next(DIBS_ETIMEDOUT, ms(10'999)), DIBS_KEEPALIVE_LOST);
    EXPECT_EQ(next(DIBS_ETIMEDOUT, 0), DIBS_KEEPALIVE_LOST);
    policy.call_ns = ms(500);
    policy.pause_ns = ms(100);
    policy.failures = 0;
    expect_wait(DIBS_ETIMEDOUT, ms(600), ms(100));
    EXPECT_EQ(next(DIBS_ETIMEDOUT, ms(599)), DIBS_KEEPALIVE_LOST);
}

// S3.17, S3.19: at once, and whatever is left.
TEST_F(KeepalivePolicy, EndsWhereNoCallCanHelp) {
    for (const int code : {DIBS_ALREADY_ENDED,
                           DIBS_ENOTFOUND,
                           DIBS_ESTALE,
                           DIBS_ENOTHOLDER,
                           DIBS_EEXPIRED,
                           DIBS_ESESSION,
                           DIBS_ESTATELOST,
                           DIBS_EBROKERLOST,
                           DIBS_EFORK,
                           DIBS_EARGUMENT,
                           DIBS_ENEGATIVE}) {
        EXPECT_EQ(next(code, DIBS_KEEPALIVE_INTERVAL), DIBS_KEEPALIVE_END) << code;
        EXPECT_EQ(wait_ns, 0);
    }
}

TEST_F(KeepalivePolicy, SaysWhatIsWrong) {
    EXPECT_EQ(dibs_keepalive_next(nullptr, DIBS_OK, 1, 0, &wait_ns), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_keepalive_next(&policy, DIBS_OK, 1, 0, nullptr), DIBS_EARGUMENT);
    EXPECT_EQ(next(DIBS_OK, -1), DIBS_ENEGATIVE);
    for (int64_t dibs_keepalive_policy::*duration : {&dibs_keepalive_policy::margin_ns,
                                                     &dibs_keepalive_policy::wait_most_ns,
                                                     &dibs_keepalive_policy::call_ns,
                                                     &dibs_keepalive_policy::retry_ns,
                                                     &dibs_keepalive_policy::retry_most_ns,
                                                     &dibs_keepalive_policy::pause_ns}) {
        policy.*duration = -1;
        EXPECT_EQ(next(DIBS_OK, 1), DIBS_ENEGATIVE);
        policy.*duration = 0;
    }
    policy.size = sizeof policy - 1;
    EXPECT_EQ(next(DIBS_OK, 1), DIBS_ESIZE);
}

// As a program that keeps its lease for an hour: each call takes a second and succeeds. It asks for
// two minutes at 0, and is asked again at 90, 181, 272, …: every 91 seconds.
TEST_F(KeepalivePolicy, KeepsALeaseForAnHourInFortyCalls) {
    int64_t now_ns = 0;
    int calls = 0;
    while (now_ns < ms(3'600'000)) {
        ASSERT_EQ(next(DIBS_OK, DIBS_KEEPALIVE_INTERVAL), DIBS_KEEPALIVE_WAIT);
        now_ns += wait_ns + DIBS_SECOND;
        ++calls;
    }
    EXPECT_EQ(calls, 40);
}

}  // namespace
}  // namespace dibs::test
