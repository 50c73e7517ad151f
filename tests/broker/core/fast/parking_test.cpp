// tests/broker/core/fast/parking_test.cpp -- what the word of a lease changes, and when a lease is
// recalled because claims wait.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {
namespace {

using core::Decision;
using core::DecisionKind;
using core::Harvest;
using shm::Reason;

constexpr core::TimeNs kQuantum = 1'000'000;

class Parking : public CoreFixture {
  protected:
    uint32_t parking_pool(uint32_t slots, core::TimeNs quantum_ns = kQuantum) {
        core::PoolConfig config;
        config.name = "pool";
        config.slots = slots;
        config.quantum_ns = quantum_ns;
        config.units_max = 2;
        uint32_t row = shm::kNoRow;
        turn(0, [&] { row = core().set_pool(config, nullptr); });
        return row;
    }
    Decision granted(core::TimeNs now, uint32_t session, uint16_t tag, uint32_t pool) {
        const auto decided = turn(now, [&] { claim(session, tag, pool); });
        EXPECT_EQ(decided.at(0).kind, DecisionKind::kGrant);
        return decided.at(0);
    }
    uint32_t parkables(uint32_t pool) {
        uint32_t count = 0;
        for (uint32_t lease = core().next_parkable(pool); lease != shm::kNoRow;
             lease = core().next_parkable(pool, lease)) {
            ++count;
        }
        return count;
    }
    void harvest(core::TimeNs now, const Harvest& what) {
        turn(now, [&] { core().apply(what); });
    }
    Reason release(core::TimeNs now, uint32_t session, uint64_t lease, uint64_t fence) {
        const auto decided = turn(now, [&] {
            core().apply(core::Release{session, false, lease, fence});
        });
        EXPECT_EQ(decided.at(0).kind, DecisionKind::kResult);
        return decided.at(0).reason;
    }
};

TEST_F(Parking, IsForClaimsThatAskForASlotAndNothingElse) {
    const uint32_t pool = parking_pool(8);
    const uint32_t client = session();
    EXPECT_TRUE(granted(1, client, 0, pool).may_park);
    const std::array<uint8_t, 3> payload = {1, 2, 3};
    uint16_t tag = 1;
    const auto asked = [&](const auto& change) {
        core::Claim command;
        command.session = client;
        command.tag = tag++;
        command.pool = pool;
        change(command);
        return turn(2, [&] { core().apply(command); }).at(0).may_park;
    };
    EXPECT_TRUE(asked([](core::Claim& claim) { claim.timeout_ns = 5; }));
    EXPECT_FALSE(asked([](core::Claim& claim) { claim.units = 2; }));
    EXPECT_FALSE(asked([](core::Claim& claim) { claim.interval_ns = kSecond; }));
    EXPECT_FALSE(asked([](core::Claim& claim) { claim.key[0] = 1; }));
    EXPECT_FALSE(asked([&](core::Claim& claim) { claim.payload = payload; }));
    EXPECT_EQ(parkables(pool), 2U);
}

TEST_F(Parking, NeedsAQuantum) {
    const uint32_t pool = parking_pool(1, 0);
    EXPECT_FALSE(granted(1, session(), 0, pool).may_park);
    EXPECT_EQ(parkables(pool), 0U);
}

TEST_F(Parking, CountsTakesAsClaimsThatWereGrantedAndReleased) {
    const uint32_t pool = parking_pool(1);
    const uint32_t client = session();
    const Decision grant = granted(1, client, 0, pool);
    harvest(7, {.lease = grant.id, .takes = 10, .parked = true});
    EXPECT_EQ(core().pool(pool).parked, 1U);
    EXPECT_EQ(core().pool(pool).granted_total, 11U);
    EXPECT_EQ(core().pool(pool).released_total, 10U);
    EXPECT_EQ(core().pool(pool).last_dispatch_ns, 7U);
    harvest(8, {.lease = grant.id, .takes = 4, .parked = false});  // less than was said: no news
    EXPECT_EQ(core().pool(pool).granted_total, 11U);
    EXPECT_EQ(core().pool(pool).parked, 0U);
    EXPECT_EQ(release(9, client, grant.id, grant.fence + 9), Reason::kAlreadyEnded);
    EXPECT_EQ(release(9, client, grant.id, grant.fence + 11), Reason::kStale);
    EXPECT_EQ(release(9, client, grant.id, grant.fence + 10), Reason::kOk);
    EXPECT_EQ(core().pool(pool).released_total, 11U);
    EXPECT_EQ(parkables(pool), 0U);
}

TEST_F(Parking, EndsAParkedLeaseThatIsRecalledAndGrantsTheSlotWithAFenceBehindItsTakes) {
    const uint32_t pool = parking_pool(1);
    const uint32_t client = session();
    const uint32_t other = session();
    const Decision grant = granted(1, client, 0, pool);
    const auto decided = turn(2, [&] {
        core().apply(Harvest{.lease = grant.id, .takes = 10, .parked = true, .recalled = true});
        claim(other, 0, pool);
    });
    ASSERT_EQ(decided.size(), 1U);
    EXPECT_EQ(decided[0].kind, DecisionKind::kGrant);
    EXPECT_EQ(decided[0].fence, grant.fence + 11);
    EXPECT_EQ(core().pool(pool).parked, 0U);
    EXPECT_EQ(release(3, client, grant.id, grant.fence + 10), Reason::kAlreadyEnded);
    EXPECT_EQ(core().lease_of_tag(client, 0), shm::kNoRow);
}

TEST_F(Parking, WantsALeaseThatIsFoundTakenUntilItIsReleased) {
    const uint32_t pool = parking_pool(1);
    const uint32_t client = session();
    const Decision grant = granted(1, client, 0, pool);
    turn(2, [&] { claim(session(1001), 0, pool); });
    harvest(3, {.lease = grant.id, .takes = 2, .parked = false, .recalled = true});
    EXPECT_EQ(core().wanted(pool), 1U);
    EXPECT_EQ(core().next_parkable(pool), shm::kNoRow);
    EXPECT_EQ(core().pool(pool).waiting, 1U);
    EXPECT_EQ(release(4, client, grant.id, grant.fence + 2), Reason::kOk);
    EXPECT_EQ(core().wanted(pool), 0U);
    EXPECT_EQ(core().pool(pool).waiting, 0U);
}

TEST_F(Parking, RecallsAQuantumAfterTheGrantOrAfterSomebodyBeganToWait) {
    const uint32_t pool = parking_pool(1);
    const uint32_t client = session();
    const uint32_t other = session(1001);
    const Decision grant = granted(10, client, 0, pool);
    EXPECT_EQ(core().recall_due(pool), shm::kNever);  // nobody waits
    turn(500, [&] { claim(other, 0, pool); });
    EXPECT_EQ(core().lacking(pool, 0), 1U);
    EXPECT_EQ(core().recall_due(pool), 500 + kQuantum);
    EXPECT_EQ(release(600, client, grant.id, grant.fence), Reason::kOk);  // the other has it now
    turn(700, [&] { claim(client, 0, pool); });
    EXPECT_EQ(core().recall_due(pool), 700 + kQuantum);
    EXPECT_EQ(core().oldest_lease(pool), core().next_parkable(pool));
}

TEST_F(Parking, RecallsOneMoreEachQuantumWhileThoseThatAreWantedDoNotComeBack) {
    const uint32_t pool = parking_pool(2);
    const uint32_t client = session();
    const Decision first = granted(1, client, 0, pool);
    granted(2, client, 1, pool);
    turn(3, [&] { claim(session(1001), 0, pool); });
    harvest(3 + kQuantum, {.lease = first.id, .takes = 0, .parked = false, .recalled = true});
    EXPECT_EQ(core().recall_due(pool), 3 + 2 * kQuantum);
    attach();  // the row says since when it is wanted
    EXPECT_EQ(core().wanted(pool), 1U);
    EXPECT_EQ(parkables(pool), 1U);
    turn(4 + kQuantum, [] {});
    EXPECT_EQ(core().recall_due(pool), 3 + 2 * kQuantum);
}

TEST_F(Parking, EndsWithAnAdoption) {
    const uint32_t pool = parking_pool(1);
    const uint32_t giver = session();
    const uint32_t taker = session();
    const Decision grant = granted(1, giver, 0, pool);
    const auto decided = turn(2, [&] {
        core().apply(Harvest{.lease = grant.id, .takes = 5, .parked = false, .recalled = true});
        core().apply(
            core::Adopt{.session = taker, .tag = 0, .lease = grant.id, .fence = grant.fence + 5});
    });
    ASSERT_EQ(decided.at(0).kind, DecisionKind::kAdopted);
    EXPECT_EQ(decided[0].fence, grant.fence + 5);
    EXPECT_EQ(parkables(pool) + core().wanted(pool), 0U);
    harvest(3, {.lease = grant.id, .takes = 50, .parked = true, .recalled = true});  // no news
    EXPECT_EQ(release(4, taker, grant.id, grant.fence + 5), Reason::kOk);
}

TEST_F(Parking, KeepsItsPlaceAmongOlderAndNewerGrantsWhenItIsAdopted) {
    const uint32_t pool = parking_pool(2);
    const uint32_t giver = session();
    const uint32_t taker = session();
    const Decision grant = granted(1, giver, 0, pool);
    const Decision newer = granted(1, giver, 1, pool);
    turn(2, [&] {
        core().apply(Harvest{.lease = grant.id, .takes = 5, .parked = true});
        core().apply(
            core::Adopt{.session = taker, .tag = 0, .lease = grant.id, .fence = grant.fence + 5});
    });
    EXPECT_EQ(core().pool(pool).parked, 0U);
    EXPECT_EQ(core().oldest_lease(pool), static_cast<uint32_t>(grant.id));
    attach();
    EXPECT_EQ(core().oldest_lease(pool), static_cast<uint32_t>(grant.id));
    EXPECT_EQ(parkables(pool), 1U);
    EXPECT_EQ(release(3, taker, grant.id, grant.fence), Reason::kAlreadyEnded);
    EXPECT_EQ(release(3, taker, grant.id, grant.fence + 5), Reason::kOk);
    EXPECT_EQ(release(3, giver, newer.id, newer.fence), Reason::kOk);
    EXPECT_EQ(granted(4, giver, 0, pool).fence, newer.fence + 5 + 1);
}

TEST_F(Parking, EndsWithItsHolder) {
    const uint32_t pool = parking_pool(2);
    const uint32_t client = session();
    const Decision grant = granted(1, client, 0, pool);
    granted(1, client, 1, pool);
    harvest(2, {.lease = grant.id, .takes = 3, .parked = true});
    turn(3, [&] { core().session_died(client); });
    EXPECT_EQ(core().pool(pool).idle, 2U);
    EXPECT_EQ(core().pool(pool).parked, 0U);
    EXPECT_EQ(parkables(pool), 0U);
    EXPECT_GT(granted(4, session(), 0, pool).fence, grant.fence + 3);
}

TEST_F(Parking, SurvivesARestartAsItWas) {
    const uint32_t pool = parking_pool(3);
    const uint32_t client = session();
    const Decision first = granted(1, client, 0, pool);
    granted(2, client, 1, pool);
    granted(3, client, 2, pool);
    harvest(4, {.lease = first.id, .takes = 3, .parked = true});
    attach();
    EXPECT_EQ(parkables(pool), 3U);
    EXPECT_EQ(core().next_parkable(pool), static_cast<uint32_t>(first.id));
    EXPECT_EQ(core().pool(pool).parked, 1U);
    EXPECT_EQ(release(5, client, first.id, first.fence + 3), Reason::kOk);
}

}  // namespace
}  // namespace dibs::tests
