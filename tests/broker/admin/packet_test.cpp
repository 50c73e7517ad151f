// tests/broker/admin/packet_test.cpp -- which packets of a tool are unpacked.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admin/packet.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "schemas/admin_generated.h"

namespace dibs {
namespace {

// Its group has that many resources, of one text or each of its own.
bool takes_resources(size_t count, bool shared) {
    flatbuffers::FlatBufferBuilder builder;
    std::vector<flatbuffers::Offset<flatbuffers::String>> texts;
    const std::string text(60, 'r');
    for (size_t at = 0; at < count; ++at)
        texts.push_back(shared && at != 0 ? texts.front() : builder.CreateString(text));
    const auto group =
        admin::CreateAppGroup(builder, builder.CreateString("w"), 1, builder.CreateVector(texts));
    const auto groups = builder.CreateVector(std::vector{group});
    admin::RequestBuilder request(builder);
    request.add_ask(admin::Ask::application);
    request.add_app_groups(groups);
    builder.Finish(request.Finish());
    return verified({builder.GetBufferPointer(), builder.GetSize()});
}

TEST(Packet, IsTakenWhereNothingInItIsShared) {
    EXPECT_TRUE(takes_resources(1, true));
    EXPECT_TRUE(takes_resources(100, false));
}

// Sixteen kilobytes of shared offsets would unpack to half a gigabyte.
TEST(Packet, IsRefusedWhereItUnpacksToMoreThanItIs) {
    EXPECT_FALSE(takes_resources(100, true));
}

TEST(Packet, IsRefusedWhereItIsNoTable) {
    const std::vector<uint8_t> noise(64, 0xff);
    EXPECT_FALSE(verified(noise));
}

}  // namespace
}  // namespace dibs
