// tests/shm/board_test.cpp -- blocks of the BOARD: places, whole pictures under a busy writer, and
// a writer that died within a block.
// SPDX-License-Identifier: Apache-2.0
#include "shm/board.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "tests/shm/mapping.hpp"

namespace dibs::shm {
namespace {

TEST(Board, LaysOneArrayAfterTheOther) {
    const BoardPlan plan = plan_board(4);
    EXPECT_EQ(plan.pools, 5184U);
    EXPECT_EQ(plan.totals, 5184U + 256U);
    EXPECT_EQ(plan.names, 5440U + 256U);
    EXPECT_EQ(plan.histograms, 5696U + 512U);
    EXPECT_EQ(plan.sets, 6208U + 4U * 5120U);
    EXPECT_EQ(plan.cluster, 26688U + 16U * 128U);
    EXPECT_EQ(plan.accounts, 28736U + 64U);
    EXPECT_EQ(plan.size, 28800U);
}

TEST(Board, ReadsWhatWasWritten) {
    BoardPool block = {};
    PoolPicture picture;
    picture.idle = 3;
    picture.queued = 5;
    picture.last_dispatch_ns = 1'000'000'007;
    picture.hits = 9;
    board_write(block, picture);
    board_write(block, picture);
    PoolPicture read;
    ASSERT_TRUE(board_read(block, read));
    EXPECT_EQ(read.idle, 3U);
    EXPECT_EQ(read.queued, 5U);
    EXPECT_EQ(read.last_dispatch_ns, 1'000'000'007U);
    EXPECT_EQ(read.hits, 9U);
    EXPECT_EQ(read.sequence, 4U);
}

TEST(Board, GivesUpOnABlockThatStaysHalfWrittenAndReadsItOnceItIsMended) {
    BoardPool block = {};
    block.sequence.store(7);
    PoolPicture read;
    EXPECT_FALSE(board_read(block, read));
    PoolPicture picture;
    picture.idle = 1;
    board_write(block, picture);
    ASSERT_TRUE(board_read(block, read));
    EXPECT_EQ(read.sequence, 8U);
}

// Every picture has equal numbers in all its fields; a torn one does not.
TEST(BoardStress, NeverShowsATornPicture) {
    constexpr uint32_t kWrites = 200'000;
    test::SharedMemory memory(sizeof(BoardPool));
    test::Mapping of_writer(memory);
    test::Mapping of_reader(memory, PROT_READ);
    std::thread writer([&] {
        BoardPool& block = *of_writer.as<BoardPool>();
        for (uint32_t i = 1; i <= kWrites; ++i) {
            PoolPicture picture;
            picture.idle = picture.queued = picture.reserved = picture.confirming = i;
            picture.leased = picture.recovering = picture.unknown = picture.slots = i;
            picture.last_dispatch_ns = picture.hits = i;
            board_write(block, picture);
            if (i % 64 == 0) sched_yield();
        }
    });
    const BoardPool& block = *of_reader.as<const BoardPool>();
    uint64_t torn = 0;
    uint64_t backward = 0;
    uint32_t last = 0;
    while (last < kWrites) {
        PoolPicture read;
        if (!board_read(block, read)) continue;
        if (read.idle != read.hits || read.queued != read.unknown || read.idle != read.queued ||
            read.last_dispatch_ns != read.idle || read.leased != read.slots ||
            read.sequence != 2 * uint64_t{read.idle}) {
            ++torn;
        }
        if (read.idle < last) ++backward;
        last = read.idle;
    }
    writer.join();
    EXPECT_EQ(torn, 0U);
    EXPECT_EQ(backward, 0U);
}

}  // namespace
}  // namespace dibs::shm
