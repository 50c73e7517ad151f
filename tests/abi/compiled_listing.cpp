// tests/abi/compiled_listing.cpp -- asks the compiler for every offset, size and value.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <type_traits>

#include "shm/greeting.hpp"
#include "shm/layout.hpp"
#include "tests/abi/listing.hpp"

namespace dibs::abi {
namespace {

template <typename T>
std::string number(T value) {
    if constexpr (std::is_enum_v<T>) {
        return number(static_cast<std::underlying_type_t<T>>(value));
    } else if constexpr (std::is_signed_v<T>) {
        return std::to_string(static_cast<int64_t>(value));
    } else {
        return std::to_string(static_cast<uint64_t>(value));
    }
}

}  // namespace

Listing compiled_listing() {
    using namespace dibs::shm;
    Listing listing;
#define STRUCT(type) listing.structs.push_back({#type, sizeof(type), {}});
#define FIELD(type, field) \
    listing.structs.back().fields.push_back({#field, offsetof(type, field), sizeof(type::field)});
#define VALUE(scope, name) listing.values.push_back({#scope, #name, number(scope::name)});
#define CONSTANT(name) listing.values.push_back({"", #name, number(name)});
#include "tests/abi/layout_fields_generated.h"
#undef STRUCT
#undef FIELD
#undef VALUE
#undef CONSTANT
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
