// tests/clientlib/explain_test.cpp -- the library's two shapes of admin tables, held against the
// generated code.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "clientlib/admin_tables.hpp"
#include "dibs/dibs.h"
#include "schemas/admin_generated.h"
#include "tests/clientlib/packed_answer.hpp"

namespace dibs::test {
namespace {

using client::ExplainRequest;
using client::ExplanationFound;
using client::read_explanation;
using client::WaitStory;

std::vector<uint8_t> an_explanation() {
    admin::AnswerT answer;
    answer.explanation = std::make_unique<admin::ExplanationT>();
    answer.explanation->pool = "gpu";
    answer.explanation->account = "uid:1000";
    answer.explanation->facts = std::make_unique<admin::WaitFacts>(uint8_t{1},
                                                                   uint8_t{2},
                                                                   3U,
                                                                   4U,
                                                                   5U,
                                                                   6U,
                                                                   7U,
                                                                   8U,
                                                                   9U,
                                                                   10U,
                                                                   11U,
                                                                   12U,
                                                                   13U,
                                                                   14U,
                                                                   15U,
                                                                   16U,
                                                                   uint8_t{17},
                                                                   uint8_t{18},
                                                                   uint8_t{19},
                                                                   20U,
                                                                   21U,
                                                                   22U,
                                                                   23U,
                                                                   24U,
                                                                   25U);
    answer.explanation->label = "model:large";
    return packed(answer);
}

TEST(AdminTables, AskAboutATagAsTheSchemaSays) {
    ExplainRequest request;
    request.session = 0x500000007ULL;
    request.tag = 9;
    const auto* bytes = reinterpret_cast<const uint8_t*>(&request);
    flatbuffers::Verifier verifier(bytes, sizeof request, 4, 4);
    ASSERT_TRUE(verifier.VerifyBuffer<admin::Request>(nullptr));
    const auto* read = flatbuffers::GetRoot<admin::Request>(bytes);
    EXPECT_EQ(read->ask(), admin::Ask::explain);
    EXPECT_TRUE(read->by_tag());
    EXPECT_EQ(read->session(), 0x500000007ULL);
    EXPECT_EQ(read->tag(), 9U);
    EXPECT_EQ(read->pool(), nullptr);
    EXPECT_EQ(read->id(), 0U);
    EXPECT_EQ(read->interval_ns(), 0U);
}

TEST(AdminTables, ReadTheFactsOfAnAnswer) {
    const std::vector<uint8_t> bytes = an_explanation();
    WaitStory story;
    ASSERT_EQ(read_explanation(bytes.data(), bytes.size(), &story), ExplanationFound::kFacts);
    EXPECT_EQ(story.facts.reason, 1);
    EXPECT_EQ(story.facts.obstacle, 2);
    EXPECT_EQ(story.facts.position, 3U);
    EXPECT_EQ(story.facts.waiting, 4U);
    EXPECT_EQ(story.facts.units, 5U);
    EXPECT_EQ(story.facts.confirmed, 6U);
    EXPECT_EQ(story.facts.idle, 7U);
    EXPECT_EQ(story.facts.slots, 8U);
    EXPECT_EQ(story.facts.leases, 9U);
    EXPECT_EQ(story.facts.waited_ns, 10U);
    EXPECT_EQ(story.facts.left_ns, 11U);
    EXPECT_EQ(story.facts.holder_number, 12U);
    EXPECT_EQ(story.facts.holder_age_ns, 13U);
    EXPECT_EQ(story.facts.holder_uid, 14U);
    EXPECT_EQ(story.facts.holder_pid, 15U);
    EXPECT_EQ(story.facts.number, 16U);
    EXPECT_EQ(story.facts.at_class, 17);
    EXPECT_EQ(story.facts.class_reason, 18);
    EXPECT_EQ(story.facts.preempt, 19);
    EXPECT_EQ(story.facts.better, 20U);
    EXPECT_EQ(story.facts.fitting, 21U);
    EXPECT_EQ(story.facts.fanout_max, 22U);
    EXPECT_EQ(story.facts.fanout_held, 23U);
    EXPECT_EQ(story.facts.label_limit, 24U);
    EXPECT_EQ(story.facts.label_held, 25U);
    EXPECT_STREQ(story.account, "uid:1000");
    EXPECT_STREQ(story.label, "model:large");
}

TEST(AdminTables, TellAnAnswerWithoutAnExplanationFromOne) {
    admin::AnswerT answer;
    answer.code = admin::Code::not_found;
    std::vector<uint8_t> bytes = packed(answer);
    WaitStory story;
    EXPECT_EQ(read_explanation(bytes.data(), bytes.size(), &story), ExplanationFound::kNotFound);
    bytes = packed(admin::AnswerT{});
    EXPECT_EQ(read_explanation(bytes.data(), bytes.size(), &story), ExplanationFound::kNonsense);
}

TEST(AdminTables, StayInsideOfAnAnswerThatIsBroken) {
    const std::vector<uint8_t> good = an_explanation();
    WaitStory story;
    for (size_t size = 0; size < good.size(); ++size) {
        // A vector of its own, so that a sanitizer sees a read beyond its end.
        const std::vector<uint8_t> cut(good.begin(), good.begin() + static_cast<long>(size));
        (void)read_explanation(cut.data(), cut.size(), &story);
    }
    for (size_t at = 0; at < good.size(); ++at) {
        for (const uint8_t wrong : {uint8_t{0}, uint8_t{0x7f}, uint8_t{0xff}}) {
            std::vector<uint8_t> bytes = good;
            bytes[at] = wrong;
            (void)read_explanation(bytes.data(), bytes.size(), &story);
        }
    }
    EXPECT_EQ(read_explanation(good.data(), 3, &story), ExplanationFound::kNonsense);
}

TEST(WaitNames, ExistForEveryReason) {
    EXPECT_STREQ(dibs_wait_name(DIBS_WAIT_HELD), "held");
    for (int reason = DIBS_WAIT_NONE; reason <= DIBS_WAIT_BEHIND_GANG; ++reason)
        EXPECT_STRNE(dibs_wait_name(reason), "unknown") << reason;
    EXPECT_STREQ(dibs_wait_name(DIBS_WAIT_BEHIND_GANG + 1), "unknown");
    EXPECT_STREQ(dibs_wait_name(-1), "unknown");
}

}  // namespace
}  // namespace dibs::test
