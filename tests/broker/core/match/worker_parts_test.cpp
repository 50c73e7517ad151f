// tests/broker/core/match/worker_parts_test.cpp -- parts of slots that workers announce: found
// again by another core, and rows that no broker has written.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/store/state.hpp"
#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {

namespace {

using core::Amount;
using core::DecisionKind;
using shm::SlotState;
using Word = core::WorkerWord::Kind;

// A worker's slot of 32, of which one part is leased and another one reserved.
class WorkerParts : public CoreFixture {
  protected:
    WorkerParts() {
        constexpr Amount kBox[] = {{"mem", 64}};
        core::PoolConfig config;
        config.name = "box";
        config.kind = shm::PoolKind::kWorker;
        config.vector = kBox;
        turn(0, [&] { pool_ = core().set_pool(config, nullptr); });
        worker_ = session();
        client_ = session();
        constexpr Amount kHas[] = {{"mem", 32}};
        core::Announce announce;
        announce.session = worker_;
        announce.pool = pool_;
        announce.resources = kHas;
        announce.parts = 3;
        announce.ready = true;
        turn(0, [&] { core().apply(announce); });
        leased_ = claim(0);
        say(Word::kConfirm, leased_);
        asked_ = claim(1);
        for (uint32_t row = 0; row < core().slots_max(); ++row) {
            if (core().slot(row).state == SlotState::kShared) whole_ = row;
        }
    }
    // The part's row, or kNoRow: it waits.
    uint32_t claim(uint16_t tag, int64_t mem = 8) {
        const Amount least[] = {{"mem", mem}};
        core::Claim command;
        command.session = client_;
        command.pool = pool_;
        command.tag = tag;
        command.least = least;
        for (const core::Decision& decided : turn(0, [&] { core().apply(command); })) {
            if (decided.kind == DecisionKind::kAssign) return core::row_of(decided.id);
        }
        return shm::kNoRow;
    }
    shm::Reason say(Word kind, uint32_t row) {
        core::WorkerWord word;
        word.kind = kind;
        word.session = worker_;
        word.slot = core::row_id(core().slot(row).head.generation, row);
        word.round = core().slot(row).round;
        return turn(0, [&] { core().apply(word); }).front().reason;
    }
    shm::SlotRow& slot(uint32_t row) { return const_cast<shm::SlotRow&>(core().slot(row)); }
    shm::SlotVectorRow& vector(uint32_t row) {
        core::State state(memory());
        return const_cast<shm::SlotVectorRow&>(state.slot_vectors[row]);
    }
    bool attaches() {
        core::Core::Refusal refusal;
        return core::Core::attach(memory(), 0, &refusal) != nullptr;
    }

    uint32_t pool_ = shm::kNoRow;
    uint32_t worker_ = shm::kNoRow;
    uint32_t client_ = shm::kNoRow;
    uint32_t whole_ = shm::kNoRow;
    uint32_t leased_ = shm::kNoRow;
    uint32_t asked_ = shm::kNoRow;
};

TEST_F(WorkerParts, AreAskedForOneAtATimeByTheNextCore) {
    ASSERT_NE(asked_, shm::kNoRow);
    attach();
    EXPECT_EQ(claim(2), shm::kNoRow);
    EXPECT_EQ(say(Word::kConfirm, asked_), shm::Reason::kOk);
    EXPECT_EQ(core().pool(pool_).parts, 3U);
    EXPECT_EQ(core().pool(pool_).reserved, 1U);
}
TEST_F(WorkerParts, AreAsManyAsTheWorkerSays) {
    EXPECT_EQ(say(Word::kConfirm, asked_), shm::Reason::kOk);
    const uint32_t third = claim(2);
    ASSERT_NE(third, shm::kNoRow);
    EXPECT_EQ(say(Word::kConfirm, third), shm::Reason::kOk);
    EXPECT_EQ(claim(3), shm::kNoRow);
    EXPECT_EQ(core().pool(pool_).waiting, 1U);
}
TEST_F(WorkerParts, OfTwoOfWhichNoneIsAnsweredAreUnsound) {
    EXPECT_TRUE(attaches());
    slot(leased_).state = SlotState::kUnknown;
    slot(leased_).holder = shm::kNoRow;
    EXPECT_FALSE(attaches());
}
TEST_F(WorkerParts, OfAnotherWorkerAreUnsound) {
    slot(asked_).session = client_;
    EXPECT_FALSE(attaches());
}
TEST_F(WorkerParts, OfASlotThatHasLessAreUnsound) {
    vector(whole_).capacity[0] = 31;
    EXPECT_FALSE(attaches());
}
TEST_F(WorkerParts, OfASlotThatHasMoreThanThereCanBeAreUnsound) {
    vector(whole_).capacity[0] = shm::kAmountMax + 1;
    EXPECT_FALSE(attaches());
}
TEST_F(WorkerParts, OfASlotThatHasWhatItsPoolDoesNotNameAreUnsound) {
    vector(whole_).capacity[1] = 1;
    vector(whole_).amount[1] = 1;
    EXPECT_FALSE(attaches());
}
TEST_F(WorkerParts, AreNotCollected) {
    constexpr Amount kBox[] = {{"mem", 64}};
    core::PoolConfig config;
    config.name = "lazy";
    config.kind = shm::PoolKind::kWorker;
    config.expiry = shm::ExpiryMode::kLazy;
    config.vector = kBox;
    std::string why;
    turn(0, [&] { EXPECT_EQ(core().set_pool(config, &why), shm::kNoRow); });
    EXPECT_NE(why.find("slots of workers that have resources are not collected"),
              std::string::npos);
}

}  // namespace

}  // namespace dibs::tests
