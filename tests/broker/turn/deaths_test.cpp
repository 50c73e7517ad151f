// tests/broker/turn/deaths_test.cpp -- many sessions end at once: a few of them a turn, and nothing
// of them stays behind.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/deaths.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

using shm::Op;
using shm::Outcome;

constexpr core::Limits kMany = {
    .pools = 4, .sessions = 64, .slots = 4096, .claims = 256, .leases = 256, .arena_blocks = 64};

TEST(Deaths, AreTakenAFewATurnInTheirOrder) {
    Bench bench(kMany);
    bench.pool({.name = "gpu", .slots = 1});
    std::vector<Session*> sessions;
    for (int i = 0; i < 40; ++i)
        sessions.push_back(&bench.open());
    Session& last = *sessions.back();
    bench.push(*sessions.front(), claim(1));
    bench.turn();
    bench.push(last, claim(1));
    bench.turn();
    for (Session* session : sessions) {
        if (session != &last) bench.sessions.drain(session);
    }
    bench.turn();
    EXPECT_EQ(bench.deaths.any(), true);
    EXPECT_EQ(bench.sessions.all().size(), 24U);
    EXPECT_EQ(bench.sessions.at(sessions[15]->row), nullptr);
    EXPECT_EQ(bench.sessions.at(sessions[16]->row), sessions[16]);
    const auto granted = bench.next(last);  // between them
    ASSERT_TRUE(granted);
    EXPECT_EQ(granted->outcome, Outcome::kGranted);
    bench.turn();
    EXPECT_EQ(bench.sessions.all().size(), 8U);
    bench.turn();
    EXPECT_EQ(bench.sessions.all().size(), 1U);
    EXPECT_FALSE(bench.deaths.any());
}

// One that says much before its end counts as one, however often a turn has to look at it.
TEST(Deaths, WaitForWhatTheDeadHaveSaid) {
    Bench bench(kMany);
    bench.pool({.name = "gpu", .slots = 1});
    Session& talker = bench.open();
    Session& other = bench.open();
    for (uint16_t i = 0; i < talker.sizes.submission_entries; ++i)
        bench.push(talker, word(Op::kRelease, 1, 1));
    bench.sessions.drain(&talker);
    bench.sessions.drain(&other);
    for (int turns = 0; bench.deaths.any() && turns < 100; ++turns)
        bench.turn();
    EXPECT_TRUE(bench.sessions.all().empty());
}

// What one turn's log has no room for is given back in the next ones, when the session is no more.
TEST(Deaths, LeaveNoRoomOfASlotThatIsStillToGo) {
    Bench bench(kMany);
    bench.pool({.name = "web", .kind = shm::PoolKind::kWorker, .payload_max = 64});
    constexpr uint32_t kSlots = 3500;
    shm::SessionSizes sizes;
    sizes.completion_entries = 16384;  // four for each slot
    sizes.down_payload = 1U << 20;
    Session& worker = bench.open(sizes);
    Session& survivor = bench.open();
    const auto announce = [&](Session& session) {
        shm::Submission entry;
        entry.op = Op::kAnnounce;
        bench.push(session, entry);
        bench.turn();
        const auto told = bench.next(session);
        EXPECT_EQ(told->reason, shm::Reason::kOk);
        bench.release_read(session);
        return static_cast<uint32_t>(told->id);
    };
    std::vector<uint32_t> slots;
    for (uint32_t i = 0; i < kSlots; ++i)
        slots.push_back(announce(worker));
    const uint32_t kept = announce(survivor);
    ASSERT_EQ(bench.operations.slot_room(slots.back()).session, &worker);
    const uint32_t row = worker.row;
    bench.sessions.drain(&worker);
    bench.turn();
    EXPECT_EQ(bench.sessions.all().size(), 1U);
    ASSERT_GT(bench.core.session(row).slots, 0U);
    for (const uint32_t slot : slots)
        ASSERT_EQ(bench.operations.slot_room(slot).session, nullptr) << slot;
    EXPECT_EQ(bench.operations.slot_room(kept).session, &survivor);
    while (bench.core.work_left())
        bench.turn();
    EXPECT_EQ(bench.core.session(row).slots, 0U);
    EXPECT_EQ(bench.core.pool(0).slots, 1U);
}

// A file in place of a group's cgroup.events: no change of it is notified.
class Outlived : public testing::Test {
  protected:
    static constexpr core::TimeNs kMs = 1'000'000;

    Outlived() : file(memfd_create("events", MFD_CLOEXEC)), holder(bench.open()) {
        bench.pool({.name = "gpu", .slots = 1});
        bench.now = 1000 * kMs;
        holder.tree.id = 1;
        holder.tree.events = shm::Descriptor(dup(file.get()));
        say("populated 1\n");
        bench.push(holder, claim(1));
        bench.turn();
        bench.sessions.drain(&holder);
        bench.turn();
    }
    void say(std::string_view text) const {
        ASSERT_EQ(pwrite(file.get(), text.data(), text.size(), 0),
                  static_cast<ssize_t>(text.size()));
    }
    void turn_at(core::TimeNs now) {
        bench.now = now;
        bench.turn();
    }
    void release_from_outside() {
        const uint64_t lease = core::row_id(bench.core.lease(0).head.generation, 0);
        bench.core.begin_turn(bench.now);
        core::TimeNs unused = 0;
        EXPECT_EQ(bench.core.apply(core::Steer{.kind = core::Steer::Kind::kRelease, .lease = lease},
                                   &unused),
                  shm::Reason::kOk);
        bench.finish();
    }

    Bench bench{kMany};
    shm::Descriptor file;
    Session& holder;
    const uint32_t row = holder.row;
};

TEST_F(Outlived, IsNoneWhoseProcessLeavesItsGroupAMomentBehindItsDeath) {
    EXPECT_EQ(bench.core.session(row).state, shm::SessionState::kOpen);
    EXPECT_FALSE(bench.deaths.any());  // nothing to do until then
    EXPECT_EQ(bench.sessions.next_look(), 10 * kMs);
    say("populated 0\n");
    turn_at(1001 * kMs);
    EXPECT_EQ(bench.core.session(row).state, shm::SessionState::kFree);
    EXPECT_EQ(bench.core.pool(0).idle, 1U);
}

TEST_F(Outlived, IsOverThoughNoChangeIsNotified) {
    turn_at(1010 * kMs);
    EXPECT_EQ(bench.core.session(row).state, shm::SessionState::kOutlived);
    EXPECT_EQ(bench.core.pool(0).leased, 1U);
    say("populated 0\n");
    EXPECT_EQ(bench.sessions.next_look(), 1260 * kMs);
    turn_at(1259 * kMs);
    EXPECT_EQ(bench.core.session(row).state, shm::SessionState::kOutlived);
    turn_at(1260 * kMs);
    EXPECT_EQ(bench.core.session(row).state, shm::SessionState::kFree);
    EXPECT_EQ(bench.core.pool(0).idle, 1U);
    EXPECT_FALSE(bench.sessions.any_outlived());
}

TEST_F(Outlived, IsOverAtOnceWhereAChangeIsNotified) {
    turn_at(1010 * kMs);
    bench.sessions.tree_changed(&holder);
    turn_at(1011 * kMs);
    EXPECT_EQ(bench.core.session(row).state, shm::SessionState::kOutlived);
    say("populated 0\n");
    bench.sessions.tree_changed(&holder);
    turn_at(1012 * kMs);
    EXPECT_EQ(bench.core.session(row).state, shm::SessionState::kFree);
}

// Nothing is held of it: its row is not to wait for processes that live on.
TEST_F(Outlived, IsOverOnceItHoldsNothing) {
    turn_at(1010 * kMs);
    ASSERT_TRUE(bench.sessions.any_outlived());
    bench.sessions.look_at_trees(bench.now, [](const Session&) { return true; });
    EXPECT_TRUE(bench.sessions.any_outlived());
    bench.sessions.look_at_trees(bench.now, [](const Session&) { return false; });
    EXPECT_FALSE(bench.sessions.any_outlived());
    EXPECT_TRUE(bench.deaths.any());
}

// However many they are: none of them is killed at another client's cost.
TEST_F(Outlived, IsKilledAFewProcessesATurn) {
    const std::string folder = testing::TempDir() + "dibs-tree-" + std::to_string(getpid());
    std::filesystem::create_directory(folder);
    std::ofstream procs(folder + "/cgroup.procs");
    for (int none = 5'000'000; none < 5'000'300; ++none)  // no process has such a number
        procs << none << "\n";
    procs.close();
    struct stat about = {};
    ASSERT_EQ(stat(folder.c_str(), &about), 0);
    holder.tree.folder = folder;
    holder.tree.id = about.st_ino;
    turn_at(1010 * kMs);
    release_from_outside();
    int turns = 0;
    for (; bench.kills.any() && turns < 100; ++turns)
        bench.turn();
    std::filesystem::remove_all(folder);
    EXPECT_EQ(turns, 5);  // four have something to kill, the last one finds no more
    EXPECT_EQ(bench.core.lease(0).state, shm::LeaseState::kKilling);
    EXPECT_EQ(bench.core.pool(0).kills_failed_total, 0U);
}

// "Not known" is not "empty", and what cannot be looked at has not been killed.
TEST_F(Outlived, LastsWhereItsGroupCannotBeRead) {
    holder.tree.events.reset();
    turn_at(1010 * kMs);
    turn_at(2000 * kMs);
    EXPECT_EQ(bench.core.session(row).state, shm::SessionState::kOutlived);
    release_from_outside();
    bench.turn();
    EXPECT_EQ(bench.core.lease(0).state, shm::LeaseState::kKilling);
    EXPECT_EQ(bench.core.pool(0).kills_failed_total, 1U);
}

}  // namespace
}  // namespace dibs::test
