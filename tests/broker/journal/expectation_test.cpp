// tests/broker/journal/expectation_test.cpp -- an expectation that does not hold says so, and how.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/expectation.hpp"

#include <gtest/gtest.h>

#include <string>

#include "broker/journal/journal_error.hpp"
#include "broker/journal/scenario.hpp"

namespace dibs::ctl {
namespace {

constexpr const char* kStage = R"({"pool":{"name":"gpu","slots":1}}
{"session":{"name":"alice"}}
{"claim":{"session":"alice","claim":"c1","pool":"gpu"}}
{"turn":{}}
)";

// "LINE: what" where the scenario fails; how many expectations held where it does not.
std::string checked(const std::string& scenario) {
    JournalReader reader(scenario, JournalForm::kJson);
    try {
        return std::to_string(check_scenario(reader)) + " hold";
    } catch (const JournalError& error) {
        return std::to_string(reader.line()) + ": " + error.what();
    }
}

TEST(Scenario, HoldsWhereEachGivenFieldIsAsGiven) {
    EXPECT_EQ(checked(std::string(kStage) + R"({"expect":{"grant":{"claim":"c1"}}})"), "1 hold");
    EXPECT_EQ(checked(std::string(kStage) + R"({"expect":{"grant":{"slots":[0],"fence":1}}}
{"expect_none":{}}
{"expect_pool":{"pool":"gpu","leased":1}}
{"expect_slot":{"pool":"gpu","slot":0,"state":"leased"}})"),
              "4 hold");
}

TEST(Scenario, TakesNothingForAFieldThatIsLeftOut) {
    EXPECT_EQ(checked(std::string(kStage) + R"({"expect":{"grant":{"provision":false}}})"),
              "1 hold");
    const std::string said = checked(std::string(kStage) + R"({"expect":{"grant":{"claim":""}}})");
    EXPECT_TRUE(said.ends_with(R"(grant.claim: expected "", is "c1")")) << said;
    const std::string unlike =
        checked(std::string(kStage) + R"({"expect":{"grant":{"provision":true}}})");
    EXPECT_TRUE(unlike.ends_with("grant.provision: expected true, is not there")) << unlike;
}

TEST(Scenario, NamesTheFieldThatDiffers) {
    EXPECT_EQ(checked(std::string(kStage) + R"({"expect":{"grant":{"claim":"c1","fence":2}}})"),
              R"(5: expected {"grant":{"claim":"c1","fence":2}})"
              "\n  decided  "
              R"({"grant":{"claim":"c1","session":"alice","pool":"gpu","slots":[0],"fence":1,)"
              R"("interval_ns":0}})"
              "\n  grant.fence: expected 2, is 1");
    EXPECT_EQ(checked(std::string(kStage) + R"({"expect_rest":{}}
{"expect_lease":{"claim":"c1","state":"grace"}})"),
              R"(6: expect_lease {"claim":"c1","state":"grace"})"
              "\n  is  "
              R"({"lease":{"claim":"c1","session":"alice","pool":"gpu","state":"live","slots":[0],)"
              R"("fence":1,"granted_ns":0,"kept_ns":0,"interval_ns":0}})"
              "\n"
              R"(  state: expected "grace", is "live")");
}

TEST(Scenario, TellsOneKindOfDecisionFromAnother) {
    const std::string said = checked(std::string(kStage) + R"({"expect":{"end":{"claim":"c1"}}})");
    EXPECT_TRUE(said.ends_with(R"(end: expected {"claim":"c1"}, is not there)")) << said;
}

TEST(Scenario, FailsWhereNothingMoreWasDecided) {
    EXPECT_EQ(checked(std::string(kStage) + R"({"expect":{"grant":{}}}
{"expect":{"grant":{"claim":"c2"}}})"),
              R"(6: expected {"grant":{"claim":"c2"}})"
              "\n  but nothing more was decided");
}

TEST(Scenario, FailsWhereSomethingWasDecidedUnseen) {
    const std::string grant =
        R"({"grant":{"claim":"c1","session":"alice","pool":"gpu","slots":[0],"fence":1,)"
        R"("interval_ns":0}})";
    EXPECT_EQ(checked(std::string(kStage) + R"({"expect_none":{}})"),
              "5: expected nothing\n  decided  " + grant);
    EXPECT_EQ(checked(std::string(kStage) + R"({"expect_pool":{"pool":"gpu","leased":1}}
{"turn":{}})"),
              "6: before this line, decided and not expected:\n  " + grant);
    EXPECT_EQ(checked(std::string(kStage) + R"({"expect_pool":{"pool":"gpu","leased":1}})"),
              "5: before this line, decided and not expected:\n  " + grant);
}

TEST(Scenario, LetsDemandGoByUnlessItIsExpected) {
    EXPECT_EQ(checked(std::string(kStage) + R"({"expect":{"grant":{}}}
{"expect":{"demand":{"queued":0}}})"),
              "2 hold");
    const std::string said = checked(std::string(kStage) + R"({"expect":{"grant":{}}}
{"expect_none":{"kind":"demand"}})");
    EXPECT_TRUE(said.starts_with("6: expected nothing of \"demand\"\n")) << said;
}

TEST(Scenario, FailsWhereItExpectsNothingAtAll) {
    const std::string said = checked(R"({"pool":{"name":"gpu","slots":1}}
{"turn":{}})");
    EXPECT_EQ(said, "2: the scenario expects nothing");
}

TEST(Scenario, NamesRowsThatWereNeverThere) {
    EXPECT_EQ(checked(std::string(kStage) + R"({"expect_lease":{"claim":"c9"}})"),
              R"(5: there is no claim "c9")");
    EXPECT_EQ(checked(std::string(kStage) + R"({"expect_slot":{"slot":"s9"}})"),
              R"(5: there is no slot "s9")");
    EXPECT_EQ(checked(std::string(kStage) + R"({"expect_session":{"session":"eve"}})"),
              R"(5: there is no session "eve")");
}

TEST(SlotNumbers, BecomeTextOnlyWhereTheyNameSlots) {
    EXPECT_EQ(with_slot_numbers_as_text(R"({"expect":{"grant":{"slots":[0,"s1"],"fence":1}}})"),
              R"({"expect":{"grant":{"slots":["0","s1"],"fence":1}}})");
    EXPECT_EQ(with_slot_numbers_as_text(R"({"expect_pool":{"pool":"p","slots":3,"ready":[2]}})"),
              R"({"expect_pool":{"pool":"p","slots":3,"ready":["2"]}})");
    EXPECT_EQ(with_slot_numbers_as_text(R"({"pool":{"name":"p","slots":3}})"),
              R"({"pool":{"name":"p","slots":3}})");
}

}  // namespace
}  // namespace dibs::ctl
