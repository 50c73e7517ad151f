// tests/abi/compiled_listing.cpp -- asks the compiler for every offset, size and value.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <type_traits>

#include "shm/greeting.hpp"
#include "shm/layout.hpp"
#include "tests/abi/listing.hpp"

namespace dibs::abi {
namespace {

enum class RowKind : uint8_t { kStruct, kField, kValue };

// What one macro says, as data: as so many statements it would take the compiler half a minute.
struct Row {
    RowKind kind;
    const char* scope;
    const char* name;
    uint64_t number;  // a size, an offset, or a value's two's complement
    uint64_t size;
    bool negative;
};

template <typename T>
constexpr Row value_row(const char* scope, const char* name, T value) {
    if constexpr (std::is_enum_v<T>) {
        return value_row(scope, name, static_cast<std::underlying_type_t<T>>(value));
    } else {
        return {RowKind::kValue, scope, name, static_cast<uint64_t>(value), 0, value < T{0}};
    }
}

using namespace dibs::shm;

#define STRUCT(type) {RowKind::kStruct, "", #type, sizeof(type), 0, false},
#define FIELD(type, field) \
    {RowKind::kField, #type, #field, offsetof(type, field), sizeof(type::field), false},
#define VALUE(scope, name) value_row(#scope, #name, scope::name),
#define CONSTANT(name) value_row("", #name, name),
constexpr Row kRows[] = {
#include "tests/abi/layout_fields_generated.h"
};
#undef STRUCT
#undef FIELD
#undef VALUE
#undef CONSTANT

}  // namespace

Listing compiled_listing() {
    Listing listing;
    for (const Row& row : kRows) {
        if (row.kind == RowKind::kStruct) {
            listing.structs.push_back({row.name, row.number, {}});
        } else if (row.kind == RowKind::kField) {
            listing.structs.back().fields.push_back({row.name, row.number, row.size});
        } else {
            const std::string value = row.negative
                                          ? std::to_string(static_cast<int64_t>(row.number))
                                          : std::to_string(row.number);
            listing.values.push_back({row.scope, row.name, value});
        }
    }
    return listing;
}

std::string to_text(const Listing& listing) {
    std::string text;
    for (const Struct& type : listing.structs) {
        text += "struct " + type.name + ' ' + std::to_string(type.size) + '\n';
        for (const Field& field : type.fields) {
            text += "field " + type.name + ' ' + field.name + ' ' + std::to_string(field.offset) +
                    ' ' + std::to_string(field.size) + '\n';
        }
    }
    for (const Value& value : listing.values) {
        text += "value " + (value.scope.empty() ? "constants" : value.scope) + ' ' + value.name +
                ' ' + value.value + '\n';
    }
    return text;
}

}  // namespace dibs::abi
