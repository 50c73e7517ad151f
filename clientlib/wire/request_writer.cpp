// clientlib/wire/request_writer.cpp -- writes tables, texts and lists one behind the other.
// SPDX-License-Identifier: Apache-2.0
#include "clientlib/wire/request_writer.hpp"

#include <cstring>

namespace dibs::client {

namespace {

constexpr size_t kStride = 8;  // of a table's fields

}  // namespace

void TableWriter::put(const void* bytes, size_t size) {
    if (size > capacity_ - at_) fits_ = false;
    if (!fits_) return;
    if (size != 0) std::memcpy(bytes_ + at_, bytes, size);
    at_ += size;
}

void TableWriter::align(size_t step, size_t rest) {
    while (fits_ && at_ % step != rest) {
        if (at_ == capacity_) {
            fits_ = false;
        } else {
            bytes_[at_++] = 0;
        }
    }
}

// The list of where its fields lie comes first: its own size, the table's, and a place for each.
size_t TableWriter::put_table(const RequestTable& table, size_t place) {
    uint16_t fields[2 + 64] = {};
    size_t last = 0;
    for (size_t i = 0; i < table.count_; ++i) {
        const size_t number = table.fields_[i].number;
        fields[2 + number] = static_cast<uint16_t>(sizeof(uint32_t) + kStride * i);
        if (number + 1 > last) last = number + 1;
    }
    fields[0] = static_cast<uint16_t>(2 * (2 + last));
    fields[1] = static_cast<uint16_t>(sizeof(uint32_t) + kStride * table.count_);
    align(4, 0);
    const size_t list = at_;
    put(fields, fields[0]);
    refer_from(place, 8, 4);  // so that the fields behind the first word are aligned to eight
    const size_t at = at_;
    word(static_cast<uint32_t>(at - list));
    for (size_t i = 0; i < table.count_; ++i)
        put(&table.fields_[i].value, kStride);
    return at;
}

size_t TableWriter::table(size_t place, const RequestTable& table) {
    return put_table(table, place);
}

size_t TableWriter::place(size_t at, const RequestTable& table, uint16_t field) {
    size_t i = 0;
    while (i < table.count_ && table.fields_[i].number != field)
        ++i;
    return at + sizeof(uint32_t) + kStride * i;
}

void TableWriter::refer_from(size_t place, size_t step, size_t rest) {
    align(step, rest);
    const auto distance = static_cast<uint32_t>(at_ - place);
    if (fits_) std::memcpy(bytes_ + place, &distance, sizeof distance);
}

void TableWriter::text(size_t place, const char* text) {
    const size_t size = std::strlen(text);
    refer_from(place);
    word(static_cast<uint32_t>(size));
    put(text, size + 1);
}

size_t TableWriter::references(size_t place, size_t count) {
    words(place, count);
    const size_t first = at_;
    for (size_t i = 0; i < count && fits_; ++i)
        word(0);
    return first;
}

void TableWriter::texts(size_t place, const char* const* texts, size_t count) {
    const size_t first = references(place, count);
    for (size_t i = 0; i < count && fits_; ++i)
        text(first + i * sizeof(uint32_t), texts[i]);
}

void TableWriter::wides(size_t place, const int64_t* values, size_t count) {
    refer_from(place, 8, 4);
    word(static_cast<uint32_t>(count));
    put(values, count * sizeof *values);
}

void TableWriter::words(size_t place, size_t count) {
    refer_from(place);
    word(static_cast<uint32_t>(count));
}

}  // namespace dibs::client
