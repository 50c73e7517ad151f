// tests/broker/turn/pool_sets_test.cpp -- pool sets on the BOARD: their rows, versions and members.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/pool_sets.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

class PoolSetsTest : public testing::Test {
  protected:
    void make_pool(const char* name) {
        bench_.core.begin_turn(bench_.core.now() + 1);
        EXPECT_NE(bench_.core.set_pool({.name = name, .slots = 1}, nullptr), shm::kNoRow);
        bench_.core.decide();
        bench_.core.commit();
        bench_.core.clear();
    }
    void publish(std::vector<SetSettings> sets) {
        sets_.set(std::move(sets));
        sets_.publish();
    }
    static shm::SetPicture row(const BoardSegment& board, uint32_t at) {
        shm::SetPicture picture;
        EXPECT_TRUE(shm::board_read(board.sets()[at], picture));
        return picture;
    }
    [[nodiscard]] shm::SetPicture row(uint32_t at) const { return row(bench_.board, at); }

    Bench bench_;
    PoolSets sets_{bench_.core, bench_.board};
};

TEST_F(PoolSetsTest, HaveTheirMembersInTheirOrder) {
    make_pool("a");
    make_pool("b");
    publish({{"any", {"b", "gone", "a"}}});
    const shm::SetPicture any = row(0);
    EXPECT_STREQ(any.name, "any");
    ASSERT_EQ(any.members, 3);
    EXPECT_EQ(any.pool[0], bench_.core.find_pool("b"));
    EXPECT_EQ(any.pool[1], shm::kNoPool);
    EXPECT_EQ(any.pool[2], bench_.core.find_pool("a"));
    const auto rows = sets_.rows();
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0]->left_out, (std::vector<std::string>{"", "is not there", ""}));
    // It comes.
    make_pool("gone");
    sets_.publish();
    EXPECT_EQ(row(0).pool[1], bench_.core.find_pool("gone"));
    EXPECT_GT(row(0).sequence, any.sequence);
}

TEST_F(PoolSetsTest, HaveAVersionThatChangesWithThemAlone) {
    make_pool("a");
    make_pool("b");
    publish({{"any", {"a"}}, {"other", {"b"}}});
    const uint64_t any = row(0).sequence;
    const uint64_t other = row(1).sequence;
    publish({{"other", {"b"}}, {"any", {"a"}}});
    EXPECT_EQ(row(0).sequence, any);
    publish({{"any", {"a", "b"}}, {"other", {"b"}}});
    EXPECT_GT(row(0).sequence, any);
    EXPECT_EQ(row(1).sequence, other);
}

TEST_F(PoolSetsTest, KeepTheirRowsAndLeaveThemToOthersLast) {
    make_pool("a");
    publish({{"first", {"a"}}, {"second", {"a"}}});
    publish({{"second", {"a"}}});
    EXPECT_EQ(row(0).members, 0);
    publish({{"second", {"a"}}, {"third", {"a"}}});
    EXPECT_STREQ(row(2).name, "third");
    publish({{"first", {"a"}}});
    EXPECT_EQ(row(0).members, 1);
    EXPECT_EQ(row(0).use, 1U);
    std::vector<SetSettings> sixteen;
    for (int i = 0; i < 16; ++i)
        sixteen.push_back({"s" + std::to_string(i), {"a"}});
    publish(sixteen);
    EXPECT_EQ(row(0).use, 2U);
    EXPECT_EQ(row(0).members, 1);
}

// The next broker has the same BOARD.
TEST_F(PoolSetsTest, AreFoundByASuccessor) {
    make_pool("a");
    publish({{"first", {"a"}}, {"second", {"a"}}});
    const uint64_t version = row(1).sequence;
    BoardSegment board(bench_.board.pools_max(),
                       bench_.board.accounts_max(),
                       shm::Descriptor(dup(bench_.board.fd())));
    PoolSets successor(bench_.core, board);
    successor.set({{"second", {"a"}}});
    successor.publish();
    EXPECT_EQ(row(board, 1).sequence, version);
    EXPECT_EQ(row(board, 0).members, 0);
    // A row that a broker died in is written again.
    board.sets()[1].sequence.store(version | 1);
    successor.publish();
    EXPECT_EQ(row(board, 1).sequence, version + 2);
}

// A file that no broker has refused, as a successor may read one.
TEST_F(PoolSetsTest, GiveWayToAPoolOfTheirName) {
    make_pool("a");
    publish({{"a", {"a"}}, {"any", {"a"}}});
    EXPECT_FALSE(sets_.has("a"));
    EXPECT_TRUE(sets_.has("any"));
}

}  // namespace
}  // namespace dibs::test
