// tests/broker/config/config_sets_test.cpp -- pool sets in a configuration, and mistakes in them.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "broker/config/config.hpp"
#include "tests/broker/config/config_mistakes.hpp"

namespace dibs {
namespace {

const std::string kSecondPool = "[[pool]]\nname = \"b\"\nkind = \"counted\"\nslots = 2\n";
const std::string kTwoPools = kPool + kSecondPool;  // lines 1 to 8

std::string set_of(const std::string& members, const std::string& name = "any") {
    return "[[set]]\nname = \"" + name + "\"\npools = " + members + "\n";
}

Lines one(const std::string& line) {
    return {line};
}

TEST(ConfigSets, HaveTheirPoolsInTheirOrder) {
    const ConfigResult read =
        parse_config(kTwoPools + set_of("[\"b\", \"a\"]") + set_of("[\"a\"]", "some"), "f");
    EXPECT_EQ(read.mistakes, Lines{});
    ASSERT_EQ(read.config.sets.size(), 2U);
    EXPECT_EQ(read.config.sets[0].name, "any");
    EXPECT_EQ(read.config.sets[0].pools, (std::vector<std::string>{"b", "a"}));
    EXPECT_EQ(read.config.sets[1].pools, std::vector<std::string>{"a"});
}

TEST(ConfigSets, AreReadBeforeTheirPools) {
    EXPECT_EQ(mistakes(set_of("[\"a\"]") + kPool), Lines{});
}

TEST(ConfigSets, NamePoolsThatThereAre) {
    EXPECT_EQ(mistakes(kTwoPools + set_of("[\"a\", \"gpu\"]")),
              one("f:11:15: pools: there is no pool \"gpu\"; there are: a, b"));
    EXPECT_EQ(
        mistakes("[[pool]]\nname = \"gpus\"\nkind = \"counted\"\nslots = 1\n" +
                 set_of("[\"gpu\"]")),
        one("f:7:10: pools: there is no pool \"gpu\"; did you mean \"gpus\"? There are: gpus"));
    EXPECT_EQ(mistakes(set_of("[\"a\"]")),
              one("f:3:10: pools: there is no pool \"a\"; there are none"));
}

TEST(ConfigSets, HaveEachPoolOnce) {
    EXPECT_EQ(mistakes(kTwoPools + set_of("[\"a\", \"b\", \"a\"]")),
              one("f:11:20: pools: pool \"a\" is in it already"));
}

TEST(ConfigSets, ContainNoSets) {
    EXPECT_EQ(mistakes(kTwoPools + set_of("[\"any\"]")),
              one("f:11:10: pools: the set \"any\" cannot contain itself"));
    EXPECT_EQ(mistakes(kTwoPools + set_of("[\"a\"]") + set_of("[\"any\"]", "all")),
              one("f:14:10: pools: \"any\" is a set; the members of a set are pools"));
}

TEST(ConfigSets, ShareTheirNamesWithPools) {
    EXPECT_EQ(mistakes(kTwoPools + set_of("[\"a\"]", "b")),
              one("f:10:8: name: there is a pool \"b\" in this file"));
    EXPECT_EQ(mistakes(kTwoPools + set_of("[\"a\"]") + set_of("[\"b\"]")),
              one("f:13:8: a second set \"any\"; the first is in line 10"));
    EXPECT_EQ(mistakes(kTwoPools + set_of("[\"a\"]", "1")),
              one("f:10:8: name: as of a pool: a pool's name has 1 to 63 letters, digits, \".\", "
                  "\"_\" and \"-\", a letter first"));
}

TEST(ConfigSets, HaveOneToSixteenPools) {
    const std::string wanted =
        ": pools: must be an array of 1 to 16 names of pools, such as [\"a\", \"b\"]";
    EXPECT_EQ(mistakes(kTwoPools + set_of("[]")), one("f:11:9" + wanted));
    EXPECT_EQ(mistakes(kTwoPools + set_of("\"a\"")), one("f:11:9" + wanted));
    std::string pools;
    std::string members;
    for (char name = 'a'; name <= 'q'; ++name) {
        pools +=
            "[[pool]]\nname = \"" + std::string(1, name) + "\"\nkind = \"counted\"\nslots = 1\n";
        members += (name == 'a' ? "\"" : ", \"") + std::string(1, name) + "\"";
    }
    EXPECT_EQ(mistakes(pools + set_of("[" + members + "]")), one("f:71:9" + wanted));
    EXPECT_EQ(mistakes(pools + set_of("[" + members.substr(0, members.size() - 5) + "]")), Lines{});
    EXPECT_EQ(mistakes(kTwoPools + set_of("[1]")),
              one("f:11:10: pools: must hold names, not an integer"));
}

TEST(ConfigSets, AreSixteenAtMost) {
    std::string sets;
    for (int i = 0; i < 16; ++i)
        sets += set_of("[\"a\"]", "s" + std::to_string(i));
    EXPECT_EQ(mistakes(kTwoPools + sets), Lines{});
    EXPECT_EQ(mistakes(kTwoPools + sets + set_of("[\"a\"]")),
              one("f:9:1: 17 sets; there may be 16"));
}

TEST(ConfigSets, NeedANameAndPools) {
    EXPECT_EQ(mistakes(kTwoPools + "[[set]]\npools = [\"a\"]\n"),
              one("f:9:1: a set has no \"name\""));
    EXPECT_EQ(mistakes(kTwoPools + "[[set]]\nname = \"any\"\n"),
              one("f:9:1: a set has no \"pools\""));
    EXPECT_EQ(mistakes(kTwoPools + "[set]\nname = \"any\"\n"),
              one("f:9:1: set: must be an array of tables: write [[set]]"));
    EXPECT_EQ(mistakes(kTwoPools + set_of("[\"a\"]") + "members = 1\n").size(), 1U);
}

// As a broker that serves reads its file again, and as one that takes over reads it.
TEST(ConfigSets, MayNamePoolsThatTheBrokerWasToldToMake) {
    const std::string text = kPool + set_of("[\"a\", \"made\"]");
    const PoolsThere there = {.created = {"made"}, .all = {"a", "made", "old"}, .unknown = false};
    EXPECT_EQ(parse_config(text, "f", there).mistakes, Lines{});
    EXPECT_EQ(mistakes(text).size(), 1U);
    EXPECT_EQ(parse_config(kPool + set_of("[\"old\"]"), "f", there).mistakes,
              one("f:7:10: pools: there is no pool \"old\"; there are: a, made"));
    EXPECT_EQ(parse_config(kPool + set_of("[\"a\"]", "old"), "f", there).mistakes,
              one("f:6:8: name: the broker has a pool \"old\", which this file does not name: a "
                  "set may have its name once it is gone"));
    const PoolsThere unknown = {.created = {}, .all = {}, .unknown = true};
    EXPECT_EQ(parse_config(text, "f", unknown).mistakes, Lines{});
    EXPECT_EQ(parse_config(kPool + set_of("[\"any\"]"), "f", unknown).mistakes.size(), 1U);
}

}  // namespace
}  // namespace dibs
