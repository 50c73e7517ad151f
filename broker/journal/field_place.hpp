// broker/journal/field_place.hpp -- maps a command's fields to those of a FlatBuffers table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <type_traits>

#include "broker/core/ids.hpp"

namespace dibs {

// Of the field with this number: the first is 0, in each_field() and in the schema.
constexpr flatbuffers::voffset_t field_place(size_t number) {
    return static_cast<flatbuffers::voffset_t>((number + 2) * sizeof(flatbuffers::voffset_t));
}

// A value that stands in the table itself.
template <class Value>
inline constexpr bool kScalar =
    std::is_arithmetic_v<Value> || std::is_enum_v<Value> || core::AnyId<Value>;

// As the table has it.
template <class Value>
constexpr auto raw(Value value) {
    if constexpr (std::is_same_v<Value, bool>) {
        return static_cast<uint8_t>(value);
    } else if constexpr (std::is_enum_v<Value>) {
        return static_cast<std::underlying_type_t<Value>>(value);
    } else if constexpr (core::AnyId<Value>) {
        return value.number;
    } else {
        return value;
    }
}

}  // namespace dibs
