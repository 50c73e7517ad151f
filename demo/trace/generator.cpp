// demo/trace/generator.cpp -- generates on/off arrivals and bounded Pareto hold times.
// SPDX-License-Identifier: Apache-2.0
#include "demo/trace/generator.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "demo/trace/decimal.hpp"
#include "demo/trace/scaling.hpp"

namespace dibs::ctl::demo {

namespace {

constexpr uint64_t kOffToOn = 9;
constexpr uint64_t kHoldUnit = 1'000'000;  // the shortest hold time before it is fitted to the load
constexpr uint64_t kGapUnit = 1000;        // the mean gap in a burst before scaling

uint64_t pareto_hold(Dice* dice) {
    constexpr uint64_t kOne = uint64_t{1} << 32;
    const uint64_t u = dice->next() >> 32;
    return scale_integer(kHoldUnit * kHoldRatio, kOne, kHoldRatio * kOne - u * (kHoldRatio - 1));
}

// The claims of one tenant, in units of kGapUnit: scaled with all others in the end.
void play_tenant(const GeneratorConfig& config,
                 uint32_t tenant,
                 uint32_t claims,
                 std::vector<TraceRow>* rows) {
    Dice dice(config.seed * 0x9e3779b97f4a7c15ULL + tenant + 1);
    const uint64_t off_mean = kOffToOn * config.burst * kGapUnit;
    uint64_t now = dice.below(2 * off_mean + 1);
    uint64_t left_in_burst = 1 + dice.below(2 * config.burst - 1);
    for (uint32_t i = 0; i < claims; ++i) {
        if (left_in_burst == 0) {
            now += dice.below(2 * off_mean + 1);
            left_in_burst = 1 + dice.below(2 * config.burst - 1);
        }
        --left_in_burst;
        now += dice.below(2 * kGapUnit + 1);
        TraceRow row;
        row.arrival_ns = now;
        row.hold_ns = pareto_hold(&dice);
        row.units = static_cast<uint32_t>(1 + dice.below(config.units_max));
        row.tenant = tenant;
        rows->push_back(row);
    }
}

// Hold times so that they fill `load_percent` of the slots over the span. The arrivals are in
// place.
void fit_holds(const GeneratorConfig& config, std::vector<TraceRow>* rows) {
    const uint64_t work = work_of(*rows);
    if (work == 0) return;
    const uint64_t capacity = scale_integer(config.span_ns, config.slots, 1);
    const uint64_t wanted = scale_integer(capacity, config.load_percent, 100);
    for (TraceRow& row : *rows)
        row.hold_ns = scale_integer(row.hold_ns, wanted, work);
}

}  // namespace

uint64_t Dice::next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

uint64_t Dice::below(uint64_t bound) {
    return ((next() >> 32) * bound) >> 32;
}

Trace generate_trace(const GeneratorConfig& config) {
    Trace trace;
    trace.format = TraceFormat::kGeneric;
    for (uint32_t tenant = 0; tenant < config.tenants; ++tenant) {
        const uint32_t extra = tenant < config.claims % config.tenants ? 1 : 0;
        play_tenant(config, tenant, config.claims / config.tenants + extra, &trace.rows);
        trace.tenants.push_back("tenant " + std::to_string(tenant));
    }
    std::sort(trace.rows.begin(), trace.rows.end(), [](const TraceRow& a, const TraceRow& b) {
        return std::tie(a.arrival_ns, a.tenant, a.hold_ns, a.units) <
               std::tie(b.arrival_ns, b.tenant, b.hold_ns, b.units);
    });
    for (size_t i = 0; i < trace.rows.size(); ++i)
        trace.rows[i].line = i + 1;
    scale_rows(&trace.rows, config.span_ns);
    fit_holds(config, &trace.rows);
    return trace;
}

}  // namespace dibs::ctl::demo
