// tests/clientlib/explain_test.cpp -- the library's two shapes of admin tables, held against the
// generated code.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "clientlib/admin_tables.hpp"
#include "dibs/dibs.h"
#include "schemas/admin_generated.h"

namespace dibs::test {
namespace {

using client::ExplainRequest;
using client::ExplanationFound;
using client::read_explanation;
using client::WaitFacts;

std::vector<uint8_t> packed(const admin::AnswerT& answer) {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(admin::Answer::Pack(builder, &answer));
    return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

std::vector<uint8_t> an_explanation() {
    admin::AnswerT answer;
    answer.explanation = std::make_unique<admin::ExplanationT>();
    answer.explanation->pool = "gpu";
    answer.explanation->account = "uid:1000";
    answer.explanation->facts = std::make_unique<admin::WaitFacts>(
        uint8_t{1}, uint8_t{2}, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 10U, 11U, 12U, 13U, 14U, 15U, 16U);
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
    WaitFacts facts;
    ASSERT_EQ(read_explanation(bytes.data(), bytes.size(), &facts), ExplanationFound::kFacts);
    EXPECT_EQ(facts.reason, 1);
    EXPECT_EQ(facts.obstacle, 2);
    EXPECT_EQ(facts.position, 3U);
    EXPECT_EQ(facts.waiting, 4U);
    EXPECT_EQ(facts.units, 5U);
    EXPECT_EQ(facts.confirmed, 6U);
    EXPECT_EQ(facts.idle, 7U);
    EXPECT_EQ(facts.slots, 8U);
    EXPECT_EQ(facts.leases, 9U);
    EXPECT_EQ(facts.waited_ns, 10U);
    EXPECT_EQ(facts.left_ns, 11U);
    EXPECT_EQ(facts.holder_number, 12U);
    EXPECT_EQ(facts.holder_age_ns, 13U);
    EXPECT_EQ(facts.holder_uid, 14U);
    EXPECT_EQ(facts.holder_pid, 15U);
    EXPECT_EQ(facts.number, 16U);
}

TEST(AdminTables, TellAnAnswerWithoutAnExplanationFromOne) {
    admin::AnswerT answer;
    answer.code = admin::Code::not_found;
    std::vector<uint8_t> bytes = packed(answer);
    WaitFacts facts;
    EXPECT_EQ(read_explanation(bytes.data(), bytes.size(), &facts), ExplanationFound::kNotFound);
    bytes = packed(admin::AnswerT{});
    EXPECT_EQ(read_explanation(bytes.data(), bytes.size(), &facts), ExplanationFound::kNonsense);
}

TEST(AdminTables, StayInsideOfAnAnswerThatIsBroken) {
    const std::vector<uint8_t> good = an_explanation();
    WaitFacts facts;
    for (size_t size = 0; size < good.size(); ++size) {
        // A vector of its own, so that a sanitizer sees a read beyond its end.
        const std::vector<uint8_t> cut(good.begin(), good.begin() + static_cast<long>(size));
        (void)read_explanation(cut.data(), cut.size(), &facts);
    }
    for (size_t at = 0; at < good.size(); ++at) {
        for (const uint8_t wrong : {uint8_t{0}, uint8_t{0x7f}, uint8_t{0xff}}) {
            std::vector<uint8_t> bytes = good;
            bytes[at] = wrong;
            (void)read_explanation(bytes.data(), bytes.size(), &facts);
        }
    }
    EXPECT_EQ(read_explanation(good.data(), 3, &facts), ExplanationFound::kNonsense);
}

TEST(WaitNames, ExistForEveryReason) {
    EXPECT_STREQ(dibs_wait_name(DIBS_WAIT_HELD), "held");
    for (int reason = DIBS_WAIT_NONE; reason <= DIBS_WAIT_NEXT_TURN; ++reason)
        EXPECT_STRNE(dibs_wait_name(reason), "unknown") << reason;
    EXPECT_STREQ(dibs_wait_name(DIBS_WAIT_NEXT_TURN + 1), "unknown");
    EXPECT_STREQ(dibs_wait_name(-1), "unknown");
}

}  // namespace
}  // namespace dibs::test
