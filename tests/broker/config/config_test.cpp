// tests/broker/config/config_test.cpp -- a good configuration, and every kind of mistake with its
// place.
// SPDX-License-Identifier: Apache-2.0
#include "broker/config/config.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "broker/config/quantity.hpp"
#include "tests/broker/config/config_mistakes.hpp"

namespace dibs {
namespace {

const std::string kWorkers = "[[pool]]\nname = \"a\"\nkind = \"worker\"\n";

TEST(Config, ReadsEveryFieldOfAWorkerPool) {
    const ConfigResult result = parse_config(
        "[[pool]]\nname = \"web\"\nkind = \"worker\"\nwhen_busy = \"cold\"\nunits_max = 3\n"
        "backlog_max = 4\nunconfirmed_max = 5\npayload_max = \"1KiB\"\nanswer_max = 7\n"
        "attributes_max = 8\nreservation_ttl = \"9ms\"\nretry_after = \"10us\"\n"
        "interval_max = \"11s\"\ngrace = \"1min30s\"\nrelease_is_ready = true\n"
        "required_label = \"v2\"\n",
        "f");
    ASSERT_EQ(result.mistakes, Lines{});
    ASSERT_EQ(result.config.pools.size(), 1U);
    PoolSettings settings = result.config.pools[0];
    const core::PoolConfig pool = settings.view();
    EXPECT_EQ(pool.name, "web");
    EXPECT_EQ(pool.kind, shm::PoolKind::kWorker);
    EXPECT_EQ(pool.when_busy, shm::WhenBusy::kCold);
    EXPECT_EQ(pool.units_max, 3U);
    EXPECT_EQ(pool.backlog_max, 4U);
    EXPECT_EQ(pool.unconfirmed_max, 5U);
    EXPECT_EQ(pool.payload_max, 1024U);
    EXPECT_EQ(pool.answer_max, 7U);
    EXPECT_EQ(pool.attributes_max, 8U);
    EXPECT_EQ(pool.reservation_ttl_ns, 9'000'000U);
    EXPECT_EQ(pool.retry_after_ns, 10'000U);
    EXPECT_EQ(pool.interval_max_ns, 11'000'000'000U);
    EXPECT_EQ(pool.grace_ns, 90'000'000'000U);
    EXPECT_TRUE(pool.release_is_ready);
    EXPECT_EQ(pool.required_label, "v2");
}

TEST(Config, LetsLeasesBeParkedInCountedPoolsUnlessTheySayOtherwise) {
    const auto quantum = [](const std::string& pool) {
        ConfigResult result = parse_config(pool, "f");
        EXPECT_EQ(result.mistakes, Lines{}) << pool;
        return result.config.pools.at(0).values.quantum_ns;
    };
    EXPECT_EQ(quantum(kPool), 1'000'000U);
    EXPECT_EQ(quantum(kPool + "quantum = \"0s\"\n"), 0U);
    EXPECT_EQ(quantum(kPool + "quantum = \"5ms\"\n"), 5'000'000U);
    EXPECT_EQ(quantum(kPool + "expiry = \"strict\"\n"), 0U);
    EXPECT_EQ(quantum(kPool + "order = \"account\"\n"), 0U);
    EXPECT_EQ(quantum(kPool + "order = \"priority\"\n"), 1'000'000U);
    EXPECT_EQ(quantum(kWorkers), 0U);
    EXPECT_EQ(quantum(kWorkers + "quantum = \"5ms\"\npark = true\n"), 5'000'000U);
    EXPECT_EQ(mistakes(kWorkers + "quantum = \"5ms\"\n"),
              Lines{"f:4:11: quantum: leases of workers are parked with park = true alone"});
}

TEST(Config, ReadsWhatEachSlotHas) {
    ConfigResult result = parse_config(
        kPool + "attributes = [{ device = \"0\" }]\nresources = { sm = 100, memory = \"80GiB\" }\n",
        "f");
    EXPECT_EQ(result.mistakes, Lines{});
    PoolSettings& pool = result.config.pools.at(0);
    const core::PoolConfig view = pool.view();
    ASSERT_EQ(view.vector.size(), 2U);
    EXPECT_EQ(view.vector[0].name, "memory");
    EXPECT_EQ(view.vector[0].amount, int64_t{80} << 30U);
    EXPECT_EQ(view.vector[1].name, "sm");
    EXPECT_EQ(view.vector[1].amount, 100);
    EXPECT_EQ(view.quantum_ns, 0U);
    // Room for the slot's attributes, and for what a part has of each.
    const size_t most = std::string_view("device=0").size() + 1 +
                        std::string_view("resource.memory=9007199254740992").size() + 1 +
                        std::string_view("resource.sm=9007199254740992").size() + 1;
    EXPECT_GE(view.attributes_max, most);
}

TEST(Config, ReadsACountedPoolWithAttributesPerSlot) {
    ConfigResult result = parse_config(
        "socket = \"/s\"\nsocket_mode = \"0660\"\nlog_level = \"debug\"\ndrain_timeout = \"5s\"\n"
        "peer_pidfd = false\n[limits]\narena = \"1MiB\"\nslots = 2\n" +
            kPool + "attributes = [{ device = \"0\" }, { device = \"1\", bus = \"x\" }]\n",
        "f");
    ASSERT_EQ(result.mistakes, Lines{});
    EXPECT_EQ(result.config.socket, "/s");
    EXPECT_EQ(result.config.socket_mode, 0660U);
    EXPECT_EQ(result.config.log_level, "debug");
    EXPECT_EQ(result.config.drain_timeout_ns, 5'000'000'000U);
    EXPECT_FALSE(result.config.peer_pidfd);
    EXPECT_EQ(result.config.limits.arena_blocks, 2048U);
    const core::PoolConfig pool = result.config.pools[0].view();
    EXPECT_EQ(pool.slots, 2U);
    ASSERT_EQ(pool.slot_attributes.size(), 2U);
    EXPECT_EQ(pool.slot_attributes[0], std::string("device=0\0", 9));
    EXPECT_EQ(pool.slot_attributes[1], std::string("bus=x\0device=1\0", 15));
    EXPECT_EQ(pool.attributes_max, 15U);
}

TEST(Config, WritesTheEnvironmentOfAPoolAsAttributes) {
    const ConfigResult result =
        parse_config(kPool +
                         "environment = { GPU = \"device\" }\n"
                         "attributes = [{ device = \"7\" }, { device = \"8\" }]\n",
                     "f");
    ASSERT_EQ(result.mistakes, Lines{});
    ASSERT_EQ(result.config.pools[0].slot_attributes.size(), 2U);
    EXPECT_EQ(result.config.pools[0].slot_attributes[0], std::string("device=7\0env.GPU=7\0", 19));
    EXPECT_EQ(result.config.pools[0].values.attributes_max, 19U);
}

TEST(Config, NamesAnEnvironmentThatNoAttributeCanFill) {
    EXPECT_EQ(mistakes(kPool + "environment = { GPU = \"device\" }\n"),
              Lines{"f:5:15: environment: the pool has no attributes"});
    EXPECT_EQ(mistakes(kPool + "environment = { GPU = \"device\" }\nattributes = [{ bus = \"1\" }, "
                               "{ device = \"1\" }]\n"),
              Lines{"f:6:15: attributes: no \"device\", which environment.GPU asks for"});
    EXPECT_EQ(
        mistakes(kPool + "environment = { GPU = \"device\" }\nattributes = [{ device = \"1\" }]\n"),
        Lines{"f:6:14: attributes: for 1 slot, but the pool has 2: environment needs those of "
              "every slot"});
    EXPECT_EQ(
        mistakes(kPool +
                 "environment = { GPU = 1 }\nattributes = [{ bus = \"1\" }, { bus = \"2\" }]\n"),
        Lines{"f:5:23: environment: must be VARIABLE = \"attribute\""});
    EXPECT_EQ(mistakes(kWorkers + "environment = { GPU = \"device\" }\n"),
              Lines{"f:4:1: environment: what a worker announces sets no variables"});
}

TEST(Config, NotesAttributesOfOnlySomeSlots) {
    const auto doubts = [](int slots, const std::string& attributes) {
        const std::string pool = "[[pool]]\nname = \"gpu\"\nkind = \"counted\"\nslots = ";
        ConfigResult result =
            parse_config(pool + std::to_string(slots) + "\nattributes = " + attributes + "\n", "f");
        EXPECT_EQ(result.mistakes, Lines{});
        result.config.file = "f";
        return doubts_about(result.config);
    };
    const std::string two = "[{ device = \"0\" }, { device = \"1\" }]";
    EXPECT_EQ(doubts(2, two), Lines{});
    EXPECT_EQ(doubts(4, two),
              Lines{"f: note: pool \"gpu\" has attributes for 2 of its 4 slots: grants of slot 2 "
                    "and those behind it bring none"});
}

TEST(Config, SaysThatTextNeedsQuotes) {
    const Lines said = mistakes("[[pool]]\nname = gpu\nkind = \"counted\"\nslots = 1\n");
    ASSERT_FALSE(said.empty());
    EXPECT_NE(said[0].find("; text needs quotes: name = \"gpu\""), std::string::npos) << said[0];
}

TEST(Config, SaysThatAModeWantsQuotes) {
    const Lines said = mistakes("socket_mode = 0660\n");
    ASSERT_EQ(said.size(), 1U);
    EXPECT_EQ(said[0].rfind("f:1:", 0), 0U) << said[0];
    EXPECT_NE(said[0].find("; it wants quotes: socket_mode = \"0660\""), std::string::npos)
        << said[0];
}

TEST(Config, SaysThatAQuoteIsMissing) {
    for (const std::string line :
         {"name = \"gpu", "name = \"gpu  # it's it", "name = 'gpu", "name = \"g\\\""}) {
        const Lines said = mistakes("[[pool]]\n" + line + "\nkind = \"counted\"\nslots = 1\n");
        ASSERT_FALSE(said.empty());
        EXPECT_EQ(said[0].rfind("f:2:", 0), 0U) << said[0];
        EXPECT_NE(said[0].find(" is missing on this line"), std::string::npos) << said[0];
    }
    const Lines last = mistakes("socket = \"/run/dibs");
    ASSERT_FALSE(last.empty());
    EXPECT_NE(last[0].find("; a closing \" is missing on this line"), std::string::npos) << last[0];
    const Lines control = mistakes(
        "socket = \"/run/\x01"
        "dibs\"\n");
    ASSERT_FALSE(control.empty());
    EXPECT_EQ(control[0].find("missing"), std::string::npos) << control[0];
}

TEST(Config, DoesNotSaySoOfALineWithAnotherMistake) {
    const Lines said = mistakes("peer_pidfd = true\npeer_pidfd = false\n");
    ASSERT_FALSE(said.empty());
    EXPECT_EQ(said[0].find("quotes"), std::string::npos) << said[0];
}

TEST(Config, SuggestsTheNearestKey) {
    EXPECT_EQ(mistakes(kPool + "  backlogmax = 3\n"),
              Lines{"f:5:3: unknown key \"backlogmax\" in a pool; did you mean \"backlog_max\"?"});
    EXPECT_EQ(
        mistakes("sokcet = \"/s\"\n"),
        Lines{"f:1:1: unknown key \"sokcet\" in the configuration; did you mean \"socket\"?"});
    EXPECT_EQ(mistakes("[limits]\nslost = 3\n"),
              Lines{"f:2:1: unknown key \"slost\" in [limits]; did you mean \"slots\"?"});
    EXPECT_EQ(mistakes("zzzzzzzzz = 1\n"),
              Lines{"f:1:1: unknown key \"zzzzzzzzz\" in the configuration"});
}

TEST(Config, SaysWhereItIsNoToml) {
    const Lines lines = mistakes("socket = \n[[pool]]\n");
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines[0].substr(0, 4), "f:1:");
}

TEST(Config, SaysEveryLineThatIsNoTomlAndWhatIsWrongWithTheOthers) {
    const Lines lines = mistakes(
        "socket = /tmp/s\n[[pool]]\nname = \"a\nname = \"b\"\nkind = \"countd\"\n"
        "slots = -2\nslots = 3\nfoo = 1\n");
    ASSERT_EQ(lines.size(), 6U);
    EXPECT_EQ(lines[0].substr(0, 5), "f:1:1");
    EXPECT_EQ(lines[1].substr(0, 4), "f:3:");
    EXPECT_EQ(lines[2], "f:5:8: kind: \"countd\" is none of \"counted\", \"worker\"");
    EXPECT_EQ(lines[3], "f:6:9: slots: must be between 1 and 16777216");
    EXPECT_EQ(lines[4].substr(0, 4), "f:7:");
    EXPECT_EQ(lines[5], "f:8:1: unknown key \"foo\" in a pool");
}

TEST(Config, LooksNoFurtherWhereSixteenLinesAreNoToml) {
    std::string words;
    for (int i = 0; i < 100; ++i)
        words += "no toml at all\n";
    const Lines lines = mistakes(words);
    ASSERT_EQ(lines.size(), 16U);
    EXPECT_TRUE(lines.back().starts_with("f:16:"));
    EXPECT_TRUE(lines.back().ends_with("; what stands behind it is not looked at"));
}

TEST(Config, SaysNothingThatOnlyFollowsFromAMistake) {
    EXPECT_EQ(mistakes("[[pool]\nname = \"a\"\nzzzzzz = 1\n").size(), 1U);
    EXPECT_EQ(mistakes(kPool + "attributes = [{ device = \"0\" }\nzzzzzz = 1\n").size(), 1U);
}

TEST(Config, ReadsTheKeysOfAPoolWhoseKindIsUnknown) {
    EXPECT_EQ(mistakes("[[pool]]\nname = \"a\"\nslots = \"2\"\nanswer_max = -1\n"),
              (Lines{"f:1:1: a pool has no \"kind\"",
                     "f:3:9: slots: must be an integer, is a string",
                     "f:4:14: answer_max: must be between 0B and 16KiB"}));
}

TEST(Config, SaysWhatTypeAKeyHas) {
    EXPECT_EQ(mistakes("socket = 3\n"), Lines{"f:1:10: socket: must be a string, is an integer"});
    EXPECT_EQ(mistakes("peer_pidfd = \"no\"\n"),
              Lines{"f:1:14: peer_pidfd: must be true or false, is a string"});
    EXPECT_EQ(mistakes("drain_timeout = 3\n"),
              Lines{"f:1:17: drain_timeout: must be a duration in quotes, such as \"2s\", is an "
                    "integer"});
    EXPECT_EQ(mistakes(kPool + "units_max = \"3\"\n"),
              Lines{"f:5:13: units_max: must be an integer, is a string"});
    EXPECT_EQ(mistakes(kPool + "payload_max = 1.5\n"),
              Lines{"f:5:15: payload_max: must be a size in bytes, or text such as \"64KiB\", is a "
                    "float"});
    EXPECT_EQ(mistakes("limits = 3\n"), Lines{"f:1:10: limits: must be a table"});
    EXPECT_EQ(mistakes("[pool]\nname = \"a\"\n"),
              Lines{"f:1:1: pool: must be an array of tables: write [[pool]]"});
    EXPECT_EQ(mistakes("pool = [3]\n"), Lines{"f:1:9: pool: must be a table: write [[pool]]"});
}

TEST(Config, SaysWhatRangeAKeyHas) {
    EXPECT_EQ(mistakes(kPool + "units_max = 257\n"),
              Lines{"f:5:13: units_max: must be between 1 and 256"});
    EXPECT_EQ(mistakes(kPool + "backlog_max = -1\n"),
              Lines{"f:5:15: backlog_max: must be between 1 and 16777216"});
    EXPECT_EQ(mistakes(kPool + "payload_max = \"17KiB\"\n"),
              Lines{"f:5:15: payload_max: must be between 0B and 16KiB"});
    EXPECT_EQ(mistakes(kWorkers + "reservation_ttl = \"0s\"\n"),
              Lines{"f:4:19: reservation_ttl: must be between 1ns and 8760h"});
    EXPECT_EQ(mistakes("[limits]\npools = 4097\n"),
              Lines{"f:2:9: pools: must be between 1 and 4096"});
}

TEST(Config, SaysHowDurationsSizesAndWordsAreWritten) {
    EXPECT_EQ(mistakes("drain_timeout = \"3 weeks\"\n"),
              Lines{"f:1:17: drain_timeout: \"3 weeks\" is not a duration: write a number with ns, "
                    "us, ms, s, min or h, such as \"250ms\""});
    EXPECT_EQ(mistakes(kPool + "payload_max = \"1KB\"\n"),
              Lines{"f:5:15: payload_max: \"1KB\" is not a size: write bytes, or a number with B, "
                    "KiB or MiB"});
    EXPECT_EQ(mistakes("log_level = \"loud\"\n"),
              Lines{"f:1:13: log_level: \"loud\" is none of \"trace\", \"debug\", \"info\", "
                    "\"warning\", \"error\", \"off\""});
    EXPECT_EQ(mistakes("socket_mode = \"0888\"\n"),
              Lines{"f:1:15: socket_mode: \"0888\" is not three octal digits, such as \"0660\""});
}

TEST(Config, MissesWhatAPoolMustHave) {
    EXPECT_EQ(mistakes("[[pool]]\nkind = \"worker\"\n"), Lines{"f:1:1: a pool has no \"name\""});
    EXPECT_EQ(mistakes("[[pool]]\nname = \"a\"\n"), Lines{"f:1:1: a pool has no \"kind\""});
    EXPECT_EQ(mistakes("[[pool]]\nname = \"a\"\nkind = \"counted\"\n"),
              Lines{"f:1:1: a pool has no \"slots\""});
}

TEST(Config, RefusesNamesThatAreNone) {
    EXPECT_EQ(mistakes("[[pool]]\nname = \"\"\nkind = \"worker\"\n"),
              Lines{"f:2:8: name: a pool's name has 1 to 63 letters, digits, \".\", \"_\" and "
                    "\"-\", a letter first"});
    for (const char* name : {"a b", "a/b", "a:1", "7", "-a"}) {
        EXPECT_EQ(
            mistakes("[[pool]]\nname = \"" + std::string(name) + "\"\nkind = \"worker\"\n").size(),
            1U)
            << name;
    }
    EXPECT_EQ(
        mistakes("[[pool]]\nname = \"" + std::string(64, 'n') + "\"\nkind = \"worker\"\n").size(),
        1U);
    EXPECT_EQ(
        mistakes("[[pool]]\nname = \"" + std::string(63, 'n') + "\"\nkind = \"worker\"\n").size(),
        0U);
}

TEST(Config, RefusesTwoPoolsOfOneName) {
    EXPECT_EQ(mistakes(kPool + kPool), Lines{"f:6:8: a second pool \"a\"; the first is in line 2"});
}

TEST(Config, RefusesWhatAPoolOfThatKindDoesNotHave) {
    EXPECT_EQ(mistakes(kPool + "reservation_ttl = \"1s\"\n"),
              Lines{"f:5:1: reservation_ttl: only a worker pool has it; this one is counted"});
    EXPECT_EQ(mistakes(kPool + "answer_max = 3\n"),
              Lines{"f:5:1: answer_max: nobody answers behind a counted pool"});
    EXPECT_EQ(mistakes(kWorkers + "slots = 3\n"),
              Lines{"f:4:1: slots: a worker pool has the slots that its workers announce"});
}

TEST(Config, RefusesMoreThanTheLimitsHold) {
    EXPECT_EQ(mistakes("[limits]\nslots = 1\n" + kPool),
              Lines{"f:3:1: the counted pools have 2 slots together, but limits.slots is 1"});
    EXPECT_EQ(mistakes("[limits]\nslots = 2\n" + kPool + "resources = { sm = 1 }\n"),
              Lines{"f:3:1: the counted pools have all 2 slots of limits.slots: pool \"a\" has "
                    "resources, and each part of a slot takes one"});
    EXPECT_EQ(mistakes(kPool + "attributes = [{}, {}, {}]\n"),
              Lines{"f:5:14: attributes: for 3 slots, but the pool has 2"});
    EXPECT_EQ(mistakes(kPool + "attributes_max = 3\nattributes = [{ a = \"12\" }]\n"),
              Lines{"f:5:18: attributes_max: the longest attributes of a slot take 5 bytes"});
    EXPECT_EQ(mistakes("[limits]\narena = 512\n" + kPool +
                       "attributes = [{ a = \"1\" }, { a = \"2\" }]\n"),
              Lines{"f:3:1: the attributes of all slots take 1KiB, but limits.arena is 512B"});
    std::string many;
    for (int slot = 0; slot < 201; ++slot)
        many += "{ a = \"1\" },";
    EXPECT_EQ(mistakes("[[pool]]\nname = \"a\"\nkind = \"counted\"\nslots = 300\nattributes = [" +
                       many + "]\n"),
              Lines{"f:5:14: attributes: for 201 slots; at most the first 200 can have any"});
    EXPECT_EQ(mistakes(kPool + "attributes = [{ a = \"" + std::string(16382, 'x') + "\" }]\n"),
              Lines{"f:5:14: attributes: one slot's take 16385 bytes, more than 16384"});
}

TEST(Config, ReportsEveryMistakeAndNotOnlyTheFirst) {
    EXPECT_EQ(mistakes("socket = 1\nlog_level = 2\nx = 3\n").size(), 3U);
}

TEST(Config, SaysThatAFileCannotBeRead) {
    EXPECT_EQ(read_config("/nonexistent/f").mistakes,
              Lines{"/nonexistent/f: cannot be read: No such file or directory"});
}

TEST(Quantity, ReadsAndShowsDurations) {
    EXPECT_EQ(parse_duration("250ms"), 250'000'000U);
    EXPECT_EQ(parse_duration("1min30s"), 90'000'000'000U);
    EXPECT_EQ(parse_duration("2h"), 7'200'000'000'000U);
    EXPECT_FALSE(parse_duration("2"));
    EXPECT_FALSE(parse_duration("s"));
    EXPECT_FALSE(parse_duration("-1s"));
    EXPECT_FALSE(parse_duration("99999999999999999999s"));
    EXPECT_FALSE(parse_duration("18446744074s"));
    EXPECT_EQ(show_duration(1'500'000), "1500us");
    EXPECT_EQ(show_duration(0), "0ns");
}

TEST(Quantity, ReadsAndShowsSizes) {
    EXPECT_EQ(parse_size("4096"), 4096U);
    EXPECT_EQ(parse_size("64KiB"), 65536U);
    EXPECT_FALSE(parse_size("64kb"));
    EXPECT_EQ(show_size(65536), "64KiB");
}

TEST(Quantity, SaysWhatIsWrongWithASize) {
    EXPECT_EQ(no_size("-1KiB", 4096), "it is negative");
    EXPECT_EQ(no_size("5KiB", 4096), "it is too large: 4096 is the most");
    EXPECT_EQ(no_size("99999999999999999999TiB", 4096), "it is too large: 4096 is the most");
    EXPECT_EQ(no_size("5kb", 4096),
              "\"kb\" is not a unit: write KiB, MiB, GiB or TiB, or a number alone");
    for (const std::string_view text : {"", "x", "1.5", "-x"})
        EXPECT_EQ(no_size(text, 4096), "");
}

}  // namespace
}  // namespace dibs
