// clientlib/question.hpp -- asks the broker one question over a connection of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "clientlib/admin_connection.hpp"
#include "clientlib/admin_tables.hpp"
#include "clientlib/clock.hpp"
#include "clientlib/wire/request_writer.hpp"

namespace dibs::client {

// schemas/admin.fbs: values of Ask, and the fields of a Request, and of
// an Answer.
namespace Ask {
constexpr uint8_t kSetAccount = 19;
constexpr uint8_t kResetAccount = 20;
constexpr uint8_t kDeleteAccount = 21;
constexpr uint8_t kReport = 30;
constexpr uint8_t kPull = 31;
constexpr uint8_t kOffers = 33;
constexpr uint8_t kInspect = 34;
constexpr uint8_t kOrders = 39;
}  // namespace Ask
namespace Field {
constexpr uint16_t kAsk = 0;
constexpr uint16_t kPool = 1;
constexpr uint16_t kNumber = 3;
constexpr uint16_t kId = 4;
constexpr uint16_t kInterval = 8;
constexpr uint16_t kMore = 10;
constexpr uint16_t kAccount = 11;
constexpr uint16_t kChange = 12;
constexpr uint16_t kReport = 13;
constexpr uint16_t kWorker = 14;
constexpr uint16_t kLabels = 15;
constexpr uint16_t kAge = 16;
constexpr uint16_t kError = 17;
constexpr uint16_t kPullers = 18;
constexpr uint16_t kLabelsGiven = 19;
constexpr uint16_t kPrefer = 20;
constexpr uint16_t kPreferGiven = 21;
constexpr uint16_t kLeast = 23;
constexpr uint16_t kMost = 24;
constexpr uint16_t kAfterStamp = 25;
constexpr uint16_t kEntry = 27;
constexpr uint16_t kNames = 28;
constexpr uint16_t kNamesGiven = 29;
constexpr uint16_t kEntryState = 30;
constexpr uint16_t kPriority = 31;
constexpr uint16_t kSupervisor = 32;
constexpr uint16_t kWorkerState = 33;
constexpr uint16_t kType = 34;
constexpr uint16_t kExited = 35;
constexpr uint16_t kFailed = 36;
constexpr uint16_t kBehaviour = 37;
}  // namespace Field

namespace AnswerField {
constexpr size_t kLeases = 9;
constexpr size_t kOffers = 15;
constexpr size_t kStamp = 16;
constexpr size_t kReason = 18;
constexpr size_t kOrders = 21;
}  // namespace AnswerField

// A Request that grows: fields first, then what they refer to.
struct Question {
    RequestTable fields;
    RequestWriter writer;
    size_t at = 0;

    explicit Question(uint8_t ask) { fields.number(Field::kAsk, ask); }
    void begin() { at = writer.root(fields); }
    [[nodiscard]] size_t place(uint16_t field) const {
        return RequestWriter::place(at, fields, field);
    }
    void text(uint16_t field, const char* text) { writer.text(place(field), text); }
    void texts(uint16_t field, const char* const* texts, size_t count) {
        writer.texts(place(field), texts, count);
    }
};

struct Heard {
    // Eight workers, each with 32 labels to provide; 64 offers.
    alignas(8) uint8_t bytes[32768];
    size_t size;
};

// One table of an answer, read with care: what is broken reads as absent.
struct Row {
    const Heard& heard;
    size_t table;

    template <typename T>
    T number(size_t field) const {
        T value = 0;
        const size_t at = field_place(heard.bytes, heard.size, table, field);
        if (at == 0 || !read_at(heard.bytes, heard.size, at, &value)) return 0;
        return value;
    }
    [[nodiscard]] int64_t duration(size_t field) const {
        return public_duration(number<uint64_t>(field));
    }
    template <size_t kRoom>
    void text(size_t field, char (&out)[kRoom]) const {
        copy_text(read_text_at(
                      heard.bytes, heard.size, field_place(heard.bytes, heard.size, table, field)),
                  out);
    }
    [[nodiscard]] AnswerList list(size_t field) const {
        return read_list(heard.bytes, heard.size, table, field);
    }
    // How many resources.
    uint32_t resources(size_t names_field,
                       size_t amounts_field,
                       char (&names)[DIBS_RESOURCES_MAX][DIBS_RESOURCE_NAME_MAX + 1],
                       uint64_t (&amounts)[DIBS_RESOURCES_MAX]) const {
        const AnswerList named = list(names_field);
        const AnswerList counted = list(amounts_field);
        if (named.count > DIBS_RESOURCES_MAX || counted.count != named.count) return 0;
        for (uint32_t i = 0; i < named.count; ++i) {
            copy_text(read_text_at(heard.bytes, heard.size, named.first + i * sizeof(uint32_t)),
                      names[i]);
            if (!read_at(
                    heard.bytes, heard.size, counted.first + i * sizeof(uint64_t), &amounts[i])) {
                return 0;
            }
        }
        return named.count;
    }
    // The table that the reference at `at` means.
    static bool at(const Heard& heard, size_t at, size_t* table) {
        uint32_t offset = 0;
        if (!read_at(heard.bytes, heard.size, at, &offset)) return false;
        *table = at + offset;
        return true;
    }
};

// administration.cpp: fills `heard` with the answer; its code, and why in the options.
int ask_on(const AdminConnection& connection,
           const dibs_connect_options& options,
           const Question& question,
           Heard& heard);
// The same over a connection of its own: fills `heard` with the answer, for which the broker may
// take `wait_ns`; its code.
int put(const dibs_connect_options* given,
        const Question& question,
        Heard& heard,
        int64_t wait_ns = 0);

}  // namespace dibs::client
