// tests/broker/core/recovery/soundness_of_runs_test.cpp -- a STATE's claims that run, and who pays.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "broker/core/store/state.hpp"
#include "shm/layout.hpp"
#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {

namespace {

// What runs and what is promised: three leases of one account with a label limit.
class SoundnessOfRuns : public CoreFixture {
  protected:
    static constexpr std::string_view kNotFitting = " does not fit the rows that it names";
    static constexpr std::string_view kLeaving = " leaves its tables";

    void SetUp() override {
        session_ = session();
        core::PoolConfig config;
        config.name = "paid";
        config.slots = 4;
        config.order = shm::PoolOrder::kAccount;
        config.expiry = shm::ExpiryMode::kStrict;
        turn(0, [&] { pool_ = core().set_pool(config, nullptr); });
        other_ = counted_pool("other", 2);
        const std::array<int64_t, 5> balance = {1'000'000'000'000, 0, 0, 0, 0};
        const core::AccountConfig::Limit limit{"model", 5};
        turn(0, [&] {
            core::AccountConfig account;
            account.name = "a";
            account.balance = balance;
            account.label_limits = {&limit, 1};
            ASSERT_TRUE(core().set_account(account, nullptr));
        });
        turn(1, [&] {
            paid_claim(1, 2);
            paid_claim(2, 1);
            paid_claim(3, 1);
        });
        ASSERT_EQ(core().pool(pool_).leased, 4U);
        ASSERT_EQ(core::rows_refusal(memory()), "");
    }
    void paid_claim(uint16_t tag, uint16_t units) {
        core::ClaimTerms terms;
        terms.account = "a";
        core::Claim command;
        command.session = session_;
        command.tag = tag;
        command.pool = pool_;
        command.units = units;
        command.terms = &terms;
        core().apply(command);
    }
    // The running claim of that tag, its lease, and the slot that is its first.
    shm::ClaimRow& run(uint16_t tag) {
        uint32_t row = 0;
        while (core().claim(row).state != shm::ClaimState::kRunning || core().claim(row).tag != tag)
            ++row;
        return const_cast<shm::ClaimRow&>(core().claim(row));
    }
    shm::LeaseRow& lease(uint16_t tag) {
        return const_cast<shm::LeaseRow&>(core().lease(run(tag).lease));
    }
    shm::SlotRow& slot(uint16_t tag) {
        return const_cast<shm::SlotRow&>(core().slot(lease(tag).first_slot));
    }
    // With that value in that field the rows are refused, and with the one before they are not.
    template <class Field, class Value>
    void refused_with(Field& field, Value value, std::string_view why = kNotFitting) {
        const Field before = field;
        field = static_cast<Field>(value);
        EXPECT_TRUE(core::rows_refusal(memory()).ends_with(why)) << core::rows_refusal(memory());
        field = before;
        EXPECT_EQ(core::rows_refusal(memory()), "");
    }
    // Then the rows are sound, and contradict one another.
    template <class Field, class Value>
    void wrong_with(Field& field, Value value, std::string_view why) {
        const Field before = field;
        field = static_cast<Field>(value);
        EXPECT_EQ(core::rows_refusal(memory()), "");
        const std::vector<std::string> wrongs = core::Core(memory()).check_all();
        EXPECT_TRUE(std::any_of(wrongs.begin(), wrongs.end(), [&](const std::string& wrong) {
            return wrong.ends_with(why);
        })) << why;
        field = before;
        EXPECT_EQ(core::Core(memory()).check_all(), std::vector<std::string>{});
    }
    shm::AccountRow& account() {
        return const_cast<shm::AccountRow&>(core().account(core().find_account("a")));
    }
    uint32_t unused_slot() { return core().slots_max() - 1; }

    uint32_t session_ = shm::kNoRow;
    uint32_t pool_ = shm::kNoRow;
    uint32_t other_ = shm::kNoRow;
};

TEST_F(SoundnessOfRuns, NamesALeaseThatIsNotTheClaims) {
    refused_with(run(2).lease, core().leases_max() - 1);  // a free row
    refused_with(run(2).lease, run(3).lease);
    refused_with(run(2).arrival, run(3).arrival);
    refused_with(run(2).pool, other_);
    refused_with(lease(2).pool, other_);
    refused_with(lease(2).state, shm::LeaseState::kFree);
    refused_with(lease(2).state, shm::LeaseState::kKilling);  // its slot is leased
}

// Of two that agree in all else, each lease has one.
TEST_F(SoundnessOfRuns, NamesALeaseThatTwoClaimsRunUnder) {
    const shm::ClaimRow before = run(3);
    shm::ClaimRow& twin = run(3);
    twin.arrival = run(2).arrival;
    twin.lease = run(2).lease;
    EXPECT_NE(core::rows_refusal(memory()), "");
    twin.arrival = before.arrival;
    twin.lease = before.lease;
    EXPECT_EQ(core::rows_refusal(memory()), "");
}

TEST_F(SoundnessOfRuns, NamesSlotsThatAreNotAsManyAsAreCounted) {
    refused_with(run(1).units, 3);
    refused_with(lease(1).units, 3);
    refused_with(lease(1).units, 1);
    refused_with(lease(2).units, 0);
    refused_with(slot(1).holder_next, shm::kNoRow);
    refused_with(slot(1).holder_next, lease(1).first_slot);  // bites its tail
    refused_with(slot(1).holder_next, unused_slot());
    refused_with(slot(2).holder_next, lease(3).first_slot);
    refused_with(slot(2).holder, run(3).lease);
    refused_with(slot(2).state, shm::SlotState::kRecovering);
    refused_with(slot(2).pool, other_);
    refused_with(lease(2).first_slot, shm::kNoRow);
    refused_with(lease(2).first_slot, unused_slot());
}

TEST_F(SoundnessOfRuns, NamesAClaimThatIsPromisedNoSlotOfItsPool) {
    shm::ClaimRow& claim = run(2);
    claim.state = shm::ClaimState::kPromised;
    claim.first_slot = lease(3).first_slot;
    ASSERT_EQ(core::rows_refusal(memory()), "");
    refused_with(claim.first_slot, unused_slot());
    refused_with(claim.first_slot, core().pool(other_).ready_head);
}

TEST_F(SoundnessOfRuns, NamesAClaimThatConfirmsWithoutSlots) {
    shm::ClaimRow& claim = run(2);
    claim.state = shm::ClaimState::kReserved;
    claim.first_slot = shm::kNoRow;
    EXPECT_TRUE(core::rows_refusal(memory()).ends_with(kNotFitting));
}

TEST_F(SoundnessOfRuns, NamesStatesThatDoNotExist) {
    refused_with(run(2).state, static_cast<shm::ClaimState>(5), kLeaving);
    auto& idle = const_cast<shm::SlotRow&>(core().slot(core().pool(other_).ready_tail));
    refused_with(idle.state, static_cast<shm::SlotState>(7), kLeaving);
}

// Slots are chosen for each unit, and one is promised.
TEST_F(SoundnessOfRuns, NamesUnitsThatNobodyCanServe) {
    refused_with(run(2).units, 0, kLeaving);
    shm::ClaimRow& claim = run(2);
    claim.state = shm::ClaimState::kPromised;
    claim.first_slot = lease(3).first_slot;
    refused_with(claim.units, 2);
}

// Sums of it would leave their numbers.
TEST_F(SoundnessOfRuns, NamesMoneyThatNobodyCanHave) {
    constexpr int64_t kMost = 1'000'000'000'000'000'000;
    refused_with(account().balance[0], kMost + 1, kLeaving);
    refused_with(account().balance[4], -kMost - 1, kLeaving);
    refused_with(account().rate[1], -1, kLeaving);
    refused_with(account().rate[1], 1'000'000'000'001, kLeaving);
    account().rate[1] = 1'000'000'000'000;
    refused_with(account().charge_max_ns, 1'000'000'000'002'000, kLeaving);
    account().rate[1] = 0;
    refused_with(lease(2).cost[0], kMost + 1, kLeaving);
    refused_with(lease(2).cost[0], -kMost - 1, kLeaving);
    // What a claim's run is to begin with.
    core::State state(memory());
    const uint32_t block = state.counters->arena_free_head;
    auto* cost = const_cast<shm::ArenaBlock&>(state.arena[block]).bytes;
    cost[7] = 0x80;
    refused_with(run(2).carried_cost, block, kLeaving);
    cost[7] = 0;
}

TEST_F(SoundnessOfRuns, ChecksWhatRunsAndWhoPays) {
    wrong_with(run(2).deadline_ns, 5, " runs and has a deadline");
    wrong_with(run(2).first_slot, 0, "waits or runs, and holds slots itself");
    wrong_with(lease(2).granted_ns, 2, " was granted at a time to come");
    wrong_with(account().flags, shm::AccountFlag::kOfFile, " is not configured and has terms");
}

// It would wait again under a tag under which another's lease is known.
TEST_F(SoundnessOfRuns, ChecksThatAClaimRunsForWhomItsLeaseIs) {
    constexpr std::string_view kOther = " runs under a lease that is not its own";
    auto& claim = run(2);
    wrong_with(claim.tag, 4, kOther);
    const uint32_t other = session(1001);
    wrong_with(claim.session, other, kOther);
}

// Expired and uncollected, say, where a better claim takes slots: it would be in two states.
TEST_F(SoundnessOfRuns, ChecksThatALeaseEndsAsItsPoolsDo) {
    constexpr std::string_view kOther = " ends in another way than its pool's do";
    wrong_with(lease(2).mode, shm::ExpiryMode::kLazy, kOther);
    wrong_with(lease(2).mode, shm::ExpiryMode::kCooperative, kOther);
    wrong_with(lease(2).state, shm::LeaseState::kExpired, kOther);
    wrong_with(lease(2).state, shm::LeaseState::kGrace, kOther);
    auto& unused = const_cast<shm::PoolRow&>(core().pool(other_));
    unused.mode = shm::ExpiryMode::kLazy;
    wrong_with(unused.order, shm::PoolOrder::kAccount, " and collects lazily");
}

// The next claim's, fence's or slot's would be one that is there.
TEST_F(SoundnessOfRuns, NamesNumbersThatWouldBeginAnew) {
    core::State state(memory());
    auto& counters = const_cast<shm::CountersRow&>(*state.counters);
    refused_with(counters.arrival_next, ~uint64_t{0}, " or their numbers");
    refused_with(counters.time_ns, ~uint64_t{0}, " or their numbers");
    refused_with(counters.turns, ~uint64_t{0}, " or their numbers");
    auto& pool = const_cast<shm::PoolRow&>(core().pool(pool_));
    refused_with(pool.fence_next, ~uint64_t{0}, kLeaving);
    refused_with(pool.idle_order_next, ~uint64_t{0}, kLeaving);
    refused_with(pool.demand_published, int64_t{1} << 61, kLeaving);
}

// A chain of no bytes would be freed with its one block, and not be counted.
TEST_F(SoundnessOfRuns, NamesChainsOfNoBytes) {
    refused_with(run(2).payload, core().counters().arena_free_head, kLeaving);
    refused_with(run(2).payload_size, 1, kLeaving);
    refused_with(slot(2).attributes, core().counters().arena_free_head, kLeaving);
    const uint32_t size = account().label_limits_size;
    refused_with(account().label_limits_size, 0, kLeaving);
    EXPECT_EQ(account().label_limits_size, size);
}

// What is freed next would be linked behind a block that is somebody's.
TEST_F(SoundnessOfRuns, ChecksWhereTheFreedListEnds) {
    turn(2, [&] { ASSERT_TRUE(core().set_account({.name = "a"}, nullptr)); });
    core::State state(memory());
    auto& counters = const_cast<shm::CountersRow&>(*state.counters);
    ASSERT_EQ(counters.arena_freed, 1U);
    wrong_with(counters.arena_freed_tail, counters.arena_free_head, "ends at another block");
    wrong_with(
        counters.arena_freed_head, shm::kNoRow, "has blocks that are not counted, or the reverse");
    wrong_with(counters.arena_free, 0, "has blocks that are not counted, or the reverse");
}

// The bytes of a limit would be read behind the text's end.
TEST_F(SoundnessOfRuns, NamesLimitsThatAreCutShort) {
    uint32_t row = 0;
    while (core().account(row).label_limits_size == 0)
        ++row;
    auto& account = const_cast<shm::AccountRow&>(core().account(row));
    ASSERT_EQ(account.label_limits_size, 10U);  // five letters, a zero byte, four bytes
    for (const uint32_t size : {1U, 3U, 5U, 6U, 9U}) {
        account.label_limits_size = size;
        EXPECT_NE(core::rows_refusal(memory()), "") << size;
    }
    account.label_limits_size = 10;
    EXPECT_EQ(core::rows_refusal(memory()), "");
}

// A lease whose holder is being killed keeps its slots; they are recovering.
TEST_F(SoundnessOfRuns, OfLeasesWhoseHoldersAreBeingKilled) {
    core::ClaimTerms terms;
    terms.account = "a";
    turn(2, [&] {
        for (uint16_t tag = 1; tag <= 3; ++tag) {
            core::Release command;
            command.session = session_;
            command.lease = core::row_id(lease(tag).head.generation, run(tag).lease);
            command.fence = lease(tag).fence;
            core().apply(command);
        }
    });
    turn(3, [&] {
        core::Claim command;
        command.session = session_;
        command.tag = 4;
        command.pool = pool_;
        command.units = 2;
        command.interval_ns = 500;
        command.terms = &terms;
        core().apply(command);
    });
    turn(5000, [] {});
    ASSERT_EQ(core().pool(pool_).recovering, 2U);
    EXPECT_EQ(core::rows_refusal(memory()), "");
    EXPECT_EQ(core::Core(memory()).check_all(), std::vector<std::string>{});
    uint32_t row = 0;
    while (core().slot(row).state != shm::SlotState::kRecovering)
        ++row;
    auto& slot = const_cast<shm::SlotRow&>(core().slot(row));
    wrong_with(slot.fence, slot.fence - 1, "is under a lease that is not its own");
}

}  // namespace

}  // namespace dibs::tests
