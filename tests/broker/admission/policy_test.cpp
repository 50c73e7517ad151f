// tests/broker/admission/policy_test.cpp -- which table of the policy holds for a peer, and who
// administers.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admission/policy.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "broker/config/config.hpp"

namespace dibs::test {
namespace {

Credentials peer(uint32_t uid, uint32_t gid, std::vector<uint32_t> groups = {}) {
    return {.uid = uid, .gid = gid, .pid = 7, .groups = std::move(groups)};
}

Policy policy_of(const std::string& text) {
    const ConfigResult result = parse_config(text, "t");
    EXPECT_EQ(result.mistakes, std::vector<std::string>{});
    return *result.config.policy;
}

const char* const kFour =
    "[[policy]]\ngroup = 300\nsessions = 3\n"
    "[[policy]]\ngroup = 200\nsessions = 2\n"
    "[[policy]]\ndefault = true\nsessions = 9\n"
    "[[policy]]\nuser = 1000\nsessions = 1\n";

TEST(Policy, PrefersTheUserThenTheFirstGroupOfTheFileThenTheDefault) {
    const Policy policy = policy_of(kFour);
    EXPECT_EQ(policy.of(peer(1000, 300)).sessions, 1U);
    EXPECT_EQ(policy.of(peer(1001, 200)).sessions, 2U);
    EXPECT_EQ(policy.of(peer(1001, 200, {300})).sessions, 3U);
    EXPECT_EQ(policy.of(peer(1001, 100)).sessions, 9U);
}

TEST(Policy, SeesSupplementaryGroups) {
    EXPECT_EQ(policy_of(kFour).of(peer(1001, 100, {50, 200})).sessions, 2U);
}

TEST(Policy, LimitsNothingButMemoryAndHandshakesWhereNobodyHasWrittenOne) {
    const Policy policy;
    const Allowance& built_in = policy.of(peer(1000, 1000));
    EXPECT_EQ(built_in.sessions, kNoLimit);
    EXPECT_EQ(built_in.leases, kNoLimit);
    EXPECT_EQ(built_in.backlog, kNoLimit);
    EXPECT_EQ(built_in.memory, 256U * 1024 * 1024);
    EXPECT_EQ(built_in.handshakes, 1000U);
    EXPECT_TRUE(built_in.may_claim("anything"));
}

TEST(Policy, GivesEachUidAnAccountOfItsOwnUnlessATableNamesOne) {
    const Policy policy = policy_of("[[policy]]\nuser = 1000\naccount = \"research\"\n");
    EXPECT_EQ(policy.account_of(peer(1000, 1000)), "research");
    EXPECT_EQ(policy.account_of(peer(1001, 1000)), "uid:1001");
}

TEST(Policy, OffersSlotsWhereItMayClaimUnlessOffersSaysOtherwise) {
    const Policy policy = policy_of(
        "[[policy]]\nuser = 1\npools = [\"gpu\"]\n"
        "[[policy]]\nuser = 2\npools = [\"gpu\"]\noffers = [\"web\"]\n"
        "[[policy]]\nuser = 3\noffers = []\n");
    EXPECT_TRUE(policy.of(peer(1, 1)).may_offer("gpu", true));
    EXPECT_FALSE(policy.of(peer(1, 1)).may_offer("web", true));
    EXPECT_FALSE(policy.of(peer(2, 1)).may_offer("gpu", true));
    EXPECT_TRUE(policy.of(peer(2, 1)).may_offer("web", true));
    EXPECT_FALSE(policy.of(peer(2, 1)).may_claim("web"));
    EXPECT_TRUE(policy.of(peer(3, 1)).may_claim("web"));
    EXPECT_FALSE(policy.of(peer(3, 1)).may_offer("web", true));
}

TEST(Policy, OffersWhereOffersNamesThePoolAndNowhereElseUnlessTheUnnamedMay) {
    const Policy policy = policy_of("[[policy]]\nuser = 2\noffers = [\"web\"]\n");
    EXPECT_TRUE(policy.of(peer(2, 1)).may_offer("web", false));
    EXPECT_FALSE(policy.of(peer(2, 1)).may_offer("gpu", false));
    EXPECT_FALSE(policy.of(peer(1, 1)).may_offer("web", false));
    EXPECT_TRUE(policy.of(peer(1, 1)).may_offer("web", true));
}

TEST(Policy, LetsRootItsOwnUidAndTheAdminGroupAdminister) {
    const Policy policy = policy_of("admin_group = 400\n");
    const uint32_t stranger = geteuid() + 77;
    EXPECT_TRUE(policy.is_admin(peer(0, 0)));
    EXPECT_TRUE(policy.is_admin(peer(geteuid(), 1)));
    EXPECT_TRUE(policy.is_admin(peer(stranger, 400)));
    EXPECT_TRUE(policy.is_admin(peer(stranger, 1, {400})));
    EXPECT_FALSE(policy.is_admin(peer(stranger, 1, {401})));
    EXPECT_FALSE(Policy{}.is_admin(peer(stranger, 0)));
}

TEST(Policy, TakesUsersAndGroupsByName) {
    const Policy policy = policy_of(
        "admin_group = \"root\"\n[[policy]]\nuser = \"root\"\nleases = 5\n"
        "[[policy]]\ngroup = \"root\"\nleases = 6\n");
    EXPECT_EQ(policy.of(peer(0, 0)).leases, 5U);
    EXPECT_EQ(policy.of(peer(1, 0)).leases, 6U);
    EXPECT_EQ(policy.admin_group, 0U);
}

TEST(PolicyText, SaysEveryMistake) {
    const ConfigResult result = parse_config(
        "[[policy]]\nuser = \"no-such-user\"\n"
        "[[policy]]\nuser = 1\ngroup = 2\n"
        "[[policy]]\nsessions = 4\n"
        "[[policy]]\nuser = 1\n[[policy]]\nuser = 1\n"
        "[[policy]]\ndefault = true\nhandshakes = 0\npools = \"gpu\"\nmemry = 1\n",
        "t");
    EXPECT_EQ(result.mistakes,
              (std::vector<std::string>{
                  "t:2:8: user: this host knows no \"no-such-user\"",
                  "t:4:8: user: a policy has one of user, group, default",
                  "t:6:1: user: a policy has one of user, group, default",
                  "t:11:8: user: a second policy for this user",
                  "t:14:14: handshakes: must be between 1 and 1000000",
                  "t:15:9: pools: must be an array of names",
                  "t:16:1: unknown key \"memry\" in a policy; did you mean \"memory\"?"}));
}

}  // namespace
}  // namespace dibs::test
