// broker/core/store/edit.hpp -- the undo log of a turn, and the only way to a writable row.
//
// Before the first store to a line in a turn, the log saves its 64 bytes and then counts the image;
// only then may the line be stored to. A row's own hot line records which of its lines the turn has
// saved (RowHead::touched), so that a second touch costs one compare and no other cache line.
//
//   death before commit()  → recovery copies the images back: the turn never happened
//   death after commit()   → recovery keeps the rows and repeats the staged stores
//
// A killed process leaves its stores in program order, so the order image → count → store needs
// compiler barriers only (g++ 12 -O2 has been seen to store the count before the last bytes of the
// image). Machine barriers have no partner here: the log's reader has first seen proof of the
// writer's death.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "broker/core/store/state.hpp"
#include "broker/core/store/store.hpp"

namespace dibs::core {

class Edit {
  public:
    explicit Edit(State& state)
        : state_(state),
          log_(state.head->log),
          offsets_(state.log_offsets),
          saved_(state.log_images),
          images_full_(state.log_images_max / 4 * 3),
          stores_full_(state.log_stores_max / 4 * 3),
          stamp_(state.counters->turns << 8U) {}

    // Takes back what an uncommitted turn did. Harmless when repeated.
    static void recover(State& state);

    void begin() {
        assert(!open_);
        stamp_ = (state_.counters->turns + 1) << 8U;
    }

    // The row, writable: line 0 and the lines of the mask are saved.
    template <class Row>
    Row& row(const Row& row, unsigned lines) {
        auto& writable = const_cast<Row&>(row);
        const uint64_t wanted = lines | 1U;
        const uint64_t touched = writable.head.touched;
        const uint64_t saved = stamp_ | wanted;
        if ((touched & (~uint64_t{0xff} | wanted)) != saved) save_missing(writable, wanted);
        return writable;
    }

    // A row that has just been taken from its free list: its cold lines mean nothing if the turn
    // is taken back, unless this very turn has freed the row.
    template <class Row>
    Row& fresh_row(const Row& row) {
        constexpr unsigned kAll = (1U << (sizeof(Row) / shm::kLineSize)) - 1;
        auto& writable = const_cast<Row&>(row);
        if ((writable.head.touched | 0xffU) == (stamp_ | 0xffU)) return this->row(row, kAll);
        save_line(reinterpret_cast<std::byte*>(&writable));
        put(writable.head.touched, stamp_ | kAll);
        return writable;
    }

    // Counters, which are a row with the broker's clock in its hot line.
    shm::CountersRow& counters(unsigned lines) { return row(*state_.counters, lines); }

    // One line that belongs to no row (an arena block's link). Saved at each call.
    template <class T>
    T& line(const T& in) {
        auto* bytes = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(&in));
        save_line(bytes - (reinterpret_cast<uintptr_t>(bytes) % shm::kLineSize));
        return const_cast<T&>(in);
    }

    void stage(const shm::LogStore& store);
    [[nodiscard]] uint32_t staged() const { return stores_; }

    // False if the turn has changed nothing: then there is nothing to commit.
    [[nodiscard]] bool open() const { return open_; }
    void commit();
    void clear();
    // A pledge is the turn's first store, and stands there already.
    void keep_first_store();
    // After a commit whose stores another process will make.
    void leave_owing();

    // The log is three quarters full, counting what the decisions will still add: each may touch
    // the row of the session that it goes to and is a store, a grant is two (the tag's event word
    // is cleared), an adoption three (and may be that of a revocation). The last quarter holds the
    // largest step (256 units: some 550 images, 260 stores; 256 parts of a gang: 1,290 images) and
    // what the core's caller adds of its own: 256 sessions read from, 64 results.
    [[nodiscard]] bool full(size_t decisions, size_t grants) const {
        return images_ + decisions >= images_full_ || stores_ + decisions + grants >= stores_full_;
    }

  private:
    template <class Row>
    void save_missing(Row& row, uint64_t wanted) {
        uint64_t touched = row.head.touched;
        if ((touched | 0xffU) != (stamp_ | 0xffU)) touched = stamp_;
        save_row(row, touched, wanted & ~touched);
    }

    template <class Row>
    void save_row(Row& row, uint64_t touched, uint64_t missing) {
        auto* bytes = reinterpret_cast<std::byte*>(&row);
        for (uint64_t lines = missing; lines != 0; lines &= lines - 1) {
            save_line(bytes + static_cast<size_t>(__builtin_ctzll(lines)) * shm::kLineSize);
        }
        put(row.head.touched, touched | missing);
    }

    void save_line(std::byte* line) {
        if (!open_) [[unlikely]]
            open_log();
        const uint32_t image = images_;
        assert(image < state_.log_images_max);
        offsets_[image] = static_cast<uint64_t>(line - state_.base);
        stored();
        std::memcpy(saved_[image].bytes, line, shm::kLineSize);
        stored();
        images_ = image + 1;
        std::atomic_signal_fence(std::memory_order_seq_cst);
        log_.images.store(image + 1, std::memory_order_relaxed);
        stored();
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }

    void open_log();

    State& state_;
    shm::LogHead& log_;
    uint64_t* const offsets_;
    shm::LogImage* const saved_;
    const uint32_t images_full_;
    const uint32_t stores_full_;
    uint64_t stamp_;  // the turn's number << 8, as RowHead::touched has it
    uint32_t images_ = 0;
    uint32_t stores_ = 0;
    bool open_ = false;
};

}  // namespace dibs::core
