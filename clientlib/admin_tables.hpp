// clientlib/admin_tables.hpp -- reads and writes some tables of schemas/admin.fbs by hand.
//
// These are requests that always have the same shape, and what it reads of an answer. A FlatBuffer
// is little-endian: a root offset, and tables whose first word leads back to a list of their
// fields' places. What is read is checked against the answer's size first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dibs/dibs.h"

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

// A Request with its field ask alone.
struct PlainRequest {
    uint32_t root = 12;
    uint16_t fields_size = 6;
    uint16_t table_size = 8;
    uint16_t ask_at = 4;
    uint16_t pad = 0;
    int32_t back_to_fields = 8;
    uint8_t ask = 0;
    uint8_t pad_end[3] = {};
};
static_assert(sizeof(PlainRequest) == 20);

// A Request with ask = dump and its cursor.
struct DumpRequest {
    uint32_t root = 16;
    uint16_t fields_size = 10;
    uint16_t table_size = 16;
    uint16_t ask_at = 4;
    uint16_t absent = 0;  // pool
    uint16_t cursor_at = 8;
    uint16_t pad = 0;
    int32_t back_to_fields = 12;
    uint8_t ask = 16;
    uint8_t pad_ask[3] = {};
    uint64_t cursor = 0;
};
static_assert(sizeof(DumpRequest) == 32);

// A Request with ask = load, more, and the slice's bytes behind it.
struct LoadRequest {
    uint32_t root = 32;
    uint16_t fields_size = 26;
    uint16_t table_size = 12;
    uint16_t ask_at = 4;
    uint16_t absent[8] = {};  // pool to interval_ns
    uint16_t bytes_at = 8;
    uint16_t more_at = 5;
    uint16_t pad = 0;
    int32_t back_to_fields = 28;
    uint8_t ask = 17;
    uint8_t more = 0;
    uint8_t pad_more[2] = {};
    uint32_t bytes_from_here = 4;
    uint32_t bytes_count = 0;
};
static_assert(sizeof(LoadRequest) == 48);

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
    uint8_t at_class = 0;
    uint8_t class_reason = 0;
    uint8_t preempt = 0;
    uint8_t pad1 = 0;
    uint32_t better = 0;
    uint32_t fitting = 0;
    uint32_t fanout_max = 0;
    uint32_t fanout_held = 0;
    uint32_t label_limit = 0;
    uint32_t label_held = 0;
    uint32_t pad2 = 0;
};
static_assert(sizeof(WaitFacts) == 112);

// An explanation: its facts, and two of its texts, cut to what has room.
struct WaitStory {
    WaitFacts facts;
    char account[64] = {};
    char label[64] = {};
};

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

// What an Answer says of a dump or load.
struct SliceAnswer {
    uint8_t code = 0;
    uint8_t more = 0;
    uint64_t cursor = 0;
    const uint8_t* bytes = nullptr;
    uint32_t count = 0;
};

// False: no valid slice.
inline bool read_slice(const uint8_t* bytes, size_t size, SliceAnswer* slice) {
    constexpr size_t kCode = 0;
    constexpr size_t kCursor = 1;
    constexpr size_t kMore = 2;
    constexpr size_t kBytes = 12;
    uint32_t root = 0;
    if (!read_at(bytes, size, 0, &root)) return false;
    const size_t code_at = field_place(bytes, size, root, kCode);
    if (code_at != 0 && !read_at(bytes, size, code_at, &slice->code)) return false;
    const size_t cursor_at = field_place(bytes, size, root, kCursor);
    if (cursor_at != 0 && !read_at(bytes, size, cursor_at, &slice->cursor)) return false;
    const size_t more_at = field_place(bytes, size, root, kMore);
    if (more_at != 0 && !read_at(bytes, size, more_at, &slice->more)) return false;
    uint32_t offset = 0;
    const size_t at = field_place(bytes, size, root, kBytes);
    if (at == 0) return true;
    if (!read_at(bytes, size, at, &offset)) return false;
    const size_t place = at + offset;
    if (!read_at(bytes, size, place, &slice->count)) return false;
    if (slice->count > size - place - sizeof(uint32_t)) return false;
    slice->bytes = bytes + place + sizeof(uint32_t);
    return true;
}

// Bytes of the answer; null: missing or broken.
struct AnswerText {
    const char* bytes = nullptr;
    uint32_t size = 0;
};

// The text that the reference at `at` means.
inline AnswerText read_text_at(const uint8_t* bytes, size_t size, size_t at) {
    uint32_t offset = 0;
    AnswerText text;
    if (at == 0 || !read_at(bytes, size, at, &offset)) return {};
    if (!read_at(bytes, size, at + offset, &text.size)) return {};
    const size_t first = at + offset + sizeof text.size;
    if (first > size || text.size > size - first) return {};
    text.bytes = reinterpret_cast<const char*>(bytes) + first;
    return text;
}

// A list of references: where the first one lies.
struct AnswerList {
    size_t first = 0;
    uint32_t count = 0;
};

inline AnswerList read_list(const uint8_t* bytes, size_t size, size_t table, size_t field) {
    uint32_t offset = 0;
    AnswerList list;
    const size_t at = field_place(bytes, size, table, field);
    if (at == 0 || !read_at(bytes, size, at, &offset)) return {};
    if (!read_at(bytes, size, at + offset, &list.count)) return {};
    list.first = at + offset + sizeof list.count;
    if (list.first > size || list.count > (size - list.first) / sizeof(uint32_t)) return {};
    return list;
}

// Those that there are, or why something was refused.
inline AnswerList read_names(const uint8_t* bytes, size_t size) {
    constexpr size_t kNames = 4;
    uint32_t root = 0;
    if (!read_at(bytes, size, 0, &root)) return {};
    return read_list(bytes, size, root, kNames);
}

template <size_t kRoom>
void copy_text(const AnswerText& text, char (&out)[kRoom]) {
    const size_t fit = text.size < kRoom ? text.size : kRoom - 1;
    memset(out, 0, kRoom);
    if (text.bytes != nullptr) memcpy(out, text.bytes, fit);
}

inline bool read_one_pulled(const uint8_t* bytes, size_t size, size_t at, dibs_pulled* out) {
    constexpr size_t kWorker = 0;
    constexpr size_t kClaim = 1;
    constexpr size_t kAbort = 2;
    constexpr size_t kProvision = 3;
    uint32_t offset = 0;
    if (!read_at(bytes, size, at, &offset)) return false;
    const size_t table = at + offset;
    *out = {};
    copy_text(read_text_at(bytes, size, field_place(bytes, size, table, kWorker)), out->worker);
    const size_t claim_at = field_place(bytes, size, table, kClaim);
    const size_t abort_at = field_place(bytes, size, table, kAbort);
    if (claim_at != 0 && !read_at(bytes, size, claim_at, &out->claim)) return false;
    if (abort_at != 0 && !read_at(bytes, size, abort_at, &out->abort)) return false;
    const AnswerList labels = read_list(bytes, size, table, kProvision);
    if (labels.count > DIBS_LABELS_MAX) return false;
    out->provision_count = labels.count;
    for (uint32_t i = 0; i < labels.count; ++i) {
        copy_text(read_text_at(bytes, size, labels.first + i * sizeof(uint32_t)),
                  out->provision[i]);
    }
    return true;
}

// How many, or DIBS_EHANDSHAKE: it is no such answer.
inline int read_pulled(const uint8_t* bytes, size_t size, dibs_pulled* pulled, size_t room) {
    constexpr size_t kPulled = 14;
    uint32_t root = 0;
    if (!read_at(bytes, size, 0, &root)) return DIBS_EHANDSHAKE;
    const AnswerList list = read_list(bytes, size, root, kPulled);
    if (list.count > room) return DIBS_EHANDSHAKE;
    for (uint32_t i = 0; i < list.count; ++i) {
        if (!read_one_pulled(bytes, size, list.first + i * sizeof(uint32_t), &pulled[i])) {
            return DIBS_EHANDSHAKE;
        }
    }
    return static_cast<int>(list.count);
}

enum class ExplanationFound : uint8_t { kFacts, kNotFound, kNonsense };

inline ExplanationFound read_explanation(const uint8_t* bytes, size_t size, WaitStory* story) {
    constexpr size_t kCode = 0;
    constexpr size_t kExplanation = 11;
    constexpr size_t kFacts = 0;
    constexpr size_t kAccount = 2;
    constexpr size_t kLabel = 4;
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
    if (facts_at == 0 || !read_at(bytes, size, facts_at, &story->facts)) {
        return ExplanationFound::kNonsense;
    }
    const size_t table = at + offset;
    copy_text(read_text_at(bytes, size, field_place(bytes, size, table, kAccount)), story->account);
    copy_text(read_text_at(bytes, size, field_place(bytes, size, table, kLabel)), story->label);
    return ExplanationFound::kFacts;
}

}  // namespace dibs::client
