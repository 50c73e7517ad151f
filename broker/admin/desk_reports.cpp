// broker/admin/desk_reports.cpp -- serves reports on workers that do not attach.
//
// It serves reports, unassignments, and pulls, whose answer is there when the turn has decided.
//
// A client that speaks for workers speaks for all users whose claims they run, so it must be an
// administrator. Only ages cross: an event's time is the turn's less its age.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/admin/desk.hpp"
#include "broker/turn/payload.hpp"

namespace dibs {

using admin::Code;
using admin::ReportKind;

namespace {

std::vector<std::string_view> views(const std::vector<std::string>& texts) {
    return {texts.begin(), texts.end()};
}

bool printable(std::string_view name) {
    return std::none_of(name.begin(), name.end(), [](char letter) {
        return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
    });
}

// With its pull, each ended by a zero byte.
std::string labels_brought(const AdminJob& job, std::string_view worker) {
    std::string labels;
    const auto& pullers = job.request.pullers;
    const auto found = std::find_if(pullers.begin(), pullers.end(), [&](const auto& puller) {
        return puller->worker == worker;
    });
    if (found == pullers.end()) return labels;
    for (const std::string& label : (*found)->labels)
        labels += label + '\0';
    return labels;
}

const char* sentence_of(shm::Reason reason) {
    switch (reason) {
        case shm::Reason::kState:
            return "reports are for workers that do not attach, in worker pools ordered by account";
        case shm::Reason::kMalformed:
            return "a worker has a name of 1 to 63 bytes, without control characters";
        case shm::Reason::kPayload:
            return "there are at most 32 labels, of 1 to 63 bytes each, without a zero byte";
        case shm::Reason::kTablesFull:
            return "the broker's tables are full";
        default:
            return "refused";
    }
}

}  // namespace

// What the core has said since its decision `first`; it says nothing of what is well.
void Desk::take_result(AdminJob& job, size_t first) const {
    const auto decisions = core_.decisions();
    for (size_t i = first; i < decisions.size(); ++i) {
        const core::Decision& told = decisions[i];
        if (told.kind != core::DecisionKind::kResult || told.session != shm::kNoRow) continue;
        if (told.reason == shm::Reason::kOk) continue;
        return refuse(job, told.reason);
    }
}

void Desk::refuse(AdminJob& job, shm::Reason reason) {
    const bool missing = reason == shm::Reason::kNotFound;
    job.answer.code = missing ? Code::not_found : Code::refused;
    job.answer.names.assign(1, missing ? "that worker has no such claim" : sentence_of(reason));
}

// Its slot stands for it: a slot of workers that no session has announced.
uint32_t Desk::reported_worker(AdminJob& job, uint32_t row) const {
    const shm::SlotRow& slot = core_.slot(row);
    if (slot.state == shm::SlotState::kFree || slot.state == shm::SlotState::kOrdered) return 0;
    if (slot.session != shm::kNoRow) return 0;
    if (core_.pool(slot.pool).kind == shm::PoolKind::kCounted) return 0;
    auto told = std::make_unique<admin::ClientT>();
    told->age_ns = age(slot.confirmed_ns);
    told->full = job.is_admin;
    if (told->full) {
        told->state = "reported";
        told->pool = name_of(slot.pool);
        told->name.assign(slot.name, slot.name_size);
        told->slots = 1;
        told->leases = slot.state == shm::SlotState::kLeased ? 1 : 0;
    }
    job.answer.clients.push_back(std::move(told));
    return 1;
}

bool Desk::reports_to(AdminJob& job, uint32_t* pool) const {
    if (!job.is_admin) {
        job.answer.code = Code::denied;
        return false;
    }
    if (!pool_of(job, pool)) return false;
    const bool named = *pool != shm::kNoRow;
    const auto& pullers = job.request.pullers;
    const bool good = printable(job.request.worker) &&
                      std::all_of(pullers.begin(), pullers.end(), [](const auto& puller) {
                          return printable(puller->worker);
                      });
    if (named && good) return true;
    job.answer.code = Code::refused;
    job.answer.names.assign(
        1, named ? sentence_of(shm::Reason::kMalformed) : "say which pool they are of");
    return false;
}

core::TimeNs Desk::event_of(const AdminJob& job) const {
    return core_.now() - std::min<core::TimeNs>(job.request.age_ns, core_.now());
}

// A claim that waits or runs, whose worker failed, or that a worker must abort. Of any other there
// is nothing to forget (S2.25), and a report that it is gone may have mistaken its number.
bool Desk::is_known(uint64_t number) const {
    if (core_.find_claim(number) != shm::kNoRow || !core_.claim_error(number).empty()) return true;
    for (uint32_t row = 0; row < core_.slots_max(); ++row) {
        const shm::SlotRow& slot = core_.slot(row);
        if (slot.state != shm::SlotState::kFree && slot.session == shm::kNoRow &&
            slot.worker_tag == number) {
            return true;
        }
    }
    return false;
}

void Desk::report(AdminJob& job) {
    const admin::RequestT& request = job.request;
    uint32_t pool = shm::kNoRow;
    if (!reports_to(job, &pool)) return;
    const size_t first = core_.decisions().size();
    if (request.report == ReportKind::unassign) {
        core_.apply(core::Unassign{.pool = pool,
                                   .claim = request.number,
                                   .worker = request.worker,
                                   .event_ns = event_of(job),
                                   .error = request.error});
        return take_result(job, first);
    }
    if (request.report == ReportKind::again) {
        announce_again(job, pool);
        return take_result(job, first);
    }
    core::Report report;
    switch (request.report) {
        case ReportKind::idle:
            report.kind = core::Report::Kind::kIdle;
            break;
        case ReportKind::running:
            report.kind = core::Report::Kind::kRunning;
            break;
        case ReportKind::absent:
            report.kind = core::Report::Kind::kAbsent;
            break;
        default:
            job.answer.code = Code::unsupported;
            return;
    }
    if (request.report == ReportKind::absent && !is_known(request.number)) {
        job.answer.code = Code::not_found;
        return;
    }
    const auto labels = views(request.labels);
    report.pool = pool;
    report.worker = request.worker;
    report.claim = request.number;
    report.labels = labels;
    report.event_ns = event_of(job);
    core_.apply(report);
    take_result(job, first);
}

void Desk::announce_again(AdminJob& job, uint32_t pool) {
    const admin::RequestT& request = job.request;
    const uint32_t row = core_.find_claim(request.number);
    if (row == shm::kNoRow || core_.claim(row).pool != pool) {
        job.answer.code = Code::not_found;
        job.answer.names.assign(1, "that pool has no such claim");
        return;
    }
    const auto labels = views(request.labels);
    const auto prefer = views(request.prefer);
    core_.apply(core::UpdateClaim{.claim = request.number,
                                  .account_given = !request.account.empty(),
                                  .account = request.account,
                                  .labels_given = request.labels_given,
                                  .labels = labels,
                                  .provisionable_given = request.prefer_given,
                                  .provisionable = prefer,
                                  .event_ns = event_of(job)});
}

void Desk::pull(AdminJob& job) {
    uint32_t pool = shm::kNoRow;
    if (!reports_to(job, &pool)) return;
    if (job.request.pullers.empty() || job.request.pullers.size() > kRowsTold) {
        job.answer.code = Code::refused;
        job.answer.names.assign(1, "1 to " + std::to_string(kRowsTold) + " workers ask at once");
        return;
    }
    std::vector<std::vector<std::string_view>> labels;
    std::vector<core::Pull::Worker> workers;
    labels.reserve(job.request.pullers.size());
    for (const auto& puller : job.request.pullers) {
        labels.push_back(views(puller->labels));
        workers.push_back({puller->worker, labels.back()});
    }
    const size_t first = core_.decisions().size();
    job.pull = ++pulls_;
    core_.apply(core::Pull{
        .pool = pool, .workers = workers, .event_ns = event_of(job), .user_data = job.pull});
    take_result(job, first);
    job.pulls = job.answer.code == Code::ok;
}

// Once the turn has decided: what each of them gets.
void Desk::take_pulled(AdminJob& job) const {
    for (const core::Decision& told : core_.decisions()) {
        if (told.user_data != job.pull || told.session != shm::kNoRow) continue;
        if (told.kind == core::DecisionKind::kResult && told.reason != shm::Reason::kOk) {
            refuse(job, told.reason);
        }
        if (told.kind != core::DecisionKind::kPulled) continue;
        const uint32_t slot = core::row_of(told.id);
        const shm::SlotRow& row = core_.slot(slot);
        auto pulled = std::make_unique<admin::PulledT>();
        pulled->worker.assign(row.name, row.name_size);
        pulled->claim = told.claim;
        pulled->abort = told.holder_claim;
        if (told.provision) {
            pulled->provision = to_provision(told.claim, labels_brought(job, pulled->worker));
        }
        job.answer.pulled.push_back(std::move(pulled));
    }
}

std::vector<std::string> Desk::to_provision(uint64_t number, std::string_view labels) const {
    std::vector<std::string> names;
    const uint32_t row = core_.find_claim(number);
    if (row == shm::kNoRow) return names;
    const shm::ClaimRow& claim = core_.claim(row);
    std::vector<uint8_t> payload(claim.payload_size);
    core_.copy_chain(
        claim.payload, claim.payload_size, reinterpret_cast<std::byte*>(payload.data()));
    ClaimReader reader;
    if (!reader.read(payload)) return names;
    const uint32_t lacking = reader.lacking(labels);
    for (size_t i = 0; i < reader.terms().provisionable.size(); ++i) {
        if ((lacking >> i & 1U) != 0) names.emplace_back(reader.terms().provisionable[i]);
    }
    return names;
}

}  // namespace dibs
