// tests/fuzz/journal.cpp -- a journal in either form, read and replayed: it runs, or the error says
// what is wrong, and the rows hold either way.
//
// Of an input whose first line is "recording" the others are what a live broker was given, behind a
// state that every such input begins with: a state of its own would leave it no room.
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <utility>

#include "broker/journal/journal_error.hpp"
#include "broker/journal/journal_reader.hpp"
#include "broker/journal/replayer.hpp"
#include "broker/journal/scenario.hpp"
#include "broker/snapshot/load.hpp"
#include "tests/fuzz/bytes.hpp"

namespace {

namespace ctl = dibs::ctl;
namespace journal = dibs::journal;
using dibs::fuzz::expect;

constexpr dibs::core::Limits kLimits = {.pools = 8,
                                        .sessions = 16,
                                        .slots = 64,
                                        .claims = 64,
                                        .leases = 64,
                                        .arena_blocks = 32,
                                        .accounts = 16,
                                        .label_sets = 32,
                                        .applications = 8,
                                        .groups = 10,
                                        .tasks = 16};

// What the table sizes of a recording's own snapshot may cost here.
constexpr uint64_t kStateMax = 4ULL << 20;

constexpr std::string_view kRecording = "recording\n";
constexpr std::string_view kBefore =
    R"({"pool":{"name":"gpu","kind":"counted","slots":2}}
{"pool":{"name":"web","kind":"worker"}}
{"pool":{"name":"shared","kind":"worker","order":"account"}}
{"account":{"name":"a","rate_micros":[1000000],"balance_micros":[1000000]}}
{"session":{"name":"client"}}
{"session":{"name":"worker"}}
{"announce":{"session":"worker","slot":"w1","pool":"web"}}
{"claim":{"session":"client","claim":"held","pool":"gpu"}}
{"claim":{"session":"client","claim":"waits","pool":"shared","account":"a"}}
{"turn":{}}
)";

// The first line of a recording, in binary form.
std::string recorded_state() {
    ctl::JournalReader reader;
    reader.open(std::string(kBefore), ctl::JournalForm::kJson);
    ctl::Replayer replayer(kLimits);
    while (const auto* line = reader.next())
        replayer.apply(*line);
    flatbuffers::FlatBufferBuilder builder;
    const auto state = journal::CreateState(builder, builder.CreateVector(replayer.snapshot()));
    journal::LineBuilder line(builder);
    line.add_state(state);
    builder.Finish(line.Finish());
    const auto* const bytes = reinterpret_cast<const char*>(builder.GetBufferPointer());
    return {bytes, builder.GetSize()};
}

bool is_too_large(const journal::Line& line) {
    if (line.state() == nullptr) return false;
    try {
        const auto* const snapshot = line.state()->snapshot();
        const dibs::snapshot::Loader loader({snapshot->data(), snapshot->size()});
        return dibs::core::state_size(loader.limits()) > kStateMax;
    } catch (const dibs::snapshot::SnapshotError&) {
        return false;  // as the replayer will say
    }
}

// Plays on behind a turn that decides otherwise than its line says: nobody has recorded these.
void apply(ctl::Replayer& replayer, const journal::Line& line) {
    try {
        replayer.apply(line);
    } catch (const ctl::JournalError& error) {
        if (line.turn_closed() == nullptr || replayer.turn_open()) throw;
        expect(*error.what() != 0, "an error says what is wrong");
    }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    const dibs::fuzz::Bytes input(bytes, size);
    std::string_view text = input.text();
    const bool recording = text.starts_with(kRecording);
    if (recording) text.remove_prefix(kRecording.size());
    try {
        static ctl::JournalReader reader;
        static const std::string state = recorded_state();
        reader.open(std::string(text), ctl::JournalForm::kDetect);
        ctl::Replayer replayer(kLimits);
        if (recording) replayer.apply(*flatbuffers::GetRoot<journal::Line>(state.data()));
        bool meant = false;  // a line was a command
        bool sound = true;   // not refused with its snapshot
        try {
            while (const auto* line = reader.next()) {
                if (!std::exchange(meant, true)) ++dibs::fuzz::understood;
                if (ctl::is_expectation(*line)) continue;
                if (is_too_large(*line)) return 0;
                sound = line->state() == nullptr;
                apply(replayer, *line);
                sound = true;
                for (const std::string& decision : replayer.take_decisions())
                    expect(!decision.empty(), "a decision says something");
            }
            replayer.finish();
        } catch (const ctl::JournalError& error) {
            expect(*error.what() != 0, "an error says what is wrong");
        }
        if (!sound || replayer.turn_open()) return 0;
        expect(replayer.core().check_all().empty(), "the rows hold");
    } catch (const ctl::JournalError& error) {
        expect(*error.what() != 0, "an error says what is wrong");
    }
    return 0;
}
