// tests/broker/core/recovery/attach_test.cpp -- what a successor derives from the rows: the age of
// leases wherever they stand, and no row overlooked because a counter says that there are no more.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <vector>

#include "broker/core/parts.hpp"
#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {

namespace {

class Attach : public CoreFixture {
  protected:
    Attach() : pool_(counted_pool("gpu", 4)), session_(session()) {}

    void lease(uint16_t tag, core::TimeNs now) {
        turn(now, [&] { claim(session_, tag, pool_); });
    }
    void release(uint32_t row, core::TimeNs now) {
        const shm::LeaseRow& lease = core().lease(row);
        const uint64_t id = core::row_id(lease.head.generation, row);
        turn(now, [&] { core().apply(core::Release{session_, false, id, lease.fence, 0}); });
    }
    // The leases by age, as their tags, found by releasing the oldest again and again.
    std::vector<uint16_t> by_age() {
        std::vector<uint16_t> tags;
        for (uint32_t row = core().oldest_lease(pool_); row != shm::kNoRow;
             row = core().oldest_lease(pool_)) {
            tags.push_back(core().lease(row).tag);
            release(row, 9'000);
        }
        return tags;
    }
    // Of the same rows, with a counter that is wrong by so many.
    std::vector<std::string> violations(uint32_t shm::CountersRow::*counter, int by) {
        uint32_t& stored = const_cast<shm::CountersRow&>(core().counters()).*counter;
        const uint32_t right = stored;
        stored = right + static_cast<uint32_t>(by);
        EXPECT_EQ(core::rows_refusal(memory()), "");
        std::vector<std::string> found = core::Core(memory()).check_all();
        stored = right;
        return found;
    }

    uint32_t pool_;
    uint32_t session_;
};

TEST_F(Attach, ListsLeasesByAgeWhereTheyStandSo) {
    for (uint16_t tag = 0; tag < 4; ++tag)
        lease(tag, 1'000 + tag);
    attach();
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
    EXPECT_EQ(by_age(), (std::vector<uint16_t>{0, 1, 2, 3}));
}

TEST_F(Attach, ListsLeasesByAgeWhereARowWasGivenBackAndTakenAgain) {
    for (uint16_t tag = 0; tag < 3; ++tag)
        lease(tag, 1'000 + tag);
    release(core().oldest_lease(pool_), 2'000);
    lease(7, 3'000);  // in the first row, and the youngest of all
    ASSERT_EQ(core().lease(0).tag, 7);
    attach();
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
    EXPECT_EQ(by_age(), (std::vector<uint16_t>{1, 2, 7}));
}

TEST_F(Attach, OverlooksNothingThatACounterDoesNotCount) {
    for (uint16_t tag = 0; tag < 6; ++tag)  // two of them wait
        lease(tag, 1'000 + tag);
    for (const auto counter : {&shm::CountersRow::claims_free,
                               &shm::CountersRow::leases_free,
                               &shm::CountersRow::slots_free}) {
        for (const int by : {-1, 1, 2, 1 << 30})
            EXPECT_NE(violations(counter, by), std::vector<std::string>{}) << by;
        EXPECT_EQ(violations(counter, 0), std::vector<std::string>{});
    }
}

// The list of free claims is followed once, for soundness and for the invariants alike.
TEST_F(Attach, OverlooksNoFreeClaimThatItsListLeavesOut) {
    const uint32_t head = core().counters().claims_free_head;
    auto& first = const_cast<shm::ClaimRow&>(core().claim(head));
    auto& second = const_cast<shm::ClaimRow&>(core().claim(first.head.free_next));
    const uint32_t right = second.head.free_next;
    for (const uint32_t wrong : {shm::kNoRow, head}) {  // it ends early; it never does
        second.head.free_next = wrong;
        core::Core::Refusal refusal;
        EXPECT_EQ(core::Core::attach(memory(), 7, &refusal, 3), nullptr);
        EXPECT_NE(refusal.unsound.empty(), refusal.wrong.empty());
    }
    second.head.free_next = right;
    core::Core::Refusal refusal;
    EXPECT_NE(core::Core::attach(memory(), 7, &refusal, 3), nullptr);
}

TEST_F(Attach, OverlooksNoSlotThatSaidReadyAndIsNotIdle) {
    core::PoolConfig config;
    config.name = "box";
    config.kind = shm::PoolKind::kWorker;
    turn(0, [&] { pool_ = core().set_pool(config, nullptr); });
    turn(0, [&] { core().apply(core::Announce{.session = session_, .pool = pool_}); });
    auto& row = const_cast<shm::SlotRow&>(core().slot(core().next_slot_of(session_)));
    ASSERT_EQ(row.state, shm::SlotState::kRecovering);
    core::Core::Refusal refusal;
    for (const auto stops : {shm::SlotFlag::kProtected, shm::SlotFlag::kUnqualified}) {
        row.flags = static_cast<uint8_t>(shm::SlotFlag::kSaidReady | stops);
        EXPECT_NE(core::Core::attach(memory(), 7, &refusal, 3), nullptr);
    }
    row.flags = shm::SlotFlag::kSaidReady;
    EXPECT_EQ(core::Core::attach(memory(), 7, &refusal, 3), nullptr);
    ASSERT_EQ(refusal.wrong.size(), 1U);
    EXPECT_NE(refusal.wrong.front().find("nothing stops it"), std::string::npos);
    row.flags = 0;
}

// Workers have been asked for forty claims; the others wait. The list is not seated anew for those
// that come back, one by one, the youngest first.
TEST_F(Attach, KeepsASeatForEachClaimThatMayComeBack) {
    core::PoolConfig config;
    config.name = "box";
    config.kind = shm::PoolKind::kWorker;
    config.backlog_max = 200;
    turn(0, [&] { pool_ = core().set_pool(config, nullptr); });
    turn(0, [&] {
        for (uint16_t tag = 0; tag < 40; ++tag) {
            core().apply(core::Announce{.session = session_, .pool = pool_, .ready = true});
            claim(session_, tag, pool_);
        }
    });
    turn(0, [&] {
        for (uint16_t tag = 40; tag < 50; ++tag)
            claim(session_, tag, pool_);
    });
    core::Core::Parts parts(memory(), 0);
    parts.rebuild();
    const uint64_t before = parts.backlog.seated_anew();
    for (uint32_t tag = 40; tag-- != 0;) {
        const uint32_t row = parts.tags[session_][tag];
        ASSERT_EQ(parts.state.claims[row].state, shm::ClaimState::kReserved);
        parts.backlog.insert_before(pool_, row, parts.backlog.head(pool_));
    }
    EXPECT_EQ(parts.backlog.seated_anew(), before);
    EXPECT_EQ(parts.backlog.ahead(pool_, parts.tags[session_][49]), 49U);
}

// Tables of which some rows are looked at before others that they name.
class AttachInPieces : public CoreFixture {
  protected:
    static constexpr uint16_t kLeases = 40;
    static constexpr std::array<uint32_t, 4> kRowsAtOnce = {1, 3, 7, core::Core::kRowsAtOnce};

    AttachInPieces() : pool_(counted_pool("gpu", 2 * kLeases)), session_(session()) {
        // Two slots each; every other one comes back and goes, so that leases and slots stand
        // far from each other.
        for (uint16_t tag = 0; tag < kLeases; ++tag)
            turn(1'000 + tag, [&] { claim(session_, tag, pool_, 2); });
        for (uint32_t row = 0; row < kLeases; row += 2)
            release(row);
        for (uint16_t tag = kLeases; tag < kLeases + kLeases / 2; ++tag)
            turn(3'000 + tag, [&] { claim(session_, tag, pool_, 2); });
    }
    void release(uint32_t row) {
        const shm::LeaseRow& lease = core().lease(row);
        const uint64_t id = core::row_id(lease.head.generation, row);
        turn(2'000, [&] { core().apply(core::Release{session_, false, id, lease.fence, 0}); });
    }
    // The last slot that is leased; its holder's row is another than its own.
    shm::SlotRow& last_slot() {
        uint32_t row = core().slots_max() - 1;
        while (core().slot(row).state != shm::SlotState::kLeased)
            --row;
        return const_cast<shm::SlotRow&>(core().slot(row));
    }
    std::unique_ptr<core::Core> attach(uint32_t rows_at_once, core::Core::Refusal* refusal) {
        return core::Core::attach(memory(), 0, refusal, rows_at_once);
    }

    uint32_t pool_;
    uint32_t session_;
};

TEST_F(AttachInPieces, GoesOnFromWhatIsThere) {
    for (const uint32_t rows : kRowsAtOnce) {
        core::Core::Refusal refusal;
        const auto next = attach(rows, &refusal);
        ASSERT_NE(next, nullptr) << rows << refusal.unsound;
        EXPECT_EQ(next->check_all(), std::vector<std::string>{});
        EXPECT_EQ(next->pool(pool_).leased, 2U * kLeases);
        EXPECT_EQ(next->oldest_lease(pool_), 1U);
    }
}

TEST_F(AttachInPieces, RefusesASlotThatLeavesItsTable) {
    uint32_t& holder = last_slot().holder;
    const uint32_t right = holder;
    holder = core().leases_max();
    for (const uint32_t rows : kRowsAtOnce) {
        core::Core::Refusal refusal;
        EXPECT_EQ(attach(rows, &refusal), nullptr);
        EXPECT_NE(refusal.unsound, "") << rows;
    }
    holder = right;
}

TEST_F(AttachInPieces, RefusesALeaseWhoseSlotIsAnothers) {
    uint32_t& holder = last_slot().holder;
    const uint32_t right = holder;
    holder = right == 1 ? 3 : 1;
    for (const uint32_t rows : kRowsAtOnce) {
        core::Core::Refusal refusal;
        EXPECT_EQ(attach(rows, &refusal), nullptr);
        EXPECT_NE(refusal.unsound, "") << rows;
    }
    holder = right;
}

TEST_F(AttachInPieces, SaysWhatIsWrongBehindSoundRows) {
    uint64_t& fence = last_slot().fence;
    ++fence;
    for (const uint32_t rows : kRowsAtOnce) {
        core::Core::Refusal refusal;
        EXPECT_EQ(attach(rows, &refusal), nullptr);
        EXPECT_EQ(refusal.unsound, "") << rows;
        EXPECT_FALSE(refusal.wrong.empty()) << rows;
    }
    --fence;
}

core::Limits many_leases() {
    core::Limits limits;
    limits.slots = limits.leases = 8192;
    limits.sessions = 16;
    return limits;
}

class Ages : public CoreFixture {
  protected:
    Ages() : CoreFixture(many_leases()) {}

    // Those of a pool, as they would be preempted; each goes back.
    std::vector<uint64_t> fences_by_age(uint32_t pool) {
        std::vector<uint64_t> fences;
        while (core().oldest_lease(pool) != shm::kNoRow) {
            turn(kSecond, [&] {
                for (uint32_t row = core().oldest_lease(pool);
                     row != shm::kNoRow && !core().turn_full();
                     row = core().oldest_lease(pool)) {
                    const shm::LeaseRow lease = core().lease(row);
                    fences.push_back(lease.fence);
                    const uint64_t id = core::row_id(lease.head.generation, row);
                    core().apply(core::Release{lease.session, false, id, lease.fence, 0});
                }
            });
        }
        return fences;
    }
};

// So many that they are sorted by the bits of their fences, not by comparing two.
TEST_F(Ages, OfManyLeasesThatHaveComeAndGoneAreTheirFences) {
    constexpr uint16_t kEach = 400;
    const uint32_t pools[] = {counted_pool("one", 4096), counted_pool("other", 4096)};
    std::vector<uint32_t> sessions;
    for (int each = 0; each < 8; ++each)
        sessions.push_back(session());
    std::minstd_rand random(16);
    const auto claim_all = [&](uint32_t holder, uint16_t step) {
        turn(1, [&] {
            for (uint16_t tag = 0; tag < kEach; tag = static_cast<uint16_t>(tag + step))
                claim(holder, tag, pools[random() % 2]);
        });
    };
    for (const uint32_t holder : sessions)
        claim_all(holder, 1);
    std::vector<uint32_t> rows;  // every third tag's lease goes back, in a random order
    for (uint32_t row = 0; row < core().leases_max(); ++row) {
        const shm::LeaseRow& lease = core().lease(row);
        if (lease.state != shm::LeaseState::kFree && lease.tag % 3 == 0) rows.push_back(row);
    }
    std::shuffle(rows.begin(), rows.end(), random);
    for (size_t next = 0; next < rows.size();) {
        turn(1, [&] {
            for (; next < rows.size() && !core().turn_full(); ++next) {
                const shm::LeaseRow lease = core().lease(rows[next]);
                const uint64_t id = core::row_id(lease.head.generation, rows[next]);
                core().apply(core::Release{lease.session, false, id, lease.fence, 0});
            }
        });
    }
    for (const uint32_t holder : sessions)
        claim_all(holder, 3);
    attach();
    size_t leases = 0;
    for (const uint32_t pool : pools) {
        const std::vector<uint64_t> fences = fences_by_age(pool);
        EXPECT_TRUE(std::is_sorted(fences.begin(), fences.end()));
        leases += fences.size();
    }
    EXPECT_EQ(leases, sessions.size() * kEach);
}

}  // namespace

}  // namespace dibs::tests
