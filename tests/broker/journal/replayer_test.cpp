// tests/broker/journal/replayer_test.cpp -- what the undo log cuts is not seen in what is decided.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/replayer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "broker/journal/journal_reader.hpp"
#include "broker/journal/journal_size.hpp"
#include "broker/journal/state_text.hpp"

namespace dibs::ctl {
namespace {

// Decisions and final rows, with an undo log of so many images.
std::vector<std::string> replayed(const std::string& journal, uint32_t log_images) {
    JournalReader reader(journal, JournalForm::kJson);
    core::Limits limits = limits_of(reader);
    limits.log_images = log_images;
    limits.accounts = 1;  // of which each would bring the log as many more
    Replayer replayer(limits);
    std::vector<std::string> lines;
    while (const journal::Line* line = reader.next()) {
        replayer.apply(*line);
        for (std::string& decision : replayer.take_decisions())
            lines.push_back(std::move(decision));
    }
    replayer.finish();
    EXPECT_EQ(replayer.core().check_all(), std::vector<std::string>{});
    for (std::string& row : state_text(replayer.core(), replayer.name_map())) {
        lines.push_back(std::move(row));
    }
    return lines;
}

std::string claims(const std::string& session, const std::string& prefix, int count, bool expire) {
    std::string journal;
    for (int i = 0; i < count; ++i) {
        journal += R"({"claim":{"session":")" + session + R"(","claim":")" + prefix +
                   std::to_string(i) + R"(","pool":"gpu",)" +
                   (expire ? R"("interval_ns":100}})" : R"("timeout_ns":1000}})") + "\n";
        if (i % 100 == 99) journal += "{\"turn\":{}}\n";
    }
    return journal;
}

void expect_the_same(const std::string& journal, size_t decisions_at_least) {
    const std::vector<std::string> whole = replayed(journal, 262144);
    const std::vector<std::string> cut = replayed(journal, 2048);
    EXPECT_GT(whole.size(), decisions_at_least);
    ASSERT_EQ(cut.size(), whole.size());
    for (size_t place = 0; place < whole.size(); ++place) {
        ASSERT_EQ(cut[place], whole[place]) << place;
    }
}

const std::string kManySlots = R"({"pool":{"name":"gpu","slots":1000}}
{"session":{"name":"alice"}}
{"session":{"name":"bob"}}
{"turn":{}}
)";

TEST(Replayer, ShowsNoCutWhenAThousandLeasesExpireAtOnce) {
    expect_the_same(kManySlots + claims("alice", "a", 1000, true) +
                        claims("bob", "b", 1000, false) +
                        R"({"advance":{"to_ns":101}})"
                        "\n{\"turn\":{}}\n",
                    3000);
}

TEST(Replayer, ShowsNoCutWhenASessionDiesWithAThousandLeases) {
    expect_the_same(kManySlots + claims("alice", "a", 1000, false) +
                        claims("bob", "b", 1000, false) +
                        R"({"session_dies":{"session":"alice"}})"
                        "\n{\"turn\":{}}\n",
                    2000);
}

TEST(Replayer, ShowsNoCutWhenAThousandClaimsPassTheirDeadline) {
    expect_the_same(kManySlots + claims("alice", "a", 1000, false) +
                        claims("bob", "b", 1000, false) +
                        R"({"advance":{"to_ns":1001}})"
                        "\n{\"turn\":{}}\n",
                    2000);
}

TEST(Replayer, ShowsNoCutWhenADrainAnswersAThousandClaims) {
    expect_the_same(kManySlots + claims("alice", "a", 1000, false) +
                        claims("bob", "b", 1000, false) +
                        R"({"drain":{}})"
                        "\n{\"turn\":{}}\n",
                    2000);
}

// A turn that has no room left when it has opened takes no command before it has some.
TEST(Replayer, ShowsNoCutWhenFourThousandKeptSlotsAreIdleAsATurnOpens) {
    std::string journal = R"({"pool":{"name":"gpu","kind":"worker","backlog_max":4500,)"
                          R"("unconfirmed_max":4500}})"
                          "\n"
                          R"({"session":{"name":"alice"}})"
                          "\n"
                          R"({"session":{"name":"worker"}})"
                          "\n";
    std::string refusals;
    for (int i = 0; i < 4500; ++i) {
        const std::string slot = R"("slot":"s)" + std::to_string(i) + "\"";
        const std::string turn = i % 100 == 99 ? "{\"turn\":{}}\n" : "";
        journal += R"({"announce":{"session":"worker","pool":"gpu","ready":true,)" + slot + "}}\n";
        refusals += R"({"refuse":{"try_again":true,)" + slot + "}}\n" + turn;
        journal += turn;
    }
    journal += claims("alice", "a", 4500, true) + refusals +
               R"({"session_dies":{"session":"alice"}}
{"turn":{}}
{"advance":{"to_ns":2000000000}}
{"announce":{"session":"worker","pool":"gpu","slot":"last","ready":true}}
{"session":{"name":"bob"}}
{"claim":{"session":"bob","claim":"b","pool":"gpu"}}
{"turn":{}}
)";
    expect_the_same(journal, 18'000);
}

TEST(Replayer, ShowsNoCutWhenAPoolOfTwentyThousandSlotsIsMade) {
    std::string journal = R"({"pool":{"name":"gpu","slots":20000}})"
                          "\n"
                          R"({"session":{"name":"alice"}})"
                          "\n";
    for (int i = 0; i < 80; ++i) {
        journal += R"({"claim":{"session":"alice","claim":"c)" + std::to_string(i) +
                   R"(","pool":"gpu","units":250}})"
                   "\n";
        if (i % 4 == 3) journal += "{\"turn\":{}}\n";
    }
    expect_the_same(journal, 20000);
}

}  // namespace
}  // namespace dibs::ctl
