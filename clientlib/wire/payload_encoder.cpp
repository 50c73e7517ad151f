// clientlib/wire/payload_encoder.cpp -- writes the FlatBuffers tables front to back.
//
//   0   u32  offset of the root table
//   6   vtable of the root: u16 its size, u16 the table's, a u16 place for each field
//   ..  root table: i32 distance back to its vtable, the references (0 = absent), the numbers
//   ..  vtable of Option: 8, 12, 4, 8
//   ..  what the references point to, in the order of the fields
//
// There are three shapes of a root: three references (vtable of 10 bytes, table at 16), the claim
// with terms, seventeen fields (vtable of 38 bytes, table at 48, so that its u64 is aligned), and
// the announcement with resources, five (vtable of 14 bytes, table at 20).
// SPDX-License-Identifier: Apache-2.0
#include "clientlib/wire/payload_encoder.hpp"

#include <algorithm>
#include <cstring>

namespace dibs::client {
namespace {

constexpr size_t kRootVtable = 6;
constexpr uint16_t kOptionSize = 12;

// Where a root's references lie: of the fields 0, 1, 2, and 3 where there is one.
struct Shape {
    size_t root;
    size_t option_vtable;
    [[nodiscard]] size_t field(size_t number) const { return root + 4 + 4 * number; }
};
constexpr Shape kPlain = {16, 32};
constexpr Shape kWithTerms = {48, 120};
constexpr Shape kWithResources = {20, 44};
constexpr size_t kParts = kWithResources.root + 20;
constexpr size_t kPayer = kWithTerms.root + 36;
constexpr size_t kLeast = kWithTerms.root + 40;
constexpr size_t kMost = kWithTerms.root + 44;
constexpr size_t kMeta = kWithTerms.root + 52;
constexpr size_t kAlso = kWithTerms.root + 56;
constexpr size_t kApplication = kWithTerms.root + 60;
constexpr size_t kTask = kWithTerms.root + 64;
constexpr size_t kGroup = kWithTerms.root + 68;

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

void put_option_vtable(Writer& writer, const Shape& shape) {
    writer.fill_to(shape.option_vtable);
    constexpr uint16_t kOptionTable[] = {8, kOptionSize, 4, 8};
    for (const uint16_t value : kOptionTable)
        writer.put16(value);
}

void begin(Writer& writer, const bool (&present)[3]) {
    writer.put32(kPlain.root);
    writer.fill_to(kRootVtable);
    writer.put16(10);
    writer.put16(16);
    for (size_t field = 0; field < 3; ++field) {
        writer.put16(present[field] ? static_cast<uint16_t>(4 + 4 * field) : 0);
    }
    writer.put32(kPlain.root - kRootVtable);
    put_option_vtable(writer, kPlain);
}

void begin_with_terms(Writer& writer, const bool (&present)[4], const dibs_claim_options& terms) {
    writer.put32(kWithTerms.root);
    writer.fill_to(kRootVtable);
    writer.put16(38);
    writer.put16(72);
    for (size_t field = 0; field < 4; ++field) {
        writer.put16(present[field] ? static_cast<uint16_t>(4 + 4 * field) : 0);
    }
    constexpr uint16_t kNumbers[] = {20, 24, 32, 33};  // priority, grace, preempt, requeue
    for (const uint16_t place : kNumbers)
        writer.put16(place);
    writer.put16(terms.account != nullptr ? 36 : 0);
    writer.put16(terms.least_count != 0 ? 40 : 0);
    writer.put16(terms.most_count != 0 ? 44 : 0);
    writer.put16(48);
    writer.put16(terms.meta != nullptr ? 52 : 0);
    writer.put16(terms.also_count != 0 ? 56 : 0);
    writer.put16(terms.application != nullptr ? 60 : 0);
    writer.put16(terms.task != nullptr ? 64 : 0);
    writer.put16(terms.group != nullptr ? 68 : 0);
    writer.fill_to(kWithTerms.root);
    writer.put32(kWithTerms.root - kRootVtable);
    writer.fill_to(kWithTerms.root + 20);
    writer.put32(static_cast<size_t>(terms.priority == 0 ? 1 : terms.priority));
    const auto grace_ns = static_cast<uint64_t>(terms.preempt_grace_ns);
    writer.put(&grace_ns, sizeof grace_ns);
    const uint8_t flags[] = {static_cast<uint8_t>(terms.preempt),
                             static_cast<uint8_t>(terms.requeue != 0 ? 1 : 0)};
    writer.put(flags, sizeof flags);
    writer.fill_to(kWithTerms.root + 48);
    writer.put32(terms.offer != nullptr ? size_t{terms.offer->slot} + 1 : 0);
    put_option_vtable(writer, kWithTerms);
}

void begin_with_resources(Writer& writer, const bool (&present)[4], uint32_t parts) {
    writer.put32(kWithResources.root);
    writer.fill_to(kRootVtable);
    writer.put16(14);
    writer.put16(24);
    for (size_t field = 0; field < 4; ++field) {
        writer.put16(present[field] ? static_cast<uint16_t>(4 + 4 * field) : 0);
    }
    writer.put16(kParts - kWithResources.root);
    writer.put32(kWithResources.root - kRootVtable);
    writer.fill_to(kParts);
    writer.put32(parts);
    put_option_vtable(writer, kWithResources);
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

void put_options(Writer& writer,
                 const Shape& shape,
                 size_t reference,
                 const dibs_option* options,
                 size_t count) {
    const size_t first = put_references(writer, reference, count);
    for (size_t i = 0; i < count; ++i) {
        const size_t table = writer.at();
        writer.refer_from(first + 4 * i);
        writer.put32(table - shape.option_vtable);
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

void put_member(Writer& writer, const dibs_claim_options& terms) {
    if (terms.application != nullptr) put_string(writer, kApplication, terms.application);
    if (terms.task != nullptr) put_string(writer, kTask, terms.task);
    if (terms.group != nullptr) put_string(writer, kGroup, terms.group);
}

}  // namespace

size_t encode_claim(const ClaimContent& content, uint8_t* target) {
    Writer writer(target);
    const bool present[3] = {
        content.option_count != 0, content.label_count != 0, content.body_size != 0};
    const dibs_claim_options* terms = content.terms;
    const bool prefers = terms != nullptr && terms->prefer_count != 0;
    const Shape& shape = terms != nullptr ? kWithTerms : kPlain;
    if (terms != nullptr) {
        begin_with_terms(writer, {present[0], present[1], present[2], prefers}, *terms);
    } else {
        begin(writer, present);
    }
    if (present[0])
        put_options(writer, shape, shape.field(0), content.options, content.option_count);
    if (present[1]) put_strings(writer, shape.field(1), content.labels, content.label_count);
    if (present[2]) put_bytes(writer, shape.field(2), content.body, content.body_size);
    if (terms != nullptr && terms->account != nullptr) put_string(writer, kPayer, terms->account);
    if (prefers) put_strings(writer, shape.field(3), terms->prefer, terms->prefer_count);
    if (terms != nullptr && terms->least_count != 0)
        put_strings(writer, kLeast, terms->least, terms->least_count);
    if (terms != nullptr && terms->most_count != 0)
        put_strings(writer, kMost, terms->most, terms->most_count);
    if (terms != nullptr && terms->meta != nullptr) put_string(writer, kMeta, terms->meta);
    if (terms != nullptr && terms->also_count != 0) {
        writer.align();
        writer.refer_from(kAlso);
        writer.put32(terms->also_count);
        for (size_t i = 0; i < terms->also_count; ++i) {
            writer.put16(static_cast<uint16_t>(terms->also[i].pool));
            writer.put16(static_cast<uint16_t>(std::max(terms->also[i].units, 1U)));
        }
    }
    if (terms != nullptr) put_member(writer, *terms);
    writer.align();
    return writer.at();
}

size_t encode_announce(const AnnounceContent& content, uint8_t* target) {
    Writer writer(target);
    const bool present[3] = {
        content.name != nullptr, content.label_count != 0, content.attribute_count != 0};
    const bool has_resources = content.resource_count != 0 || content.parts != 0;
    const Shape& shape = has_resources ? kWithResources : kPlain;
    if (has_resources) {
        const bool all[4] = {present[0], present[1], present[2], content.resource_count != 0};
        begin_with_resources(writer, all, content.parts);
    } else {
        begin(writer, present);
    }
    if (present[0]) put_string(writer, shape.field(0), content.name);
    if (present[1]) put_strings(writer, shape.field(1), content.labels, content.label_count);
    if (present[2])
        put_options(writer, shape, shape.field(2), content.attributes, content.attribute_count);
    if (content.resource_count != 0)
        put_strings(writer, shape.field(3), content.resources, content.resource_count);
    writer.align();
    return writer.at();
}

}  // namespace dibs::client
