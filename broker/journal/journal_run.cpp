// broker/journal/journal_run.cpp -- feeds a journal to the replayer, or converts it.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/journal_run.hpp"

#include <algorithm>

#include "broker/core/store/index.hpp"
#include "broker/journal/journal_error.hpp"
#include "broker/journal/replayer.hpp"
#include "broker/journal/scenario.hpp"
#include "broker/journal/state_text.hpp"

namespace dibs::ctl {
namespace {

void append_prefixed(std::string& bytes, std::string_view buffer) {
    for (int shift = 0; shift < 32; shift += 8) {
        bytes += static_cast<char>((buffer.size() >> shift) & 0xff);
    }
    bytes += buffer;
}

bool is_last(JournalReader& journal, const journal::RecordingEnds& end, uint64_t sum) {
    const std::vector<uint8_t> wanted = recording_end(end.turns(), sum);
    return std::equal(wanted.begin(),
                      wanted.end(),
                      journal.buffer().begin(),
                      journal.buffer().end(),
                      [](uint8_t byte, char other) { return byte == static_cast<uint8_t>(other); });
}

// A byte of it that no decision depends on may have been changed, too. Unreadable lines are
// reported when they are replayed.
void refuse_changed(JournalReader& journal) {
    if (!journal.is_binary()) return;
    uint64_t sum = 0;
    bool same = true;
    try {
        while (const journal::Line* line = journal.next()) {
            if (line->recording_ends() != nullptr) {
                same = same && is_last(journal, *line->recording_ends(), sum);
            }
            sum = journal_sum(sum, journal.buffer());
        }
    } catch (const JournalError&) {
    }
    if (!same) throw JournalError("the recording was changed since it was written");
    journal.rewind();
}

}  // namespace

uint64_t journal_sum(uint64_t sum, std::string_view line) {
    return core::hash_bytes(line.data(), line.size(), sum);
}

std::vector<uint8_t> recording_end(uint64_t turns, uint64_t sum) {
    flatbuffers::FlatBufferBuilder builder;
    const auto end = journal::CreateRecordingEnds(builder, turns, sum);
    journal::LineBuilder line(builder);
    line.add_recording_ends(end);
    builder.Finish(line.Finish());
    return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

bool is_recording(JournalReader& journal) {
    const journal::Line* first = journal.next();
    const bool recording = first != nullptr && first->state() != nullptr;
    journal.rewind();
    return recording;
}

uint64_t check_recording(JournalReader& journal, uint64_t memory_max) {
    refuse_changed(journal);
    if (!is_recording(journal)) throw JournalError("not a recording: it begins with no state");
    Replayer replayer(limits_of(journal, memory_max), memory_max);
    while (const journal::Line* line = journal.next()) {
        replayer.apply(*line);
        (void)replayer.take_decisions();
    }
    replayer.finish();
    return replayer.recorded_turns();
}

void run_journal(JournalReader& journal, const RunOptions& options, const LineSink& sink) {
    refuse_changed(journal);
    Replayer replayer(limits_of(journal, options.memory_max), options.memory_max);
    if (options.turns) replayer.tell_turns();
    while (const journal::Line* line = journal.next()) {
        if (is_expectation(*line)) continue;
        replayer.apply(*line);
        for (const std::string& decision : replayer.take_decisions())
            sink(decision);
    }
    replayer.finish();
    if (!options.final_state) return;
    for (const std::string& row : state_text(replayer.core(), replayer.name_map()))
        sink(row);
}

std::string journal_bytes(JournalReader& journal, JournalForm form) {
    const bool binary = form == JournalForm::kBinary;
    std::string bytes(binary ? kJournalMagic : "");
    while (journal.next() != nullptr) {
        if (binary) {
            append_prefixed(bytes, journal.buffer());
        } else {
            bytes += journal.json() + '\n';
        }
    }
    return bytes;
}

}  // namespace dibs::ctl
