// tests/sim/sim_test.cpp -- plays, each from its own seed.
//
// DIBS_SEED=N plays that one alone, DIBS_SIM_COMMANDS says how many commands all plays have
// together, DIBS_SIM_PLAY how many each has.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "tests/sim/play.hpp"

namespace dibs::sim {
namespace {

uint64_t number(const char* name, uint64_t otherwise) {
    const char* given = std::getenv(name);
    return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

uint64_t commands_of_a_play() {
    return number("DIBS_SIM_PLAY", 10'000);
}

void expect_good(uint64_t seed, const Outcome& outcome) {
    for (const std::string& wrong : outcome.wrongs)
        ADD_FAILURE() << wrong;
    if (outcome.wrongs.empty()) return;
    std::printf(
        "replay: DIBS_SEED=%llu DIBS_SIM_PLAY=%llu tests/sim/sim_test"
        " --gtest_filter=Simulation.LosesNothingAndGrantsNothingTwice\n  %s\n",
        static_cast<unsigned long long>(seed),
        static_cast<unsigned long long>(commands_of_a_play()),
        outcome.character.c_str());
}

TEST(Simulation, LosesNothingAndGrantsNothingTwice) {
    const bool one = std::getenv("DIBS_SEED") != nullptr;
    const bool is_long = std::getenv("DIBS_LONG") != nullptr;
    const uint64_t wanted = number("DIBS_SIM_COMMANDS", is_long ? 100'000'000 : 1'000'000);
    const uint64_t first = number("DIBS_SEED", number("DIBS_FIRST_SEED", 1));
    uint64_t commands = 0;
    uint64_t faults = 0;
    uint64_t deaths = 0;
    std::map<std::string, uint64_t> seen;
    uint64_t seed = first;
    for (; commands < wanted && !HasFailure() && (!one || seed == first); ++seed) {
        const Outcome outcome = play(seed, commands_of_a_play());
        expect_good(seed, outcome);
        commands += outcome.commands;
        faults += outcome.faults;
        deaths += outcome.deaths;
        for (const auto& [what, times] : outcome.seen)
            seen[what] += times;
        if (one) {
            std::printf("%s\nhash %016llx, the net found %llu\n",
                        outcome.character.c_str(),
                        static_cast<unsigned long long>(outcome.hash),
                        static_cast<unsigned long long>(outcome.net_found_work));
        }
    }
    std::printf("seeds %llu to %llu (DIBS_SEED): %llu commands, %llu faults, %llu broker deaths\n",
                static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(seed - 1),
                static_cast<unsigned long long>(commands),
                static_cast<unsigned long long>(faults),
                static_cast<unsigned long long>(deaths));
    for (const auto& [what, times] : seen)
        std::printf("  %s: %llu\n", what.c_str(), static_cast<unsigned long long>(times));
    if (one || wanted < 1'000'000) return;
    EXPECT_GE(faults, 1000U);
    EXPECT_GE(deaths, 10U);
    for (const char* what : {"granted",
                             "expired",
                             "cancelled",
                             "rejected",
                             "revoked",
                             "grace",
                             "revoking",
                             "lease taken",
                             "requeued",
                             "adopted",
                             "taken again",
                             "recalled",
                             "wanted",
                             "found parked",
                             "found touched",
                             "found taken",
                             "killed",
                             "died behind a store",
                             "stood still and went on",
                             "takeovers audited",
                             "promoted",
                             "demoted",
                             "demoted to the free class",
                             "preempted",
                             "reported worker gone",
                             "waits again",
                             "above a limit of later",
                             "a fan-out of several sets",
                             "set an account",
                             "reset an account",
                             "delete an account",
                             "file read again",
                             "pulled",
                             "to provision",
                             "to abort",
                             "report idle",
                             "report running",
                             "report absent",
                             "unassign",
                             "announce again",
                             "release anybody's lease",
                             "cancel anybody's claim"}) {
        EXPECT_GT(seen[what], 0U) << what;
    }
}

TEST(Simulation, PlaysTheSameStoryFromTheSameSeed) {
    for (const uint64_t seed : {7U, 8U, 9U}) {
        const Outcome once = play(seed, 3000);
        const Outcome again = play(seed, 3000);
        EXPECT_EQ(once.hash, again.hash) << "seed " << seed;
        EXPECT_EQ(once.commands, again.commands);
        EXPECT_EQ(once.faults, again.faults);
    }
    EXPECT_NE(play(7, 3000).hash, play(8, 3000).hash);
}

}  // namespace
}  // namespace dibs::sim
