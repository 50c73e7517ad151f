// broker/core/match/backlog.hpp -- keeps the waiting claims in order, and each one's position.
//
// Beside the list every claim has a seat: a number that grows along its list. A bit marks each
// taken seat, with a count for every 4,096 of them, so adding or removing a claim costs a bit and a
// count, and "how many stand before it" adds up counts instead of walking the list: a million
// claims are 256 counts and at most 64 words. A seat is never used twice; the bits are a ring over
// the seats in use. When the ring is used up, or a claim comes back where no seat is left between
// its neighbours, the list is seated anew. The ring has four seats for each claim that may wait, so
// that this happens at most once in as many arrivals. Only the lower half of a claim's seat is
// kept: the ring is shorter, so it stands for one of the seats in use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "broker/core/store/chains.hpp"

namespace dibs::core {

class Backlog {
  public:
    Backlog(uint32_t lists, uint32_t rows) : chains_(lists, rows), seats_(lists), seat_of_(rows) {}

    [[nodiscard]] uint32_t head(uint32_t list) const { return chains_.head(list); }
    [[nodiscard]] uint32_t tail(uint32_t list) const { return chains_.tail(list); }
    [[nodiscard]] uint32_t next(uint32_t row) const { return chains_.next(row); }
    [[nodiscard]] uint32_t previous(uint32_t row) const { return chains_.previous(row); }

    void push_back(uint32_t list, uint32_t row) { insert_before(list, row, shm::kNoRow); }

    // Before `at`; at the end if that is kNoRow.
    void insert_before(uint32_t list, uint32_t row, uint32_t at) {
        chains_.insert_before(list, row, at);
        sit(list, row);
    }

    void remove(uint32_t list, uint32_t row) {
        Seats& seats = seats_[list];
        mark(seats, seat_of_[row], false);
        chains_.remove(list, row);
    }

    // The row is another claim's now, which must not get the previous claim's seat.
    void forget_seat(uint32_t list, uint32_t row) {
        seat_of_[row] = static_cast<uint32_t>(seats_[list].next);
    }

    // For a claim that does not wait, and may come back: a seat behind all so far.
    void keep_seat(uint32_t list, uint32_t row) {
        Seats& seats = seats_[list];
        seats.next = std::max(seats.next, capacity(seats));
        seat_of_[row] = static_cast<uint32_t>(seats.next++);
    }

    // Makes room so that `waiting_max` claims never need more memory.
    void reserve(uint32_t list, uint32_t waiting_max);

    // How many claims of the list stand before `row`, which stands in it.
    [[nodiscard]] uint32_t ahead(uint32_t list, uint32_t row) const;

    // For check_all(): the first claim with a wrong seat, or kNoRow; how many seats are taken.
    [[nodiscard]] uint32_t missing_seat(uint32_t list) const;
    [[nodiscard]] uint32_t taken(uint32_t list) const;
    // How often a list was seated anew, which costs as many steps as it is long.
    [[nodiscard]] uint64_t seated_anew() const { return seated_anew_; }

    // Seats left before a new head: for as many claims without a row as a turn may have, which come
    // before one that has got a row.
    static constexpr uint64_t kGap = 256;

  private:
    static constexpr uint32_t kBlock = 4096;  // seats for which one count is kept

    struct Seats {
        std::vector<uint64_t> bits;
        std::vector<uint32_t> counts;  // of each block
        uint64_t next = 0;             // the first seat that was never given
        uint32_t taken = 0;
    };

    // Any value for a claim that has left: then the seat is checked for being free.
    [[nodiscard]] uint64_t seat(const Seats& seats, uint32_t row) const {
        return seats.next - static_cast<uint32_t>(seats.next - seat_of_[row]);
    }

    static uint64_t capacity(const Seats& seats) { return uint64_t{seats.bits.size()} * 64; }

    static void mark(Seats& seats, uint64_t seat, bool taken) {
        const uint64_t place = seat & (capacity(seats) - 1);
        const uint64_t bit = uint64_t{1} << (place % 64);
        const uint32_t change = taken ? 1U : ~0U;
        uint64_t& word = seats.bits[place / 64];
        word = taken ? word | bit : word & ~bit;
        seats.counts[place / kBlock] += change;
        seats.taken += change;
    }

    void sit(uint32_t list, uint32_t row);
    [[nodiscard]] uint64_t free_seat(uint32_t list, uint32_t row) const;
    void seat_anew(uint32_t list);

    Chains chains_;
    std::vector<Seats> seats_;
    std::vector<uint32_t> seat_of_;
    uint64_t seated_anew_ = 0;
};

}  // namespace dibs::core
