// tests/fuzz/trace.cpp -- a trace in any of the formats: rows in order, broken ones with a reason.
// SPDX-License-Identifier: Apache-2.0
#include "demo/trace/trace.hpp"
#include "tests/fuzz/bytes.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    namespace demo = dibs::ctl::demo;
    using dibs::fuzz::expect;
    dibs::fuzz::Bytes input(bytes, size);
    const auto form = input.take<uint8_t>();
    constexpr demo::TraceFormat kFormats[] = {demo::TraceFormat::kSwf,
                                              demo::TraceFormat::kLlm,
                                              demo::TraceFormat::kFunctions,
                                              demo::TraceFormat::kGeneric};
    const auto guessed = demo::detect_format("trace", input.text());
    const demo::TraceFormat format = form < 4 || !guessed ? kFormats[form % 4] : *guessed;
    const demo::Trace trace = demo::parse_trace(input.text(), format);
    if (!trace.rows.empty()) ++dibs::fuzz::understood;
    uint64_t last = 0;
    for (const demo::TraceRow& row : trace.rows) {
        expect(row.arrival_ns >= last, "rows stand by arrival");
        expect(row.tenant < trace.tenants.size() || trace.tenants.empty(), "a row's tenant exists");
        last = row.arrival_ns;
    }
    for (const demo::BrokenRow& row : trace.broken)
        expect(!row.reason.empty(), "a broken row says why");
    return 0;
}
