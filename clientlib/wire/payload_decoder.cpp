// clientlib/wire/payload_decoder.cpp -- reads FlatBuffers with one bounds check per step.
// SPDX-License-Identifier: Apache-2.0
#include "clientlib/wire/payload_decoder.hpp"

#include <cstring>

namespace dibs::client {
namespace {

// Places are offsets from the first byte; 0 stands for "absent", since no object lies there.
class Reader {
  public:
    Reader(const uint8_t* bytes, size_t size) : bytes_(bytes), size_(size) {}

    [[nodiscard]] bool holds(size_t place, size_t size) const {
        return place <= size_ && size <= size_ - place;
    }
    template <typename T>
    bool load(size_t place, T& value) const {
        if (!holds(place, sizeof value)) return false;
        std::memcpy(&value, bytes_ + place, sizeof value);
        return true;
    }
    // Follows the reference at `place`.
    bool follow(size_t place, size_t& target) const {
        uint32_t distance = 0;
        if (!load(place, distance) || distance == 0) return false;
        target = place + distance;
        return holds(target, sizeof(uint32_t));
    }
    // The place of a reference field of the table at `table`; 0 if it is absent.
    bool field(size_t table, size_t number, size_t& place) const {
        int32_t back = 0;
        if (!load(table, back)) return false;
        const int64_t vtable = static_cast<int64_t>(table) - back;
        if (vtable < 0) return false;
        uint16_t vtable_size = 0;
        const auto at = static_cast<size_t>(vtable);
        if (!load(at, vtable_size) || !holds(at, vtable_size)) return false;
        const size_t entry = 4 + 2 * number;
        uint16_t within = 0;
        if (entry + 2 <= vtable_size && !load(at + entry, within)) return false;
        place = within == 0 ? 0 : table + within;
        // The table's own size is not asked, as the broker's verifier does not ask it either: what
        // that lets through must be readable here.
        return within == 0 || holds(place, sizeof(uint32_t));
    }
    // The string that the reference at `place` names.
    bool text(size_t place, const char*& out) const {
        size_t at = 0;
        uint32_t size = 0;
        if (!follow(place, at) || !load(at, size) || !holds(at + 4, size_t{size} + 1)) return false;
        if (bytes_[at + 4 + size] != 0) return false;
        out = reinterpret_cast<const char*>(bytes_ + at + 4);
        return true;
    }
    // The vector at the reference `place`: its first element and how many of `width` bytes.
    bool vector(size_t place, size_t width, size_t& first, size_t& count) const {
        size_t at = 0;
        uint32_t length = 0;
        if (!follow(place, at) || !load(at, length) || !holds(at + 4, length * width)) return false;
        first = at + 4;
        count = length;
        return true;
    }
    [[nodiscard]] const uint8_t* at(size_t place) const { return bytes_ + place; }

  private:
    const uint8_t* bytes_;
    size_t size_;
};

bool read_options(const Reader& reader, size_t field, dibs_assignment& out) {
    size_t first = 0;
    size_t count = 0;
    if (!reader.vector(field, 4, first, count) || count > DIBS_OPTIONS_MAX) return false;
    for (size_t i = 0; i < count; ++i) {
        size_t table = 0;
        size_t key = 0;
        size_t value = 0;
        if (!reader.follow(first + 4 * i, table)) return false;
        if (!reader.field(table, 0, key) || !reader.field(table, 1, value)) return false;
        dibs_option& option = out.options[i];
        option.value = "";
        if (key == 0 || !reader.text(key, option.key)) return false;
        if (value != 0 && !reader.text(value, option.value)) return false;
    }
    out.option_count = count;
    return true;
}

bool read_labels(const Reader& reader, size_t field, const char** labels, size_t& label_count) {
    size_t first = 0;
    size_t count = 0;
    if (!reader.vector(field, 4, first, count) || count > DIBS_LABELS_MAX) return false;
    for (size_t i = 0; i < count; ++i) {
        if (!reader.text(first + 4 * i, labels[i])) return false;
    }
    label_count = count;
    return true;
}

bool read_fields(const Reader& reader, dibs_assignment& out) {
    size_t root = 0;
    size_t options = 0;
    size_t labels = 0;
    size_t body = 0;
    size_t prefer = 0;
    if (!reader.follow(0, root)) return false;
    if (!reader.field(root, 0, options) || !reader.field(root, 1, labels) ||
        !reader.field(root, 2, body) || !reader.field(root, 3, prefer)) {
        return false;
    }
    if (options != 0 && !read_options(reader, options, out)) return false;
    if (labels != 0 && !read_labels(reader, labels, out.labels, out.label_count)) return false;
    if (prefer != 0 && !read_labels(reader, prefer, out.prefer, out.prefer_count)) return false;
    if (body != 0) {
        size_t first = 0;
        if (!reader.vector(body, 1, first, out.body_size)) return false;
        out.body = reader.at(first);
    }
    return true;
}

}  // namespace

bool decode_claim(const uint8_t* bytes, size_t size, dibs_assignment& assignment) {
    const auto forget = [&] {
        assignment.body = nullptr;
        assignment.body_size = 0;
        assignment.option_count = 0;
        assignment.label_count = 0;
        assignment.prefer_count = 0;
    };
    forget();
    if (size == 0 || read_fields(Reader(bytes, size), assignment)) return true;
    forget();
    return false;
}

}  // namespace dibs::client
