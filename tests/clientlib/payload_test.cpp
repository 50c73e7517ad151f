// tests/clientlib/payload_test.cpp -- the library's encoder against the generated reader and its
// verifier, and its decoder against the encoder, against cut bytes and against changed bytes.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "clientlib/wire/payload_decoder.hpp"
#include "clientlib/wire/payload_encoder.hpp"
#include "schemas/claim_generated.h"

namespace dibs::client {
namespace {

std::vector<uint8_t> encode(const ClaimContent& content) {
    std::vector<uint8_t> bytes(encode_claim(content, nullptr));
    EXPECT_EQ(encode_claim(content, bytes.data()), bytes.size());
    return bytes;
}

template <typename Table>
bool verified(const std::vector<uint8_t>& bytes) {
    flatbuffers::Verifier verifier(bytes.data(), bytes.size(), 8, 64);
    return verifier.VerifyBuffer<Table>(nullptr);
}

std::vector<std::string> texts(size_t count, const char* prefix) {
    std::vector<std::string> result;
    for (size_t i = 0; i < count; ++i) {
        result.push_back(prefix + std::string(i % 7, 'x') + std::to_string(i));
    }
    return result;
}

struct Content {
    std::vector<std::string> keys, values, names;
    std::vector<dibs_option> options;
    std::vector<const char*> labels;
    std::string body;

    Content(size_t option_count, size_t label_count, size_t body_size)
        : keys(texts(option_count, "key")),
          values(texts(option_count, "")),
          names(texts(label_count, "label")),
          body(body_size, 'b') {
        for (size_t i = 0; i < option_count; ++i) {
            options.push_back({keys[i].c_str(), values[i].c_str()});
        }
        for (const std::string& name : names)
            labels.push_back(name.c_str());
    }
    [[nodiscard]] ClaimContent claim() const {
        return {
            options.data(), options.size(), labels.data(), labels.size(), body.data(), body.size()};
    }
};

TEST(ClaimPayload, IsReadBackByTheGeneratedReader) {
    for (const size_t options : {0U, 1U, 2U, 16U}) {
        for (const size_t labels : {0U, 1U, 3U, 32U}) {
            for (const size_t body : {0U, 1U, 2U, 3U, 4U, 1000U}) {
                const Content content(options, labels, body);
                const std::vector<uint8_t> bytes = encode(content.claim());
                ASSERT_TRUE(verified<wire::ClaimPayload>(bytes))
                    << options << " options, " << labels << " labels, " << body << " bytes";
                const auto* read = flatbuffers::GetRoot<wire::ClaimPayload>(bytes.data());
                ASSERT_EQ(read->options() == nullptr, options == 0);
                ASSERT_EQ(read->labels() == nullptr, labels == 0);
                ASSERT_EQ(read->body() == nullptr, body == 0);
                for (uint32_t i = 0; i < options; ++i) {
                    ASSERT_EQ(read->options()->Get(i)->key()->str(), content.keys[i]);
                    ASSERT_EQ(read->options()->Get(i)->value()->str(), content.values[i]);
                }
                for (uint32_t i = 0; i < labels; ++i) {
                    ASSERT_EQ(read->labels()->Get(i)->str(), content.names[i]);
                }
                if (body != 0) {
                    ASSERT_EQ(read->body()->size(), body);
                }
            }
        }
    }
}

TEST(ClaimPayload, NamesAPartOfASlot) {
    const char* least[] = {"memory=10GiB", "sm=1"};
    const char* most[] = {"memory=20GiB"};
    dibs_claim_options terms = {};
    terms.size = sizeof terms;
    terms.least = least;
    terms.least_count = 2;
    terms.most = most;
    terms.most_count = 1;
    terms.account = "research";
    dibs_offer offer = {};
    offer.slot = 7;
    terms.offer = &offer;
    terms.meta = "train 7";
    for (const size_t labels : {size_t{0}, size_t{3}}) {
        const Content given(labels, labels, labels);
        ClaimContent content = given.claim();
        content.terms = &terms;
        const std::vector<uint8_t> bytes = encode(content);
        ASSERT_TRUE(verified<wire::ClaimPayload>(bytes));
        const auto* read = flatbuffers::GetRoot<wire::ClaimPayload>(bytes.data());
        ASSERT_NE(read->least(), nullptr);
        ASSERT_EQ(read->least()->size(), 2U);
        EXPECT_EQ(read->least()->Get(0)->string_view(), "memory=10GiB");
        EXPECT_EQ(read->least()->Get(1)->string_view(), "sm=1");
        ASSERT_NE(read->most(), nullptr);
        EXPECT_EQ(read->most()->Get(0)->string_view(), "memory=20GiB");
        EXPECT_EQ(read->account()->string_view(), "research");
        EXPECT_EQ(read->offer(), 8U);
        ASSERT_NE(read->meta(), nullptr);
        EXPECT_EQ(read->meta()->string_view(), "train 7");
        EXPECT_EQ(read->priority(), 1);
        EXPECT_EQ(read->labels() == nullptr, labels == 0);
    }
}

TEST(AnnouncePayload, IsReadBackByTheGeneratedReader) {
    const Content content(3, 2, 0);
    for (const char* name : {static_cast<const char*>(nullptr), "gpu-3"}) {
        const AnnounceContent announce = {
            name, content.labels.data(), 2, content.options.data(), 3};
        std::vector<uint8_t> bytes(encode_announce(announce, nullptr));
        encode_announce(announce, bytes.data());
        ASSERT_TRUE(verified<wire::AnnouncePayload>(bytes));
        const auto* read = flatbuffers::GetRoot<wire::AnnouncePayload>(bytes.data());
        ASSERT_EQ(read->name() == nullptr, name == nullptr);
        if (name != nullptr) {
            EXPECT_EQ(read->name()->str(), "gpu-3");
        }
        ASSERT_EQ(read->labels()->size(), 2U);
        ASSERT_EQ(read->attributes()->size(), 3U);
        EXPECT_EQ(read->attributes()->Get(2)->key()->str(), content.keys[2]);
    }
}

TEST(ClaimPayload, IsReadBackByTheLibrary) {
    const Content content(16, 32, 500);
    const std::vector<uint8_t> bytes = encode(content.claim());
    dibs_assignment read = {};
    ASSERT_TRUE(decode_claim(bytes.data(), bytes.size(), read));
    ASSERT_EQ(read.option_count, 16U);
    ASSERT_EQ(read.label_count, 32U);
    EXPECT_STREQ(read.options[15].key, content.keys[15].c_str());
    EXPECT_STREQ(read.options[15].value, content.values[15].c_str());
    EXPECT_STREQ(read.labels[31], content.names[31].c_str());
    ASSERT_EQ(read.body_size, 500U);
    EXPECT_EQ(std::memcmp(read.body, content.body.data(), 500), 0);
}

TEST(ClaimPayload, OfTheGeneratedBuilderIsReadByTheLibrary) {
    flatbuffers::FlatBufferBuilder builder;
    std::vector<flatbuffers::Offset<wire::Option>> options;
    options.push_back(wire::CreateOption(builder, builder.CreateString("key")));
    const auto option_vector = builder.CreateVector(options);
    const auto label_vector = builder.CreateVectorOfStrings({"a", "b"});
    builder.Finish(wire::CreateClaimPayload(builder, option_vector, label_vector));
    dibs_assignment read = {};
    ASSERT_TRUE(decode_claim(builder.GetBufferPointer(), builder.GetSize(), read));
    ASSERT_EQ(read.option_count, 1U);
    EXPECT_STREQ(read.options[0].key, "key");
    EXPECT_STREQ(read.options[0].value, "");
    ASSERT_EQ(read.label_count, 2U);
    EXPECT_STREQ(read.labels[1], "b");
    EXPECT_EQ(read.body_size, 0U);
}

// What is read lies within the bytes: a copy without slack, so that the sanitizers see a step out.
void read_all(const std::vector<uint8_t>& bytes, size_t size) {
    const std::vector<uint8_t> exact(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    dibs_assignment read = {};
    if (!decode_claim(exact.data(), exact.size(), read)) {
        ASSERT_EQ(read.option_count + read.label_count + read.body_size, 0U);
        return;
    }
    size_t sum = 0;
    for (size_t i = 0; i < read.option_count; ++i) {
        sum += std::strlen(read.options[i].key) + std::strlen(read.options[i].value);
    }
    for (size_t i = 0; i < read.label_count; ++i)
        sum += std::strlen(read.labels[i]);
    const auto* body = static_cast<const uint8_t*>(read.body);
    for (size_t i = 0; i < read.body_size; ++i)
        sum += body[i];
    ASSERT_LT(sum, 1'000'000U);
}

TEST(Decoder, StaysWithinBytesThatAreCut) {
    const std::vector<uint8_t> bytes = encode(Content(3, 3, 40).claim());
    for (size_t size = 0; size <= bytes.size(); ++size)
        read_all(bytes, size);
}

TEST(Decoder, StaysWithinBytesThatAreChanged) {
    const std::vector<uint8_t> good = encode(Content(3, 3, 40).claim());
    std::mt19937 random(20);
    for (int i = 0; i < 50'000; ++i) {
        std::vector<uint8_t> bytes = good;
        for (uint32_t changes = 1 + random() % 4; changes != 0; --changes) {
            bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
        }
        read_all(bytes, bytes.size());
    }
}

TEST(Decoder, RefusesMoreOptionsThanAClaimMayHave) {
    dibs_assignment read = {};
    const std::vector<uint8_t> bytes = encode(Content(17, 0, 0).claim());
    EXPECT_FALSE(decode_claim(bytes.data(), bytes.size(), read));
}

}  // namespace
}  // namespace dibs::client
