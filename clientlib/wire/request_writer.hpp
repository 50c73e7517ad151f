// clientlib/wire/request_writer.hpp -- writes a Request of schemas/admin.fbs, and other tables.
//
// It does not use the generated builder, which needs operator new.
//
// Front to back, so that every offset points forward. A table's fields are collected first; in the
// table each takes eight bytes, which aligns all of them. What a field refers to is written
// afterwards, in any order. What does not fit is not written, and `fits` says so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace dibs::client {

// The fields of one table, by their numbers; of a little-endian number of eight bytes the first
// ones are the number of as many as the field has.
class RequestTable {
  public:
    void number(uint16_t field, uint64_t value) {
        if (count_ < kFieldsMax) fields_[count_++] = {value, field};
    }
    // What it refers to is written later.
    void reference(uint16_t field) { number(field, 0); }

  private:
    friend class TableWriter;
    struct Field {
        uint64_t value;
        uint16_t number;
    };
    static constexpr size_t kFieldsMax = 16;

    Field fields_[kFieldsMax] = {};
    size_t count_ = 0;
};

class TableWriter {
  public:
    // Zeroes, aligned to 8 bytes.
    TableWriter(uint8_t* bytes, size_t capacity) : bytes_(bytes), capacity_(capacity) {}
    TableWriter(const TableWriter&) = delete;
    TableWriter& operator=(const TableWriter&) = delete;

    [[nodiscard]] bool fits() const { return fits_; }
    [[nodiscard]] const uint8_t* bytes() const { return bytes_; }
    [[nodiscard]] size_t size() const { return at_; }

    // The first thing to be written. Returns where the table is.
    size_t root(const RequestTable& table) { return put_table(table, kRoot); }
    // Where the field of a table that was written lies.
    static size_t place(size_t at, const RequestTable& table, uint16_t field);

    // What the reference at `place` means, each.
    void text(size_t place, const char* text);
    void texts(size_t place, const char* const* texts, size_t count);
    void wides(size_t place, const int64_t* values, size_t count);
    size_t table(size_t place, const RequestTable& table);
    // A list of `count` references, or of `count` words, which follow; where the first one lies.
    size_t references(size_t place, size_t count);
    void words(size_t place, size_t count);
    void word(uint32_t value) { put(&value, sizeof value); }

  private:
    size_t put_table(const RequestTable& table, size_t place);
    // Zeroes up to a multiple of `step`, plus `rest`; what follows is what `place` means.
    void refer_from(size_t place, size_t step = 4, size_t rest = 0);
    void align(size_t step, size_t rest);
    void put(const void* bytes, size_t size);

    static constexpr size_t kRoot = 0;

    uint8_t* bytes_;
    size_t capacity_;
    size_t at_ = sizeof(uint32_t);  // behind the reference to the root
    bool fits_ = true;
};

template <size_t kCapacity>
struct TableMemory {
    alignas(8) uint8_t memory[kCapacity] = {};
};

// More than its memory is refused by the broker.
class RequestWriter : TableMemory<1024>, public TableWriter {
  public:
    RequestWriter() : TableWriter(memory, sizeof memory) {}
};

}  // namespace dibs::client
