// demo/options.hpp -- the options of `dibs demo`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "demo/ideal.hpp"
#include "demo/trace/generator.hpp"
#include "demo/trace/trace.hpp"

namespace dibs::ctl::demo {

struct Options {
    std::string trace;  // file; empty: the generator
    std::optional<TraceFormat> format;
    uint64_t span_ns = 60'000'000'000;
    std::optional<uint32_t> slots;
    std::optional<PoolShape> shape;
    std::string report;  // file for the complete list of broken rows
    std::string json;    // file for the figures
    GeneratorConfig generator;
    bool help = false;
};

// Fills `options` from the arguments behind "demo"; empty, or what is wrong with them.
std::string parse_options(int argc, char** argv, Options* options);
std::string usage();

}  // namespace dibs::ctl::demo
