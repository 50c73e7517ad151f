// tests/abi/listing.hpp -- the shared layout as the compiler sees it, as data that can be compared.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::abi {

struct Field {
    std::string name;
    uint64_t offset = 0;
    uint64_t size = 0;
};

struct Struct {
    std::string name;
    uint64_t size = 0;
    std::vector<Field> fields;
};

// An enumerator, or a constant of a scope: "SlotState" has "kIdle" with "1". The scope of the
// constants at the top is empty. Text, so that 64-bit and negative values need no common type.
struct Value {
    std::string scope;
    std::string name;
    std::string value;
};

struct Listing {
    std::vector<Struct> structs;
    std::vector<Value> values;
};

// From shm/layout.hpp and shm/greeting.hpp: names by fields.py, numbers by the compiler.
Listing compiled_listing();

// One line each, in the header's order: "struct SlotRow 256", "field SlotRow head 0 16",
// "value SlotState kIdle 1". This is what a frozen version is kept as.
std::string to_text(const Listing& listing);

// From a document: a heading "### `Name`, N bytes" opens the table of a struct, whose rows begin
// "| offset | size | `field` |"; "### `Name`" opens the table of a scope, whose rows begin
// "| value | `name` |". The scope `constants` stands for the empty one.
Listing listing_of_document(std::string_view markdown);

// What one listing says and the other does not, in words: empty if they agree. Order counts among
// the fields of a struct and nowhere else.
std::vector<std::string> differences(const Listing& header, const Listing& document);

}  // namespace dibs::abi
