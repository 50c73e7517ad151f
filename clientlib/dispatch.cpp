// clientlib/dispatch.cpp -- reports on dispatched pools, and asks what is to be done for them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "clientlib/clock.hpp"
#include "clientlib/question.hpp"
#include "clientlib/session.hpp"

namespace dibs::client {
namespace {

// schemas/admin.fbs: ReportKind, and the fields of an Order.
constexpr uint8_t kEntryReport = 6;
constexpr uint8_t kBehaviourReport = 16;
namespace OrderField {
constexpr size_t kKind = 0;
constexpr size_t kEntry = 1;
constexpr size_t kNumber = 2;
constexpr size_t kWorker = 3;
constexpr size_t kSlot = 4;
constexpr size_t kType = 5;
}  // namespace OrderField

constexpr size_t kNamesOfSlice = 10;  // that a request has room for, however long they are

bool names_entry(int32_t kind) {
    return kind != DIBS_DISPATCH_QUEUE && kind != DIBS_DISPATCH_PROBE &&
           kind != DIBS_DISPATCH_WORKER && kind < DIBS_DISPATCH_RUN;
}

bool names_worker(int32_t kind) {
    return kind >= DIBS_DISPATCH_WORKER;
}

int check_said(const dibs_dispatched& said) {
    constexpr uint32_t kAll = DIBS_ENTRY_PRIORITY | DIBS_ENTRY_SUPERVISOR | DIBS_ENTRY_TYPES;
    if (said.kind < DIBS_DISPATCH_ENTRY || said.kind > DIBS_DISPATCH_DRAIN ||
        (said.fields & ~kAll) != 0 || said.pool == nullptr ||
        (said.member_count != 0 && said.members == nullptr) ||
        names_entry(said.kind) != (said.entry != nullptr) ||
        names_worker(said.kind) != (said.worker != nullptr)) {
        return DIBS_EARGUMENT;
    }
    const bool of_entry = said.kind == DIBS_DISPATCH_ENTRY;
    const bool of_worker = said.kind == DIBS_DISPATCH_WORKER;
    const int32_t most = of_entry    ? int32_t{DIBS_ENTRY_CANCELLED}
                         : of_worker ? int32_t{DIBS_WORKER_ABSENT}
                                     : 0;
    if (said.state < 0 || said.state > most || (said.fields != 0 && !of_entry)) {
        return DIBS_EARGUMENT;
    }
    const char* const texts[] = {said.pool, said.entry, said.worker, said.type};
    for (const char* text : texts)
        if (text != nullptr && !good_name(text)) return DIBS_ENAME;
    for (size_t i = 0; i < said.member_count; ++i)
        if (said.members[i] == nullptr || !good_name(said.members[i])) return DIBS_ENAME;
    return said.age_ns < 0 || said.priority < 0 ? DIBS_ENEGATIVE : DIBS_OK;
}

// With `count` names from `first` on.
void write_said(Question& question, const dibs_dispatched& said, size_t first, size_t count) {
    RequestTable& fields = question.fields;
    const bool of_entry = said.kind == DIBS_DISPATCH_ENTRY;
    const auto given = [&](uint32_t field) { return (said.fields & field) != 0; };
    if (said.kind >= DIBS_DISPATCH_RUN) {
        fields.number(Field::kReport, kBehaviourReport);
        fields.number(Field::kBehaviour, static_cast<uint8_t>(said.kind - DIBS_DISPATCH_RUN));
    } else {
        const int32_t kind = kEntryReport + said.kind - DIBS_DISPATCH_ENTRY;
        fields.number(Field::kReport, static_cast<uint8_t>(kind));
    }
    fields.number(Field::kAge, static_cast<uint64_t>(said.age_ns));
    fields.number(of_entry ? Field::kEntryState : Field::kWorkerState,
                  static_cast<uint8_t>(said.state));
    if (given(DIBS_ENTRY_PRIORITY)) {
        fields.number(Field::kPriority, static_cast<uint32_t>(said.priority));
    }
    if (given(DIBS_ENTRY_SUPERVISOR)) {
        fields.number(Field::kSupervisor, said.supervisor != 0 ? 1 : 0);
    }
    fields.number(Field::kNamesGiven, given(DIBS_ENTRY_TYPES) ? 1 : 0);
    fields.number(Field::kExited, said.exited != 0 ? 1 : 0);
    fields.number(Field::kFailed, said.failed != 0 ? 1 : 0);
    if (first + count < said.member_count) fields.number(Field::kMore, 1);
    const struct {
        uint16_t field;
        const char* text;
    } texts[] = {{Field::kPool, said.pool},
                 {Field::kEntry, said.entry},
                 {Field::kWorker, said.worker},
                 {Field::kType, said.type},
                 {Field::kError, said.error}};
    for (const auto& one : texts)
        if (one.text != nullptr) fields.reference(one.field);
    if (count != 0) fields.reference(Field::kNames);
    question.begin();
    for (const auto& one : texts)
        if (one.text != nullptr) question.text(one.field, one.text);
    if (count != 0) question.texts(Field::kNames, said.members + first, count);
}

// How many, or DIBS_EHANDSHAKE.
int read_orders(const Heard& heard, dibs_order* orders, size_t room, uint64_t* stamp) {
    size_t root = 0;
    if (!Row::at(heard, 0, &root)) return DIBS_EHANDSHAKE;
    const Row answer{heard, root};
    if (stamp != nullptr) *stamp = answer.number<uint64_t>(AnswerField::kStamp);
    const AnswerList list = answer.list(AnswerField::kOrders);
    if (list.count > room) return DIBS_EHANDSHAKE;
    for (uint32_t i = 0; i < list.count; ++i) {
        size_t table = 0;
        if (!Row::at(heard, list.first + i * sizeof(uint32_t), &table)) return DIBS_EHANDSHAKE;
        const Row row{heard, table};
        dibs_order& order = orders[i];
        order = {};
        order.kind = row.number<uint8_t>(OrderField::kKind);
        order.number = row.number<uint64_t>(OrderField::kNumber);
        order.slot = row.number<uint32_t>(OrderField::kSlot);
        row.text(OrderField::kEntry, order.entry);
        row.text(OrderField::kWorker, order.worker);
        row.text(OrderField::kType, order.type);
    }
    return static_cast<int>(list.count);
}

}  // namespace
}  // namespace dibs::client

using namespace dibs::client;

int dibs_dispatch_report(const dibs_connect_options* options, const dibs_dispatched* said) {
    if (said == nullptr) return DIBS_EARGUMENT;
    dibs_dispatched known;
    int code = read_options(said, &known, sizeof known, sizeof known);
    if (code == DIBS_OK) code = check_said(known);
    if (code != DIBS_OK) return code;
    AdminConnection connection;
    dibs_connect_options to;
    code = open_conversation(connection, options, &to);
    // A queue's names in slices, while what was read grows older; a type that does not fit is said.
    const uint64_t began_ns = monotonic_ns();
    const int64_t age_ns = known.age_ns;
    const bool sliced = known.kind == DIBS_DISPATCH_QUEUE;
    for (size_t first = 0; code == DIBS_OK;) {
        const size_t left = known.member_count - first;
        const size_t count = sliced && left > kNamesOfSlice ? kNamesOfSlice : left;
        Question question(Ask::kReport);
        const auto passed_ns = static_cast<int64_t>(monotonic_ns() - began_ns);
        known.age_ns = age_ns + std::min(passed_ns, INT64_MAX - age_ns);
        write_said(question, known, first, count);
        Heard heard;
        code = ask_on(connection, to, question, heard);
        first += count;
        if (first == known.member_count) break;
    }
    return code;
}

int dibs_dispatch_orders(const dibs_connect_options* options,
                         const char* pool,
                         dibs_order* orders,
                         size_t count,
                         int64_t wait_ns,
                         uint64_t* stamp) {
    if (pool == nullptr || orders == nullptr || count == 0 || count > DIBS_ORDERS_MAX) {
        return DIBS_EARGUMENT;
    }
    if (!good_name(pool)) return DIBS_ENAME;
    if (wait_ns < 0) return DIBS_ENEGATIVE;
    Question question(Ask::kOrders);
    question.fields.number(Field::kNumber, count);
    question.fields.number(Field::kInterval, static_cast<uint64_t>(wait_ns));
    question.fields.number(Field::kAfterStamp, stamp != nullptr ? *stamp : 0);
    question.fields.reference(Field::kPool);
    question.begin();
    question.text(Field::kPool, pool);
    Heard heard;
    const int code = put(options, question, heard, wait_ns);
    return code != DIBS_OK ? code : read_orders(heard, orders, count, stamp);
}
