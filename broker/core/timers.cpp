// broker/core/timers.cpp -- sifting.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/timers.hpp"

#include <algorithm>

namespace dibs::core {

void Timers::set(TimerKind kind, uint32_t row, uint64_t due_ns, uint64_t number) {
    const Timer timer{due_ns, number, kind, row};
    uint32_t place = place_[node(kind, row)];
    if (place == kAbsent) {
        place = static_cast<uint32_t>(heap_.size());
        heap_.push_back(timer);
    }
    settle(place, timer);
}

void Timers::remove(TimerKind kind, uint32_t row) {
    const size_t gone = node(kind, row);
    const uint32_t place = place_[gone];
    if (place == kAbsent) return;
    place_[gone] = kAbsent;
    const Timer last = heap_.back();
    heap_.pop_back();
    if (place < heap_.size()) settle(place, last);
}

void Timers::settle(uint32_t place, const Timer& timer) {
    while (place > 0) {
        const uint32_t parent = (place - 1) / 4;
        if (!before(timer, heap_[parent])) break;
        store(place, heap_[parent]);
        place = parent;
    }
    const auto size = static_cast<uint32_t>(heap_.size());
    for (;;) {
        const uint32_t child = place * 4 + 1;
        if (child >= size) break;
        uint32_t least = child;
        for (uint32_t other = child + 1; other < std::min(child + 4, size); ++other) {
            if (before(heap_[other], heap_[least])) least = other;
        }
        if (!before(heap_[least], timer)) break;
        store(place, heap_[least]);
        place = least;
    }
    store(place, timer);
}

}  // namespace dibs::core
