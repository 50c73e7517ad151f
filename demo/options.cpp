// demo/options.cpp -- parses the arguments of `dibs demo`.
// SPDX-License-Identifier: Apache-2.0
#include "demo/options.hpp"

#include <getopt.h>

#include <array>
#include <set>

#include "broker/config/quantity.hpp"
#include "broker/text/spelling.hpp"
#include "demo/trace/decimal.hpp"
#include "demo/trace/text_line.hpp"

namespace dibs::ctl::demo {

namespace {

constexpr int64_t kSecondsMax = 86'400;

// Long options only; the number is what getopt returns for it.
enum Name : int {
    kTrace = 1,
    kFormat,
    kSeconds,
    kSlots,
    kPool,
    kReport,
    kJson,
    kTenants,
    kClaims,
    kUnits,
    kBurst,
    kLoad,
    kSeed,
    kHelp,
};

constexpr std::array<option, 15> kLongOptions = {{
    {"trace", required_argument, nullptr, kTrace},
    {"format", required_argument, nullptr, kFormat},
    {"seconds", required_argument, nullptr, kSeconds},
    {"slots", required_argument, nullptr, kSlots},
    {"pool", required_argument, nullptr, kPool},
    {"report", required_argument, nullptr, kReport},
    {"json", required_argument, nullptr, kJson},
    {"tenants", required_argument, nullptr, kTenants},
    {"claims", required_argument, nullptr, kClaims},
    {"units", required_argument, nullptr, kUnits},
    {"burst", required_argument, nullptr, kBurst},
    {"load", required_argument, nullptr, kLoad},
    {"seed", required_argument, nullptr, kSeed},
    {"help", no_argument, nullptr, kHelp},
    {nullptr, 0, nullptr, 0},
}};

std::string bad(int name, const std::string& wanted) {
    return "--" + std::string(kLongOptions[static_cast<size_t>(name - kTrace)].name) + " " +
           shown(optarg) + ": " + wanted + " is wanted";
}

std::string take_number(int name, uint32_t least, uint32_t most, uint32_t* number) {
    const auto value = parse_number(optarg, {least, most});
    if (!value) {
        return bad(name, "a number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    *number = static_cast<uint32_t>(*value);
    return {};
}

std::string take_seconds(uint64_t* span_ns) {
    const auto value = parse_seconds(optarg);
    if (!value || *value < kNsPerMillisecond || *value > kSecondsMax * kNsPerSecond) {
        return bad(kSeconds, "a number of seconds from 0.001 to 86400");
    }
    *span_ns = static_cast<uint64_t>(*value);
    return {};
}

std::string take_file(int name, std::string* path) {
    *path = optarg;
    return path->empty() ? bad(name, "a file") : std::string{};
}

std::string take_shape(Options* options) {
    const std::string text = optarg;
    if (text != "worker" && text != "counted") return bad(kPool, "worker or counted");
    options->shape = text == "worker" ? PoolShape::kWorkers : PoolShape::kCounted;
    return {};
}

std::string take_format(Options* options) {
    options->format = format_by_name(optarg);
    return options->format ? std::string{} : bad(kFormat, "swf, llm, functions or generic");
}

std::string take_slots(Options* options) {
    uint32_t slots = 0;
    std::string why = take_number(kSlots, 1, 65'536, &slots);
    options->slots = slots;
    return why;
}

std::set<std::string> known_options() {
    std::set<std::string> known;
    for (const option& one : kLongOptions) {
        if (one.name != nullptr) known.insert(std::string("--") + one.name);
    }
    return known;
}

std::string take(int name, Options* options) {
    GeneratorConfig& generator = options->generator;
    uint32_t seed = 0;
    switch (name) {
        case kTrace:
            return take_file(name, &options->trace);
        case kFormat:
            return take_format(options);
        case kSeconds:
            return take_seconds(&options->span_ns);
        case kSlots:
            return take_slots(options);
        case kPool:
            return take_shape(options);
        case kReport:
            return take_file(name, &options->report);
        case kJson:
            return take_file(name, &options->json);
        case kTenants:
            return take_number(name, 1, 1000, &generator.tenants);
        case kClaims:
            return take_number(name, 1, 1'000'000, &generator.claims);
        case kUnits:
            return take_number(name, 1, 256, &generator.units_max);
        case kBurst:
            return take_number(name, 1, 100'000, &generator.burst);
        case kLoad:
            return take_number(name, 1, 1000, &generator.load_percent);
        case kSeed: {
            std::string why = take_number(name, 0, UINT32_MAX, &seed);
            generator.seed = seed;
            return why;
        }
        default:
            options->help = true;
            return {};
    }
}

}  // namespace

std::string parse_options(int argc, char** argv, Options* options) {
    optind = 0;  // getopt may have been used before
    opterr = 0;
    for (;;) {
        const int name = getopt_long(argc, argv, ":", kLongOptions.data(), nullptr);
        if (name == -1) break;
        const std::string text = argv[optind - 1];
        if (name == '?') return no_such_option(text, known_options());
        if (name == ':') return "option " + shown(text) + " needs a value";
        std::string why = take(name, options);
        if (!why.empty()) return why;
    }
    if (optind < argc) return "what is " + shown(argv[optind]) + "? A file is given by --trace";
    return {};
}

std::string usage() {
    return R"(usage: dibs demo [--trace FILE] [options]

Plays a workload through a private broker with real processes, and checks what must hold.
Exit code: 0 all facts hold, 1 one does not, 2 the demo could not be played.

  --trace FILE     Standard Workload Format or CSV; without it a workload is generated
  --format NAME    swf, llm, functions or generic; otherwise the file's head tells
  --seconds N      the time that the arrivals are scaled to (60)
  --slots N        size of the pool (swf: as the file says, else 240; otherwise 8)
  --pool KIND      worker: a process for each slot; counted: none (swf: counted, otherwise worker)
  --report FILE    the complete list of broken rows
  --json FILE      the figures and facts

the generated workload:
  --claims N       how many (5000)
  --tenants N      sessions that they come from, each by turns busy and silent (4)
  --burst N        claims of a busy period, on average (20)
  --units N        most units of one claim (1)
  --load PERCENT   work in hand in percent of what the slots can do (70)
  --seed N         another workload (1)
)";
}

}  // namespace dibs::ctl::demo
