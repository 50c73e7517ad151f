// tests/broker/admission/admission_test.cpp -- connections, sessions and memory of each uid, and
// who must go.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admission/admission.hpp"

#include <gtest/gtest.h>

#include "broker/admission/callers.hpp"
#include "broker/admission/descriptors.hpp"
#include "shm/memfd.hpp"

namespace dibs::test {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kNow = 1000 * kSecond;

Credentials user(uint32_t uid) {
    return {.uid = uid, .gid = 1, .pid = 7};
}

std::shared_ptr<Policy> policy_with(const Allowance& allowance) {
    auto policy = std::make_shared<Policy>();
    policy->others = allowance;
    return policy;
}

std::string said(const std::optional<Refusal>& refusal) {
    return refusal ? refusal->text : "";
}

TEST(Admission, CountsTheSessionsOfAUid) {
    Admission admission(policy_with({.sessions = 2}), {.sessions = 100});
    EXPECT_FALSE(admission.begin(user(5), 4096));
    EXPECT_FALSE(admission.begin(user(5), 4096));
    const auto refusal = admission.begin(user(5), 4096);
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->code, shm::FarewellCode::kLimit);
    EXPECT_EQ(refusal->text, "user 5 has 2 sessions, as many as its policy allows");
    EXPECT_FALSE(admission.begin(user(6), 4096));
    admission.end(5, 4096);
    EXPECT_FALSE(admission.begin(user(5), 4096));
}

TEST(Admission, CountsTheMemoryOfAUid) {
    Admission admission(policy_with({.memory = 10000}), {.sessions = 100});
    EXPECT_FALSE(admission.begin(user(5), 6000));
    EXPECT_EQ(said(admission.begin(user(5), 4001)),
              "user 5 has 6000 bytes of rings and payload; with 4001 more it would pass the 10000 "
              "that its policy allows");
    EXPECT_FALSE(admission.begin(user(5), 4000));
    EXPECT_FALSE(admission.begin(user(6), 10000));
    EXPECT_TRUE(admission.begin(user(7), 10001));
}

TEST(Admission, CountsWhatIsLeftOfASessionUntilItIsReleased) {
    Admission admission(policy_with({.sessions = 2, .memory = 10000}), {.sessions = 100});
    EXPECT_FALSE(admission.begin(user(5), 6000));
    admission.outlasted(5);
    EXPECT_EQ(said(admission.begin(user(5), 4001)),
              "user 5 has 6000 bytes of rings and payload (of 1 that ended somebody still has the "
              "memory); with 4001 more it would pass the 10000 that its policy allows");
    EXPECT_FALSE(admission.begin(user(5), 4000));
    EXPECT_EQ(said(admission.begin(user(5), 1)),
              "user 5 has 2 sessions (of 1 that ended somebody still has the memory), as many as "
              "its policy allows");
    admission.released(5, 6000);
    EXPECT_FALSE(admission.begin(user(5), 6000));
    EXPECT_EQ(said(admission.begin(user(5), 1)),
              "user 5 has 2 sessions, as many as its policy allows");
}

TEST(Admission, GivesHandshakesBackWithTimeUpToOneSecondsWorth) {
    Admission admission(policy_with({.handshakes = 4}), {.sessions = 100});
    for (int i = 0; i < 4; ++i)
        EXPECT_FALSE(admission.connect(user(5), kNow));
    EXPECT_EQ(said(admission.connect(user(5), kNow)), "user 5 connects more than 4 times a second");
    EXPECT_FALSE(admission.connect(user(6), kNow));
    EXPECT_TRUE(admission.connect(user(5), kNow + kSecond / 4 - 1));
    EXPECT_FALSE(admission.connect(user(5), kNow + kSecond / 4));
    EXPECT_TRUE(admission.connect(user(5), kNow + kSecond / 4));
    for (int i = 0; i < 4; ++i)  // an hour brings no more than a second
        EXPECT_FALSE(admission.connect(user(5), kNow + 3600 * kSecond));
    EXPECT_TRUE(admission.connect(user(5), kNow + 3600 * kSecond));
}

TEST(Admission, KeepsTheLastQuarterForThoseWhoHaveFew) {
    Admission admission(policy_with({}), {.sessions = 128});  // few: 2
    for (int i = 0; i < 96; ++i)
        ASSERT_FALSE(admission.begin(user(5), 1));
    EXPECT_EQ(said(admission.begin(user(5), 1)),
              "the last quarter of the sessions is for users with fewer than 2; user 5 has 96");
    for (uint32_t newcomer = 10; newcomer < 26; ++newcomer) {
        ASSERT_FALSE(admission.begin(user(newcomer), 1));
        ASSERT_FALSE(admission.begin(user(newcomer), 1));
        ASSERT_TRUE(admission.begin(user(newcomer), 1));
    }
    const auto refusal = admission.begin(user(99), 1);
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->code, shm::FarewellCode::kFull);
    EXPECT_EQ(refusal->text, "all 128 sessions are in use");
}

TEST(Admission, KeepsNothingBackWhereOnlyOneUserCanCome) {
    Admission admission(policy_with({}), {.sessions = 128, .newcomers = false});
    for (int i = 0; i < 128; ++i)
        ASSERT_FALSE(admission.begin(user(5), 1));
    EXPECT_TRUE(admission.begin(user(5), 1));
}

TEST(Admission, TakesANewPolicyAtOnce) {
    Admission admission(policy_with({.sessions = 1}), {.sessions = 100});
    EXPECT_FALSE(admission.begin(user(5), 1));
    EXPECT_TRUE(admission.begin(user(5), 1));
    admission.set_policy(policy_with({.sessions = 2}));
    EXPECT_FALSE(admission.begin(user(5), 1));
    admission.set_policy(policy_with({.sessions = 0}));
    EXPECT_EQ(said(admission.begin(user(5), 1)),
              "user 5 has 2 sessions, as many as its policy allows");
}

TEST(Admission, GivesNoSessionToAUidThatOnlyAdministers) {
    Admission admission(policy_with({}), {.sessions = 100, .administers_only = 5});
    const auto refusal = admission.begin(user(5), 1);
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->code, shm::FarewellCode::kNotAllowed);
    EXPECT_FALSE(admission.begin(user(6), 1));
}

Caller caller(uint32_t uid) {
    return {.socket = ClientSocket(shm::make_memfd("caller", 4096)), .credentials = user(uid)};
}

TEST(Callers, DropTheOldestOfWhoeverHasMost) {
    Callers callers(4);
    std::vector<int> fds;
    for (const uint32_t uid : {6U, 5U, 5U, 7U}) {
        Caller one = caller(uid);
        fds.push_back(one.socket.get());
        callers.add(std::move(one));
    }
    EXPECT_TRUE(callers.full());
    EXPECT_EQ(callers.oldest().socket.get(), fds[0]);
    EXPECT_EQ(callers.least_wanted(), fds[1]);
    EXPECT_EQ(callers.take(fds[1]).credentials.uid, 5U);
    EXPECT_EQ(callers.find(fds[1]), nullptr);
    EXPECT_FALSE(callers.full());
    EXPECT_EQ(callers.least_wanted(), fds[2]);  // one each: the smallest uid
}

TEST(DescriptorBudget, DerivesTheSessionsFromTheLimit) {
    EXPECT_EQ(descriptor_budget(1024).callers, 128U);
    EXPECT_EQ(descriptor_budget(1024).sessions, 102U);  // (1024 - 176 - 128) / 7
    EXPECT_EQ(descriptor_budget(1U << 20).callers, 512U);
    EXPECT_EQ(descriptor_budget(1U << 20).sessions, 149698U);
    EXPECT_EQ(descriptor_budget(20).sessions, 1U);
}

// As many as the kernel lets one user have under way as one process may have open.
TEST(DescriptorBudget, LeavesRoomForEveryWelcomeToBeUnderWay) {
    for (const uint64_t limit : {20U, 256U, 1024U, 4096U, 65536U, 1U << 20}) {
        const uint64_t under_way = 5 * uint64_t{descriptor_budget(limit).sessions};
        EXPECT_LE(under_way, limit * 5 / 7);
    }
}

}  // namespace
}  // namespace dibs::test
