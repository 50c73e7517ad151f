// tests/broker/turn/payload_test.cpp -- tables within their limits, and bytes that are none.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/payload.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "schemas/claim_generated.h"

namespace dibs {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;
using Bytes = std::vector<uint8_t>;

Bytes finished(Builder& builder) {
    return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

Bytes claim_with(size_t options, size_t labels, const std::string& key = "k") {
    Builder builder;
    std::vector<flatbuffers::Offset<wire::Option>> option_list;
    for (size_t i = 0; i < options; ++i)
        option_list.push_back(wire::CreateOptionDirect(builder, key.c_str(), "v"));
    std::vector<flatbuffers::Offset<flatbuffers::String>> label_list;
    for (size_t i = 0; i < labels; ++i)
        label_list.push_back(builder.CreateString("label"));
    const std::vector<uint8_t> body = {1, 2, 3};
    builder.Finish(wire::CreateClaimPayloadDirect(builder, &option_list, &label_list, &body));
    return finished(builder);
}

TEST(ClaimPayload, MayBeEmpty) {
    EXPECT_TRUE(valid_claim_payload({}));
}

TEST(ClaimPayload, HoldsSixteenOptionsAndThirtyTwoLabels) {
    EXPECT_TRUE(valid_claim_payload(claim_with(16, 32)));
    EXPECT_FALSE(valid_claim_payload(claim_with(17, 0)));
    EXPECT_FALSE(valid_claim_payload(claim_with(0, 33)));
}

TEST(ClaimPayload, RefusesAKeyThatCouldNotBeToldFromItsValue) {
    EXPECT_FALSE(valid_claim_payload(claim_with(1, 0, "a=b")));
    EXPECT_FALSE(valid_claim_payload(claim_with(1, 0, "")));
}

TEST(ClaimPayload, IsRefusedWhenItIsCutShort) {
    const Bytes whole = claim_with(3, 3);
    for (size_t size = 1; size < whole.size(); ++size) {
        const Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
        (void)valid_claim_payload(cut);  // never out of bounds: the sanitizers watch
    }
    EXPECT_FALSE(valid_claim_payload(Bytes(whole.begin(), whole.begin() + 7)));
}

TEST(ClaimPayload, SurvivesBytesThatAreFlipped) {
    std::mt19937 random(3);
    const Bytes whole = claim_with(4, 4);
    for (int round = 0; round < 20000; ++round) {
        Bytes bytes = whole;
        for (int flips = 0; flips < 3; ++flips)
            bytes[random() % bytes.size()] ^= static_cast<uint8_t>(1U << random() % 8);
        (void)valid_claim_payload(bytes);
        AnnouncementReader reader;
        Announcement announcement;
        (void)reader.read(bytes, announcement);
    }
}

TEST(Announcement, IsReadWithNameLabelsAndAttributes) {
    Builder builder;
    const std::vector<flatbuffers::Offset<wire::Option>> attributes = {
        wire::CreateOptionDirect(builder, "port", "80"),
        wire::CreateOptionDirect(builder, "empty", nullptr)};
    const std::vector<flatbuffers::Offset<flatbuffers::String>> labels = {
        builder.CreateString("gpu"), builder.CreateString("v2")};
    builder.Finish(wire::CreateAnnouncePayloadDirect(builder, "web-1", &labels, &attributes));
    AnnouncementReader reader;
    Announcement announcement;
    const Bytes bytes = finished(builder);
    ASSERT_TRUE(reader.read(bytes, announcement));
    EXPECT_EQ(announcement.name, "web-1");
    ASSERT_EQ(announcement.labels().size(), 2U);
    EXPECT_EQ(announcement.labels()[1], "v2");
    EXPECT_EQ(announcement.attributes, std::string("port=80\0empty=\0", 15));
}

TEST(Announcement, RefusesANameOfSixtyFourBytes) {
    for (const size_t size : {63U, 64U}) {
        Builder builder;
        builder.Finish(wire::CreateAnnouncePayloadDirect(builder, std::string(size, 'n').c_str()));
        AnnouncementReader reader;
        Announcement announcement;
        EXPECT_EQ(reader.read(finished(builder), announcement), size == 63);
    }
}

}  // namespace
}  // namespace dibs
