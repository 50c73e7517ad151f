// broker/ctl/replay/recording_file.hpp -- writes a recording of whole turns, with a checksum.
//
// The checksum stands at its end and covers everything. Bytes come cut anywhere. Lines wait until
// the turn that they belong to is closed, so that the file can be replayed wherever its writer
// dies; in that case it lacks its end, and dibs replay says so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shm/descriptor.hpp"

namespace dibs::ctl {

class RecordingFile {
  public:
    // The file is made, or emptied: no other user may read it. "-" is standard output. Failure.
    explicit RecordingFile(const std::string& path);

    // First.
    void write_snapshot(std::span<const uint8_t> snapshot);
    // Bytes of lines. Failure: they are no lines, or the file cannot be written.
    void take(std::span<const uint8_t> bytes);
    void finish();

    [[nodiscard]] const std::string& path() const { return path_; }  // as people are told it
    [[nodiscard]] uint64_t turns() const { return turns_; }
    [[nodiscard]] uint64_t commands() const { return commands_; }
    [[nodiscard]] uint64_t decisions() const { return decisions_; }

  private:
    bool next_line();
    void write_line(std::span<const uint8_t> line);
    void write(std::span<const uint8_t> bytes);

    std::string path_;
    shm::Descriptor file_;
    std::vector<uint8_t> lines_;  // that are not written yet
    size_t whole_ = 0;            // bytes of them that have been looked at
    uint64_t sum_ = 0;            // of what is written
    uint64_t open_sum_ = 0;       // and of the lines that have been looked at
    uint64_t turns_ = 0;
    uint64_t commands_ = 0;
    uint64_t open_commands_ = 0;  // of the turn that is not closed
    uint64_t decisions_ = 0;
};

}  // namespace dibs::ctl
