// broker/core/ids.hpp -- gives each kind of id in commands and decisions a type of its own.
//
// An id is made of its integer, and reads as it, implicitly. It is never taken for an id of another
// kind: it is not converted to one, nor compared with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>

#include "shm/layout.hpp"

namespace dibs::core {

template <class From, class Number>
concept FitsIn = std::unsigned_integral<From> && sizeof(From) <= sizeof(Number);

template <class Kind, std::unsigned_integral Number, Number kNone>
struct Id {
    using IdKind = Kind;

    constexpr Id() = default;
    template <FitsIn<Number> From>
    constexpr Id(From from) : number(from) {}
    // Literals.
    template <std::signed_integral From>
    consteval Id(From from) : number(from >= 0 ? static_cast<Number>(from) : throw "negative") {}
    constexpr operator Number() const { return number; }

    [[nodiscard]] constexpr bool is_none() const { return number == kNone; }

    Number number = kNone;
};

template <class Value>
concept AnyId = requires {
    typename Value::IdKind;
};
template <class Other, class One>
concept OtherIdThan = AnyId<Other> && !std::same_as<Other, One>;

template <AnyId One, OtherIdThan<One> Other>
bool operator==(One, Other) = delete;
template <AnyId One, OtherIdThan<One> Other>
bool operator<=>(One, Other) = delete;

// The row alone.
using SessionId = Id<struct OfSession, uint32_t, shm::kNoRow>;
using PoolId = Id<struct OfPool, uint32_t, shm::kNoRow>;
using AccountId = Id<struct OfAccount, uint32_t, shm::kNoRow>;
using TypeId = Id<struct OfType, uint32_t, shm::kNoRow>;
// The row and its generation: row_id().
using LeaseId = Id<struct OfLease, uint64_t, shm::kNever>;
using SlotId = Id<struct OfSlot, uint64_t, shm::kNever>;
// In the order of arrival, from 1.
using ClaimNumber = Id<struct OfClaim, uint64_t, 0>;

constexpr uint64_t row_id(uint32_t generation, uint32_t row) {
    return (static_cast<uint64_t>(generation) << 32U) | row;
}
constexpr uint32_t row_of(uint64_t id) {
    return static_cast<uint32_t>(id);
}
constexpr uint32_t generation_of(uint64_t id) {
    return static_cast<uint32_t>(id >> 32U);
}

}  // namespace dibs::core
