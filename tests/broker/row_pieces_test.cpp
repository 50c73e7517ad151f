// tests/broker/row_pieces_test.cpp -- rows looked at by two threads and by one.
// SPDX-License-Identifier: Apache-2.0
#include "broker/row_pieces.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "broker/core/core.hpp"
#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {
namespace {

core::Limits many_rows() {
    core::Limits limits;
    limits.slots = limits.leases = 3 * RowPieces::kRowsMin;
    limits.claims = 4096;
    limits.sessions = 16;
    return limits;
}

class PiecesOfRows : public CoreFixture {
  protected:
    PiecesOfRows() : CoreFixture(many_rows()) {
        const uint32_t pool = counted_pool("gpu", kSlots);
        for (uint32_t each = 0; each < kSessions; ++each) {
            const uint32_t holder = session();
            for (uint32_t tag = 0; tag < kLeasesEach; tag += kAtOnce) {
                turn(1'000, [&] {
                    for (uint32_t one = tag; one < tag + kAtOnce; ++one)
                        claim(holder, static_cast<uint16_t>(one), pool);
                });
            }
        }
    }

    std::unique_ptr<core::Core> attach(bool two, core::Core::Refusal* refusal) {
        RowPieces reader(memory());
        return core::Core::attach(
            memory(), 7, refusal, core::Core::kRowsAtOnce, two ? &reader : nullptr);
    }
    // One thread and two say so, and why.
    void expect_same() {
        core::Core::Refusal one_says;
        core::Core::Refusal two_say;
        const auto one = attach(false, &one_says);
        const auto two = attach(true, &two_say);
        EXPECT_EQ(one == nullptr, two == nullptr);
        EXPECT_EQ(one_says.unsound, two_say.unsound);
        std::sort(one_says.wrong.begin(), one_says.wrong.end());
        std::sort(two_say.wrong.begin(), two_say.wrong.end());
        EXPECT_EQ(one_says.wrong, two_say.wrong);
    }
    shm::SlotRow& slot(uint32_t row) { return const_cast<shm::SlotRow&>(core().slot(row)); }
    shm::LeaseRow& lease(uint32_t row) { return const_cast<shm::LeaseRow&>(core().lease(row)); }

    static constexpr uint32_t kSessions = 8;
    static constexpr uint32_t kLeasesEach = 960;
    static constexpr uint32_t kAtOnce = 64;
    static constexpr uint32_t kSlots = 10'000;
    static constexpr uint32_t kLeases = kSessions * kLeasesEach;
};

TEST_F(PiecesOfRows, GoOnFromWhatIsThere) {
    core::Core::Refusal refusal;
    const auto next = attach(true, &refusal);
    ASSERT_NE(next, nullptr) << refusal.unsound;
    EXPECT_EQ(next->check_all(), std::vector<std::string>{});
    EXPECT_EQ(next->pool(0).leased, kLeases);
    EXPECT_EQ(next->oldest_lease(0), core().oldest_lease(0));
}

TEST_F(PiecesOfRows, SayWhichRowIsUnsoundWhereverItStands) {
    for (uint32_t row = 0; row < kLeases; row += 700) {
        const uint32_t right = slot(row).holder;
        slot(row).holder = core().leases_max();
        core::Core::Refusal refusal;
        EXPECT_EQ(attach(true, &refusal), nullptr);
        EXPECT_EQ(refusal.unsound, "slot row " + std::to_string(row) + " leaves its tables");
        slot(row).holder = right;
    }
    expect_same();
}

TEST_F(PiecesOfRows, SayWhatIsWrongBehindSoundRows) {
    for (uint32_t row = 0; row < kLeases; row += 700) {
        ++slot(row).fence;
        expect_same();
        core::Core::Refusal refusal;
        EXPECT_EQ(attach(true, &refusal), nullptr);
        EXPECT_EQ(refusal.unsound, "");
        ASSERT_FALSE(refusal.wrong.empty());
        EXPECT_NE(refusal.wrong.front().find("slot row " + std::to_string(row)), std::string::npos);
        --slot(row).fence;
    }
}

// Two leases under one tag: what is derived has one of them.
TEST_F(PiecesOfRows, SayThatALeaseIsNotUnderItsTag) {
    const uint16_t right = lease(20).tag;
    lease(20).tag = lease(21).tag;
    expect_same();
    core::Core::Refusal refusal;
    EXPECT_EQ(attach(true, &refusal), nullptr);
    EXPECT_NE(std::find_if(refusal.wrong.begin(),
                           refusal.wrong.end(),
                           [](const std::string& wrong) {
                               return wrong.find("is not under its tag") != std::string::npos;
                           }),
              refusal.wrong.end());
    lease(20).tag = right;
}

TEST_F(PiecesOfRows, SayTheSameOfRowsThatAreChangedAnywhere) {
    std::minstd_rand random(5);
    for (int round = 0; round < 60; ++round) {
        const bool of_slot = random() % 2 != 0;
        const auto row = static_cast<uint32_t>(random() % kLeases);
        const size_t at = random() % 128;
        std::byte* const rows = of_slot ? reinterpret_cast<std::byte*>(&slot(row))
                                        : reinterpret_cast<std::byte*>(&lease(row));
        const std::byte right = rows[at];
        rows[at] ^= static_cast<std::byte>(1U << random() % 8);
        expect_same();
        rows[at] = right;
    }
}

}  // namespace
}  // namespace dibs::tests
