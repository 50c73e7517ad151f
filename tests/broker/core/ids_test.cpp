// tests/broker/core/ids_test.cpp -- ids read as their integers, and never as ids of another kind.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/ids.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <type_traits>

#include "broker/core/command.hpp"
#include "broker/core/decision.hpp"

namespace dibs::core {
namespace {

template <class One, class Other>
concept Equated = requires(One one, Other other) {
    one == other;
};
template <class One, class Other>
concept Ordered = requires(One one, Other other) {
    one < other;
};

template <class One, class Other>
constexpr void stand_apart() {
    static_assert(!std::is_constructible_v<One, Other> && !std::is_convertible_v<One, Other>);
    static_assert(!std::is_assignable_v<One&, Other>);
    static_assert(!Equated<One, Other> && !Ordered<One, Other>);
}

template <class Kind, class... Others>
constexpr void stands_apart_from() {
    (stand_apart<Kind, Others>(), ...);
    (stand_apart<Others, Kind>(), ...);
}

template <class Kind, class Number>
constexpr void is_its_number() {
    static_assert(sizeof(Kind) == sizeof(Number) && alignof(Kind) == alignof(Number));
    static_assert(std::is_trivially_copyable_v<Kind> && std::is_standard_layout_v<Kind>);
    static_assert(std::is_convertible_v<Number, Kind> && std::is_convertible_v<Kind, Number>);
    static_assert(Equated<Kind, Kind> && Equated<Kind, Number> && Equated<Number, Kind>);
    static_assert(Ordered<Kind, Kind> && Ordered<Kind, Number> && Ordered<Number, Kind>);
}

TEST(Ids, AreTheirNumbers) {
    is_its_number<SessionId, uint32_t>();
    is_its_number<PoolId, uint32_t>();
    is_its_number<AccountId, uint32_t>();
    is_its_number<LeaseId, uint64_t>();
    is_its_number<SlotId, uint64_t>();
    is_its_number<ClaimNumber, uint64_t>();
    static_assert(std::is_trivially_copyable_v<Decision> && std::is_trivially_copyable_v<Claim>);
}

TEST(Ids, OfTwoKindsDoNotMix) {
    stands_apart_from<SessionId, PoolId, AccountId, LeaseId, SlotId, ClaimNumber>();
    stands_apart_from<PoolId, AccountId, LeaseId, SlotId, ClaimNumber>();
    stands_apart_from<AccountId, LeaseId, SlotId, ClaimNumber>();
    stands_apart_from<LeaseId, SlotId, ClaimNumber>();
    stands_apart_from<SlotId, ClaimNumber>();
}

// Where the number is known, the compiler looks at it.
TEST(Ids, AreNotNarrowed) {
    static_assert(!std::is_constructible_v<SessionId, uint64_t>);
    static_assert(!std::is_constructible_v<SessionId, double>);
    static_assert(SessionId(7) == 7U && LeaseId(7) == 7U);
}

TEST(Ids, AreNoneUnlessGiven) {
    EXPECT_TRUE(SessionId().is_none());
    EXPECT_EQ(PoolId(), shm::kNoRow);
    EXPECT_EQ(ClaimNumber(), 0U);
    EXPECT_FALSE(LeaseId(0).is_none());
}

TEST(Ids, OfRowsHaveTheirGeneration) {
    const SlotId slot = row_id(9, 5);
    EXPECT_EQ(slot, 0x9'00000005U);
    EXPECT_EQ(row_of(slot), 5U);
    EXPECT_EQ(generation_of(slot), 9U);
}

}  // namespace
}  // namespace dibs::core
