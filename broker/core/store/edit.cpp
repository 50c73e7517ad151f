// broker/core/store/edit.cpp -- opens, commits, clears and takes back a turn.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/store/edit.hpp"

#include <cassert>

namespace dibs::core {

using shm::LogPhase;

void Edit::recover(State& state) {
    shm::LogHead& log = state.head->log;
    // Pairs with the stores of the broker that died: proof of its death came first.
    if (log.phase.load(std::memory_order_acquire) != LogPhase::kOpen) return;
    assert(log.images.load(std::memory_order_relaxed) <= state.log_images_max);
    for (uint32_t image = log.images.load(std::memory_order_relaxed); image-- > 0;) {
        assert(state.log_offsets[image] % shm::kLineSize == 0);
        assert(state.log_offsets[image] <= state.size - shm::kLineSize);
        std::memcpy(
            state.base + state.log_offsets[image], state.log_images[image].bytes, shm::kLineSize);
        stored();
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    put(log.stores, 0U);
    log.phase.store(LogPhase::kIdle, std::memory_order_release);
    stored();
}

void Edit::open_log() {
    shm::LogHead& log = state_.head->log;
    open_ = true;
    images_ = 0;
    stores_ = 0;
    put(log.turn, stamp_ >> 8U);
    put(log.stores, 0U);
    log.images.store(0, std::memory_order_relaxed);
    stored();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    log.phase.store(LogPhase::kOpen, std::memory_order_relaxed);
    stored();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    put(counters(1).turns, stamp_ >> 8U);
}

void Edit::stage(const shm::LogStore& store) {
    if (!open_) open_log();
    assert(stores_ < state_.log_stores_max);
    std::memcpy(&state_.log_stores[stores_], &store, sizeof(store));
    stored();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    put(state_.head->log.stores, ++stores_);
}

void Edit::keep_first_store() {
    assert(!open_);
    open_log();
    put(state_.head->log.stores, ++stores_);
    assert(stores_ == 1);
}

void Edit::leave_owing() {
    open_ = false;
    images_ = 0;
    stores_ = 0;
}

void Edit::commit() {
    if (!open_) return;
    assert(images_ != 0);  // the counters' line at least
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // The turn has happened from this store on. Pairs with recover()'s acquire.
    state_.head->log.phase.store(LogPhase::kCommitted, std::memory_order_release);
    stored();
}

void Edit::clear() {
    if (!open_) return;
    state_.head->log.phase.store(LogPhase::kIdle, std::memory_order_release);
    stored();
    leave_owing();
}

}  // namespace dibs::core
