// tests/broker/core/attach_test.cpp -- what a successor derives from the rows: the age of leases
// wherever they stand, and no row overlooked because a counter says that there are no more.
// SPDX-License-Identifier: Apache-2.0
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

}  // namespace

}  // namespace dibs::tests
