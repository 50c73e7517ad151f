// broker/ctl/admin/report.cpp -- `dibs report`, `dibs pull`: speak for workers that do not attach,
// and for the queues of dispatched pools.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/labels.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

namespace {

using admin::ReportKind;

constexpr size_t kPullersMax = 8;  // what one request has room for, labels and all

struct Word {
    std::string_view word;
    ReportKind kind;
    bool takes_name;  // behind the pool
    admin::Behaviour behaviour = admin::Behaviour::run;
};

constexpr Word kReported[] = {{"idle", ReportKind::idle, true},
                              {"running", ReportKind::running, true},
                              {"absent", ReportKind::absent, false},
                              {"unassign", ReportKind::unassign, true},
                              {"again", ReportKind::again, false},
                              {"entry", ReportKind::entry, true},
                              {"queue", ReportKind::queue, false},
                              {"lock", ReportKind::lock, true},
                              {"unlock", ReportKind::unlock, true},
                              {"cancel", ReportKind::cancel, true},
                              {"forget", ReportKind::forget, true},
                              {"done", ReportKind::done, true},
                              {"worker", ReportKind::worker, true},
                              {"process", ReportKind::process, true},
                              {"probe", ReportKind::probe, true},
                              {"run", ReportKind::behaviour, true, admin::Behaviour::run},
                              {"hold", ReportKind::behaviour, true, admin::Behaviour::hold},
                              {"drain", ReportKind::behaviour, true, admin::Behaviour::drain}};

const Word& word_named(const std::string& text) {
    std::string words;
    for (const Word& one : kReported) {
        if (one.word == text) return one;
        const bool is_last = &one == std::end(kReported) - 1;
        words.append(words.empty() ? "" : is_last ? " or " : ", ").append(one.word);
    }
    throw Failure(kExitUsage, "\"" + text + "\": write " + words);
}

// What an option is said of, as a bit for each kind.
constexpr uint32_t bits(std::initializer_list<ReportKind> kinds) {
    uint32_t all = 0;
    for (const ReportKind kind : kinds)
        all |= 1U << static_cast<uint32_t>(kind);
    return all;
}

constexpr struct {
    const char* option;
    const char* with;
    uint32_t kinds;
} kUses[] = {{"--claim",
              "running, absent, unassign and again",
              bits({ReportKind::idle,
                    ReportKind::running,
                    ReportKind::absent,
                    ReportKind::unassign,
                    ReportKind::again})},
             {"--label", "idle and again", bits({ReportKind::idle, ReportKind::again})},
             {"--prefer", "again", bits({ReportKind::again})},
             {"--account", "again", bits({ReportKind::again})},
             {"--error", "unassign and done", bits({ReportKind::unassign, ReportKind::done})},
             {"--state", "entry and worker", bits({ReportKind::entry, ReportKind::worker})},
             {"--priority", "entry", bits({ReportKind::entry})},
             {"--supervisor", "entry", bits({ReportKind::entry})},
             {"--type", "entry and worker", bits({ReportKind::entry, ReportKind::worker})},
             {"--worker", "process", bits({ReportKind::process})},
             {"--exited", "process", bits({ReportKind::process})},
             {"--failed",
              "queue, done and probe",
              bits({ReportKind::queue, ReportKind::done, ReportKind::probe})},
             {"--age",
              "what was seen; this is so from now on",
              ~bits({ReportKind::lock,
                     ReportKind::unlock,
                     ReportKind::cancel,
                     ReportKind::forget,
                     ReportKind::done,
                     ReportKind::process,
                     ReportKind::behaviour})}};

void check_uses(const Arguments& arguments, ReportKind kind) {
    for (const auto& use : kUses) {
        if (!arguments.given(use.option) || (use.kinds >> static_cast<uint32_t>(kind) & 1U) != 0)
            continue;
        throw Failure(kExitUsage, std::string(use.option) + " goes with " + use.with);
    }
}

// "c12"; "12" too, since the option says what it is of.
uint64_t claim_of(const std::string& text) {
    const std::string_view digits =
        std::string_view(text).substr(text.starts_with(static_cast<char>(Letter::kClaim)) ? 1 : 0);
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc{} && end == digits.data() + digits.size() && number != 0) return number;
    throw Failure(kExitUsage, "--claim " + text + ": a claim is called c1, c2 and so on");
}

// "NAME" or "NAME=LABEL,LABEL"
std::unique_ptr<admin::PullerT> puller_of(const std::string& text) {
    auto puller = std::make_unique<admin::PullerT>();
    const size_t sign = text.find('=');
    puller->worker = text.substr(0, sign);
    check_name("WORKER", puller->worker);
    for (size_t at = sign; at < text.size();) {
        const size_t end = std::min(text.find(',', at + 1), text.size());
        puller->labels.push_back(text.substr(at + 1, end - at - 1));
        at = end;
    }
    check_labels(text, puller->labels);
    return puller;
}

void check_words(const admin::RequestT& request, const std::string& what, bool claim_given) {
    const bool idle = request.report == ReportKind::idle;
    const bool again = request.report == ReportKind::again;
    const bool of_claim = again || request.report == ReportKind::absent;
    if (of_claim != request.worker.empty()) {
        throw Failure(kExitUsage,
                      of_claim ? what + " is said of a claim, not of a worker"
                               : "say which worker, behind the pool");
    }
    if (idle == claim_given) {
        throw Failure(kExitUsage,
                      idle ? "an idle worker runs no claim: leave --claim out"
                           : "say which claim: --claim c12");
    }
    check_labels("--label", request.labels);
    check_labels("--prefer", request.prefer);
}

// Options that only reports on dispatched pools have.
struct Dispatched {
    std::string state;
    std::optional<uint64_t> priority;
    std::string supervisor;
    std::vector<std::string> types;
    std::string worker;
    int64_t exited_ns = -1;
    bool failed = false;
};

template <class Enum>
Enum state_named(
    const std::string& word, const char* what, const char* const* names, Enum first, Enum last) {
    std::string all;
    for (auto at = static_cast<uint8_t>(first); at <= static_cast<uint8_t>(last); ++at) {
        if (names[at] == word) return static_cast<Enum>(at);
        all += (all.empty() ? "" : ", ") + std::string(names[at]);
    }
    throw Failure(kExitUsage, "--state: " + std::string(what) + " is one of " + all);
}

void take_state(admin::RequestT* request, const std::string& state) {
    if (request->report == ReportKind::entry && !state.empty()) {
        request->entry_state = state_named(state,
                                           "an entry",
                                           admin::EnumNamesEntryState(),
                                           admin::EntryState::queued,
                                           admin::EntryState::cancelled);
    }
    if (request->report != ReportKind::worker) return;
    if (state.empty()) throw Failure(kExitUsage, "say what the worker does: --state idle");
    request->worker_state = state_named(state,
                                        "a worker",
                                        admin::EnumNamesWorkerState(),
                                        admin::WorkerState::unknown,
                                        admin::WorkerState::absent);
}

// `names`: what stands behind the pool.
void take_dispatched(admin::RequestT* request,
                     const Word& word,
                     const Dispatched& said,
                     std::vector<std::string> names) {
    for (const std::string& name : names)
        check_name("NAME", name);
    if (word.takes_name && names.size() != 1) {
        throw Failure(kExitUsage, "say which one, behind the pool: one at a time");
    }
    const bool of_worker = word.kind == ReportKind::worker || word.kind == ReportKind::probe ||
                           word.kind == ReportKind::behaviour;
    if (word.takes_name) (of_worker ? request->worker : request->entry) = names.front();
    if (word.kind == ReportKind::queue) request->names = std::move(names);
    take_state(request, said.state);
    if (said.priority) request->priority = static_cast<int32_t>(*said.priority);
    if (!said.supervisor.empty()) {
        request->supervisor = said.supervisor == "yes";
        if (!*request->supervisor && said.supervisor != "no") {
            throw Failure(kExitUsage, "--supervisor: write yes or no");
        }
    }
    if (word.kind == ReportKind::worker && said.types.size() > 1) {
        throw Failure(kExitUsage, "--type: a worker is of one type");
    }
    if (word.kind == ReportKind::worker && !said.types.empty()) request->type = said.types.front();
    if (word.kind == ReportKind::entry) {
        request->names_given = !said.types.empty();
        for (const std::string& type : said.types)
            if (!type.empty()) request->names.push_back(type);
    }
    if (word.kind == ReportKind::process) {
        if (said.worker.empty()) throw Failure(kExitUsage, "say on which worker: --worker NAME");
        check_name("--worker", said.worker);
        request->worker = said.worker;
        request->exited = said.exited_ns >= 0;
        if (request->exited) request->age_ns = static_cast<uint64_t>(said.exited_ns);
    }
    request->failed = said.failed;
    request->behaviour = word.behaviour;
}

// In slices that the broker takes, if it has many names.
void send_dispatched(AdminClient& client, admin::RequestT request) {
    constexpr size_t kSlice = 512;
    std::vector<std::string> names = std::move(request.names);
    for (size_t at = 0;; at += kSlice) {
        const size_t end = std::min(at + kSlice, names.size());
        request.names.assign(names.begin() + static_cast<ptrdiff_t>(at),
                             names.begin() + static_cast<ptrdiff_t>(end));
        request.more = end != names.size();
        (void)client.must(request, "");
        if (!request.more) return;
    }
}

Cell claim_cell(uint64_t number) {
    return number == 0 ? Cell() : Cell::numbered(Letter::kClaim, number);
}

uint64_t age_of(int64_t age_ns) {
    return age_ns < 0 ? 0 : static_cast<uint64_t>(age_ns);
}

}  // namespace

int run_report(int argc, char** argv) {
    std::string what;
    std::vector<std::string> of;
    std::string claim;
    int64_t age_ns = -1;
    Dispatched said;
    admin::RequestT request;
    request.ask = admin::Ask::report;
    Arguments arguments("report",
                        "Says of a worker that does not attach what it does: idle, running a "
                        "claim; of a claim that it is absent; that it is taken off its worker "
                        "(unassign) and waits again; or that it is announced again, and so waits "
                        "again if it runs: in worker pools ordered by account. Of dispatched pools "
                        "it says how an entry of the queue is; which entries a reading of the "
                        "queue found; what is asked of one (lock, unlock, cancel, forget); that "
                        "what dibs orders told is done; what a worker does; that an entry's "
                        "process is alive on a worker, or has exited; how a probe of a worker "
                        "ended; and what a worker may do (run, hold, drain). For administrators. "
                        "What is older than what is known changes nothing.");
    arguments.operand("WHAT",
                      &what,
                      "idle, running, absent, unassign, again, entry, queue, lock, unlock, cancel, "
                      "forget, done, worker, process, probe, run, hold or drain");
    arguments.operands("POOL [NAME]",
                       &of,
                       "the pool, and which worker or entry; absent and again name none, queue all "
                       "entries that it has");
    arguments.text("-c,--claim", &claim, "the claim, such as c12");
    arguments.texts("-l,--label",
                    &request.labels,
                    "of an idle worker, or that a claim must have now: a label (repeatable)");
    arguments.texts(
        "--prefer", &request.prefer, "with again: a label that it should have now (repeatable)");
    arguments.text("--account", &request.account, "with again: who pays now");
    arguments.text("--state",
                   &said.state,
                   "of an entry: queued, locked, running, complete, cancelled; of a worker: "
                   "unknown, booting, idle, running, shutdown, absent",
                   "STATE");
    arguments.number("--priority",
                     &said.priority,
                     {0, 1'000'000'000},
                     "of an entry: the highest is served first, 0 is held");
    arguments.text("--supervisor", &said.supervisor, "of an entry: yes or no", "YES|NO");
    arguments.texts("--type",
                    &said.types,
                    "of a worker; of an entry: one that suits it (repeatable; \"\": any)",
                    "TYPE");
    arguments.text("--worker", &said.worker, "with process: where it is, or was", "NAME");
    arguments.duration("--exited", &said.exited_ns, "with process: so long ago it exited");
    arguments.flag("--failed",
                   &said.failed,
                   "of queue, done, probe: the reading, the operation or the probe has failed");
    arguments.duration("-a,--age",
                       &age_ns,
                       "how long ago it was so, or the reading of the queue or the probe began; 0s "
                       "if not said");
    arguments.text("-e,--error", &request.error, "with unassign, done: why it failed");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    const Word& word = word_named(what);
    const bool is_dispatched = word.kind >= ReportKind::entry;
    if (of.size() > 2 && word.kind != ReportKind::queue) {
        throw Failure(kExitUsage, "one pool and one worker at a time");
    }
    request.report = word.kind;
    request.pool = of.front();
    request.age_ns = age_of(age_ns);
    if (is_dispatched) {
        check_uses(arguments, word.kind);
        take_dispatched(&request, word, said, {of.begin() + 1, of.end()});
    } else {
        if (of.size() > 1) request.worker = of.back();
        if (of.size() > 1) check_name("WORKER", request.worker);
        check_words(request, what, !claim.empty());
        check_uses(arguments, word.kind);
        request.labels_given = !request.labels.empty();
        request.prefer_given = !request.prefer.empty();
        if (!claim.empty()) request.number = claim_of(claim);
    }
    AdminClient client(output.socket());
    const std::string where = request.worker.empty() ? "" : " on worker " + request.worker;
    const std::string named = "claim " + number_text(Letter::kClaim, request.number) + where;
    if (is_dispatched) {
        send_dispatched(client, request);
    } else {
        (void)client.must(request, claim.empty() ? "" : named);
    }
    const auto name_cell = [](const std::string& name) {
        return name.empty() ? Cell() : Cell::of(name);
    };
    Sheet sheet{"dibs.report/1",
                {{"reported", "reported"},
                 {"pool", "pool"},
                 {"worker", "worker"},
                 {"claim", is_dispatched ? "" : "claim"}}};
    sheet.rows.push_back({Cell::of(what),
                          Cell::of(request.pool),
                          name_cell(request.worker),
                          claim_cell(request.number)});
    if (is_dispatched) {
        sheet.columns.push_back({"entry", "entry"});
        sheet.rows.front().push_back(name_cell(request.entry));
    }
    output.show_record(sheet);
    return output.finish(kExitOk);
}

int run_pull(int argc, char** argv) {
    std::string pool;
    std::vector<std::string> workers;
    int64_t age_ns = -1;
    Arguments arguments("pull",
                        "Asks for work for workers that do not attach: each is idle unless it has "
                        "work that it has not confirmed, and is told the claim that it gets. The "
                        "same claim is told again until dibs report running confirms it. For "
                        "administrators, and for worker pools ordered by account.");
    arguments.operand("POOL", &pool, "their pool");
    arguments.operands(
        "WORKER", &workers, "a worker's name, or NAME=LABEL,LABEL with its labels; 8 at most");
    arguments.duration("-a,--age", &age_ns, "how long ago they asked; 0s if not said");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    if (workers.size() > kPullersMax) {
        throw Failure(kExitUsage, "at most " + std::to_string(kPullersMax) + " workers at once");
    }
    admin::RequestT request;
    request.ask = admin::Ask::pull;
    request.pool = pool;
    request.age_ns = age_of(age_ns);
    for (const std::string& worker : workers)
        request.pullers.push_back(puller_of(worker));
    AdminClient client(output.socket());
    const admin::AnswerT answer = client.must(request, {});
    Sheet sheet{
        "dibs.pull/1",
        {{"worker", "worker"}, {"claim", "claim"}, {"abort", "abort"}, {"provision", "provision"}}};
    for (const auto& pulled : answer.pulled) {
        sheet.rows.push_back({Cell::of(pulled->worker),
                              claim_cell(pulled->claim),
                              claim_cell(pulled->abort),
                              Cell::of(pulled->provision)});
    }
    output.show_rows(sheet);
    return output.finish(kExitOk);
}

}  // namespace dibs::ctl
