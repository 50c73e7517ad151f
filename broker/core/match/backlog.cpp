// broker/core/match/backlog.cpp -- gives seats in order and counts them in blocks.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/match/backlog.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace dibs::core {

using shm::kNoRow;

void Backlog::reserve(uint32_t list, uint32_t waiting_max) {
    Seats& seats = seats_[list];
    const uint64_t wanted = std::max<uint64_t>(std::bit_ceil(uint64_t{waiting_max} * 4), kBlock);
    if (wanted <= capacity(seats)) return;
    seats.bits.resize(wanted / 64);
    seats.counts.resize(wanted / kBlock);
    seat_anew(list);
}

void Backlog::sit(uint32_t list, uint32_t row) {
    Seats& seats = seats_[list];
    const uint64_t free = free_seat(list, row);
    if (free == 0) {
        // Twice as many as before, unless reserve() was called: half of the ring stays free.
        if (uint64_t{seats.taken + 1} * 4 > capacity(seats)) {
            return reserve(list, seats.taken + 1);
        }
        return seat_anew(list);
    }
    seat_of_[row] = static_cast<uint32_t>(free);
    seats.next = std::max(seats.next, free + 1);
    mark(seats, free, true);
}

// A seat between its neighbours', or 0. A claim that waits again prefers its old one.
uint64_t Backlog::free_seat(uint32_t list, uint32_t row) const {
    const Seats& seats = seats_[list];
    const uint64_t size = capacity(seats);
    if (size == 0) return 0;
    const uint32_t before = chains_.previous(row);
    const uint32_t behind = chains_.next(row);
    const uint64_t oldest = seat(seats, chains_.head(list));
    if (behind == kNoRow) {
        if (before == kNoRow) return std::max(seats.next, size);
        return seats.next - oldest < size ? seats.next : 0;
    }
    const uint64_t end = seat(seats, behind);
    const uint64_t least = before != kNoRow ? seat(seats, before) + 1 : seats.next - size + 1;
    if (const uint64_t own = seat(seats, row); own >= least && own < end) return own;
    if (least >= end) return 0;
    return before != kNoRow ? least : std::max(least, end - std::min(end, kGap));
}

// Every second seat, so that each neighbourhood has one to spare.
void Backlog::seat_anew(uint32_t list) {
    ++seated_anew_;
    Seats& seats = seats_[list];
    std::fill(seats.bits.begin(), seats.bits.end(), 0);
    std::fill(seats.counts.begin(), seats.counts.end(), 0);
    seats.taken = 0;
    seats.next = capacity(seats);
    for (uint32_t row = chains_.head(list); row != kNoRow; row = chains_.next(row)) {
        seat_of_[row] = static_cast<uint32_t>(seats.next);
        mark(seats, seats.next, true);
        seats.next += 2;
    }
    assert(seats.next <= 2 * capacity(seats));
}

uint32_t Backlog::ahead(uint32_t list, uint32_t row) const {
    const Seats& seats = seats_[list];
    assert(seats.taken != 0);
    const uint64_t mask = capacity(seats) - 1;
    const uint64_t end = seat(seats, row);
    uint32_t count = 0;
    for (uint64_t at = seat(seats, chains_.head(list)); at < end;) {
        if (at % kBlock == 0 && end - at >= kBlock) {
            count += seats.counts[(at & mask) / kBlock];
            at += kBlock;
            continue;
        }
        const uint64_t first = at % 64;
        const uint64_t wanted = std::min(64 - first, end - at);
        uint64_t word = seats.bits[(at & mask) / 64] >> first;
        if (wanted < 64) word &= (uint64_t{1} << wanted) - 1;
        count += static_cast<uint32_t>(std::popcount(word));
        at += wanted;
    }
    return count;
}

uint32_t Backlog::missing_seat(uint32_t list) const {
    const Seats& seats = seats_[list];
    uint64_t last = 0;
    for (uint32_t row = chains_.head(list); row != kNoRow; row = chains_.next(row)) {
        const uint64_t own = seat(seats, row);
        const uint64_t place = own & (capacity(seats) - 1);
        const bool taken = (seats.bits[place / 64] >> (place % 64) & 1U) != 0;
        if (!taken || own <= last || own >= seats.next) return row;
        last = own;
    }
    return kNoRow;
}

uint32_t Backlog::taken(uint32_t list) const {
    return seats_[list].taken;
}

}  // namespace dibs::core
