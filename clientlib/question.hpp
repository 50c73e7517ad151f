// clientlib/question.hpp -- asks the broker one question over a connection of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "clientlib/admin_connection.hpp"
#include "clientlib/admin_tables.hpp"
#include "clientlib/request_writer.hpp"

namespace dibs::client {

// schemas/admin.fbs: values of Ask, and the fields of a Request.
namespace Ask {
constexpr uint8_t kSetAccount = 19;
constexpr uint8_t kResetAccount = 20;
constexpr uint8_t kDeleteAccount = 21;
constexpr uint8_t kReport = 30;
constexpr uint8_t kPull = 31;
constexpr uint8_t kOffers = 33;
constexpr uint8_t kInspect = 34;
}  // namespace Ask
namespace Field {
constexpr uint16_t kAsk = 0;
constexpr uint16_t kPool = 1;
constexpr uint16_t kNumber = 3;
constexpr uint16_t kId = 4;
constexpr uint16_t kInterval = 8;
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
}  // namespace Field

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

// administration.cpp: fills `heard` with the answer, for which the broker may take `wait_ns`; its
// code.
int put(const dibs_connect_options* given,
        const Question& question,
        Heard& heard,
        int64_t wait_ns = 0);

}  // namespace dibs::client
