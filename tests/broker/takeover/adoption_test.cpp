// tests/broker/takeover/adoption_test.cpp -- what a successor knows of a session, read off rows and
// rings.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/adoption.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

using shm::Op;
using shm::Outcome;
using shm::Reason;

core::PoolConfig tokens(uint32_t slots) {
    core::PoolConfig config;
    config.name = "tokens";
    config.kind = shm::PoolKind::kCounted;
    config.slots = slots;
    config.units_max = 2;
    return config;
}

// A successor's parts over the same STATE and the same segments, as a takeover makes them.
class Heirs {
  public:
    Heirs(Bench& bench, Session& left, std::optional<uint32_t> uid = {})
        : Heirs(bench, std::vector<Session*>{&left}, uid) {}
    Heirs(Bench& bench, const std::vector<Session*>& left, std::optional<uint32_t> uid = {})
        : core(bench.state()),
          sessions(core.sessions_max()),
          quotas(core),
          pledges(core),
          operations(core, quotas, pledges, accounts, words),
          read_budget(core.sessions_max()),
          answers(core, sessions, operations, bench.publisher, quotas, read_budget),
          adoption(core, sessions, operations) {
        for (Session* one : left) {
            InheritedSession& inherited = inherited_.emplace_back();
            inherited.row = one->row;
            inherited.generation = one->generation;
            inherited.at(SessionDescriptor::kUp) = std::move(one->up_fd);
            inherited.at(SessionDescriptor::kDown) = std::move(one->down_fd);
            inherited.uid = uid;
        }
        adoption.map(inherited_);
        for (size_t place = 0; place < inherited_.size(); ++place)
            adopted.emplace_back(adoption.adopt(place));
        session = adopted.front().get();
    }
    [[nodiscard]] bool taken(size_t place = 0) const {
        return inherited_[place].row == shm::kNoRow;
    }

    core::Core core;
    Sessions sessions;
    Quotas quotas;
    Pledges pledges;
    UidAccounts accounts{core};
    Clock clock{1000};
    LeaseWords words{core, sessions, clock};
    Operations operations;
    ReadBudget read_budget;
    Answers answers;
    Adoption adoption;
    std::vector<std::unique_ptr<Session>> adopted;  // by place
    Session* session = nullptr;                     // the first
  private:
    std::vector<InheritedSession> inherited_;
};

TEST(Adoption, GoesOnWhereTheRowOfTheSessionSays) {
    Bench bench;
    bench.pool(tokens(2));
    Session& session = bench.open();
    bench.push(session, claim(1));
    bench.push(session, claim(2));
    bench.turn();
    Heirs heirs(bench, session);
    ASSERT_NE(heirs.session, nullptr);
    EXPECT_TRUE(heirs.taken());
    EXPECT_EQ(heirs.session->up.head(), 2U);
    EXPECT_EQ(heirs.session->completion_tail, 2U);
    EXPECT_FALSE(heirs.session->up.maybe());
    bench.push(session, claim(3));
    EXPECT_TRUE(heirs.session->up.maybe());
}

TEST(Adoption, LeavesTheRoomsOfClaimsAndLeasesAlone) {
    Bench bench;
    bench.pool(tokens(1));
    Session& session = bench.open();
    bench.push(session, claim(1));  // granted
    bench.push(session, claim(2));  // waits
    bench.turn();
    const uint32_t free = session.rooms.lines_free();
    Heirs heirs(bench, session);
    heirs.adoption.restore_rooms();
    EXPECT_EQ(heirs.session->rooms.lines_free(), free);
    EXPECT_EQ(heirs.session->tags[1].first, session.tags[1].first);
    EXPECT_EQ(heirs.session->tags[2].first, session.tags[2].first);
    EXPECT_EQ(heirs.session->tags[2].stride, session.tags[2].stride);
}

// It may lose its lease to a better claim, and is granted anew then: its wait began when it came.
TEST(Adoption, KnowsSinceWhenAClaimThatRunsHasWaited) {
    Bench bench;
    core::PoolConfig config = tokens(1);
    config.order = shm::PoolOrder::kAccount;
    bench.pool(config);
    Session& session = bench.open();
    bench.push(session, claim(1));
    bench.push(session, claim(2));
    bench.turn();
    const core::TimeNs came = bench.now;
    const auto granted = bench.next(session);
    ASSERT_TRUE(granted);
    bench.now += 1'000;
    bench.push(session, word(Op::kRelease, granted->id, granted->fence));
    bench.turn();
    Heirs heirs(bench, session);
    heirs.adoption.restore_rooms();
    EXPECT_EQ(heirs.session->tags[2].first, session.tags[2].first);
    EXPECT_EQ(heirs.session->tags[2].ingested_ns, came);
    EXPECT_EQ(heirs.session->tags[1].first, shm::kNoRow);
}

TEST(Adoption, KeepsTheRoomOfAGrantThatHasNotBeenReadUntilItIs) {
    Bench bench;
    bench.pool(tokens(1));
    Session& session = bench.open();
    bench.push(session, claim(1));
    bench.turn();
    const auto granted = bench.next(session);  // looked at; its index is not given back
    ASSERT_TRUE(granted);
    bench.push(session, word(Op::kRelease, granted->id, granted->fence));
    bench.turn();
    Heirs heirs(bench, session);
    heirs.adoption.restore_rooms();
    EXPECT_EQ(heirs.session->rooms.lines_free(), heirs.session->rooms.lines() - 1);
    (void)bench.next(session);
    bench.release_read(session);
    heirs.session->settle_rooms();
    EXPECT_EQ(heirs.session->rooms.lines_free(), heirs.session->rooms.lines());
}

TEST(Adoption, RefusesASessionOfAnotherGeneration) {
    Bench bench;
    bench.pool(tokens(1));
    Session& session = bench.open();
    ++session.generation;
    Heirs heirs(bench, session);
    EXPECT_EQ(heirs.session, nullptr);
    EXPECT_FALSE(heirs.taken());
    // Its client is told.
    EXPECT_EQ(session.down->session_state.load(), static_cast<uint32_t>(shm::SessionState::kDying));
    EXPECT_EQ(session.down->end_reason.load(), static_cast<int32_t>(Reason::kHolderGone));
}

// As where a STATE was loaded that has used row and generation for somebody else.
TEST(Adoption, RefusesASessionOfAnotherUser) {
    for (const uint32_t other : {0U, 1U}) {
        Bench bench;
        Session& left = bench.open({}, 1000);
        const Heirs heirs(bench, left, 1000 + other);
        EXPECT_EQ(heirs.session == nullptr, other != 0);
        EXPECT_EQ(heirs.taken(), other == 0);
    }
}

TEST(Adoption, EndsASessionThatSaysItHasReadWhatCannotBe) {
    Bench bench;
    bench.pool(tokens(1));
    Session& session = bench.open();
    shm::release_completions(Bench::up(session), 7);
    Heirs heirs(bench, session);
    heirs.adoption.restore_rooms();
    EXPECT_TRUE(heirs.session->ending);
    EXPECT_EQ(heirs.session->end_reason, Reason::kLimit);
}

TEST(Adoption, EndsASessionWhoseEntryWasInHandAtTwoDeathsRunning) {
    Bench bench;
    bench.pool(tokens(1));
    Session& session = bench.open();
    bench.core.set_hand(session.row, 1);  // and then the broker dies
    Heirs first(bench, session);
    first.adoption.take_hand(*first.session);
    EXPECT_FALSE(first.session->ending);
    EXPECT_EQ(first.session->careful_until, 1U);
    bench.core.set_hand(session.row, 1);  // and so does the next one
    Heirs second(bench, *first.session);
    second.adoption.take_hand(*second.session);
    EXPECT_TRUE(second.session->ending);
    EXPECT_EQ(second.session->end_reason, Reason::kMalformed);
}

TEST(Adoption, ForgetsADeathThatIsFollowedByAnother) {
    Bench bench;
    bench.pool(tokens(1));
    Session& session = bench.open();
    bench.core.set_hand(session.row, 1);
    EXPECT_EQ(bench.core.take_hand(session.row), 1U);
    EXPECT_EQ(bench.core.session(session.row).hand_deaths, 1U);
    EXPECT_EQ(bench.core.take_hand(session.row), 0U);  // died of something else
    EXPECT_EQ(bench.core.session(session.row).hand_deaths, 0U);
}

TEST(Adoption, HasNothingInHandOnceATurnIsCommitted) {
    Bench bench;
    bench.pool(tokens(1));
    Session& session = bench.open();
    bench.push(session, claim(1));
    bench.turn();
    EXPECT_EQ(bench.core.session(session.row).hand_sequence, 1U);
    EXPECT_EQ(bench.core.take_hand(session.row), 0U);
}

// So many that another thread has a part of them, where there is another CPU.
class ManyAdoptions : public testing::Test {
  protected:
    static constexpr uint32_t kSessions = 40;
    static constexpr uint32_t kLeasesEach = 120;
    static constexpr core::Limits kLimits = {.pools = 4,
                                             .sessions = 64,
                                             .slots = 8192,
                                             .claims = 8192,
                                             .leases = 8192,
                                             .arena_blocks = 64};

    ManyAdoptions() : bench(kLimits) {
        bench.pool(tokens(kSessions * kLeasesEach));
        for (uint32_t i = 0; i < kSessions; ++i)
            left.push_back(&bench.open());
        for (uint32_t tag = 0; tag < kLeasesEach; ++tag) {
            for (Session* session : left)
                bench.push(*session, claim(static_cast<uint16_t>(tag)));
            bench.turn();
            for (Session* session : left) {
                while (bench.next(*session)) {
                }
                bench.release_read(*session);
            }
        }
    }

    Bench bench;
    std::vector<Session*> left;
};

TEST_F(ManyAdoptions, GoOnWithTheirRoomsAndTags) {
    std::vector<uint32_t> free;
    for (const Session* session : left)
        free.push_back(session->rooms.lines_free());
    Heirs heirs(bench, left);
    heirs.adoption.restore_rooms();
    std::vector<uint32_t> events;
    for (const Session* session : left)
        events.push_back(session->down->events.load());
    heirs.answers.repeat();
    for (size_t i = 0; i < kSessions; ++i) {
        EXPECT_EQ(left[i]->down->events.load(), events[i] + 1) << i;  // each is told, once
        const Session* session = heirs.adopted[i].get();
        ASSERT_NE(session, nullptr) << i;
        EXPECT_FALSE(session->ending) << i;
        EXPECT_EQ(session->row, left[i]->row);
        EXPECT_EQ(session->rooms.lines_free(), free[i]) << i;
        for (uint32_t tag = 0; tag < kLeasesEach; ++tag)
            ASSERT_EQ(session->tags[tag].first, left[i]->tags[tag].first) << i << ' ' << tag;
        EXPECT_EQ(left[i]->down->completion_tail.load(), session->completion_tail);
    }
}

TEST_F(ManyAdoptions, LeaveOutThoseThatCannotGoOn) {
    ++left[3]->generation;
    left[30]->up_fd = shm::make_memfd("short", shm::kPageSize);
    Heirs heirs(bench, left);
    for (size_t i = 0; i < kSessions; ++i) {
        EXPECT_EQ(heirs.adopted[i] == nullptr, i == 3 || i == 30) << i;
        EXPECT_EQ(heirs.taken(i), heirs.adopted[i] != nullptr) << i;
    }
    EXPECT_EQ(heirs.sessions.all().size(), kSessions - 2);
    EXPECT_EQ(left[3]->down->end_reason.load(), static_cast<int32_t>(Reason::kHolderGone));
}

// Two leases of one session say that they have the same room.
TEST_F(ManyAdoptions, EndASessionWhoseRoomsOverlap) {
    core::Core& core = bench.core;
    uint32_t rows[2] = {};
    uint32_t found = 0;
    for (uint32_t row = 0; row < core.leases_max() && found < 2; ++row) {
        if (core.lease(row).session == left[7]->row) rows[found++] = row;
    }
    ASSERT_EQ(found, 2U);
    const_cast<shm::LeaseRow&>(core.lease(rows[0])).room = core.lease(rows[1]).room;
    Heirs heirs(bench, left);
    heirs.adoption.restore_rooms();
    for (size_t i = 0; i < kSessions; ++i)
        EXPECT_EQ(heirs.adopted[i]->ending, i == 7) << i;
    EXPECT_EQ(heirs.adopted[7]->end_reason, Reason::kNoRoom);
}

TEST(Adoption, TellsWhatWasCommittedAndNotTold) {
    Bench bench;
    bench.pool(tokens(1));
    Session& session = bench.open();
    bench.push(session, claim(1));
    bench.core.begin_turn(bench.now);
    bench.operations.begin_turn();
    bench.ingest.begin_turn();
    (void)bench.ingest.read(session, 64);
    bench.sessions.in_turn(&session);
    bench.core.decide();
    bench.answers.stage();
    bench.core.commit();  // and then the broker dies
    EXPECT_FALSE(bench.next(session));
    Heirs heirs(bench, session);
    heirs.answers.repeat();
    const auto granted = bench.next(session);
    ASSERT_TRUE(granted);
    EXPECT_EQ(granted->outcome, Outcome::kGranted);
    EXPECT_EQ(session.down->submission_consumed.load(), 1U);
    EXPECT_EQ(session.down->completion_tail.load(), 1U);
    EXPECT_EQ(session.down->events.load(), 1U);
}

}  // namespace
}  // namespace dibs::test
