// tests/demo/judgement_test.cpp -- each thing that can go wrong fails the fact that speaks of it.
// SPDX-License-Identifier: Apache-2.0
#include "demo/judgement.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dibs::ctl::demo {
namespace {

// A run of three claims in which everything went well.
Evidence good() {
    Evidence evidence;
    evidence.valid_rows = 3;
    evidence.result.submitted = 3;
    evidence.result.granted = 3;
    evidence.result.leases_ended = 3;
    evidence.result.units_granted = 4;
    dibs_totals totals{};
    totals.accepted = 3;
    totals.granted = 3;
    evidence.totals = totals;
    evidence.sampler = Sampler(2);
    dibs_counters counters{};
    counters.slots = 2;
    counters.idle = 2;
    evidence.sampler.weigh(counters);
    evidence.witness_uses = 4;
    evidence.departure.broker_status = 0;
    evidence.departure.folder_gone = true;
    return evidence;
}

// The beginnings of the facts that failed.
std::vector<std::string> failed(const Evidence& evidence) {
    std::vector<std::string> names;
    const Facts facts = judge(evidence);
    for (const Facts::Fact& fact : facts.all()) {
        if (fact.verdict != Facts::Verdict::kFailed) continue;
        names.push_back(fact.text.substr(0, fact.text.find(':')));
    }
    return names;
}

using Names = std::vector<std::string>;

TEST(Judgement, PassesAGoodRun) {
    EXPECT_EQ(judge(good()).last_line(), "10 passed, 0 failed, 0 skipped");
}

TEST(Judgement, MissesAClaimThatWasNotGranted) {
    Evidence evidence = good();
    evidence.result.granted = 2;
    evidence.result.leases_ended = 2;
    evidence.result.rejected = 1;
    evidence.result.first_bad = "the claim of line 7 ended rejected (busy)";
    evidence.totals->granted = 2;
    EXPECT_EQ(failed(evidence), Names{"every valid row granted"});
    EXPECT_EQ(judge(evidence).all().front().text,
              "every valid row granted: 2 of 3 (the claim of line 7 ended rejected (busy))");
}

TEST(Judgement, MissesAClaimWithoutAnEnd) {
    Evidence evidence = good();
    evidence.result.submitted = 4;
    evidence.totals->accepted = 4;
    EXPECT_EQ(failed(evidence), Names{"every claim accounted for once"});
}

TEST(Judgement, FindsAClaimThatEndedTwice) {
    Evidence evidence = good();
    evidence.result.ended_twice = 1;
    EXPECT_EQ(failed(evidence), Names{"every claim accounted for once"});
}

TEST(Judgement, FindsALeaseThatEndedOtherwise) {
    Evidence evidence = good();
    evidence.result.bad_ends = 1;
    EXPECT_EQ(failed(evidence), Names{"every lease ended as it should"});
}

TEST(Judgement, ComparesTheBrokersOwnCount) {
    Evidence evidence = good();
    evidence.totals->granted = 4;
    EXPECT_EQ(failed(evidence), Names{"the broker counts the same"});
}

TEST(Judgement, FindsALostWakeUp) {
    Evidence evidence = good();
    evidence.totals->net_found_work = 1;
    EXPECT_EQ(failed(evidence), Names{"no wake-up was lost"});
}

TEST(Judgement, SkipsTheBrokersCountWhereItCouldNotBeRead) {
    Evidence evidence = good();
    evidence.totals.reset();
    EXPECT_EQ(judge(evidence).last_line(), "8 passed, 0 failed, 2 skipped");
}

TEST(Judgement, BelievesTheWitness) {
    Evidence evidence = good();
    evidence.witness_faults = 1;
    EXPECT_EQ(failed(evidence), Names{"no slot held twice"});
    evidence = good();
    evidence.witness_uses = 3;
    EXPECT_EQ(failed(evidence), Names{"every granted slot was used and given back"});
    evidence = good();
    evidence.witness_in_use = 1;
    EXPECT_EQ(failed(evidence), Names{"every granted slot was used and given back"});
}

TEST(Judgement, FindsAPictureThatDoesNotAddUp) {
    Evidence evidence = good();
    evidence.sampler.weigh({});
    EXPECT_EQ(failed(evidence), Names{"no slot lost or counted twice"});
}

TEST(Judgement, FindsWhoDoesNotLeaveInOrder) {
    Evidence evidence = good();
    evidence.departure.broker_status = 256;
    EXPECT_EQ(failed(evidence), Names{"broker and workers end when told to"});
    evidence = good();
    evidence.departure.broker_status.reset();
    EXPECT_EQ(failed(evidence), Names{"broker and workers end when told to"});
    evidence = good();
    evidence.departure.workers_failed = 1;
    EXPECT_EQ(failed(evidence), Names{"broker and workers end when told to"});
    evidence = good();
    evidence.departure.children_left = 1;
    EXPECT_EQ(failed(evidence), Names{"nothing left behind"});
    evidence = good();
    evidence.departure.folder_gone = false;
    EXPECT_EQ(failed(evidence), Names{"nothing left behind"});
}

TEST(Judgement, FailsARunThatWasEndedBeforeItsTime) {
    Evidence evidence = good();
    evidence.result.failure = "nothing happened for 30 s";
    EXPECT_EQ(failed(evidence), Names{"every valid row granted"});
}

}  // namespace
}  // namespace dibs::ctl::demo
