// tests/broker/takeover/row_pieces_test.cpp -- rows looked at by two threads and by one.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/row_pieces.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <new>
#include <random>
#include <thread>
#include <utility>

#include "broker/core/core.hpp"
#include "tests/broker/core/core_fixture.hpp"
#include "tests/broker/cpus.hpp"

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

    std::unique_ptr<core::Core> attach(bool two,
                                       core::Core::Refusal* refusal,
                                       std::function<void(uint32_t)> before = {}) {
        RowPieces reader(memory(), std::move(before));
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

// This thread's first piece waits until the other one has had its own.
TEST_F(PiecesOfRows, AreLookedAtByTwoThreads) {
    if (!test::has_two_cpus()) GTEST_SKIP() << "this process may run on one CPU only";
    const auto own = std::this_thread::get_id();
    std::latch others(1);
    std::atomic<uint32_t> looked_at = 0;
    core::Core::Refusal refusal;
    const auto next = attach(true, &refusal, [&](uint32_t) {
        if (std::this_thread::get_id() == own) {
            others.wait();
        } else if (looked_at.fetch_add(1) == 0) {
            others.count_down();
        }
    });
    ASSERT_NE(next, nullptr) << refusal.unsound;
    EXPECT_GT(looked_at.load(), 0U);
    EXPECT_EQ(next->check_all(), std::vector<std::string>{});
    EXPECT_EQ(next->pool(0).leased, kLeases);
}

// Whichever thread lacks memory, at whichever piece: STATE is not at fault, and is not said to be.
TEST_F(PiecesOfRows, AreNobodysWhereALookThrows) {
    constexpr uint32_t kPieces = 3 * RowPieces::kRowsMin / core::Core::kRowsAtOnce;
    for (uint32_t bad = 0; bad < kPieces; ++bad) {
        core::Core::Refusal refusal;
        EXPECT_THROW((void)attach(true,
                                  &refusal,
                                  [&](uint32_t piece) {
                                      if (piece == bad) throw std::bad_alloc();
                                  }),
                     std::bad_alloc);
        EXPECT_EQ(refusal.unsound, "");
        EXPECT_TRUE(refusal.wrong.empty());
    }
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
