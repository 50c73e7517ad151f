// clientlib/payload_encoder.cpp -- FlatBuffers, front to back.
//
//   0   u32  offset of the root table (16)
//   6   vtable of the root: u16 its size (10), u16 the table's (16), three u16 field places
//   16  root table: i32 distance back to its vtable, three u32 references (0 = absent)
//   32  vtable of Option: 8, 12, 4, 8
//   40  what the references point to, in the order of the fields
// SPDX-License-Identifier: Apache-2.0
#include "clientlib/payload_encoder.hpp"

#include <cstring>

namespace dibs::client {
namespace {

constexpr size_t kRootVtable = 6;
constexpr size_t kRoot = 16;
constexpr size_t kOptionVtable = 32;
constexpr size_t kContent = 40;
constexpr uint16_t kOptionSize = 12;

class Writer {
  public:
    explicit Writer(uint8_t* target) : target_(target) {}

    [[nodiscard]] size_t at() const { return at_; }
    // Zeroes up to `place`, or to a multiple of four.
    void fill_to(size_t place) {
        if (target_ != nullptr) std::memset(target_ + at_, 0, place - at_);
        at_ = place;
    }
    void align() { fill_to((at_ + 3) & ~size_t{3}); }

    void put16(uint16_t value) { put(&value, sizeof value); }
    void put32(size_t value) {
        const auto narrow = static_cast<uint32_t>(value);
        put(&narrow, sizeof narrow);
    }
    void put(const void* bytes, size_t size) {
        if (target_ != nullptr && size != 0) std::memcpy(target_ + at_, bytes, size);
        at_ += size;
    }
    // Makes the reference at `place` point here.
    void refer_from(size_t place) {
        const auto distance = static_cast<uint32_t>(at_ - place);
        if (target_ != nullptr) std::memcpy(target_ + place, &distance, sizeof distance);
    }

  private:
    uint8_t* target_;
    size_t at_ = 0;
};

constexpr size_t root_field(size_t field) {
    return kRoot + 4 + 4 * field;
}

void begin(Writer& writer, const bool (&present)[3]) {
    writer.put32(kRoot);
    writer.fill_to(kRootVtable);
    writer.put16(10);
    writer.put16(16);
    for (size_t field = 0; field < 3; ++field) {
        writer.put16(present[field] ? static_cast<uint16_t>(4 + 4 * field) : 0);
    }
    writer.put32(kRoot - kRootVtable);
    writer.fill_to(kOptionVtable);
    constexpr uint16_t kOptionTable[] = {8, kOptionSize, 4, 8};
    for (const uint16_t value : kOptionTable)
        writer.put16(value);
}

void put_string(Writer& writer, size_t reference, const char* text) {
    const size_t size = std::strlen(text);
    writer.align();
    writer.refer_from(reference);
    writer.put32(size);
    writer.put(text, size + 1);
}

// A vector of `count` references, all still 0; returns the place of the first.
size_t put_references(Writer& writer, size_t reference, size_t count) {
    writer.align();
    writer.refer_from(reference);
    writer.put32(count);
    const size_t first = writer.at();
    writer.fill_to(first + 4 * count);
    return first;
}

void put_strings(Writer& writer, size_t reference, const char* const* texts, size_t count) {
    const size_t first = put_references(writer, reference, count);
    for (size_t i = 0; i < count; ++i)
        put_string(writer, first + 4 * i, texts[i]);
}

void put_options(Writer& writer, size_t reference, const dibs_option* options, size_t count) {
    const size_t first = put_references(writer, reference, count);
    for (size_t i = 0; i < count; ++i) {
        const size_t table = writer.at();
        writer.refer_from(first + 4 * i);
        writer.put32(table - kOptionVtable);
        writer.fill_to(table + kOptionSize);
        put_string(writer, table + 4, options[i].key);
        put_string(writer, table + 8, options[i].value != nullptr ? options[i].value : "");
        writer.align();
    }
}

void put_bytes(Writer& writer, size_t reference, const void* bytes, size_t size) {
    writer.align();
    writer.refer_from(reference);
    writer.put32(size);
    writer.put(bytes, size);
}

}  // namespace

size_t encode_claim(const ClaimContent& content, uint8_t* target) {
    Writer writer(target);
    const bool present[3] = {
        content.option_count != 0, content.label_count != 0, content.body_size != 0};
    begin(writer, present);
    if (present[0]) put_options(writer, root_field(0), content.options, content.option_count);
    if (present[1]) put_strings(writer, root_field(1), content.labels, content.label_count);
    if (present[2]) put_bytes(writer, root_field(2), content.body, content.body_size);
    writer.align();
    return writer.at();
}

size_t encode_announce(const AnnounceContent& content, uint8_t* target) {
    Writer writer(target);
    const bool present[3] = {
        content.name != nullptr, content.label_count != 0, content.attribute_count != 0};
    begin(writer, present);
    if (present[0]) put_string(writer, root_field(0), content.name);
    if (present[1]) put_strings(writer, root_field(1), content.labels, content.label_count);
    if (present[2]) put_options(writer, root_field(2), content.attributes, content.attribute_count);
    writer.align();
    return writer.at();
}

static_assert(kContent == kOptionVtable + 8);

}  // namespace dibs::client
