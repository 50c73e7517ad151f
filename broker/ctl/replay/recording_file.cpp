// broker/ctl/replay/recording_file.cpp -- writes a recording's lines turn by turn.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/replay/recording_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "broker/ctl/failure.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/journal/journal_reader.hpp"
#include "broker/journal/journal_run.hpp"
#include "schemas/journal_generated.h"

namespace dibs::ctl {

namespace {

constexpr size_t kPrefix = sizeof(flatbuffers::uoffset_t);

std::span<const uint8_t> finished(flatbuffers::FlatBufferBuilder* builder,
                                  flatbuffers::Offset<journal::Line> line) {
    builder->Finish(line);
    return {builder->GetBufferPointer(), builder->GetSize()};
}

uint64_t sum_with(uint64_t sum, std::span<const uint8_t> line) {
    return journal_sum(sum, {reinterpret_cast<const char*>(line.data()), line.size()});
}

}  // namespace

RecordingFile::RecordingFile(const std::string& path)
    : path_(path == "-" ? "standard output" : path),
      file_(path == "-" ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                        : open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
    if (!file_.valid()) throw Failure(kExitFailed, path_ + ": " + std::strerror(errno));
}

void RecordingFile::write_snapshot(std::span<const uint8_t> snapshot) {
    write({reinterpret_cast<const uint8_t*>(kJournalMagic.data()), kJournalMagic.size()});
    flatbuffers::FlatBufferBuilder builder(snapshot.size() + 1024);
    const auto bytes = builder.CreateVector(snapshot.data(), snapshot.size());
    const auto state = journal::CreateState(builder, bytes);
    journal::LineBuilder line(builder);
    line.add_state(state);
    write_line(finished(&builder, line.Finish()));
}

void RecordingFile::take(std::span<const uint8_t> bytes) {
    lines_.insert(lines_.end(), bytes.begin(), bytes.end());
    size_t closed = 0;
    while (next_line()) {
        if (open_commands_ != 0) continue;
        closed = whole_;
        sum_ = open_sum_;
    }
    if (closed == 0) return;
    write(std::span{lines_}.first(closed));
    lines_.erase(lines_.begin(), lines_.begin() + static_cast<ptrdiff_t>(closed));
    whole_ -= closed;
}

// Looks at the next one, if it is there in full. No command is open behind the last line of a turn.
bool RecordingFile::next_line() {
    const size_t left = lines_.size() - whole_;
    if (left < kPrefix) return false;
    const auto size = flatbuffers::ReadScalar<flatbuffers::uoffset_t>(lines_.data() + whole_);
    if (size > left - kPrefix) return false;
    // The verifier wants the alignment that the writer gave.
    const uint8_t* from = lines_.data() + whole_ + kPrefix;
    const std::vector<uint8_t> aligned(from, from + size);
    flatbuffers::Verifier verifier(aligned.data(), aligned.size());
    if (!verifier.VerifyBuffer<journal::Line>(nullptr)) {
        throw Failure(kExitFailed, "the broker's journal cannot be read");
    }
    const auto* line = flatbuffers::GetRoot<journal::Line>(aligned.data());
    whole_ += kPrefix + size;
    open_sum_ = sum_with(open_sum_, aligned);
    ++open_commands_;  // with the line that opens the turn
    if (const auto* turn = line->turn_closed(); turn != nullptr) {
        ++turns_;
        commands_ += open_commands_ - 2;
        decisions_ += turn->decided() == nullptr ? 0 : turn->decided()->size();
        open_commands_ = 0;
    }
    return true;
}

void RecordingFile::finish() {
    write_line(recording_end(turns_, sum_));
}

void RecordingFile::write_line(std::span<const uint8_t> line) {
    uint8_t prefix[kPrefix];
    flatbuffers::WriteScalar(prefix, static_cast<flatbuffers::uoffset_t>(line.size()));
    write(prefix);
    write(line);
    sum_ = open_sum_ = sum_with(sum_, line);
}

void RecordingFile::write(std::span<const uint8_t> bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) throw Failure(kExitFailed, path_ + ": " + std::strerror(errno));
        bytes = bytes.subspan(static_cast<size_t>(written));
    }
}

}  // namespace dibs::ctl
