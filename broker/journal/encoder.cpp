// broker/journal/encoder.cpp -- writes a line for each command.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/encoder.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "broker/core/decision_sum.hpp"
#include "schemas/journal_objects_generated.h"

namespace dibs {

using journal_objects::GivenKind;
using journal_objects::GivenT;
using journal_objects::LineBuilder;

namespace {

std::vector<std::string> texts(std::span<const std::string_view> views) {
    return {views.begin(), views.end()};
}

template <class Bytes>
std::vector<uint8_t> bytes_of(const Bytes& bytes) {
    return {bytes.begin(), bytes.end()};
}

// "key=value" strings, each ended by a zero byte.
std::unique_ptr<journal_objects::SlotAttributesT> attributes_of(std::string_view joined) {
    auto attributes = std::make_unique<journal_objects::SlotAttributesT>();
    while (!joined.empty()) {
        const size_t end = std::min(joined.find('\0'), joined.size());
        attributes->attributes.emplace_back(joined.substr(0, end));
        joined.remove_prefix(std::min(end + 1, joined.size()));
    }
    return attributes;
}

void take_terms(const core::ClaimTerms& terms, GivenT* given) {
    given->terms = true;
    given->account = terms.account;
    given->labels = texts(terms.labels);
    given->provisionable = texts(terms.provisionable);
    given->preempt_mode = static_cast<uint8_t>(terms.preempt_mode);
    given->grace_ns = terms.preempt_grace_ns;
    given->requeue = terms.requeue;
    given->enqueued_ns = terms.enqueued_ns;
    given->event_ns = terms.confirmed_ns;
}

}  // namespace

// The table first, then the line that holds it.
template <class Table, class Add>
void Encoder::line(const Table& table, const Add& add) {
    builder_.Clear();
    const auto packed = Table::TableType::Pack(builder_, &table);
    LineBuilder line(builder_);
    add(line, packed);
    builder_.Finish(line.Finish());
    const uint32_t size = builder_.GetSize();
    for (uint32_t shift = 0; shift < 32; shift += 8)
        lines_.push_back(static_cast<uint8_t>(size >> shift));
    lines_.insert(lines_.end(), builder_.GetBufferPointer(), builder_.GetBufferPointer() + size);
}

template <class Given>
void Encoder::give(const Given& given) {
    open_turn();
    line(given, [](LineBuilder& line, auto packed) { line.add_given(packed); });
}

void Encoder::open_turn() {
    if (std::exchange(turn_open_, true)) return;
    journal_objects::TurnOpensT opens;
    opens.now_ns = core_.now();
    line(opens, [](LineBuilder& line, auto packed) { line.add_turn_opens(packed); });
}

void Encoder::hear_of_commit() {
    open_turn();
    turn_open_ = false;
    journal_objects::TurnClosedT closed;
    closed.turns = core_.counters().turns;
    closed.cut = core_.cut();
    for (const core::Decision& decision : core_.decisions())
        closed.decided.push_back(core::sum_of(core_, decision));
    line(closed, [](LineBuilder& line, auto packed) { line.add_turn_closed(packed); });
}

std::vector<uint8_t> Encoder::take() {
    return std::exchange(lines_, {});
}

// --- pools, accounts, sessions

void Encoder::hear(const core::PoolConfig& pool) {
    journal_objects::PoolT told;
    told.name = pool.name;
    told.kind = static_cast<journal_objects::PoolKind>(pool.kind);
    told.slots = pool.slots;
    for (const std::string_view attributes : pool.slot_attributes)
        told.slot_attributes.push_back(attributes_of(attributes));
    told.when_busy = static_cast<journal_objects::WhenBusy>(pool.when_busy);
    told.units_max = pool.units_max;
    told.backlog_max = pool.backlog_max;
    told.unconfirmed_max = pool.unconfirmed_max;
    told.payload_max = pool.payload_max;
    told.answer_max = pool.answer_max;
    told.attributes_max = pool.attributes_max;
    told.reservation_ttl_ns = pool.reservation_ttl_ns;
    told.retry_after_ns = pool.retry_after_ns;
    told.interval_max_ns = pool.interval_max_ns;
    told.grace_ns = pool.grace_ns;
    told.release_is_ready = pool.release_is_ready;
    told.required_label = pool.required_label;
    told.expiry = static_cast<journal_objects::ExpiryMode>(pool.expiry);
    told.order = static_cast<journal_objects::PoolOrder>(pool.order);
    told.account_expiry_ns = pool.account_expiry_ns;
    told.promote_threshold_micros = pool.promote_threshold;
    told.demote_threshold_micros = pool.demote_threshold;
    told.preemption_disabled = pool.preemption_disabled;
    told.request_age_max_ns = pool.request_age_max_ns;
    told.queue_timeout_ns = pool.queue_timeout_ns;
    open_turn();
    line(told, [](LineBuilder& line, auto packed) { line.add_pool(packed); });
}

void Encoder::hear_of_deleted_pool(uint32_t row, bool when_unused) {
    GivenT given;
    given.command = GivenKind::pool_goes;
    given.pool = row;
    given.on = when_unused;
    give(given);
}

void Encoder::hear(const core::AccountConfig& account) {
    journal_objects::AccountT told;
    told.name = account.name;
    told.rate_micros = {account.rate.begin(), account.rate.end()};
    told.charge_max_ns = account.charge_max_ns;
    told.fanout_max = account.fanout_max;
    for (const core::AccountConfig::Limit& limit : account.label_limits) {
        auto one = std::make_unique<journal_objects::LabelLimitT>();
        one->key = limit.key;
        one->limit = limit.limit;
        told.label_limits.push_back(std::move(one));
    }
    told.free_tasks_disabled = account.free_tasks_disabled;
    told.balance_micros = {account.balance.begin(), account.balance.end()};
    told.keep_balance = account.keep_balance;
    told.of_file = account.of_file;
    open_turn();
    line(told, [](LineBuilder& line, auto packed) { line.add_account(packed); });
}

void Encoder::hear_of_deleted(std::string_view account) {
    journal_objects::AccountNameT told;
    told.account = account;
    open_turn();
    line(told, [](LineBuilder& line, auto packed) { line.add_delete_account(packed); });
}

void Encoder::hear_of_reset(std::string_view account, std::span<const int64_t> balance) {
    journal_objects::BalanceT told;
    told.account = account;
    told.balance_micros = {balance.begin(), balance.end()};
    open_turn();
    line(told, [](LineBuilder& line, auto packed) { line.add_reset_balance(packed); });
}

void Encoder::hear(const core::SessionOpen& open) {
    GivenT given;
    given.command = GivenKind::session;
    given.uid = open.uid;
    given.gid = open.gid;
    given.pid = open.pid;
    given.start_time = open.start_time;
    given.tags_max = open.tags_max;
    given.submission_entries = open.submission_entries;
    given.completion_entries = open.completion_entries;
    given.up_payload_size = open.up_payload_size;
    given.down_payload_size = open.down_payload_size;
    given.account = open.account;
    give(given);
}

void Encoder::hear_of_death(uint32_t session) {
    GivenT given;
    given.command = GivenKind::session_dies;
    given.session = session;
    give(given);
}

// --- claims and leases

void Encoder::hear(const core::Claim& claim, bool pledged) {
    GivenT given;
    given.command = GivenKind::claim;
    given.session = claim.session;
    given.tag = claim.tag;
    given.units = claim.units;
    given.pool = claim.pool;
    given.user_data = claim.user_data;
    given.timeout_ns = claim.timeout_ns;
    given.deadline_ns = claim.deadline_ns;
    given.interval_ns = claim.interval_ns;
    given.key = bytes_of(claim.key);
    given.when_busy_given = claim.when_busy_given;
    given.when_busy = static_cast<uint8_t>(claim.when_busy);
    given.bytes = bytes_of(claim.payload);
    given.room = claim.room;
    given.room_lines = claim.room_lines;
    given.refusal = static_cast<int16_t>(claim.refusal);
    given.priority = claim.priority;
    given.pledged = pledged;
    if (claim.terms != nullptr) take_terms(*claim.terms, &given);
    give(given);
}

void Encoder::hear(const core::Cancel& cancel) {
    GivenT given;
    given.command = GivenKind::cancel;
    given.session = cancel.session;
    given.tag = cancel.tag;
    given.user_data = cancel.user_data;
    give(given);
}

void Encoder::hear(const core::Release& release) {
    GivenT given;
    given.command = GivenKind::release;
    given.session = release.session;
    given.broken = release.broken;
    given.lease = release.lease;
    given.fence = release.fence;
    given.user_data = release.user_data;
    give(given);
}

void Encoder::hear(const core::Keepalive& keepalive) {
    GivenT given;
    given.command = GivenKind::keepalive;
    given.session = keepalive.session;
    given.lease = keepalive.lease;
    given.fence = keepalive.fence;
    given.interval_ns = keepalive.interval_ns;
    given.user_data = keepalive.user_data;
    give(given);
}

void Encoder::hear(const core::Adopt& adopt) {
    GivenT given;
    given.command = GivenKind::adopt;
    given.session = adopt.session;
    given.tag = adopt.tag;
    given.lease = adopt.lease;
    given.fence = adopt.fence;
    given.user_data = adopt.user_data;
    given.room = adopt.room;
    given.room_lines = adopt.room_lines;
    given.refusal = static_cast<int16_t>(adopt.refusal);
    give(given);
}

void Encoder::hear(const core::KillFailed& failed) {
    GivenT given;
    given.command = GivenKind::kill_failed;
    given.lease = failed.lease;
    give(given);
}

// --- workers

void Encoder::hear(const core::Announce& announce) {
    GivenT given;
    given.command = GivenKind::announce;
    given.session = announce.session;
    given.pool = announce.pool;
    given.worker_tag = announce.worker_tag;
    given.name = announce.name;
    given.labels = texts(announce.labels);
    given.bytes = bytes_of(announce.attributes);
    given.protected_ = announce.is_protected;
    given.ready = announce.ready;
    given.room = announce.room;
    given.user_data = announce.user_data;
    given.refusal = static_cast<int16_t>(announce.refusal);
    give(given);
}

void Encoder::hear(const core::WorkerWord& word) {
    GivenT given;
    given.command = GivenKind::word;
    given.word = static_cast<uint8_t>(word.kind);
    given.try_again = word.try_again;
    given.then_ready = word.then_ready;
    given.session = word.session;
    given.slot = word.slot;
    given.round = word.round;
    given.code = word.code;
    given.user_data = word.user_data;
    given.bytes = bytes_of(word.answer);
    give(given);
}

// --- from outside

void Encoder::hear(const core::Drain& drain) {
    GivenT given;
    given.command = GivenKind::drain;
    given.pool = drain.pool;
    given.on = drain.on;
    given.number = drain.number == shm::kNoRow ? 0 : uint64_t{drain.number} + 1;
    give(given);
}

void Encoder::hear(const core::Steer& steer) {
    GivenT given;
    given.command = GivenKind::steer;
    given.steer = static_cast<uint8_t>(steer.kind);
    given.lease = steer.lease;
    given.interval_ns = steer.interval_ns;
    given.session = steer.session;
    given.tag = steer.tag;
    given.number = steer.number;
    give(given);
}

void Encoder::hear(const core::Report& report) {
    GivenT given;
    given.command = GivenKind::report;
    given.report = static_cast<uint8_t>(report.kind);
    given.pool = report.pool;
    given.name = report.worker;
    given.number = report.claim;
    given.labels = texts(report.labels);
    given.event_ns = report.event_ns;
    given.user_data = report.user_data;
    give(given);
}

void Encoder::hear(const core::Pull& pull) {
    GivenT given;
    given.command = GivenKind::pull;
    given.pool = pull.pool;
    for (const core::Pull::Worker& worker : pull.workers) {
        auto puller = std::make_unique<journal_objects::PullingWorkerT>();
        puller->worker = worker.name;
        puller->labels = texts(worker.labels);
        given.pullers.push_back(std::move(puller));
    }
    given.event_ns = pull.event_ns;
    given.user_data = pull.user_data;
    give(given);
}

void Encoder::hear(const core::Unassign& unassign) {
    GivenT given;
    given.command = GivenKind::unassign;
    given.pool = unassign.pool;
    given.number = unassign.claim;
    given.name = unassign.worker;
    given.event_ns = unassign.event_ns;
    given.error = unassign.error;
    given.user_data = unassign.user_data;
    give(given);
}

void Encoder::hear(const core::UpdateClaim& update) {
    GivenT given;
    given.command = GivenKind::update_claim;
    given.number = update.claim;
    given.account_given = update.account_given;
    given.account = update.account;
    given.labels_given = update.labels_given;
    given.labels = texts(update.labels);
    given.provisionable_given = update.provisionable_given;
    given.provisionable = texts(update.provisionable);
    given.event_ns = update.event_ns;
    given.user_data = update.user_data;
    give(given);
}

}  // namespace dibs
