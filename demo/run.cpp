// demo/run.cpp -- `dibs demo`: loads, computes the ideal, plays, judges, reports.
// SPDX-License-Identifier: Apache-2.0
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

#include "broker/ctl/stop_signals.hpp"
#include "broker/text/line_wrap.hpp"
#include "broker/text/terminal_text.hpp"
#include "demo/demo.hpp"
#include "demo/figures.hpp"
#include "demo/instant.hpp"
#include "demo/judgement.hpp"
#include "demo/options.hpp"
#include "demo/troupe.hpp"
#include "demo/workload.hpp"

namespace dibs::ctl::demo {

namespace {

constexpr int kAllHold = 0;
constexpr int kOneDoesNot = 1;
constexpr int kNotPlayed = 2;
constexpr int kInterrupted = 130;
constexpr size_t kBrokenShown = 10;
// Where a line goes on below itself.
constexpr size_t kBehindItsWord = 10;
constexpr size_t kBehindAVerdict = 5;

std::string in_columns(const std::string& text, size_t indent) {
    return wrapped_lines(text, columns_for_output(), indent);
}

// A descriptor that the terminal's and the system's wishes to stop make readable.
int stop_descriptor() {
    const sigset_t stops = stop_signals();
    sigprocmask(SIG_BLOCK, &stops, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    const int fd = signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
    return fd;
}

void report_broken(const Options& options, const Workload& workload) {
    const Trace& trace = workload.trace;
    if (!trace.broken.empty()) {
        std::fprintf(stderr,
                     "%zu broken rows:\n%s",
                     trace.broken.size(),
                     describe_broken(trace, kBrokenShown).c_str());
    }
    if (options.report.empty()) return;
    std::ofstream out(options.report);
    out << describe_broken(trace, trace.broken.size());
    out.close();
    if (!out) throw std::runtime_error("cannot write " + options.report);
}

int play(const Options& options) {
    const int stop_fd = stop_descriptor();
    const Workload workload = load_workload(options);
    std::printf("%s", in_columns(describe(workload), kBehindItsWord).c_str());
    std::fflush(stdout);
    report_broken(options, workload);
    check_playable(workload);
    const Ideal ideal = run_ideal(workload.trace.rows, workload.shape, workload.slots);

    ask_for_exact_waits();
    Troupe troupe(workload);
    std::printf("%s", in_columns(troupe.describe(), kBehindItsWord).c_str());
    std::fflush(stdout);
    Evidence evidence;
    evidence.valid_rows = workload.trace.rows.size();
    evidence.result = troupe.play(stop_fd, isatty(STDERR_FILENO) == 1);
    evidence.totals = troupe.totals(evidence.result);
    evidence.sampler = troupe.sampler();
    evidence.witness_faults = troupe.witness().faults();
    evidence.witness_uses = troupe.witness().uses();
    evidence.witness_in_use = troupe.witness().in_use();
    evidence.departure = troupe.leave();
    close(stop_fd);
    if (evidence.result.interrupted) {
        std::printf("interrupted\n");
        return kInterrupted;
    }
    if (!evidence.result.failure.empty()) {
        std::printf("the run was ended: %s\n", evidence.result.failure.c_str());
    }
    const Figures figures = {
        workload,
        ideal,
        sum_up(evidence.result.waits_ns, evidence.result.makespan_ns),
        evidence.sampler.samples(),
        evidence.sampler.most_queued(),
        evidence.result.held_back,
    };
    const Facts facts = judge(evidence);
    std::printf("\n%s", in_columns(times_table(figures), 0).c_str());
    if (!ideal.failure.empty()) std::printf("core alone: %s\n", ideal.failure.c_str());
    if (!options.json.empty()) write_json(options.json, figures, facts);
    std::printf(
        "\n%s%s\n", in_columns(facts.lines(), kBehindAVerdict).c_str(), facts.last_line().c_str());
    return facts.count(Facts::Verdict::kFailed) == 0 ? kAllHold : kOneDoesNot;
}

}  // namespace

}  // namespace dibs::ctl::demo

int dibs::ctl::run_demo(int argc, char** argv) {
    using namespace dibs::ctl::demo;
    Options options;
    const std::string mistake = parse_options(argc, argv, &options);
    if (!mistake.empty()) {
        std::fprintf(
            stderr, "dibs demo: %s\nSee dibs demo --help.\n", dibs::harmless(mistake).c_str());
        return kNotPlayed;
    }
    if (options.help) {
        std::printf("%s", dibs::help_for_output(usage()).c_str());
        return kAllHold;
    }
    try {
        return play(options);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "dibs demo: %s\n", dibs::harmless(error.what()).c_str());
        return kNotPlayed;
    }
}
