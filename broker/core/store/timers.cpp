// broker/core/store/timers.cpp -- sifts timers up and down the heap.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/store/timers.hpp"

#include <algorithm>
#include <cassert>

namespace dibs::core {

Timer Timers::timer(uint32_t place) const {
    const uint32_t node = node_[place];
    const uint32_t kind = kind_of(node);
    const uint32_t first[] = {0, claims_, 2 * claims_, 2 * claims_ + slots_, 2 * claims_ + slots_};
    return {due_[place],
            number_[place],
            static_cast<TimerKind>(kind),
            (node & ~kIsGrace) - first[kind]};
}

// Of two that are due at one instant.
bool Timers::tie_before(const Entry& left, const Entry& right) const {
    const uint32_t kind = kind_of(left.node);
    const uint32_t other = kind_of(right.node);
    return kind != other ? kind < other : left.number < right.number;
}

void Timers::set(TimerKind kind, uint32_t row, uint64_t due_ns, uint64_t number) {
    const uint32_t own = node(kind, row);
    const Entry entry{due_ns, number, kind == TimerKind::kGrace ? own | kIsGrace : own};
    uint32_t place = place_[own];
    if (place == kAbsent) {
        place = static_cast<uint32_t>(due_.size());
        due_.push_back(due_ns);
        number_.push_back(number);
        node_.push_back(entry.node);
    }
    settle(place, entry);
    assert(place_[own] < due_.size());
}

void Timers::remove(TimerKind kind, uint32_t row) {
    const uint32_t gone = node(kind, row);
    const uint32_t place = place_[gone];
    if (place == kAbsent) return;
    assert((node_[place] & ~kIsGrace) == gone);
    place_[gone] = kAbsent;
    const auto end = static_cast<uint32_t>(due_.size()) - 1;
    const Entry last = entry(end);
    due_.pop_back();
    number_.pop_back();
    node_.pop_back();
    if (place < end) settle(place, last);
}

void Timers::settle(uint32_t place, const Entry& moved) {
    while (place > 0) {
        const uint32_t parent = (place - 1) / 4;
        if (!before(moved, parent)) break;
        store(place, entry(parent));
        place = parent;
    }
    const auto size = static_cast<uint32_t>(due_.size());
    for (;;) {
        const uint32_t child = place * 4 + 1;
        if (child >= size) break;
        uint32_t least = child;
        for (uint32_t other = child + 1; other < std::min(child + 4, size); ++other) {
            if (due_[other] > due_[least]) continue;
            if (before(entry(other), least)) least = other;
        }
        const Entry down = entry(least);
        const bool is_before =
            down.due_ns != moved.due_ns ? down.due_ns < moved.due_ns : tie_before(down, moved);
        if (!is_before) break;
        store(place, down);
        place = least;
    }
    store(place, moved);
}

}  // namespace dibs::core
