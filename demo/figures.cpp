// demo/figures.cpp -- prints the table of times.
// SPDX-License-Identifier: Apache-2.0
#include "demo/figures.hpp"

#include <array>

namespace dibs::ctl::demo {

namespace {

std::string padded(const std::string& text, size_t width) {
    return text.size() >= width ? text : text + std::string(width - text.size(), ' ');
}

std::string line(const std::array<std::string, 4>& cells) {
    std::string text =
        padded(cells[0], 14) + padded(cells[1], 14) + padded(cells[2], 14) + cells[3];
    return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
}

// What the path through processes and memory costs on top of the core's decision.
std::string overhead(uint64_t measured_ns, uint64_t ideal_ns) {
    const std::string difference = measured_ns >= ideal_ns ? "+" + shown_ns(measured_ns - ideal_ns)
                                                           : "-" + shown_ns(ideal_ns - measured_ns);
    if (ideal_ns == 0) return difference;
    return difference + "  x " + shown_ratio(measured_ns, ideal_ns);
}

std::string times_line(const char* name, uint64_t measured_ns, uint64_t ideal_ns) {
    return line({name, shown_ns(measured_ns), shown_ns(ideal_ns), overhead(measured_ns, ideal_ns)});
}

std::string rate(const Timing& timing) {
    return shown_ratio(timing.per_second_milli, 1000) + "/s";
}

}  // namespace

std::string times_table(const Figures& figures) {
    const Timing& real = figures.measured;
    const Timing& ideal = figures.ideal.timing;
    std::string text = line({"", "measured", "core alone", "difference"});
    text += times_line("makespan", real.makespan_ns, ideal.makespan_ns);
    text += times_line("wait, mean", real.mean_wait_ns, ideal.mean_wait_ns);
    text += times_line("wait, p50", real.p50_wait_ns, ideal.p50_wait_ns);
    text += times_line("wait, p99", real.p99_wait_ns, ideal.p99_wait_ns);
    text += times_line("wait, longest", real.max_wait_ns, ideal.max_wait_ns);
    text += line({"grants", rate(real), rate(ideal), ""});
    text += "most claims queued at the broker " + std::to_string(figures.most_queued);
    text += figures.held_back == 0
                ? std::string("; none had to wait in its client\n")
                : "; up to " + std::to_string(figures.held_back) +
                      " waited in their client, in order, for a place in the session\n";
    return text;
}

}  // namespace dibs::ctl::demo
