// broker/text/line_writer.hpp -- writes lines for people without waiting for their reader.
//
// A line for which there is no room is dropped and counted, and the count precedes the next line
// that finds room. A process that serves must not block because a pipe of its log is full or a
// terminal is stopped.
//
// A pipe or terminal is opened once more, so that only this writer's descriptor is non-blocking and
// other processes that share the file keep theirs. The new descriptor takes the old one's place
// where started processes may inherit it, and stands beside it where they must not. Where opening
// is not allowed, for example after a change of user, the writer asks for room before each line: a
// stopped terminal may then still make it wait. A file has room; lines are appended where other
// writers append.
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

    // `speaker`: the name in the message about dropped lines.
    explicit LineWriter(int fd, Opened opened = Opened::kInPlace, std::string speaker = "dibsd");

    // With the newline at its end. One caller at a time.
    void write(std::string_view line);
    // Writes as much of a text that is no line as there is room for: returns its size, 0 if there
    // is none at present, -1 if nothing will be taken any more (errno).
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
