// tests/broker/core/match/crowds_test.cpp -- so many kinds of claims that the empty ones are looked
// for: whoever waits keeps its labels, and so does the claim that brings the next kind.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>
#include <vector>

#include "broker/core/match/account_book.hpp"
#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {
namespace {

using Labels = std::vector<std::string_view>;

constexpr uint32_t kMany = 4096;
constexpr uint16_t kUnits = 256;
constexpr uint32_t kTags = 1024;  // of a session
static_assert(kMany == core::AccountBook::kSweepAt && kMany % kUnits == 0);

struct Crowds : CoreFixture {
    Crowds() {
        core::PoolConfig config;
        config.name = "farm";
        config.kind = shm::PoolKind::kWorker;
        config.order = shm::PoolOrder::kAccount;
        config.unconfirmed_max = kUnits;
        config.backlog_max = 2 * kMany;
        turn(0, [&] { farm = core().set_pool(config, nullptr); });
        for (uint32_t& client : clients)
            client = session();
    }

    void ask(const Labels& labels, uint16_t units, core::TimeNs timeout_ns) {
        const core::ClaimTerms terms{.labels = labels};
        core::Claim command;
        command.session = clients[asked / kTags % clients.size()];
        command.tag = static_cast<uint16_t>(asked++ % kTags);
        command.pool = farm;
        command.units = units;
        command.timeout_ns = timeout_ns;
        command.terms = &terms;
        core().apply(command);
    }
    // So many, each of a kind of its own, with a label of 256 of them.
    void ask_in_many_ways(uint32_t count, core::TimeNs timeout_ns) {
        for (uint32_t i = 0; i < count;) {
            const std::string label = "label" + std::to_string(i / kUnits);
            turn(1000, [&] {
                do
                    ask({label}, static_cast<uint16_t>(1 + i % kUnits), timeout_ns);
                while (++i % 64 != 0 && i < count);
            });
        }
    }
    void report(const char* worker, const Labels& labels) {
        core().apply(core::Report{
            .kind = core::Report::Kind::kIdle, .pool = farm, .worker = worker, .labels = labels});
    }
    // Claims that wait for a worker.
    uint32_t waiting() { return core().pool(farm).waiting; }

    uint32_t farm = shm::kNoRow;
    std::array<uint32_t, 5> clients{};
    uint32_t asked = 0;
};

TEST_F(Crowds, TheNextKindKeepsTheLabelsItCameWith) {
    ask_in_many_ways(kMany, 0);
    turn(2000, [&] { ask({"the next"}, 1, shm::kNever); });
    turn(3000, [&] { report("other", {"zebra"}); });
    EXPECT_EQ(waiting(), 1U);
    turn(4000, [&] { report("own", {"the next"}); });
    EXPECT_EQ(waiting(), 0U);
}

TEST_F(Crowds, AClaimThatIsChangedKeepsTheLabelsItHad) {
    ask_in_many_ways(kMany - 1, 0);
    turn(2000, [&] {
        ask({"kept"}, 1, shm::kNever);
        report("first", {"kept", "more"});
    });
    EXPECT_EQ(waiting(), 0U);
    const uint64_t number = core().counters().arrival_next - 1;
    turn(3000, [&] {
        const Labels preferred = {"preferred"};
        core().apply(core::UpdateClaim{
            .claim = number, .provisionable_given = true, .provisionable = preferred});
    });
    turn(4000, [&] { report("other", {"zebra"}); });
    EXPECT_EQ(waiting(), 1U);
    turn(5000, [&] { report("own", {"kept"}); });
    EXPECT_EQ(waiting(), 0U);
}

TEST_F(Crowds, AllThatWaitKeepTheirLabelsBehindADeath) {
    ask_in_many_ways(kMany + 2 * kUnits, shm::kNever);
    attach();
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
    const uint32_t all = waiting();
    const std::string last = "label" + std::to_string(kMany / kUnits + 1);
    turn(2000, [&] { report("own", {last}); });
    EXPECT_EQ(waiting(), all - 1);
}

}  // namespace
}  // namespace dibs::tests
