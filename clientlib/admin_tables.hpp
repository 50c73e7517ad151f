// clientlib/admin_tables.hpp -- the two shapes of schemas/admin.fbs that the library knows.
//
// A FlatBuffer is little-endian: a root offset, and tables whose first word leads back to a list of
// where their fields lie. What is read is checked against the answer's size first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dibs::client {

// A Request with its fields ask = explain, by_tag = true, session and tag.
struct ExplainRequest {
    uint32_t root = 24;
    uint16_t fields_size = 20;  // the list of fields: its own size, the table's, a place each
    uint16_t table_size = 18;
    uint16_t ask_at = 16;
    uint16_t absent[4] = {};  // pool, cursor, number, id
    uint16_t session_at = 8;
    uint16_t tag_at = 4;
    uint16_t by_tag_at = 17;
    int32_t back_to_fields = 20;
    uint32_t tag = 0;
    uint64_t session = 0;
    uint8_t ask = 8;
    uint8_t by_tag = 1;
    uint8_t pad[6] = {};
};
static_assert(sizeof(ExplainRequest) == 48);

// As the struct of that name.
struct WaitFacts {
    uint8_t reason = 0;
    uint8_t obstacle = 0;
    uint8_t pad[2] = {};
    uint32_t position = 0;
    uint32_t waiting = 0;
    uint32_t units = 0;
    uint32_t confirmed = 0;
    uint32_t idle = 0;
    uint32_t slots = 0;
    uint32_t leases = 0;
    uint64_t waited_ns = 0;
    uint64_t left_ns = 0;
    uint64_t holder_number = 0;
    uint64_t holder_age_ns = 0;
    uint32_t holder_uid = 0;
    uint32_t holder_pid = 0;
    uint64_t number = 0;
};
static_assert(sizeof(WaitFacts) == 80);

template <typename T>
bool read_at(const uint8_t* bytes, size_t size, size_t place, T* out) {
    if (place > size || size - place < sizeof *out) return false;
    memcpy(out, bytes + place, sizeof *out);
    return true;
}

// Where a field of the table lies; 0 = it is absent, or the table is broken.
inline size_t field_place(const uint8_t* bytes, size_t size, size_t table, size_t field) {
    int32_t back = 0;
    uint16_t fields_size = 0;
    uint16_t place = 0;
    if (!read_at(bytes, size, table, &back)) return 0;
    const auto fields = static_cast<int64_t>(table) - back;
    if (fields < 0) return 0;
    const auto at = static_cast<size_t>(fields);
    if (!read_at(bytes, size, at, &fields_size) || 4 + field * 2 + 2 > fields_size) return 0;
    if (!read_at(bytes, size, at + 4 + field * 2, &place) || place == 0) return 0;
    return table + place;
}

enum class ExplanationFound : uint8_t { kFacts, kNotFound, kNonsense };

inline ExplanationFound read_explanation(const uint8_t* bytes, size_t size, WaitFacts* facts) {
    constexpr size_t kCode = 0;
    constexpr size_t kExplanation = 11;
    constexpr size_t kFacts = 0;
    uint32_t root = 0;
    if (!read_at(bytes, size, 0, &root)) return ExplanationFound::kNonsense;
    uint8_t code = 0;
    const size_t code_at = field_place(bytes, size, root, kCode);
    if (code_at != 0 && !read_at(bytes, size, code_at, &code)) return ExplanationFound::kNonsense;
    if (code != 0) return ExplanationFound::kNotFound;
    uint32_t offset = 0;
    const size_t at = field_place(bytes, size, root, kExplanation);
    if (at == 0 || !read_at(bytes, size, at, &offset)) return ExplanationFound::kNonsense;
    const size_t facts_at = field_place(bytes, size, at + offset, kFacts);
    if (facts_at == 0 || !read_at(bytes, size, facts_at, facts)) return ExplanationFound::kNonsense;
    return ExplanationFound::kFacts;
}

}  // namespace dibs::client
