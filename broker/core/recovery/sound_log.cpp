// broker/core/recovery/sound_log.cpp -- checks the log of a turn that is about to be taken back.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/recovery/soundness.hpp"
#include "broker/core/store/edit.hpp"

namespace dibs::core {

namespace {

// Images are copied to where they say: never into the log itself, nor beside a line.
bool images_sound(const State& state) {
    const uint32_t images = state.head->log.images.load(std::memory_order_relaxed);
    if (images > state.log_images_max) return false;
    const auto begin =
        static_cast<uint64_t>(reinterpret_cast<const std::byte*>(state.counters) - state.base);
    const auto end =
        static_cast<uint64_t>(reinterpret_cast<const std::byte*>(state.log_offsets) - state.base);
    for (uint32_t image = 0; image < images; ++image) {
        const uint64_t offset = state.log_offsets[image];
        if (offset % shm::kLineSize != 0 || offset < begin || offset >= end) return false;
    }
    return true;
}

}  // namespace

std::string Soundness::log(State& state) {
    const shm::LogHead& log = state.head->log;
    const shm::LogPhase phase = log.phase.load(std::memory_order_acquire);
    if (phase > shm::LogPhase::kCommitted) return "the log is in no phase that there is";
    if (log.stores > state.log_stores_max) return "the log counts more stores than it holds";
    if (phase == shm::LogPhase::kOpen) {
        if (!images_sound(state)) return "the log's images belong to no rows";
        Edit::recover(state);
    }
    return {};
}

}  // namespace dibs::core
