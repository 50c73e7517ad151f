// tests/broker/core/match/vectors_test.cpp -- parts of slots: which slot, why one waits, and rows
// that no broker has written.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "broker/core/look.hpp"
#include "broker/core/store/state.hpp"
#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {

namespace {

using core::Amount;
using shm::SlotState;

constexpr Amount kHost[] = {{"cpu", 16}, {"mem", 64}};

class Vectors : public CoreFixture {
  protected:
    explicit Vectors(const core::Limits& limits = kFewRows) : CoreFixture(limits) {}

    uint32_t hosts(uint32_t slots) {
        core::PoolConfig config;
        config.name = "host";
        config.slots = slots;
        config.vector = kHost;
        uint32_t row = shm::kNoRow;
        std::string why;
        turn(0, [&] { row = core().set_pool(config, &why); });
        EXPECT_EQ(why, "");
        return row;
    }
    // The slot's number; none: it waits.
    std::optional<uint32_t> part(uint32_t session, uint16_t tag, int64_t cpu, int64_t mem) {
        const Amount least[] = {{"cpu", cpu}, {"mem", mem}};
        core::Claim command;
        command.session = session;
        command.tag = tag;
        command.least = least;
        for (const core::Decision& decided : turn(0, [&] { core().apply(command); })) {
            if (decided.kind == core::DecisionKind::kGrant)
                return core().decided_slots(decided)[0].number;
        }
        return std::nullopt;
    }
    void release(uint32_t session, uint16_t tag) {
        turn(0, [&] { core().apply(core::Cancel{.session = session, .tag = tag}); });
    }
    core::Explanation why_waiting() {
        for (uint32_t row = 0; row < core().claims_max(); ++row) {
            if (core().claim(row).state == shm::ClaimState::kWaiting) return core().explain(row);
        }
        return {};
    }
};

// Whatever shapes come, and in whatever turn: those that have an order, and those that are looked
// for in all slots. The naive core's scan of all slots is this one's measure.
TEST_F(Vectors, AreOfTheSlotWithTheLeastRoomLeft) {
    constexpr uint32_t kHosts = 12;
    const uint32_t pool = hosts(kHosts);
    const uint32_t one = session();
    std::array<std::array<int64_t, 2>, kHosts> free{};
    free.fill({16, 64});
    struct Held {
        uint32_t host;
        int64_t cpu;
        int64_t mem;
    };
    std::array<std::optional<Held>, 60> held;
    std::mt19937_64 random(7);
    int granted = 0;
    for (int step = 0; step < 3000; ++step) {
        const auto tag = static_cast<uint16_t>(random() % held.size());
        if (held[tag]) {
            release(one, tag);
            free[held[tag]->host][0] += held[tag]->cpu;
            free[held[tag]->host][1] += held[tag]->mem;
            held[tag].reset();
            continue;
        }
        const auto cpu = static_cast<int64_t>(random() % 5);
        const auto mem = static_cast<int64_t>(1 + random() % 16);
        std::optional<uint32_t> best;
        int64_t least = 0;
        for (uint32_t host = 0; host < kHosts; ++host) {
            if (free[host][0] < cpu || free[host][1] < mem) continue;
            const int64_t left =
                (free[host][0] - cpu) * 1000 / 16 + (free[host][1] - mem) * 1000 / 64;
            if (best && left >= least) continue;
            best = host;
            least = left;
        }
        if (!best) continue;
        ASSERT_EQ(part(one, tag, cpu, mem), best) << "step " << step;
        free[*best][0] -= cpu;
        free[*best][1] -= mem;
        held[tag] = {*best, cpu, mem};
        ++granted;
        if (step % 500 == 0) attach();
    }
    EXPECT_GT(granted, 1000);
    EXPECT_EQ(core().pool(pool).parts,
              static_cast<uint32_t>(std::count_if(held.begin(), held.end(), [](const auto& one_of) {
                  return one_of.has_value();
              })));
}

TEST_F(Vectors, AreExplainedByWhatLacksAndWhoHoldsIt) {
    const uint32_t pool = hosts(2);
    const uint32_t one = session();
    ASSERT_TRUE(part(one, 0, 1, 40));
    ASSERT_TRUE(part(one, 1, 1, 40));
    ASSERT_TRUE(part(one, 2, 12, 0));
    EXPECT_FALSE(part(one, 3, 3, 40));
    const core::Explanation why = why_waiting();
    EXPECT_EQ(why.reason, core::WaitReason::kLacks);
    EXPECT_EQ(core().resources(pool)[why.resource].name, "mem");
    ASSERT_NE(why.holder, shm::kNoRow);
    EXPECT_EQ(core().lease(why.holder).tag, 0U);
    release(one, 3);
    EXPECT_FALSE(part(one, 3, 16, 1));
    EXPECT_EQ(core().resources(pool)[why_waiting().resource].name, "cpu");
}

// An offer that is not accepted is no news: else who waits for news would try again and again.
TEST_F(Vectors, StampsOfOffersChangeWithWhatIsOffered) {
    const uint32_t pool = hosts(2);
    const uint32_t one = session();
    std::set<uint64_t> seen;
    const auto is_news = [&] { return seen.insert(core::Look::offers_stamp(core(), pool)).second; };
    EXPECT_TRUE(is_news());
    EXPECT_FALSE(part(one, 5, 17, 0));
    EXPECT_FALSE(is_news());
    ASSERT_TRUE(part(one, 0, 16, 1));
    EXPECT_TRUE(is_news());
    const Amount least[] = {{"cpu", 1}};
    core::Claim accept;
    accept.session = one;
    accept.tag = 1;
    accept.least = least;
    accept.offer = 1;
    const auto decided = turn(0, [&] { core().apply(accept); });
    ASSERT_EQ(decided.size(), 1U);
    EXPECT_EQ(decided[0].reason, shm::Reason::kOfferExpired);
    EXPECT_FALSE(is_news());
    turn(0, [&] { core().apply(core::Drain{.pool = pool}); });
    EXPECT_TRUE(is_news());
    turn(0, [&] { core().apply(core::Drain{.pool = pool, .on = false}); });
    release(one, 0);
    EXPECT_TRUE(is_news());
    core().set_epoch(core().head().epoch + 1);
    EXPECT_TRUE(is_news());
}

TEST_F(Vectors, EndedLeasesAreKnownUntilOthersHaveTheirPlaces) {
    hosts(1);
    const uint32_t one = session();
    core::Look::keep_ended_leases(core(), 2);
    std::vector<uint64_t> ids;
    for (int round = 0; round < 3; ++round) {
        ASSERT_TRUE(part(one, 0, 3, 5));
        for (uint32_t row = 0; row < core().leases_max(); ++row) {
            if (core().lease(row).state == shm::LeaseState::kLive)
                ids.push_back(core::row_id(core().lease(row).head.generation, row));
        }
        release(one, 0);
    }
    ASSERT_EQ(ids.size(), 3U);
    EXPECT_EQ(core::Look::ended_lease(core(), ids[0], 0), nullptr);
    const core::EndedLease* last = core::Look::ended_lease(core(), ids[2], 0);
    ASSERT_NE(last, nullptr);
    EXPECT_EQ(core::Look::ended_lease(core(), 0, last->number), last);
    EXPECT_EQ(last->amounts[0], 3U);
    EXPECT_EQ(last->amounts[1], 5U);
    EXPECT_EQ(last->reason, shm::Reason::kOk);
    ASSERT_NE(core::Look::ended_lease(core(), ids[1], 0), nullptr);
    core::Look::keep_ended_leases(core(), 0);
    EXPECT_EQ(core::Look::ended_lease(core(), ids[2], 0), nullptr);
}

class VectorsOfFewRows : public Vectors {
  protected:
    static core::Limits few() {
        core::Limits limits = kFewRows;
        limits.slots = 3;
        return limits;
    }
    VectorsOfFewRows() : Vectors(few()) {}
};

TEST_F(VectorsOfFewRows, WaitForASlotRow) {
    hosts(1);
    const uint32_t one = session();
    ASSERT_TRUE(part(one, 0, 1, 1));
    ASSERT_TRUE(part(one, 1, 1, 1));
    EXPECT_FALSE(part(one, 2, 1, 1));
    EXPECT_EQ(why_waiting().reason, core::WaitReason::kSlotRows);
    attach();
    release(one, 0);
    EXPECT_EQ(core().claim_of_tag(one, 2), shm::kNoRow);
    EXPECT_EQ(core().pool(0).leased, 2U);
}

TEST_F(Vectors, CannotChangeWhileThePoolRuns) {
    hosts(1);
    core::PoolConfig config;
    config.name = "host";
    config.slots = 1;
    constexpr Amount kOther[] = {{"cpu", 16}, {"mem", 65}};
    config.vector = kOther;
    std::string why;
    turn(0, [&] { core().set_pool(config, &why); });
    EXPECT_EQ(why, "pool 'host': its resources cannot change while it runs");
    config.vector = {};
    turn(0, [&] { core().set_pool(config, &why); });
    EXPECT_EQ(why, "pool 'host': its resources cannot change while it runs");
}

// Its names give their block of the arena back, and another pool may have the row.
TEST_F(Vectors, GoWithTheirPool) {
    const uint32_t before = core().counters().arena_free;
    const uint32_t pool = hosts(1);
    EXPECT_EQ(core().counters().arena_free, before - 1);
    turn(0, [&] { EXPECT_EQ(core().delete_pool(pool), shm::Reason::kOk); });
    turn(1, [] {});
    EXPECT_EQ(core().counters().arena_free + core().counters().arena_freed, before);
    EXPECT_EQ(counted_pool("host", 2), pool);
    const uint32_t one = session();
    EXPECT_FALSE(part(one, 0, 1, 1));
    EXPECT_TRUE(core().resources(pool).empty());
}

// Each of them keeps the core from attaching: what it says would be believed.
class UnsoundVectors : public Vectors {
  protected:
    UnsoundVectors() {
        hosts(2);
        session_ = session();
        EXPECT_EQ(part(session_, 0, 4, 8), 0U);
        EXPECT_FALSE(part(session_, 1, 1, 65));
        turn(0, [&] { core().apply(core::Drain{.pool = 0, .on = false}); });
        for (uint32_t row = 0; row < core().slots_max(); ++row) {
            if (core().slot(row).state == SlotState::kShared) whole_ = row;
            if (core().slot(row).state == SlotState::kLeased) part_ = row;
        }
    }
    shm::SlotRow& slot(uint32_t row) { return const_cast<shm::SlotRow&>(core().slot(row)); }
    uint64_t* amounts(uint32_t row) {
        core::State state(memory());
        return const_cast<uint64_t*>(state.slot_vectors[row].amount);
    }
    bool attaches() {
        core::Core::Refusal refusal;
        const auto core = core::Core::attach(memory(), 0, &refusal);
        EXPECT_TRUE(core != nullptr || !refusal.unsound.empty() || !refusal.wrong.empty());
        return core != nullptr;
    }

    uint32_t session_ = shm::kNoRow;
    uint32_t whole_ = shm::kNoRow;
    uint32_t part_ = shm::kNoRow;
};

TEST_F(UnsoundVectors, AttachAsTheyAre) {
    EXPECT_TRUE(attaches());
}
TEST_F(UnsoundVectors, APartOfNoSlot) {
    slot(part_).part_of = core().slots_max();
    EXPECT_FALSE(attaches());
}
TEST_F(UnsoundVectors, APartOfItself) {
    slot(part_).part_of = part_;
    EXPECT_FALSE(attaches());
}
TEST_F(UnsoundVectors, APartOfAnIdleSlot) {
    slot(part_).part_of = whole_ == 0 ? 1 : 0;
    EXPECT_FALSE(attaches());
}
TEST_F(UnsoundVectors, APartThatNobodyHolds) {
    slot(part_).part_of = shm::kNoRow;
    EXPECT_FALSE(attaches());
}
TEST_F(UnsoundVectors, APartThatIsDrained) {
    slot(part_).behaviour = shm::Behaviour::kDrain;
    EXPECT_FALSE(attaches());
}
TEST_F(UnsoundVectors, APartWithAttributes) {
    slot(part_).attributes = core().pool(0).resources;
    slot(part_).attributes_size = 4;
    EXPECT_FALSE(attaches());
}
TEST_F(UnsoundVectors, MoreThanTheSlotHas) {
    amounts(part_)[0] = 17;
    EXPECT_FALSE(attaches());
}
TEST_F(UnsoundVectors, AmountsThatDoNotAddUp) {
    amounts(whole_)[1] -= 1;
    EXPECT_FALSE(attaches());
}
TEST_F(UnsoundVectors, ACountOfPartsThatIsNone) {
    slot(whole_).parts = 2;
    EXPECT_FALSE(attaches());
}
TEST_F(UnsoundVectors, APoolWithoutNames) {
    const_cast<shm::PoolRow&>(core().pool(0)).resources_count = 3;
    EXPECT_FALSE(attaches());
}
TEST_F(UnsoundVectors, ACapacityOfNothing) {
    const_cast<shm::PoolRow&>(core().pool(0)).capacity[1] = 0;
    EXPECT_FALSE(attaches());
}
TEST_F(UnsoundVectors, ASharedSlotInAPoolWithoutResources) {
    auto& pool = const_cast<shm::PoolRow&>(core().pool(0));
    pool.flags &= static_cast<uint8_t>(~shm::PoolFlag::kResources);
    EXPECT_FALSE(attaches());
}

}  // namespace

}  // namespace dibs::tests
