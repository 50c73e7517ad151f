// broker/text/line_writer.hpp -- lines for people, to a descriptor that perhaps nobody reads.
//
// No line waits for its reader: one for which there is no room is dropped, and counted, and the
// next one that finds room is preceded by that count. A process that serves must not stand still
// since a pipe of its log is full or a terminal is stopped.
//
// A pipe or terminal is opened once more, so that it may refuse instead of wait without doing so
// for other processes that have the same one: in the same place, where processes that are started
// from here have it so, too, or beside it, where they must not. Where that is not allowed, behind a
// change of user say, it is asked for room before each line: a terminal that nobody reads may then
// still make a writer wait. A file has room; it is written to where the others write.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "shm/descriptor.hpp"

namespace dibs {

class LineWriter {
  public:
    // What a pipe takes as a whole or not at all; longer lines are cut.
    static constexpr size_t kLineMax = 4096;

    enum class Opened : uint8_t { kInPlace, kBeside };

    // `speaker`: who says how many lines were dropped.
    explicit LineWriter(int fd, Opened opened = Opened::kInPlace, std::string speaker = "dibsd");

    // With the newline at its end. One caller at a time.
    void write(std::string_view line);
    // As much of what is no line as there is room for: its size, 0 if there is none at present, -1
    // if nothing will be taken any more (errno).
    ssize_t offer(std::string_view text);

  private:
    enum class Way : uint8_t { kWaits, kRefuses, kSocket, kAsked };

    [[nodiscard]] bool put(std::string_view line);

    int fd_;
    shm::Descriptor beside_;
    std::string speaker_;
    Way way_;
    uint64_t dropped_ = 0;  // since the last line that found room
    bool torn_ = false;     // the last line has no end
};

}  // namespace dibs
