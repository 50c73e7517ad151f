// tests/demo/facts_test.cpp -- facts as lines, and their count.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/demo/facts.hpp"

#include <gtest/gtest.h>

namespace dibs::ctl::demo {
namespace {

TEST(Facts, AreALineEachAndACountInTheEnd) {
    Facts facts;
    facts.check(true, "every valid row granted: 3 of 3");
    facts.check(false, "no slot held twice: 1 time");
    facts.skip("nothing left behind", "no folder was made");
    EXPECT_EQ(facts.lines(),
              "ok   every valid row granted: 3 of 3\n"
              "FAIL no slot held twice: 1 time\n"
              "skip nothing left behind: no folder was made\n");
    EXPECT_EQ(facts.last_line(), "1 passed, 1 failed, 1 skipped");
}

TEST(Facts, AreNoneAtFirst) {
    EXPECT_EQ(Facts().last_line(), "0 passed, 0 failed, 0 skipped");
}

}  // namespace
}  // namespace dibs::ctl::demo
