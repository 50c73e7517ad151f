// tests/broker/core/fast/pledge_test.cpp -- what is told before its turn is what the turn grants,
// by whoever comes to it.
// SPDX-License-Identifier: Apache-2.0
#include "shm/ring.hpp"
#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {
namespace {

using core::Claim;
using core::Core;
using core::DecisionKind;

class Pledge : public CoreFixture {
  protected:
    Pledge() {
        pool_ = counted_pool("tokens", 2);
        session_ = session();
    }
    Claim plain(uint16_t tag) const {
        Claim claim;
        claim.session = session_;
        claim.tag = tag;
        claim.pool = pool_;
        claim.user_data = 7;
        claim.interval_ns = 500;
        claim.room = 3;
        claim.room_lines = 1;
        return claim;
    }
    // Whether the grant of the claim, the only command of a turn at `now`, can be foreseen.
    bool foreseen(const Claim& claim, core::TimeNs now = 10) {
        Core::Foreseen seen;
        core().begin_turn(now);
        const bool so = core().foresee(claim, &seen);
        core().decide();
        core().commit();
        core().clear();
        return so;
    }
    // What the claim of this tag will be told.
    shm::Completion foretold(uint16_t tag) {
        Core::Foreseen seen;
        EXPECT_TRUE(core().foresee_next(plain(tag), &seen));
        shm::Completion told;
        told.sequence = 1;
        told.user_data = 7;
        told.id = seen.lease;
        told.fence = seen.fence;
        told.value = seen.interval_ns;
        told.claim = seen.claim;
        shm::set_grant(told, 1, tag, seen.reason, 3 * 64);
        return told;
    }
    // Begins a turn at 10, pledges the claim of this tag, and leaves it at that.
    shm::Completion pledge(uint16_t tag) {
        core().begin_turn(10);
        const shm::Completion told = foretold(tag);
        core().pledge(plain(tag), told);
        return told;
    }

    uint32_t pool_ = 0;
    uint32_t session_ = 0;
};

TEST_F(Pledge, IsWhatTheTurnGrants) {
    const shm::Completion told = pledge(5);
    core().apply(plain(5));
    core().decide();
    ASSERT_EQ(core().decisions().size(), 1U);
    const core::Decision& grant = core().decisions()[0];
    EXPECT_EQ(grant.kind, DecisionKind::kGrant);
    EXPECT_TRUE(grant.pledged);
    EXPECT_EQ(grant.id, told.id);
    EXPECT_EQ(grant.fence, 1U);
    EXPECT_EQ(told.fence, 1U);
    EXPECT_EQ(grant.claim, told.claim);
    EXPECT_EQ(grant.value, 500U);
    EXPECT_EQ(core().staged_stores().size(), 1U);
    core().commit();
    core().clear();
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
    EXPECT_EQ(core().pool(pool_).leased, 1U);
    EXPECT_EQ(core().pool(pool_).accepted_total, 1U);
    EXPECT_EQ(core().pool(pool_).hit_total, 1U);
}

TEST_F(Pledge, IsForPlainClaimsThatFindAnIdleSlotAlone) {
    EXPECT_TRUE(foreseen(plain(1)));
    Claim two = plain(1);
    two.units = 2;
    EXPECT_FALSE(foreseen(two));
    Claim keyed = plain(1);
    keyed.key[0] = 1;
    EXPECT_FALSE(foreseen(keyed));
    const uint8_t byte = 0;
    Claim loaded = plain(1);
    loaded.payload = {&byte, 1};
    EXPECT_FALSE(foreseen(loaded));
    Claim astray = plain(1);
    astray.pool = 9;
    EXPECT_FALSE(foreseen(astray));
    turn(20, [&] { core().apply(plain(1)); });
    EXPECT_FALSE(foreseen(plain(1), 30)) << "the tag holds a lease";
    EXPECT_TRUE(foreseen(plain(2), 30));
    EXPECT_FALSE(foreseen(plain(2), 521)) << "a lease is due";
    turn(530, [&] {
        core().apply(plain(2));
        core().apply(plain(3));
    });
    EXPECT_EQ(core().pool(pool_).idle, 0U);
    EXPECT_FALSE(foreseen(plain(4), 540)) << "no slot is idle";
}

TEST_F(Pledge, IsNotMadeAfterAnotherCommandOfTheTurn) {
    Core::Foreseen seen;
    core().begin_turn(10);
    core().apply(plain(1));
    EXPECT_FALSE(core().foresee(plain(2), &seen));
    core().decide();
    core().commit();
    core().clear();
}

TEST_F(Pledge, IsKeptByWhoeverAttaches) {
    const shm::Completion told = pledge(5);
    for (int heir = 0; heir < 2; ++heir) {
        Core next{memory()};
        EXPECT_EQ(next.check_all(), std::vector<std::string>{});
        EXPECT_EQ(next.pool(pool_).leased, 1U);
        EXPECT_EQ(next.now(), 10U);
        EXPECT_TRUE(next.decisions().empty());
        EXPECT_TRUE(next.stores_owed());
        ASSERT_EQ(next.staged_stores().size(), 1U);
        EXPECT_EQ(next.staged_stores()[0].position, 0U);
        EXPECT_EQ(std::memcmp(next.staged_stores()[0].entry, &told, sizeof(told)), 0);
        const shm::LeaseRow& lease = next.lease(static_cast<uint32_t>(told.id));
        EXPECT_EQ(lease.state, shm::LeaseState::kLive);
        EXPECT_EQ(lease.fence, told.fence);
        EXPECT_EQ(lease.expires_ns, 510U);
        EXPECT_EQ(lease.room, 3U);
        EXPECT_EQ(lease.room_lines, 1U);
        const std::vector<Core::HeldRoom> rooms = next.take_held_rooms();
        ASSERT_EQ(rooms.size(), 1U);
        EXPECT_EQ(rooms[0].session, session_);
        EXPECT_EQ(rooms[0].first, 3U);
        EXPECT_EQ(rooms[0].lines, 1U);
        EXPECT_EQ(rooms[0].pool, pool_);
        EXPECT_EQ(rooms[0].tag, 5U);
        EXPECT_TRUE(next.take_held_rooms().empty()) << "a second time";
        EXPECT_EQ(next.session(session_).submission_consumed, 1U);
        EXPECT_EQ(next.session(session_).completion_tail, 1U);
    }
}

TEST_F(Pledge, IsKeptWhereItsTurnHadBegun) {
    const shm::Completion told = pledge(5);
    core().apply(plain(5));
    core().decide();  // and not committed
    Core next{memory()};
    EXPECT_EQ(next.pool(pool_).leased, 1U);
    EXPECT_EQ(next.lease(static_cast<uint32_t>(told.id)).fence, told.fence);
    EXPECT_EQ(next.check_all(), std::vector<std::string>{});
    next.begin_turn(20);
    next.apply(core::Release{session_, false, told.id, told.fence, 0});
    next.decide();
    next.commit();
    next.clear();
    EXPECT_EQ(next.pool(pool_).idle, 2U);
}

TEST_F(Pledge, IsOwedNoMoreOnceItsTurnIsCommitted) {
    pledge(5);
    core().apply(plain(5));
    core().decide();
    core().commit();
    core().clear();
    const Core next{memory()};
    EXPECT_EQ(next.pool(pool_).leased, 1U);
    EXPECT_EQ(next.pool(pool_).granted_total, 1U);
}

// What a broker writes down between turns, for a claim that may come: nobody owes it.
TEST_F(Pledge, IsNotOwedAsLongAsItIsADraft) {
    const shm::Completion told = foretold(5);
    core().draft_pledge(plain(5), told);
    const Core next{memory()};
    EXPECT_EQ(next.pool(pool_).leased, 0U);
    EXPECT_EQ(next.pool(pool_).granted_total, 0U);
}

TEST_F(Pledge, IsSignedBeforeItsTurnBegins) {
    shm::Completion told = foretold(5);
    told.user_data = 0;
    told.value = 0;
    core().draft_pledge(plain(5), told);
    told.user_data = 7;
    told.value = 500;
    core().sign_pledge(told, 10);
    const Core next{memory()};
    EXPECT_EQ(next.pool(pool_).leased, 1U);
    const shm::LeaseRow& lease = next.lease(static_cast<uint32_t>(told.id));
    EXPECT_EQ(lease.user_data, 7U);
    EXPECT_EQ(lease.interval_ns, 500U);
    EXPECT_EQ(lease.granted_ns, 10U);
}

// The log still counts the stores of the last turn that had some.
TEST_F(Pledge, IsNoStoreOfATurnThatChangesNothing) {
    pledge(5);
    core().apply(plain(5));
    core().decide();
    EXPECT_EQ(core().staged_stores().size(), 1U);
    core().commit();
    EXPECT_EQ(core().staged_stores().size(), 1U);
    core().clear();
    core().draft_pledge(plain(6), foretold(6));
    core().begin_turn(20);
    core().decide();
    core().commit();
    EXPECT_EQ(core().staged_stores().size(), 0U);
    core().clear();
}

TEST_F(Pledge, ThatDoesNotFollowFromTheRowsIsRefused) {
    shm::Completion told = pledge(5);
    EXPECT_EQ(core::rows_refusal(memory()), "");
    auto* head = reinterpret_cast<shm::StateHead*>(memory().data());
    const uint64_t turn = head->log.pledged_turn;
    const uint32_t pool = head->log.pledged_pool;
    head->log.pledged_pool = 77;
    EXPECT_EQ(core::rows_refusal(memory()), "the pledge does not follow from the rows");
    head->log.pledged_pool = pool;
    told.fence = 9;
    core().pledge(plain(5), told);
    EXPECT_EQ(core::rows_refusal(memory()), "the pledge does not follow from the rows");
    head->log.pledged_turn = turn - 1;  // nothing is owed
    EXPECT_EQ(core::rows_refusal(memory()), "");
}

}  // namespace
}  // namespace dibs::tests
