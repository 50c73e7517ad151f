// broker/journal/replayer_accounts.cpp -- replays the commands of pools ordered by account.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/journal_error.hpp"
#include "broker/journal/journal_instant.hpp"
#include "broker/journal/journal_texts.hpp"
#include "broker/journal/json_text.hpp"
#include "broker/journal/replayer.hpp"

namespace dibs::ctl {
namespace {

void refuse_empty(const flatbuffers::String* text, const char* field) {
    if (text == nullptr || text->size() == 0) {
        throw JournalError(json_string(field) + " is empty");
    }
}

}  // namespace

core::ClaimNumber Replayer::number_of(const flatbuffers::String* claim) const {
    const NameMap::Claim* known = claim == nullptr ? nullptr : map_.find_claim(claim->str());
    return known == nullptr ? core::ClaimNumber() : known->number;
}

// A worker that is made by its report has a slot from then on.
void Replayer::learn_worker(core::PoolId pool, std::string_view worker) {
    if (pool.is_none()) return;
    const uint32_t row = core_->find_slot(pool, worker);
    if (row == shm::kNoRow || core_->slot(row).session != shm::kNoRow) return;
    const shm::SlotRow& slot = core_->slot(row);
    map_.learn_worker(
        std::string(worker), pool, slot.number, core::row_id(slot.head.generation, row));
}

void Replayer::learn_account(const core::Decision& decision) {
    if (decision.account == shm::kNoRow) return;
    const shm::AccountRow& account = core_->account(decision.account);
    map_.name_account(decision.account, {account.name, account.name_size});
}

void Replayer::apply(const journal::Report& report) {
    if (report.type() != nullptr || is_dispatched(pool_row(report.pool()))) {
        return report_worker(report);
    }
    core::Report said{.pool = pool_row(report.pool()), .worker = view(report.worker())};
    switch (report.state()) {
        case journal::WorkerState::idle:
            said.kind = core::Report::Kind::kIdle;
            break;
        case journal::WorkerState::running:
            said.kind = core::Report::Kind::kRunning;
            break;
        case journal::WorkerState::absent:
            said.kind = core::Report::Kind::kAbsent;
            break;
        default:
            throw JournalError("\"report.state\" is one of idle, running, absent");
    }
    const bool absent = said.kind == core::Report::Kind::kAbsent;
    if (!absent) refuse_empty(report.worker(), "report.worker");
    if (said.kind != core::Report::Kind::kIdle) refuse_empty(report.claim(), "report.claim");
    const std::vector<std::string_view> labels = views(report.labels());
    said.claim = number_of(report.claim());
    said.labels = labels;
    said.event_ns = instant_or_now(report.event_ns());
    said.user_data = absent ? map_.add_operation({"report", "claim", report.claim()->str()})
                            : map_.add_operation({"report", "worker", report.worker()->str()});
    core_->apply(said);
    learn_worker(said.pool, said.worker);
}

void Replayer::apply(const journal::Pull& pull) {
    std::vector<std::vector<std::string_view>> labels;
    std::vector<core::Pull::Worker> workers;
    for (const journal::PullingWorker* worker : *pull.workers())
        labels.push_back(views(worker->labels()));
    for (uint32_t at = 0; at < pull.workers()->size(); ++at) {
        refuse_empty(pull.workers()->Get(at)->worker(), "pull.workers.worker");
        workers.push_back({view(pull.workers()->Get(at)->worker()), labels[at]});
    }
    const core::PoolId pool = pool_row(pull.pool());
    core_->apply(core::Pull{.pool = pool,
                            .workers = workers,
                            .event_ns = instant_or_now(pull.event_ns()),
                            .user_data = map_.add_operation({"pull", "pool", pull.pool()->str()})});
    for (const core::Pull::Worker& worker : workers)
        learn_worker(pool, worker.name);
}

void Replayer::apply(const journal::Unassign& unassign) {
    refuse_empty(unassign.claim(), "unassign.claim");
    refuse_empty(unassign.worker(), "unassign.worker");
    core_->apply(core::Unassign{
        .pool = pool_row(unassign.pool()),
        .claim = number_of(unassign.claim()),
        .worker = view(unassign.worker()),
        .event_ns = instant_or_now(unassign.event_ns()),
        .error = view(unassign.error()),
        .user_data = map_.add_operation({"unassign", "claim", unassign.claim()->str()}),
    });
}

void Replayer::apply(const journal::UpdateClaim& update) {
    refuse_empty(update.claim(), "update_claim.claim");
    if (update.pool() != nullptr) return update_entry(update);
    if (update.state() || update.supervisor() || update.types() != nullptr) {
        throw JournalError("what has a state, types or supervisors is an entry of a \"pool\"");
    }
    const std::vector<std::string_view> labels = views(update.labels());
    const std::vector<std::string_view> provisionable = views(update.provisionable());
    core_->apply(core::UpdateClaim{
        .claim = number_of(update.claim()),
        .account_given = update.account() != nullptr,
        .account = view(update.account()),
        .labels_given = update.labels() != nullptr,
        .labels = labels,
        .provisionable_given = update.provisionable() != nullptr,
        .provisionable = provisionable,
        .priority_given = update.priority().has_value(),
        .priority = update.priority().value_or(0),
        .event_ns = instant_or_now(update.event_ns()),
        .user_data = map_.add_operation({"update_claim", "claim", update.claim()->str()}),
    });
}

}  // namespace dibs::ctl
