// broker/session/rooms.hpp -- allocates rooms in a session's DOWN payload area.
//
// A room is a run of 64-byte lines. The map is private to the broker: what a client could write
// does not affect it. The search goes on where the last one ended, so that a freed room rests for a
// while before it is written again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "shm/layout.hpp"

namespace dibs {

class Rooms {
  public:
    Rooms() = default;
    explicit Rooms(uint32_t lines);

    // First line of `count` free ones in a row, now taken; shm::kNoRow if there are none.
    [[nodiscard]] uint32_t take(uint32_t count) {
        // Mostly one line, and the next one is free.
        if (count != 1 || free_ == 0 || taken(cursor_)) return search(count);
        const uint32_t line = cursor_;
        words_[line / 64] |= 1ULL << (line % 64);
        --free_;
        cursor_ = line + 1 == lines_ ? 0 : line + 1;
        return line;
    }
    // What the next take() of as many will get, if it is found at once; shm::kNoRow: not known.
    [[nodiscard]] uint32_t to_come(uint32_t count) const;
    void free(uint32_t first, uint32_t count);  // taken lines only
    // These very lines, if all of them are free.
    [[nodiscard]] bool take_at(uint32_t first, uint32_t count);
    [[nodiscard]] uint32_t lines() const { return lines_; }
    [[nodiscard]] uint32_t lines_free() const { return free_; }

  private:
    [[nodiscard]] uint32_t search(uint32_t count);
    [[nodiscard]] uint32_t find(uint32_t from, uint32_t end, uint32_t count) const;
    [[nodiscard]] bool taken(uint32_t line) const {
        return (words_[line / 64] >> (line % 64) & 1) != 0;
    }

    std::vector<uint64_t> words_;  // a bit per line: 1 = taken
    uint32_t lines_ = 0;
    uint32_t free_ = 0;
    uint32_t cursor_ = 0;
    uint32_t too_many_ = shm::kNoRow;  // as many in a row were not found since the last free()
};

// Lines for so many bytes.
constexpr uint32_t room_lines(uint64_t bytes) {
    return static_cast<uint32_t>((bytes + shm::kLineSize - 1) / shm::kLineSize);
}

}  // namespace dibs
