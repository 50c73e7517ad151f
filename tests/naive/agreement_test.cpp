// tests/naive/agreement_test.cpp -- the core and the naive core decide the same, on random
// journals: of pools ordered by arrival, by priority and by account, of elastic pools and of
// dispatched ones; and what the core decides is what the statements say.
//
//   DIBS_SEED=n        plays journal n alone; each attempt in a process of its own
//   DIBS_FIRST_SEED=n  starts there instead of at 1
//   DIBS_JOURNALS=n    plays n journals of pools ordered by arrival, DIBS_PRIORITY_JOURNALS=n by
//                      priority, DIBS_ACCOUNT_JOURNALS=n by account, DIBS_ELASTIC_JOURNALS=n of
//                      elastic ones, DIBS_DISPATCH_JOURNALS=n of dispatched ones,
//                      DIBS_SEVERAL_JOURNALS=n with claims over several pools,
//                      DIBS_GANG_JOURNALS=n of applications and gangs,
//                      DIBS_ELASTIC_GANG_JOURNALS=n of those in elastic pools
//   DIBS_SWF=file      plays the jobs of this trace (Standard Workload Format) as gangs
//   DIBS_LONG=1        plays twenty times as many as usual
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "tests/naive/journal_generator.hpp"
#include "tests/naive/journal_of_trace.hpp"
#include "tests/naive/journal_shrinker.hpp"
#include "tests/naive/lockstep.hpp"

namespace dibs::naive {

namespace {

constexpr uint64_t kJournals = 1000;
constexpr uint64_t kJournalsOfAccounts = 200;
constexpr uint64_t kJournalsOfPriorities = 200;
constexpr uint64_t kJournalsOfElasticPools = 200;
constexpr uint64_t kJournalsOfDispatchedPools = 200;
constexpr uint64_t kJournalsOfSeveralPools = 300;
constexpr uint64_t kJournalsOfGangs = 200;
constexpr uint64_t kJournalsOfElasticGangs = 100;
constexpr size_t kSteps = 800;

uint64_t from_environment(const char* name, uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string listed(const char* whose, const std::vector<std::string>& lines) {
    std::string text = std::string("\n") + whose + " decided:";
    for (const std::string& line : lines)
        text += "\n    " + line;
    return text;
}

std::string written(const Journal& journal, size_t from, size_t to) {
    std::string text;
    for (size_t i = from; i < std::min(to, journal.steps.size()); ++i) {
        text += "\n    " + to_string(journal.steps[i]);
    }
    return text;
}

// The journal's pools, its last steps before the disagreement, and what either core decided.
std::string report(const Journal& journal, const Disagreement& found, size_t tail) {
    std::string text = found.what;
    for (size_t i = 0; i < journal.pools.size(); ++i) {
        text += "\n  pool " + std::to_string(i) + ": " + to_string(journal.pools[i]);
    }
    text += "\n  limits: slots " + std::to_string(journal.limits.slots) + ", claims " +
            std::to_string(journal.limits.claims) + ", leases " +
            std::to_string(journal.limits.leases) + ", arena blocks " +
            std::to_string(journal.limits.arena_blocks);
    text +=
        "\n  steps:" + written(journal, found.step - std::min(found.step, tail), found.step + 1);
    return text + listed("the core", found.real) + listed("the naive core", found.naive);
}

// What to read first: the smallest journal on which they disagree.
void explain(const Journal& journal) {
    const Journal smallest = shrink(journal);
    std::cout << "seed " << journal.seed << ", shrunk to " << smallest.steps.size()
              << " steps:" << written(smallest, 0, smallest.steps.size()) << std::endl;
    Coverage coverage;  // an assertion that fails in here fails with its journal above it
    const auto found = play_both(smallest, &coverage);
    if (found) std::cout << report(smallest, *found, 0) << std::endl;
}

std::atomic<uint64_t> g_seed = 0;

// A failed assertion of the core ends the process: say which journal it was.
extern "C" void say_seed(int /*signal*/) {
    char text[80];
    const int size = std::snprintf(text,
                                   sizeof text,
                                   "the process died in the journal: DIBS_SEED=%" PRIu64 "\n",
                                   g_seed.load());
    if (write(STDERR_FILENO, text, static_cast<size_t>(size)) < 0) _exit(3);
}

// Every kind of decision and every reason that the core can give has to be seen, or the journals
// test less than they seem to.
constexpr const char* kMustBeSeen[] = {"adopted",
                                       "announced",
                                       "answer",
                                       "assign",
                                       "demand",
                                       "drained",
                                       "end cancelled holder-gone",
                                       "end cancelled ok",
                                       "end expired ok",
                                       "end rejected arena-full",
                                       "end rejected backlog-full",
                                       "end rejected busy",
                                       "end rejected cold",
                                       "end rejected draining",
                                       "end rejected duplicate",
                                       "end rejected limit",
                                       "end rejected malformed",
                                       "end rejected no-room",
                                       "end rejected offer-expired",
                                       "end rejected payload",
                                       "end rejected refused",
                                       "end rejected tables-full",
                                       "end rejected too-many-units",
                                       "end rejected unavailable",
                                       "end rejected unknown-pool",
                                       "end rejected vector",
                                       "grant",
                                       "grant may-park",
                                       "kill",
                                       "lease-end adopted",
                                       "lease-end done",
                                       "lease-end expired-lease",
                                       "lease-end worker-lost",
                                       "lease-grace",
                                       "recalled",
                                       "result already-ended",
                                       "result arena-full",
                                       "result ended",
                                       "result expired-lease",
                                       "result limit",
                                       "result malformed",
                                       "result name-in-use",
                                       "result not-allowed",
                                       "result not-found",
                                       "result not-holder",
                                       "result ok",
                                       "result payload",
                                       "result stale",
                                       "result state",
                                       "touched",
                                       "result tables-full",
                                       "result unkillable",
                                       "result unknown-pool",
                                       "revoke",
                                       "slot-gone"};

constexpr const char* kMustBeSeenOfAccounts[] = {"adopted",
                                                 "demote",
                                                 "end cancelled worker-lost",
                                                 "kill",
                                                 "lease-end done",
                                                 "lease-end holder-gone",
                                                 "lease-end revoked",
                                                 "lease-end worker-lost",
                                                 "lease-grace",
                                                 "preempt",
                                                 "promote",
                                                 "pulled",
                                                 "refund",
                                                 "slot-gone"};

constexpr const char* kMustBeSeenOfPriorities[] = {"end rejected busy", "end rejected draining"};

constexpr const char* kMustBeSeenOfElasticPools[] = {"announced",
                                                     "create",
                                                     "create wide",
                                                     "end rejected unavailable",
                                                     "end rejected draining",
                                                     "result name-in-use",
                                                     "result not-found",
                                                     "result not-holder",
                                                     "result state",
                                                     "slot-gone",
                                                     "stop"};

constexpr const char* kMustBeSeenOfElasticGangs[] = {"create",
                                                     "placeholder bound",
                                                     "placeholder lost",
                                                     "placeholder released",
                                                     "placeholder replaced",
                                                     "stop"};

constexpr const char* kMustBeSeenOfDispatchedPools[] = {"create",
                                                        "end cancelled limit",
                                                        "end cancelled ok",
                                                        "end rejected unavailable",
                                                        "forget",
                                                        "kill-process",
                                                        "lock",
                                                        "result busy",
                                                        "result not-found",
                                                        "result state",
                                                        "result tables-full",
                                                        "slot-gone",
                                                        "start",
                                                        "stop",
                                                        "unlock"};

constexpr const char* kMustBeSeenOfSeveralPools[] = {"adopted further",
                                                     "answer further",
                                                     "end rejected busy",
                                                     "end rejected draining",
                                                     "end rejected malformed",
                                                     "end rejected refused",
                                                     "end rejected state",
                                                     "end rejected too-many-units",
                                                     "grant further",
                                                     "kill",
                                                     "lease-end done",
                                                     "lease-end expired-lease",
                                                     "lease-end worker-lost",
                                                     "lease-grace"};

constexpr const char* kMustBeSeenOfGangs[] = {"application draining",
                                              "application malformed",
                                              "application manager-gone",
                                              "application ok",
                                              "application reservation-failed",
                                              "application reservation-time-out",
                                              "application too-many-units",
                                              "end rejected app-ended",
                                              "end rejected duplicate",
                                              "end rejected ended",
                                              "end rejected tables-full",
                                              "placeholder bound",
                                              "placeholder lost",
                                              "placeholder released",
                                              "placeholder replaced",
                                              "result app-ended",
                                              "result duplicate",
                                              "result tables-full",
                                              "task"};

// All statements of S0 but those of the router over pools, 35 to 38, which comes later.
constexpr size_t kMustBeTested[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13,
                                    14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
                                    27, 28, 29, 30, 31, 32, 33, 34, 39, 40, 41};

void play_journals(Flavour flavour,
                   const char* count,
                   uint64_t usual,
                   std::span<const char* const> must_be_seen,
                   std::span<const size_t> must_be_tested) {
    const uint64_t only = from_environment("DIBS_SEED", 0);
    if (only != 0) {
        const Journal journal = generate_journal(only, kSteps, flavour);
        if (still_disagrees(journal)) {
            explain(journal);
            FAIL() << "seed " << only;
        }
        return;
    }
    const uint64_t first = from_environment("DIBS_FIRST_SEED", 1);
    const uint64_t factor = from_environment("DIBS_LONG", 0) != 0 ? 20 : 1;
    const uint64_t journals = from_environment(count, factor * usual);
    const auto previous = std::signal(SIGABRT, say_seed);
    Coverage coverage;
    for (uint64_t seed = first; seed < first + journals; ++seed) {
        g_seed = seed;
        const Journal journal = generate_journal(seed, kSteps, flavour);
        const auto found = play_both(journal, &coverage);
        if (!found) continue;
        std::cout << "seed " << seed << ": " << report(journal, *found, 60) << std::endl;
        explain(journal);
        FAIL() << "the cores disagree: DIBS_SEED=" << seed;
    }
    std::signal(SIGABRT, previous);
    std::cout << coverage.journals << " journals from seed " << first << ", " << coverage.commands
              << " commands, " << coverage.turns << " turns, " << coverage.cuts << " cut, "
              << coverage.full << " full, " << coverage.restarts << " restarts\n";
    for (const auto& [what, times] : coverage.seen)
        std::cout << "  " << what << ' ' << times << '\n';
    for (size_t statement = 1; statement < kStatements; ++statement)
        std::cout << "  S0." << statement << " put to the test " << coverage.tested[statement]
                  << '\n';
    for (const char* what : must_be_seen)
        EXPECT_GT(coverage.seen[what], 0U) << what;
    for (const size_t statement : must_be_tested)
        EXPECT_GT(coverage.tested[statement], 0U) << "S0." << statement;
    // One turn in 200,000 of elastic pools, which have few workers, is more than the log holds, and
    // of claims by priority few more.
    const bool has_few = flavour == Flavour::kElastic || flavour == Flavour::kPriorities ||
                         flavour == Flavour::kDispatched || flavour == Flavour::kElasticGangs;
    EXPECT_TRUE(coverage.cuts != 0 || has_few);
    EXPECT_GT(coverage.restarts, 0U);
}

}  // namespace

TEST(Agreement, DecidesAsTheNaiveCoreOnRandomJournals) {
    play_journals(Flavour::kArrival, "DIBS_JOURNALS", kJournals, kMustBeSeen, kMustBeTested);
}

TEST(Agreement, DecidesAsTheNaiveCoreInPoolsOrderedByPriority) {
    play_journals(Flavour::kPriorities,
                  "DIBS_PRIORITY_JOURNALS",
                  kJournalsOfPriorities,
                  kMustBeSeenOfPriorities,
                  {});
}

TEST(Agreement, DecidesAsTheNaiveCoreInPoolsOrderedByAccount) {
    play_journals(Flavour::kAccounts,
                  "DIBS_ACCOUNT_JOURNALS",
                  kJournalsOfAccounts,
                  kMustBeSeenOfAccounts,
                  {});
}

TEST(Agreement, DecidesAsTheNaiveCoreInElasticPools) {
    play_journals(Flavour::kElastic,
                  "DIBS_ELASTIC_JOURNALS",
                  kJournalsOfElasticPools,
                  kMustBeSeenOfElasticPools,
                  {});
}

TEST(Agreement, DecidesAsTheNaiveCoreOverSeveralPools) {
    play_journals(Flavour::kSeveral,
                  "DIBS_SEVERAL_JOURNALS",
                  kJournalsOfSeveralPools,
                  kMustBeSeenOfSeveralPools,
                  {});
}

TEST(Agreement, DecidesAsTheNaiveCoreOnApplicationsAndGangs) {
    play_journals(Flavour::kGangs, "DIBS_GANG_JOURNALS", kJournalsOfGangs, kMustBeSeenOfGangs, {});
}

TEST(Agreement, DecidesAsTheNaiveCoreOnGangsInElasticPools) {
    play_journals(Flavour::kElasticGangs,
                  "DIBS_ELASTIC_GANG_JOURNALS",
                  kJournalsOfElasticGangs,
                  kMustBeSeenOfElasticGangs,
                  {});
}

// On each of 120 nodes of two processors. $DIBS_SWF is a trace, instead of jobs that are made up.
TEST(Agreement, DecidesAsTheNaiveCoreOnJobsThatAreGangs) {
    std::vector<TraceJob> jobs = made_jobs(1, 200);
    if (const char* path = std::getenv("DIBS_SWF"); path != nullptr) {
        std::ifstream file(path);
        jobs = read_swf(file);
    }
    ASSERT_FALSE(jobs.empty());
    const GangJournal gangs = gangs_of(jobs, 120);
    EXPECT_EQ(gangs.started, jobs.size());
    EXPECT_EQ(gangs.most_partial, 1U);
    Coverage coverage;
    if (const auto found = play_both(gangs.journal, &coverage); found)
        FAIL() << report(gangs.journal, *found, 60);
    const uint64_t waited_s =
        std::accumulate(gangs.waits_s.begin(), gangs.waits_s.end(), uint64_t{0});
    std::cout << jobs.size() << " gangs, " << coverage.turns << " turns, waited "
              << waited_s / jobs.size() << " s on average\n";
}

TEST(Agreement, DecidesAsTheNaiveCoreInDispatchedPools) {
    play_journals(Flavour::kDispatched,
                  "DIBS_DISPATCH_JOURNALS",
                  kJournalsOfDispatchedPools,
                  kMustBeSeenOfDispatchedPools,
                  {});
}

}  // namespace dibs::naive
