// tests/demo/facts_test.cpp -- facts as lines, and their count.
// SPDX-License-Identifier: Apache-2.0
#include "demo/facts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "broker/text/line_wrap.hpp"
#include "demo/judgement.hpp"

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

TEST(Facts, GoOnBelowThemselvesWhereALineIsTooLong) {
    Facts facts;
    facts.check(true, "one two three four");
    facts.check(true, "one two three");
    EXPECT_EQ(wrapped_lines(facts.lines(), 18, 5),
              "ok   one two three\n"
              "     four\n"
              "ok   one two three\n");
    EXPECT_EQ(wrapped_lines("a b\n", 2, 5), "a b\n");  // nothing stands where they begin
}

TEST(Facts, FitEightyColumns) {
    Evidence evidence;
    evidence.result.submitted = evidence.result.granted = 1'000'000;
    evidence.totals = dibs_totals{};
    std::istringstream lines(wrapped_lines(judge(evidence).lines(), 80, 5));
    size_t longest = 0;
    for (std::string line; std::getline(lines, line);)
        longest = std::max(longest, line.size());
    EXPECT_LE(longest, 80U);
    EXPECT_GT(longest, 70U);
}

}  // namespace
}  // namespace dibs::ctl::demo
