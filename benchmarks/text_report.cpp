// benchmarks/text_report.cpp -- a run's report for people.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "benchmarks/report.hpp"

namespace dibs::bench {

namespace {

[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...) {
    char line[512];
    va_list values;
    va_start(values, format);
    (void)std::vsnprintf(line, sizeof line, format, values);
    va_end(values);
    return line;
}

std::string shown_targets(const std::vector<Target>& targets) {
    std::string shown;
    for (const Target& target : targets) {
        shown += text("%s%s <= %g: %s",
                      shown.empty() ? "" : ", ",
                      target.of.c_str(),
                      target.limit,
                      target.met() ? "met" : "missed");
    }
    return shown;
}

void write_rounds(std::ostream& out, const RoundCount& count) {
    out << "  rounds: ";
    for (const RoundCount::Kept& kept : count.kept)
        out << text("%u %s; ", kept.rounds, kept.state.c_str());
    out << text("%u mixed (dropped). %s: %.4g to %.4g\n",
                count.mixed_rounds,
                count.figure.c_str(),
                count.figures[0],
                count.figures[1]);
}

void write_rounds_of(std::ostream& out, const Report& report, const std::string& group) {
    out << "\n" << group << "\n";
    for (const RoundCount& count : report.rounds) {
        if (count.group == group) write_rounds(out, count);
    }
}

void write_row(std::ostream& out, const Row& row) {
    std::string ratios = "       -        -";
    if (!row.floor.empty()) ratios = text("%8.2f%9.2f", row.ratio_p50, row.ratio_p99);
    out << text("  %-44s %-12s%9.1f%12.1f%12.1f%s%9llu  %-12s %s\n",
                row.name.c_str(),
                row.state.c_str(),
                row.ns.p50,
                row.ns.p99,
                row.ns.p999,
                ratios.c_str(),
                static_cast<unsigned long long>(row.samples),
                row.placement.c_str(),
                shown_targets(row.targets).c_str());
}

void write_workers(std::ostream& out, const WorkersRow& row) {
    std::string percents = "      -";
    if (row.percent != 0) {
        percents = text("%7.1f (%.0f to %.0f)", row.percent, row.percent_least, row.percent_most);
    }
    std::string claims = text("%10s%11s%12s", "-", "-", "-");
    if (row.claims != 0) {
        claims = text("%10.0f%11.0f%12.0f", row.claim_ns.p50, row.claim_ns.p99, row.claim_ns.p999);
    }
    out << text("  %-32s %-12s%10.0f%-24s%s%10.2f%12.0f\n",
                row.name.c_str(),
                row.state.c_str(),
                row.tasks_per_second,
                percents.c_str(),
                claims.c_str(),
                row.fairness,
                row.cpu_ns_per_task);
}

void write_all_workers(std::ostream& out, const Report& report) {
    std::string group;
    for (const WorkersRow& row : report.workers) {
        if (row.group != group) {
            group = row.group;
            write_rounds_of(out, report, group);
            out << text("  %-32s %-12s%10s%-24s%10s%11s%12s%10s%12s\n",
                        "",
                        "state",
                        "tasks/s",
                        "  % of ideal",
                        "claim p50",
                        "p99",
                        "p99.9 ns",
                        "fairness",
                        "CPU ns/task");
        }
        write_workers(out, row);
    }
}

template <typename Each>
void write_all_targets(const std::string& name, const std::vector<Target>& targets, Each each) {
    for (const Target& target : targets)
        each(name, target);
}

}  // namespace

void write_text(std::ostream& out, const Report& report) {
    const Machine& machine = report.machine;
    out << machine.processor << ", " << machine.kernel << ", " << machine.compiler << "\n"
        << text("load %.2f before, %.2f after\n", machine.load_before, machine.load_after);
    std::string group;
    for (const Row& row : report.rows) {
        if (row.group != group) {
            group = row.group;
            write_rounds_of(out, report, group);
            out << text("  %-44s %-12s%9s%12s%12s%8s%9s%9s  %s\n",
                        "ns",
                        "state",
                        "p50",
                        "p99",
                        "p99.9",
                        "x p50",
                        "x p99",
                        "samples",
                        "placement");
        }
        write_row(out, row);
    }
    write_all_workers(out, report);
    for (const Fact& fact : report.facts) {
        if (fact.group != group) {
            group = fact.group;
            out << "\n" << group << "\n";
        }
        out << text("  %-52s %12.1f %s  %s\n",
                    fact.name.c_str(),
                    fact.value,
                    fact.unit.c_str(),
                    shown_targets(fact.targets).c_str());
        if (!fact.how.empty()) out << "      " << fact.how << "\n";
    }
    for (const RoundCount& count : report.rounds) {
        const auto any = [](const RoundCount::Kept& kept) { return kept.rounds != 0; };
        if (std::ranges::any_of(count.kept, any)) continue;
        out << "\nno round of \"" << count.group << "\" was kept\n";
        write_rounds(out, count);
    }
    for (const Absence& absence : report.absences)
        out << "\nnot measured: " << absence.name << ": " << absence.why << "\n";
}

void write_targets(std::ostream& out, const Report& report) {
    int met = 0;
    int missed = 0;
    const auto each = [&](const std::string& name, const Target& target) {
        (target.met() ? met : missed) += 1;
        out << text("%-6s %s: %s %.4g, wished <= %g\n",
                    target.met() ? "met" : "missed",
                    name.c_str(),
                    target.of.c_str(),
                    target.value,
                    target.limit);
    };
    for (const Row& row : report.rows)
        write_all_targets(row.name + " (" + row.state + ")", row.targets, each);
    for (const Fact& fact : report.facts)
        write_all_targets(fact.name, fact.targets, each);
    out << text("%d targets met, %d missed\n", met, missed);
}

}  // namespace dibs::bench
