// broker/session/rooms.cpp -- allocates and frees rooms in a session's DOWN payload area.
// SPDX-License-Identifier: Apache-2.0
#include "broker/session/rooms.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace dibs {

Rooms::Rooms(uint32_t lines) : words_((lines + 63) / 64, 0), lines_(lines), free_(lines) {}

// The first run of `count` free lines in [from, end).
uint32_t Rooms::find(uint32_t from, uint32_t end, uint32_t count) const {
    uint32_t run = 0;
    for (uint32_t line = from; line < end;) {
        const uint64_t rest = words_[line / 64] >> (line % 64);
        if ((rest & 1) != 0) {  // skip what is taken, up to the word's end
            run = 0;
            line += std::min(static_cast<uint32_t>(std::countr_one(rest)), 64 - line % 64);
            continue;
        }
        const uint32_t clear =
            rest == 0 ? 64 - line % 64 : static_cast<uint32_t>(std::countr_zero(rest));
        const uint32_t step = std::min(clear, end - line);
        if (run + step >= count) return line - run;
        run += step;
        line += step;
    }
    return shm::kNoRow;
}

uint32_t Rooms::search(uint32_t count) {
    if (count == 0 || count > free_ || count >= too_many_) return shm::kNoRow;
    uint32_t first = find(cursor_, lines_, count);
    if (first == shm::kNoRow) first = find(0, lines_, count);
    if (first == shm::kNoRow) {
        too_many_ = count;
        return shm::kNoRow;
    }
    for (uint32_t line = first; line < first + count; ++line)
        words_[line / 64] |= 1ULL << (line % 64);
    free_ -= count;
    cursor_ = first + count == lines_ ? 0 : first + count;
    return first;
}

uint32_t Rooms::to_come(uint32_t count) const {
    if (count == 0 || count > free_ || count >= too_many_ || count > lines_ - cursor_) {
        return shm::kNoRow;
    }
    return find(cursor_, cursor_ + count, count);
}

bool Rooms::take_at(uint32_t first, uint32_t count) {
    if (first >= lines_ || count > lines_ - first) return false;
    for (uint32_t line = first; line < first + count; ++line) {
        if (taken(line)) return false;
    }
    for (uint32_t line = first; line < first + count; ++line)
        words_[line / 64] |= 1ULL << (line % 64);
    free_ -= count;
    if (cursor_ >= first && cursor_ < first + count) {
        cursor_ = first + count == lines_ ? 0 : first + count;
    }
    return true;
}

void Rooms::free(uint32_t first, uint32_t count) {
    assert(first < lines_ && count <= lines_ - first);
    for (uint32_t line = first; line < first + count; ++line) {
        assert(taken(line));
        words_[line / 64] &= ~(1ULL << (line % 64));
    }
    free_ += count;
    too_many_ = shm::kNoRow;
}

}  // namespace dibs
