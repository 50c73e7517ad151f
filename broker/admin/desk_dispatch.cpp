// broker/admin/desk_dispatch.cpp -- serves those who keep the queues of dispatched pools, and run
// what is started from them.
//
// It serves reports of entries, workers and processes, lists the entries, and tells what is to be
// done. Queues are of administrators alone.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/admin/desk.hpp"
#include "broker/core/look.hpp"

namespace dibs {

using admin::Code;
using admin::OrderKind;
using admin::ReportKind;
using core::Look;

namespace {

constexpr size_t kOrdersMost = 64;  // what an answer has room for

std::string_view word(shm::EntryState state) {
    static constexpr std::string_view kWords[] = {
        "free", "absent", "queued", "locked", "running", "complete", "cancelled"};
    return kWords[static_cast<size_t>(state)];
}

std::string_view word(shm::EntryOp op) {
    static constexpr std::string_view kWords[] = {"", "lock", "unlock", "kill"};
    return kWords[static_cast<size_t>(op)];
}

std::string_view word(core::EntryReason reason) {
    static constexpr std::string_view kWords[] = {"",
                                                  "running",
                                                  "exited",
                                                  "preparing",
                                                  "old process",
                                                  "held",
                                                  "reading",
                                                  "supervisor limit",
                                                  "limit",
                                                  "at quota",
                                                  "at capacity",
                                                  "no provisioner",
                                                  "being made",
                                                  "starts"};
    return kWords[static_cast<size_t>(reason)];
}

bool has_process(const shm::EntryRow& entry) {
    return (entry.flags & shm::EntryFlag::kProcess) != 0;
}

bool lives(const shm::EntryRow& entry) {
    return has_process(entry) && entry.exited_ns == shm::kNever;
}

std::string_view process_of(const shm::EntryRow& entry) {
    if (!has_process(entry)) return "";
    if (!lives(entry)) return "exited";
    return (entry.flags & shm::EntryFlag::kStarting) != 0 ? "starting" : "alive";
}

// What is to be done of it; an operation comes before the start that it may make void. A start
// whose kill has failed is not to be done any more.
OrderKind order_of(const shm::EntryRow& entry) {
    if (entry.state == shm::EntryState::kFree) return OrderKind::none;
    if (entry.op != shm::EntryOp::kNone) return static_cast<OrderKind>(entry.op);
    const bool starts = lives(entry) && (entry.flags & shm::EntryFlag::kStarting) != 0 &&
                        (entry.flags & shm::EntryFlag::kHopeless) == 0;
    return starts ? OrderKind::start : OrderKind::none;
}
static_assert(static_cast<uint8_t>(shm::EntryOp::kKill) == static_cast<uint8_t>(OrderKind::kill));

bool is_order(core::DecisionKind kind) {
    return kind == core::DecisionKind::kLock || kind == core::DecisionKind::kUnlock ||
           kind == core::DecisionKind::kStart || kind == core::DecisionKind::kKillProcess;
}

// Entry and worker are told line by line, and pass through a shell.
bool is_name(std::string_view name) {
    return !name.empty() && name.size() <= shm::kNameMax &&
           std::none_of(name.begin(), name.end(), [](char letter) {
               return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
           });
}

bool names_entry(ReportKind kind) {
    return kind == ReportKind::entry || kind == ReportKind::process ||
           (kind >= ReportKind::lock && kind <= ReportKind::done);
}

bool names_worker(ReportKind kind) {
    return kind == ReportKind::worker || kind == ReportKind::process || kind == ReportKind::probe;
}

// Of an operation that is asked for.
core::QueueWord word_of(ReportKind kind) {
    return static_cast<core::QueueWord>(static_cast<uint8_t>(kind) -
                                        static_cast<uint8_t>(ReportKind::lock));
}

const char* needs(ReportKind kind) {
    switch (kind) {
        case ReportKind::lock:
            return "one that is queued, with priority 1 or more, can be locked";
        case ReportKind::unlock:
            return "one that is locked can be unlocked";
        case ReportKind::cancel:
            return "one that is complete or cancelled stays so";
        default:
            return "one that is complete, cancelled, or queued with priority 0 can be forgotten";
    }
}

void refuse_as(AdminJob& job, Code code, std::string why) {
    job.answer.code = code;
    job.answer.names.assign(1, std::move(why));
}

}  // namespace

// Of an administrator, of a pool that is dispatched, with good names.
bool Desk::dispatches(AdminJob& job, uint32_t* pool) const {
    const admin::RequestT& request = job.request;
    if (!job.is_admin) job.answer.code = Code::denied;
    if (!job.is_admin || !pool_of(job, pool)) return false;
    const bool any_elastic = request.report == ReportKind::behaviour;
    if (*pool == shm::kNoRow) {
        refuse_as(job, Code::refused, "say which pool it is of");
        return false;
    }
    if (any_elastic ? Look::elastic(core_, *pool).workers_max == 0
                    : !Look::is_dispatched(core_, *pool)) {
        refuse_as(job,
                  Code::refused,
                  "pool " + request.pool +
                      (any_elastic ? " is not elastic: workers_max in its [[pool]] makes it so"
                                   : " is not dispatched: dispatch = true in its [[pool]] makes "
                                     "it so"));
        return false;
    }
    const bool good = (!names_entry(request.report) || is_name(request.entry)) &&
                      (!names_worker(request.report) || is_name(request.worker)) &&
                      std::all_of(request.names.begin(), request.names.end(), is_name);
    if (good) return true;
    refuse_as(job,
              Code::refused,
              "entries, workers and types have names of 1 to 63 bytes, without control characters");
    return false;
}

void Desk::report_dispatched(AdminJob& job) {
    const admin::RequestT& request = job.request;
    uint32_t pool = shm::kNoRow;
    if (request.entry_state > admin::EntryState::MAX ||
        request.worker_state > admin::WorkerState::MAX ||
        request.behaviour > admin::Behaviour::MAX) {
        job.answer.code = Code::unsupported;
        return;
    }
    if (!dispatches(job, &pool)) return;
    const size_t first = core_.decisions().size();
    const std::vector<std::string_view> names(request.names.begin(), request.names.end());
    switch (request.report) {
        case ReportKind::entry:
            if (request.priority && *request.priority < 0) {
                return refuse_as(job, Code::refused, "a priority is 0 or more; 0: it is held");
            }
            core_.apply(
                core::EntryReport{.pool = pool,
                                  .claim = request.entry,
                                  .state_given = request.entry_state != admin::EntryState::none,
                                  .state = static_cast<core::QueueState>(
                                      std::max(1, static_cast<int>(request.entry_state)) - 1),
                                  .priority_given = request.priority.has_value(),
                                  .priority = request.priority.value_or(0),
                                  .supervisor_given = request.supervisor.has_value(),
                                  .supervisor = request.supervisor.value_or(false),
                                  .types_given = request.names_given,
                                  .types = names,
                                  .event_ns = event_of(job)});
            break;
        case ReportKind::queue:
            core_.apply(core::QueueRead{.pool = pool,
                                        .started_ns = event_of(job),
                                        .claims = names,
                                        .failed = request.failed});
            break;
        case ReportKind::lock:
        case ReportKind::unlock:
        case ReportKind::cancel:
        case ReportKind::forget:
            core_.apply(core::QueueOperation{
                .pool = pool, .claim = request.entry, .word = word_of(request.report)});
            break;
        case ReportKind::done:
            core_.apply(core::OperationDone{.pool = pool,
                                            .claim = request.entry,
                                            .ok = !request.failed,
                                            .error = request.error});
            break;
        case ReportKind::worker:
            core_.apply(core::WorkerReport{
                .pool = pool,
                .worker = request.worker,
                .type = request.type,
                .state = static_cast<core::WorkerReport::State>(request.worker_state),
                .event_ns = event_of(job)});
            break;
        case ReportKind::process:
            core_.apply(
                core::ProcessReport{.pool = pool,
                                    .worker = request.worker,
                                    .claim = request.entry,
                                    .exited_ns = request.exited ? event_of(job) : shm::kNever});
            break;
        case ReportKind::probe:
            core_.apply(core::Probe{.pool = pool,
                                    .worker = request.worker,
                                    .ok = !request.failed,
                                    .started_ns = event_of(job)});
            break;
        case ReportKind::behaviour:
            set_behaviour(job, pool);
            break;
        default:
            job.answer.code = Code::unsupported;
            return;
    }
    take_refusal(job, pool, first);
}

// Of the worker that it names, or of the slot of the number.
void Desk::set_behaviour(AdminJob& job, uint32_t pool) {
    const uint32_t row =
        job.request.worker.empty()
            ? core_.find_number(pool,
                                static_cast<uint32_t>(std::min<uint64_t>(
                                    std::max<uint64_t>(job.request.number, 1) - 1, shm::kNoRow)))
            : core_.find_slot(pool, job.request.worker);
    if (row == shm::kNoRow) {
        const std::string of = job.request.worker.empty()
                                   ? "slot of that number in pool "
                                   : "worker " + job.request.worker + " in pool ";
        return refuse_as(job, Code::not_found, "there is no " + of + job.request.pool);
    }
    core_.apply(
        core::SetBehaviour{.pool = pool,
                           .number = core_.slot(row).number,
                           .behaviour = static_cast<shm::Behaviour>(job.request.behaviour)});
}

// Why nothing of it is so, if the core has said that since its decision `first`.
void Desk::take_refusal(AdminJob& job, uint32_t pool, size_t first) const {
    const auto decisions = core_.decisions();
    for (size_t i = first; i < decisions.size(); ++i) {
        const core::Decision& told = decisions[i];
        if (told.kind == core::DecisionKind::kEnd && told.reason == shm::Reason::kUnavailable) {
            return refuse_as(job,
                             Code::refused,
                             "no type of pool " + job.request.pool + " suits entry " +
                                 job.request.entry + ", which ends rejected: dibs ls types -p " +
                                 job.request.pool + " shows them");
        }
        const bool is_result =
            told.kind == core::DecisionKind::kResult && told.session == shm::kNoRow;
        if (is_result && told.reason != shm::Reason::kOk) {
            return refuse_as(
                job,
                told.reason == shm::Reason::kNotFound ? Code::not_found : Code::refused,
                sentence_on(job.request, pool, told.reason));
        }
    }
}

std::string Desk::sentence_on(const admin::RequestT& request,
                              uint32_t pool,
                              shm::Reason reason) const {
    const ReportKind kind = request.report;
    const bool of_worker = names_worker(kind) || kind == ReportKind::behaviour;
    const std::string worker = "worker " + request.worker;
    const std::string entry = "entry " + request.entry;
    const std::string in = " in pool " + request.pool;
    const uint32_t row = of_worker ? shm::kNoRow : Look::find_entry(core_, pool, request.entry);
    const bool is_known =
        row != shm::kNoRow &&
        (kind == ReportKind::done || Look::entry(core_, row).state != shm::EntryState::kAbsent);
    switch (reason) {
        case shm::Reason::kNotFound:
            if (kind == ReportKind::worker &&
                core_.find_slot(pool, request.worker) == shm::kNoRow &&
                request.worker_state != admin::WorkerState::absent && request.type.empty()) {
                return worker + " is new: say of which type it is";
            }
            if (kind == ReportKind::worker && !request.type.empty() &&
                Look::find_type(core_, pool, request.type) == shm::kNoRow) {
                return "there is no type " + request.type + in;
            }
            if (of_worker) return "there is no " + worker + in;
            return is_known ? "nothing is under way of " + entry : "there is no " + entry + in;
        case shm::Reason::kBusy:
            return "an operation on " + entry + " is under way: dibs orders shows it";
        case shm::Reason::kState:
            if (kind == ReportKind::worker) return worker + " is of another type";
            if (of_worker) return "that worker was told to stop, which nothing takes back";
            if (!is_known) return "refused";
            return entry + " is " + std::string(word(Look::entry(core_, row).state)) +
                   ", with priority " + std::to_string(Look::entry(core_, row).priority) + ": " +
                   needs(kind);
        case shm::Reason::kTablesFull:
            return of_worker ? "the broker's tables are full"
                             : "the broker has no room for another entry: limits.entries";
        default:
            return "refused";
    }
}

uint32_t Desk::entries_max() const {
    return core_.head().table[static_cast<size_t>(shm::Table::kEntries)].rows;
}

std::unique_ptr<admin::EntryT> Desk::entry_row(uint32_t row) const {
    const shm::EntryRow& entry = Look::entry(core_, row);
    auto told = std::make_unique<admin::EntryT>();
    told->pool = name_of(entry.pool);
    told->name.assign(entry.name, entry.name_size);
    told->number = entry.number;
    told->state = word(entry.state);
    told->position = Look::entry_position(core_, row);
    told->reason = word(Look::entry_reason(core_, row));
    told->op = word(entry.op);
    told->priority = entry.priority;
    told->supervisor = (entry.flags & shm::EntryFlag::kSupervisor) != 0;
    told->any_type = entry.types == ~uint64_t{0};
    for (uint32_t type = 0; type < 64 && !told->any_type; ++type) {
        if ((entry.types >> type & 1U) == 0) continue;
        const shm::TypeRow& named = Look::type(core_, type);
        told->types.emplace_back(named.name, named.name_size);
    }
    told->process = process_of(entry);
    if (lives(entry) && entry.worker != shm::kNoRow) {
        const shm::SlotRow& slot = core_.slot(entry.worker);
        told->worker.assign(slot.name, slot.name_size);
    }
    if (told->process == "exited") told->exited_ns = age(entry.exited_ns);
    told->hopeless = (entry.flags & shm::EntryFlag::kHopeless) != 0;
    told->locks = entry.lock_count;
    told->age_ns = age(entry.event_ns);
    return told;
}

std::unique_ptr<admin::OrderT> Desk::order_row(uint32_t row) const {
    const shm::EntryRow& entry = Look::entry(core_, row);
    auto told = std::make_unique<admin::OrderT>();
    told->kind = order_of(entry);
    told->entry.assign(entry.name, entry.name_size);
    told->number = entry.number;
    const bool on_worker = told->kind == OrderKind::start || told->kind == OrderKind::kill;
    if (!on_worker || entry.worker == shm::kNoRow) return told;
    const shm::SlotRow& slot = core_.slot(entry.worker);
    told->worker.assign(slot.name, slot.name_size);
    told->slot = slot.number;
    if (slot.type == shm::kNoRow) return told;
    const shm::TypeRow& type = Look::type(core_, slot.type);
    told->type.assign(type.name, type.name_size);
    return told;
}

// Looks at all entries: while nothing is new, a job that waits does not come here.
void Desk::orders(AdminJob& job) const {
    uint32_t pool = shm::kNoRow;
    if (!dispatches(job, &pool)) return;
    std::vector<uint32_t> rows;
    for (uint32_t row = 0; row < entries_max(); ++row) {
        const shm::EntryRow& entry = Look::entry(core_, row);
        if (order_of(entry) != OrderKind::none && entry.pool == pool) rows.push_back(row);
    }
    std::sort(rows.begin(), rows.end(), [&](uint32_t left, uint32_t right) {
        const shm::EntryRow& one = Look::entry(core_, left);
        const shm::EntryRow& other = Look::entry(core_, right);
        return one.priority != other.priority ? one.priority > other.priority
                                              : one.number < other.number;
    });
    uint64_t stamp = rows.empty() ? 0 : 1;
    for (const uint32_t row : rows) {
        const shm::EntryRow& entry = Look::entry(core_, row);
        // The same order once more is another one, as after one that has failed.
        const uint64_t worker = entry.worker == shm::kNoRow ? 0 : core_.slot(entry.worker).number;
        for (const uint64_t word : {entry.number,
                                    uint64_t{static_cast<uint8_t>(order_of(entry))},
                                    uint64_t{entry.asked},
                                    worker})
            stamp = (stamp ^ word) * 0x9e3779b97f4a7c15U + 1;
    }
    const uint64_t most = job.request.number == 0 ? 10 : job.request.number;
    job.answer.more = rows.size() > std::min<uint64_t>(most, kOrdersMost);
    rows.resize(std::min<uint64_t>({rows.size(), most, kOrdersMost}));
    job.answer.orders.clear();
    for (const uint32_t row : rows)
        job.answer.orders.push_back(order_row(row));
    job.answer.stamp = stamp;
    if (!job.waits) {
        const uint64_t wait_ns = job.request.interval_ns;
        job.waits_until_ns =
            wait_ns < shm::kNever - core_.now() ? core_.now() + wait_ns : shm::kNever;
    }
    const bool is_news = !rows.empty() && stamp != job.request.after_stamp;
    job.waits = core_.now() < job.waits_until_ns && !is_news;
}

// Of a job that waits for orders: whether one of its pool has been decided in this turn.
bool Desk::look_for_orders(AdminJob& job) const {
    const uint32_t pool = core_.find_pool(job.request.pool);
    const auto decisions = core_.decisions();
    const bool stays =
        pool != shm::kNoRow && core_.now() < job.waits_until_ns &&
        std::none_of(decisions.begin(), decisions.end(), [&](const core::Decision& told) {
            return is_order(told.kind) && told.pool == pool;
        });
    if (stays) return false;
    orders(job);
    return job.answer.code != Code::ok || !job.waits;
}

}  // namespace dibs
