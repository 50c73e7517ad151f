// clientlib/administration.cpp -- sets accounts and reports workers that do not attach.
// Each call is one question to the broker, over a connection of its own.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "clientlib/admin_connection.hpp"
#include "clientlib/admin_tables.hpp"
#include "clientlib/question.hpp"
#include "clientlib/session.hpp"

namespace dibs::client {
namespace {

// schemas/admin.fbs: the fields of an AccountChange, of a Puller.
namespace Change {
constexpr uint16_t kRate = 0;
constexpr uint16_t kRateGiven = 1;
constexpr uint16_t kBalance = 2;
constexpr uint16_t kBalanceGiven = 3;
constexpr uint16_t kChargeMax = 4;
constexpr uint16_t kFanoutMax = 5;
constexpr uint16_t kFreeTasksDisabled = 6;
constexpr uint16_t kLabelKeys = 7;
constexpr uint16_t kLabelLimits = 8;
}  // namespace Change
namespace PullerField {
constexpr uint16_t kWorker = 0;
constexpr uint16_t kLabels = 1;
}  // namespace PullerField

// schemas/admin.fbs: Code
constexpr uint8_t kUnknownPool = 2;
constexpr uint8_t kUnknownAccount = 8;

// Why it was refused: the first of the answer's names. If a pool or an account is not there, they
// are those that are.
void tell_why(const dibs_connect_options& options, uint8_t code, const Heard& heard) {
    const size_t room = options.error_text_size;
    if (options.error_text == nullptr || room == 0) return;
    options.error_text[0] = 0;
    const AnswerList names = read_names(heard.bytes, heard.size);
    const bool is_list = code == kUnknownPool || code == kUnknownAccount;
    size_t end = 0;
    for (uint32_t i = 0; i < names.count && end < room && (i == 0 || is_list); ++i) {
        const AnswerText name =
            read_text_at(heard.bytes, heard.size, names.first + i * sizeof(uint32_t));
        const char* before = i != 0 ? ", " : "";
        if (i == 0 && is_list) {
            before =
                code == kUnknownPool ? "no such pool; there are: " : "no such account; there are: ";
        }
        end += static_cast<size_t>(snprintf(options.error_text + end,
                                            room - end,
                                            "%s%.*s",
                                            before,
                                            static_cast<int>(name.size),
                                            name.bytes == nullptr ? "" : name.bytes));
    }
}

}  // namespace

int ask_on(const AdminConnection& connection,
           const dibs_connect_options& options,
           const Question& question,
           Heard& heard) {
    if (!question.writer.fits()) return DIBS_EPAYLOAD;
    const int size = connection.ask(
        question.writer.bytes(), question.writer.size(), heard.bytes, sizeof heard.bytes);
    if (size < 0) return size;
    heard.size = static_cast<size_t>(size);
    SliceAnswer answer;
    if (!read_slice(heard.bytes, heard.size, &answer)) return DIBS_EHANDSHAKE;
    const int code = code_of_answer(answer.code);
    if (code != DIBS_OK) tell_why(options, answer.code, heard);
    return code;
}

int put(const dibs_connect_options* given,
        const Question& question,
        Heard& heard,
        int64_t wait_ns) {
    if (!question.writer.fits()) return DIBS_EPAYLOAD;
    AdminConnection connection;
    dibs_connect_options options;
    const int code = open_conversation(connection, given, &options);
    if (code != DIBS_OK) return code;
    const int64_t most_ns = DIBS_FOREVER / 2;  // so that no sum of times overflows
    if (wait_ns != 0)
        connection.wait_for((wait_ns < most_ns ? wait_ns : most_ns) + int64_t{kAnswerTimeoutNs});
    return ask_on(connection, options, question, heard);
}

namespace {

int put(const dibs_connect_options* given, const Question& question) {
    Heard heard;
    return put(given, question, heard);
}

// ---- accounts

int check_classes(const int64_t* values, size_t count) {
    if (count > DIBS_CLASSES) return DIBS_EARGUMENT;
    return count != 0 && values == nullptr ? DIBS_EARGUMENT : DIBS_OK;
}

int check_change(const dibs_account_change& change) {
    constexpr uint32_t kAll = 2 * DIBS_ACCOUNT_NO_FREE_TASKS - 1;
    if ((change.fields & ~kAll) != 0) return DIBS_EARGUMENT;
    int code = check_classes(change.rate, change.rate_count);
    if (code == DIBS_OK) code = check_classes(change.balance, change.balance_count);
    if (code != DIBS_OK) return code;
    if (change.charge_max_ns < 0) return DIBS_ENEGATIVE;
    if (change.label_limit_count > DIBS_LABELS_MAX) return DIBS_ELABELS;
    if (change.label_limit_count != 0 && change.label_limits == nullptr) return DIBS_EARGUMENT;
    for (size_t i = 0; i < change.label_limit_count; ++i) {
        const char* key = change.label_limits[i].key;
        if (key == nullptr || !good_name(key)) return DIBS_ELABELS;
    }
    return DIBS_OK;
}

// The table AccountChange, and what it refers to.
void write_change(Question& question, const dibs_account_change& change) {
    const auto given = [&](uint32_t field) { return (change.fields & field) != 0; };
    RequestTable table;
    if (given(DIBS_ACCOUNT_RATE)) {
        table.reference(Change::kRate);
        table.number(Change::kRateGiven, 1);
    }
    if (given(DIBS_ACCOUNT_BALANCE)) {
        table.reference(Change::kBalance);
        table.number(Change::kBalanceGiven, 1);
    }
    if (given(DIBS_ACCOUNT_CHARGE_MAX)) {
        table.number(Change::kChargeMax, static_cast<uint64_t>(change.charge_max_ns));
    }
    if (given(DIBS_ACCOUNT_FANOUT_MAX)) table.number(Change::kFanoutMax, change.fanout_max);
    if (given(DIBS_ACCOUNT_NO_FREE_TASKS)) {
        table.number(Change::kFreeTasksDisabled, change.no_free_tasks != 0 ? 1 : 0);
    }
    table.reference(Change::kLabelKeys);
    table.reference(Change::kLabelLimits);

    RequestWriter& writer = question.writer;
    const size_t at = writer.table(question.place(Field::kChange), table);
    const auto place = [&](uint16_t field) { return RequestWriter::place(at, table, field); };
    if (given(DIBS_ACCOUNT_RATE))
        writer.wides(place(Change::kRate), change.rate, change.rate_count);
    if (given(DIBS_ACCOUNT_BALANCE)) {
        writer.wides(place(Change::kBalance), change.balance, change.balance_count);
    }
    const char* keys[DIBS_LABELS_MAX];
    for (size_t i = 0; i < change.label_limit_count; ++i)
        keys[i] = change.label_limits[i].key;
    writer.texts(place(Change::kLabelKeys), keys, change.label_limit_count);
    writer.words(place(Change::kLabelLimits), change.label_limit_count);
    for (size_t i = 0; i < change.label_limit_count; ++i)
        writer.word(change.label_limits[i].slots);
}

int change_account(const dibs_connect_options* options,
                   uint8_t ask,
                   const char* name,
                   const dibs_account_change* change) {
    if (name == nullptr) return DIBS_EARGUMENT;
    if (!good_name(name)) return DIBS_ENAME;
    Question question(ask);
    question.fields.reference(Field::kAccount);
    if (change != nullptr) question.fields.reference(Field::kChange);
    question.begin();
    question.text(Field::kAccount, name);
    if (change != nullptr) write_change(question, *change);
    return put(options, question);
}

// ---- workers that do not attach

int check_report(const dibs_worker_report& report) {
    if (report.kind < DIBS_REPORT_IDLE || report.kind > DIBS_REPORT_AGAIN) return DIBS_EARGUMENT;
    const bool of_worker = report.kind != DIBS_REPORT_ABSENT && report.kind != DIBS_REPORT_AGAIN;
    const bool of_claim = report.kind != DIBS_REPORT_IDLE;
    if (report.pool == nullptr || of_worker != (report.worker != nullptr)) return DIBS_EARGUMENT;
    if (of_claim != (report.claim != 0)) return DIBS_EARGUMENT;
    if (!good_name(report.pool) || (of_worker && !good_name(report.worker))) return DIBS_ENAME;
    if (report.account != nullptr && !good_name(report.account)) return DIBS_ENAME;
    if (report.age_ns < 0) return DIBS_ENEGATIVE;
    const int code = check_labels(report.labels, report.label_count);
    return code != DIBS_OK ? code : check_labels(report.prefer, report.prefer_count);
}

void write_report(Question& question, const dibs_worker_report& report) {
    RequestTable& fields = question.fields;
    fields.number(Field::kReport, static_cast<uint8_t>(report.kind));
    fields.number(Field::kNumber, report.claim);
    fields.number(Field::kAge, static_cast<uint64_t>(report.age_ns));
    fields.number(Field::kLabelsGiven, report.labels != nullptr ? 1 : 0);
    fields.number(Field::kPreferGiven, report.prefer != nullptr ? 1 : 0);
    const struct {
        uint16_t field;
        const char* text;
    } texts[] = {{Field::kPool, report.pool},
                 {Field::kWorker, report.worker},
                 {Field::kAccount, report.account},
                 {Field::kError, report.error}};
    for (const auto& one : texts)
        if (one.text != nullptr) fields.reference(one.field);
    fields.reference(Field::kLabels);
    fields.reference(Field::kPrefer);
    question.begin();
    for (const auto& one : texts)
        if (one.text != nullptr) question.text(one.field, one.text);
    question.texts(Field::kLabels, report.labels, report.label_count);
    question.texts(Field::kPrefer, report.prefer, report.prefer_count);
}

int check_pullers(const dibs_puller* workers, size_t count) {
    if (workers == nullptr || count == 0 || count > DIBS_PULLERS_MAX) return DIBS_EARGUMENT;
    for (size_t i = 0; i < count; ++i) {
        if (workers[i].worker == nullptr) return DIBS_EARGUMENT;
        if (!good_name(workers[i].worker)) return DIBS_ENAME;
        const int code = check_labels(workers[i].labels, workers[i].label_count);
        if (code != DIBS_OK) return code;
    }
    return DIBS_OK;
}

void write_pullers(Question& question, const dibs_puller* workers, size_t count) {
    RequestWriter& writer = question.writer;
    const size_t first = writer.references(question.place(Field::kPullers), count);
    for (size_t i = 0; i < count && writer.fits(); ++i) {
        RequestTable table;
        table.reference(PullerField::kWorker);
        table.reference(PullerField::kLabels);
        const size_t at = writer.table(first + i * sizeof(uint32_t), table);
        writer.text(RequestWriter::place(at, table, PullerField::kWorker), workers[i].worker);
        writer.texts(RequestWriter::place(at, table, PullerField::kLabels),
                     workers[i].labels,
                     workers[i].label_count);
    }
}

}  // namespace
}  // namespace dibs::client

using namespace dibs::client;

int dibs_account_set(const dibs_connect_options* options,
                     const char* name,
                     const dibs_account_change* change) {
    dibs_account_change known;
    int code = read_options(change, &known, sizeof known, sizeof known);
    if (code == DIBS_OK) code = check_change(known);
    return code != DIBS_OK ? code : change_account(options, Ask::kSetAccount, name, &known);
}

int dibs_account_reset(const dibs_connect_options* options,
                       const char* name,
                       const int64_t* balance,
                       size_t balance_count) {
    const int code = check_classes(balance, balance_count);
    if (code != DIBS_OK) return code;
    dibs_account_change change = {};
    change.fields = DIBS_ACCOUNT_BALANCE;
    change.balance = balance;
    change.balance_count = balance_count;
    return change_account(options, Ask::kResetAccount, name, &change);
}

int dibs_account_delete(const dibs_connect_options* options, const char* name) {
    return change_account(options, Ask::kDeleteAccount, name, nullptr);
}

int dibs_report(const dibs_connect_options* options, const dibs_worker_report* report) {
    if (report == nullptr) return DIBS_EARGUMENT;
    dibs_worker_report known;
    int code = read_options(report, &known, sizeof known, sizeof known);
    if (code == DIBS_OK) code = check_report(known);
    if (code != DIBS_OK) return code;
    Question question(Ask::kReport);
    write_report(question, known);
    return put(options, question);
}

int dibs_pull(const dibs_connect_options* options,
              const char* pool,
              const dibs_puller* workers,
              size_t count,
              int64_t age_ns,
              dibs_pulled* pulled) {
    if (pool == nullptr || pulled == nullptr) return DIBS_EARGUMENT;
    if (!good_name(pool)) return DIBS_ENAME;
    if (age_ns < 0) return DIBS_ENEGATIVE;
    int code = check_pullers(workers, count);
    if (code != DIBS_OK) return code;
    Question question(Ask::kPull);
    question.fields.number(Field::kAge, static_cast<uint64_t>(age_ns));
    question.fields.reference(Field::kPool);
    question.fields.reference(Field::kPullers);
    question.begin();
    question.text(Field::kPool, pool);
    write_pullers(question, workers, count);
    Heard heard;
    code = put(options, question, heard);
    if (code != DIBS_OK) return code;
    return read_pulled(heard.bytes, heard.size, pulled, count);
}
