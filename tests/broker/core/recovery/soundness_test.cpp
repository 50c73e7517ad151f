// tests/broker/core/recovery/soundness_test.cpp -- a STATE that a broker wrote is attached to,
// whatever its tables' sizes are.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "broker/core/store/state.hpp"
#include "shm/layout.hpp"
#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {

namespace {

class Soundness : public CoreFixture {
  protected:
    static core::Limits fewer_claims_than_leases() {
        core::Limits limits;
        limits.claims = 2;
        limits.leases = 16;
        return limits;
    }
    Soundness() : CoreFixture(fewer_claims_than_leases()) {
        core::PoolConfig config;
        config.name = "gpu";
        config.slots = 8;
        config.expiry = shm::ExpiryMode::kStrict;
        turn(0, [&] { pool_ = core().set_pool(config, nullptr); });
        session_ = session();
    }
    // Eight leases, one after the other: most of them have rows that no claim could have.
    void lease_all(core::TimeNs interval_ns) {
        for (uint16_t tag = 0; tag < 8; ++tag) {
            turn(1000, [&] {
                core::Claim command;
                command.session = session_;
                command.tag = tag;
                command.pool = pool_;
                command.units = 1;
                command.interval_ns = interval_ns;
                core().apply(command);
            });
        }
        ASSERT_EQ(core().pool(pool_).leased, 8U);
    }
    shm::SlotRow& slot_of_last_lease() {
        for (uint32_t row = 0; row < core().slots_max(); ++row) {
            const shm::SlotRow& slot = core().slot(row);
            if (slot.state != shm::SlotState::kFree && slot.holder == 7) {
                return const_cast<shm::SlotRow&>(slot);
            }
        }
        ADD_FAILURE() << "no slot is under the eighth lease";
        return const_cast<shm::SlotRow&>(core().slot(0));
    }

    uint32_t pool_ = shm::kNoRow;
    uint32_t session_ = shm::kNoRow;
};

TEST_F(Soundness, OfLeasesWhoseHoldersAreBeingKilled) {
    lease_all(500);
    turn(2000, [] {});
    ASSERT_EQ(core().pool(pool_).recovering, 8U);
    EXPECT_EQ(core::rows_refusal(memory()), "");
    core::Core next(memory());
    EXPECT_EQ(next.check_all(), std::vector<std::string>{});
}

TEST_F(Soundness, OfALeaseThatLeavesItsTable) {
    lease_all(500);
    turn(2000, [] {});
    shm::SlotRow& slot = slot_of_last_lease();
    slot.holder = 16;
    EXPECT_NE(core::rows_refusal(memory()), "");
    slot.holder = 7;
    EXPECT_EQ(core::rows_refusal(memory()), "");
}

// A pool goes when it has no workers left: whoever shrinks it knows of none.
TEST_F(Soundness, NotOfAPoolThatGoesWithItsWorker) {
    core::PoolConfig config;
    config.name = "web";
    config.kind = shm::PoolKind::kWorker;
    uint32_t web = shm::kNoRow;
    turn(1, [&] { web = core().set_pool(config, nullptr); });
    turn(1, [&] {
        core().apply(core::Announce{.session = session_, .pool = web, .name = "w", .ready = true});
    });
    ASSERT_EQ(core().pool(web).idle, 1U);
    auto& pool = const_cast<shm::PoolRow&>(core().pool(web));
    pool.state = shm::PoolState::kGoing;
    const auto going = core::Core(memory()).check_all();
    ASSERT_FALSE(going.empty());
    EXPECT_EQ(going.front(), "pool 'web' is going and has workers");
    pool.state = shm::PoolState::kOpen;
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
}

TEST_F(Soundness, NotOfAWorkersSlotInACountedPool) {
    auto& slot = const_cast<shm::SlotRow&>(core().slot(core().pool(pool_).ready_head));
    slot.name_size = 1;
    slot.name[0] = 'w';
    const auto named = core::Core(memory()).check_all();
    ASSERT_FALSE(named.empty());
    EXPECT_NE(named.front().find("is a worker's, in a pool that has none"), std::string::npos);
    slot.name_size = 0;
    slot.name[0] = 0;
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
}

// What attaching reads of rows that only pools ordered by account have.
class SoundnessOfAccounts : public CoreFixture {
  protected:
    void SetUp() override {
        core::PoolConfig config;
        config.name = "paid";
        config.kind = shm::PoolKind::kWorker;
        config.order = shm::PoolOrder::kAccount;
        turn(0, [&] { pool_ = core().set_pool(config, nullptr); });
        const std::string_view label = "gpu";
        turn(1, [&] {
            core::Report report;
            report.pool = pool_;
            report.worker = "w";
            report.labels = {&label, 1};
            core().apply(report);
        });
    }
    shm::SlotRow& worker() {
        uint32_t row = 0;
        while (core().slot(row).state == shm::SlotState::kFree)
            ++row;
        return const_cast<shm::SlotRow&>(core().slot(row));
    }

    uint32_t pool_ = shm::kNoRow;
};

TEST_F(SoundnessOfAccounts, NamesAnAssignmentThatIsNoLease) {
    ASSERT_EQ(core::rows_refusal(memory()), "");
    worker().flags |= shm::SlotFlag::kAssigned;
    EXPECT_NE(core::rows_refusal(memory()), "");
}

TEST_F(SoundnessOfAccounts, NamesALabelSetWhoseTextIsCutShort) {
    core::State state(memory());
    auto& set = const_cast<shm::LabelSetRow&>(state.label_sets[worker().label_set]);
    ASSERT_EQ(core::rows_refusal(memory()), "");
    set.text_size = 1000;  // its chain is one block
    const_cast<shm::ArenaBlock&>(state.arena[set.text]).next = shm::kNoRow;
    EXPECT_NE(core::rows_refusal(memory()), "");
}

// A label without an end would be walked for ever, one of no bytes is none.
TEST_F(SoundnessOfAccounts, NamesALabelSetWhoseTextHoldsOtherThanItsLabels) {
    core::State state(memory());
    auto& set = const_cast<shm::LabelSetRow&>(state.label_sets[worker().label_set]);
    auto* text = const_cast<shm::ArenaBlock&>(state.arena[set.text]).bytes;
    const std::string why =
        "label set row " + std::to_string(worker().label_set) + " leaves its tables";
    ASSERT_EQ(core::rows_refusal(memory()), "");
    const auto refused_with = [&](uint32_t at, uint8_t byte) {
        const auto before = std::exchange(text[at], byte);
        EXPECT_EQ(core::rows_refusal(memory()), why) << at;
        text[at] = before;
    };
    refused_with(0, '\0');
    refused_with(1, '\0');  // two labels, and one is counted
    refused_with(3, 'x');   // its end
    set.count = 2;
    EXPECT_EQ(core::rows_refusal(memory()), why);
    set.count = 1;
    EXPECT_EQ(core::rows_refusal(memory()), "");
}

// It would be given slots without workers.
TEST_F(SoundnessOfAccounts, NamesAPoolOfWorkersThatWantsSlots) {
    auto& pool = const_cast<shm::PoolRow&>(core().pool(pool_));
    pool.slots_wanted = 1;
    EXPECT_EQ(core::rows_refusal(memory()), "pool row 0 leaves its tables");
    pool.slots_wanted = 0;
    EXPECT_EQ(core::rows_refusal(memory()), "");
}

// Attaching would walk it for ever.
TEST_F(Soundness, OfAReadyQueueThatBitesItsTail) {
    uint32_t shares = shm::kNoRow;
    turn(0, [&] {
        shares = core().set_pool({.name = "shares", .slots = 3, .order = shm::PoolOrder::kAccount},
                                 nullptr);
    });
    EXPECT_EQ(core::rows_refusal(memory()), "");
    const uint32_t head = core().pool(shares).ready_head;
    auto& tail = const_cast<shm::SlotRow&>(core().slot(core().pool(shares).ready_tail));
    tail.ready_next = head;
    const std::string why =
        "the ready queue of pool row 1 is not one of its idle slots in their order";
    EXPECT_EQ(core::rows_refusal(memory()), why);
    tail.ready_next = core().pool(pool_).ready_head;  // another pool's
    EXPECT_EQ(core::rows_refusal(memory()), why);
    tail.ready_next = shm::kNoRow;
    EXPECT_EQ(core::rows_refusal(memory()), "");
}

// check_all() would walk it: as often as the pool counts idle slots, and out of the table.
TEST_F(Soundness, OfAReadyQueueOfAPoolOrderedByArrival) {
    auto& pool = const_cast<shm::PoolRow&>(core().pool(pool_));
    const uint32_t head = pool.ready_head;
    auto& first = const_cast<shm::SlotRow&>(core().slot(head));
    const uint32_t second = first.ready_next;
    const std::string why =
        "the ready queue of pool row 0 is not one of its idle slots in their order";
    ASSERT_EQ(core::rows_refusal(memory()), "");
    first.ready_next = head;
    EXPECT_EQ(core::rows_refusal(memory()), why);
    pool.idle = 0xfffffff0;
    EXPECT_NE(core().check_all(), std::vector<std::string>{});
    pool.idle = 8;
    first.ready_next = second;
    const uint32_t unused = core().slots_max() - 1;
    const_cast<shm::SlotRow&>(core().slot(unused)).ready_next = 0x7fffff00;
    pool.ready_head = unused;
    EXPECT_EQ(core::rows_refusal(memory()), why);
    EXPECT_NE(core().check_all(), std::vector<std::string>{});
    pool.ready_head = head;
    EXPECT_EQ(core::rows_refusal(memory()), "");
    // The next one would stand behind it with a lower place.
    pool.idle_order_next = core().slot(pool.ready_tail).idle_order;
    EXPECT_EQ(core::rows_refusal(memory()), why);
}

}  // namespace

}  // namespace dibs::tests
