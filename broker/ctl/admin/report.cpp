// broker/ctl/admin/report.cpp -- `dibs report`, `dibs pull`: speak for workers that do not attach.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/labels.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

namespace {

using admin::ReportKind;

constexpr size_t kPullersMax = 8;  // what one request has room for, labels and all

constexpr std::array<std::pair<std::string_view, ReportKind>, 5> kReportKinds = {
    {{"idle", ReportKind::idle},
     {"running", ReportKind::running},
     {"absent", ReportKind::absent},
     {"unassign", ReportKind::unassign},
     {"again", ReportKind::again}}};

ReportKind report_kind_of(const std::string& word) {
    for (const auto& [name, kind] : kReportKinds) {
        if (name == word) return kind;
    }
    throw Failure(kExitUsage, "\"" + word + "\": write idle, running, absent, unassign or again");
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
    if (!request.labels.empty() && !idle && !again) {
        throw Failure(kExitUsage, "--label goes with idle and again");
    }
    if ((!request.prefer.empty() || !request.account.empty()) && !again) {
        throw Failure(kExitUsage, "--prefer, --account: each goes with again");
    }
    if (!request.error.empty() && request.report != ReportKind::unassign) {
        throw Failure(kExitUsage, "--error goes with unassign");
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
    admin::RequestT request;
    request.ask = admin::Ask::report;
    Arguments arguments("report",
                        "Says of a worker that does not attach what it does: idle, running a "
                        "claim; of a claim that it is absent; that it is taken off its worker "
                        "(unassign) and waits again; or that it is announced again, and so waits "
                        "again if it runs. For administrators, and for worker pools ordered by "
                        "account. What is older than what is known changes nothing.");
    arguments.operand("WHAT", &what, "idle, running, absent, unassign or again");
    arguments.operands(
        "POOL [WORKER]", &of, "the pool, and which worker; absent and again name none");
    arguments.text("-c,--claim", &claim, "the claim, such as c12");
    arguments.texts("-l,--label",
                    &request.labels,
                    "of an idle worker, or that a claim must have now: a label (repeatable)");
    arguments.texts(
        "--prefer", &request.prefer, "with again: a label that it should have now (repeatable)");
    arguments.text("--account", &request.account, "with again: who pays now");
    arguments.duration("-a,--age", &age_ns, "how long ago it was so; 0s if not said");
    arguments.text("-e,--error", &request.error, "with unassign: why the claim failed there");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    if (of.size() > 2) throw Failure(kExitUsage, "one pool and one worker at a time");
    request.report = report_kind_of(what);
    request.pool = of.front();
    if (of.size() > 1) request.worker = of.back();
    if (of.size() > 1) check_name("WORKER", request.worker);
    check_words(request, what, !claim.empty());
    request.labels_given = !request.labels.empty();
    request.prefer_given = !request.prefer.empty();
    if (!claim.empty()) request.number = claim_of(claim);
    request.age_ns = age_of(age_ns);
    AdminClient client(output.socket());
    const std::string where = request.worker.empty() ? "" : " on worker " + request.worker;
    const std::string named = "claim " + number_text(Letter::kClaim, request.number) + where;
    (void)client.must(request, claim.empty() ? "" : named);
    Sheet sheet{
        "dibs.report/1",
        {{"reported", "reported"}, {"pool", "pool"}, {"worker", "worker"}, {"claim", "claim"}}};
    sheet.rows.push_back({Cell::of(what),
                          Cell::of(request.pool),
                          request.worker.empty() ? Cell() : Cell::of(request.worker),
                          claim_cell(request.number)});
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
