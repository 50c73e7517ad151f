// broker/journal/replayer_elastic.cpp -- replays the words of provisioners of elastic pools, and
// what is reported of dispatched ones.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/look.hpp"
#include "broker/journal/journal_error.hpp"
#include "broker/journal/journal_instant.hpp"
#include "broker/journal/journal_texts.hpp"
#include "broker/journal/replayer.hpp"

namespace dibs::ctl {

void Replayer::learn_type(const core::Decision& decision) {
    if (decision.type.is_none()) return;
    const shm::TypeRow& type = core::Look::type(*core_, decision.type);
    map_.name_type(decision.type, {type.name, type.name_size});
}

void Replayer::apply(const journal::Provide& provide) {
    core_->apply(core::Provide{
        .session = map_.live_session(provide.session()->str()).row,
        .pool = pool_row(provide.pool()),
        .type = view(provide.type()),
        .on = provide.on(),
        .user_data = map_.add_operation({"provide", "type", provide.type()->str()}),
    });
}

void Replayer::apply(const journal::Provisioned& provisioned) {
    const NameMap::Slot& order = map_.slot(provisioned.worker()->str());
    core_->apply(core::Provisioned{
        .session = speaker(provisioned.session(), order.provisioner),
        .slot = order.id,
        .answer = static_cast<core::Provisioned::Answer>(provisioned.answer()),
        .scope = static_cast<core::Provisioned::Scope>(provisioned.scope()),
        .quota_group = view(provisioned.quota_group()),
        .user_data = map_.add_operation({"provisioned", "worker", order.name}),
    });
}

bool Replayer::is_dispatched(core::PoolId pool) const {
    return !pool.is_none() && core_->pool_lives(pool) && core::Look::is_dispatched(*core_, pool);
}

void Replayer::update_entry(const journal::UpdateClaim& update) {
    if (update.labels() != nullptr || update.account() != nullptr ||
        update.provisionable() != nullptr) {
        throw JournalError("an entry has no labels and no account");
    }
    const std::vector<std::string_view> types = views(update.types());
    core_->apply(core::EntryReport{
        .pool = pool_row(update.pool()),
        .claim = view(update.claim()),
        .state_given = update.state().has_value(),
        .state =
            static_cast<core::QueueState>(update.state().value_or(journal::QueueState::queued)),
        .priority_given = update.priority().has_value(),
        .priority = update.priority().value_or(0),
        .supervisor_given = update.supervisor().has_value(),
        .supervisor = update.supervisor().value_or(false),
        .types_given = update.types() != nullptr,
        .types = types,
        .event_ns = instant_or_now(update.event_ns()),
        .user_data = map_.add_operation({"update_claim", "claim", update.claim()->str()}),
    });
}

void Replayer::report_worker(const journal::Report& report) {
    if (report.claim() != nullptr || report.labels() != nullptr || report.worker() == nullptr) {
        throw JournalError("a report of a dispatched pool has a worker, no claim and no labels");
    }
    const core::PoolId pool = pool_row(report.pool());
    core_->apply(core::WorkerReport{
        .pool = pool,
        .worker = view(report.worker()),
        .type = view(report.type()),
        .state = static_cast<core::WorkerReport::State>(report.state()),
        .event_ns = instant_or_now(report.event_ns()),
        .user_data = map_.add_operation({"report", "worker", report.worker()->str()}),
    });
    learn_worker(pool, view(report.worker()));
}

void Replayer::apply(const journal::QueueRead& read) {
    const std::vector<std::string_view> claims = views(read.claims());
    core_->apply(core::QueueRead{
        .pool = pool_row(read.pool()),
        .started_ns = read.started_ns(),
        .claims = claims,
        .failed = read.failed(),
        .user_data = map_.add_operation({"queue_read", "pool", read.pool()->str()}),
    });
}

void Replayer::apply(const journal::QueueOperation& asked) {
    core_->apply(core::QueueOperation{
        .pool = pool_row(asked.pool()),
        .claim = view(asked.claim()),
        .word = static_cast<core::QueueWord>(asked.word()),
        .user_data = map_.add_operation({"queue_operation", "claim", asked.claim()->str()}),
    });
}

void Replayer::apply(const journal::OperationDone& done) {
    core_->apply(core::OperationDone{
        .pool = pool_row(done.pool()),
        .claim = view(done.claim()),
        .ok = done.ok(),
        .error = view(done.error()),
        .user_data = map_.add_operation({"operation_done", "claim", done.claim()->str()}),
    });
}

void Replayer::apply(const journal::Process& process) {
    core_->apply(core::ProcessReport{
        .pool = pool_row(process.pool()),
        .worker = view(process.worker()),
        .claim = view(process.claim()),
        .exited_ns = instant_or_now(process.exited_ns()),
        .user_data = map_.add_operation({"process", "claim", process.claim()->str()}),
    });
}

void Replayer::apply(const journal::Probe& probe) {
    core_->apply(core::Probe{
        .pool = pool_row(probe.pool()),
        .worker = view(probe.worker()),
        .ok = probe.ok(),
        .started_ns = probe.started_ns(),
        .user_data = map_.add_operation({"probe", "worker", probe.worker()->str()}),
    });
}

void Replayer::apply(const journal::SetBehaviour& set) {
    const NameMap::Slot& named = map_.slot(set.slot()->str());
    if (core::row_of(named.id) >= core_->slots_max()) {
        throw JournalError("slot '" + named.name + "' has not been announced");
    }
    const shm::SlotRow& slot = core_->slot(core::row_of(named.id));
    const bool is_there = slot.state != shm::SlotState::kFree &&
                          slot.head.generation == core::generation_of(named.id);
    core_->apply(core::SetBehaviour{
        .pool = slot.pool,
        .number = is_there ? slot.number : shm::kNoRow,
        .behaviour = static_cast<shm::Behaviour>(set.behaviour()),
        .user_data = map_.add_operation({"behaviour", "slot", named.name}),
    });
}

}  // namespace dibs::ctl
