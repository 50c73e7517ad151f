// benchmarks/main.cpp -- dibs-bench: our figures and their floors, interleaved in one run.
//
// Exit codes: 0 measured (whatever the figures are); 1 something could not be run; 2 a mistake in
// the command line.
// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "benchmarks/account_races.hpp"
#include "benchmarks/claim_path.hpp"
#include "benchmarks/fixed_work.hpp"
#include "benchmarks/idle.hpp"
#include "benchmarks/memory.hpp"
#include "benchmarks/options.hpp"
#include "benchmarks/peers/peer_races.hpp"
#include "benchmarks/process_figures.hpp"
#include "benchmarks/races.hpp"
#include "benchmarks/takeover.hpp"
#include "benchmarks/tick_clock.hpp"
#include "benchmarks/worker_races.hpp"

namespace {

using namespace dibs::bench;

Report measure(const Options& options, const Placement& placement) {
    Report report;
    report.machine.processor = processor_name();
    report.machine.kernel = kernel_name();
    report.machine.compiler = "compiler " __VERSION__;
    report.machine.load_before = load_average();
    PairProbe pair_probe(placement.far_side);
    CoreProbe core_probe;
    const Stage stage = {options, placement, pair_probe, core_probe, report};
    // Who dies is a child of this process, and what that has by the end takes milliseconds to free.
    if (options.wants("deaths")) measure_deaths_of_holders(stage);
    if (options.wants("ring")) race_rings(stage);
    if (options.wants("futex")) race_futexes(stage);
    if (options.wants("hostile")) race_beside_a_hostile_session(stage);
    if (options.wants("parked")) race_parked(stage);
    if (options.wants("core")) race_core(stage);
    if (options.wants("core")) race_several_pools(stage);
    if (options.wants("core")) race_parts(stage);
    if (options.wants("core")) race_routes(stage);
    if (options.wants("core")) race_elastic(stage);
    if (options.wants("gangs")) race_gangs(stage);
    if (options.wants("board")) race_board(stage);
    if (options.wants("accounts")) {
        race_accounts(stage);
        race_account_growth(stage);
        race_trace(stage);
        measure_account_memory(stage);
    }
    if (options.wants("parked")) {
        watch_parking(placement, options.idle_seconds, report);
        watch_touches(placement, options.idle_seconds, report);
    }
    if (options.wants("workers")) race_workers(stage);
    if (options.wants("peers")) race_peers(stage);
    if (options.wants("memory")) {
        watch_idleness(placement, options.idle_seconds, report);
        measure_session_memory(placement, report);
        measure_waiting_claims(placement, report);
        count_claim_path(placement, report);
    }
    if (options.wants("deaths")) measure_takeovers(stage);
    report.machine.load_after = load_average();
    return report;
}

void serve(const Options& options) {
    const Placement placement = choose_placement();
    if (placement.far_side < 0) throw std::runtime_error("two CPUs are needed");
    pin(placement.near_side);
    (void)tick_ns();
    if (!options.work.empty()) return do_fixed_work(options, placement);
    const Report report = measure(options, placement);
    write_text(std::cout, report);
    if (options.check) write_targets(std::cout << "\n", report);
    if (options.json.empty()) return;
    std::ofstream file(options.json);
    write_json(file, report);
    if (!file.flush()) throw std::runtime_error("cannot write " + options.json);
}

}  // namespace

int main(int argc, char** argv) {
    int exit_code = 0;
    const auto options = parse_options(argc, argv, &exit_code);
    if (!options) return exit_code;
    try {
        serve(*options);
    } catch (const std::exception& error) {
        std::cerr << "dibs-bench: " << error.what() << "\n";
        return 1;
    }
    return 0;
}
