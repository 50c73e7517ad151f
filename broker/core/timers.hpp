// broker/core/timers.hpp -- what comes due when: a heap with positions, derived from the rows.
//
// Four ways per node: shallow, and one line holds a node's children's keys. A timer is known by
// its kind and its row, so that it can be moved and removed without a search. Order: due instant,
// kind, number (docs/scheduling.md): total, so the same rows give the same order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "shm/layout.hpp"

namespace dibs::core {

enum class TimerKind : uint8_t {
    kDeadline = 0,     // row: claim
    kReservation = 1,  // row: claim
    kKept = 2,         // row: slot
    kLease = 3,        // row: lease
    kGrace = 4,        // row: lease
};

struct Timer {
    uint64_t due_ns;
    uint64_t number;
    TimerKind kind;
    uint32_t row;
};

class Timers {
  public:
    Timers(uint32_t claims, uint32_t slots, uint32_t leases)
        : claims_(claims), slots_(slots), place_(size_t{2} * claims + slots + leases, kAbsent) {
        // A confirming claim has two timers, but holds a slot; so this is room for all.
        heap_.reserve(size_t{claims} + size_t{2} * slots + leases);
    }

    void set(TimerKind kind, uint32_t row, uint64_t due_ns, uint64_t number);
    void remove(TimerKind kind, uint32_t row);
    [[nodiscard]] bool has(TimerKind kind, uint32_t row) const {
        const uint32_t place = place_[node(kind, row)];
        return place != kAbsent && heap_[place].kind == kind;
    }
    // Of one that is there.
    [[nodiscard]] uint64_t due_ns(TimerKind kind, uint32_t row) const {
        return heap_[place_[node(kind, row)]].due_ns;
    }
    [[nodiscard]] bool empty() const { return heap_.empty(); }
    [[nodiscard]] const Timer& first() const { return heap_.front(); }
    [[nodiscard]] size_t size() const { return heap_.size(); }

  private:
    static constexpr uint32_t kAbsent = 0xffffffffU;

    // A lease has one timer, of either kind.
    [[nodiscard]] size_t node(TimerKind kind, uint32_t row) const {
        switch (kind) {
            case TimerKind::kDeadline:
                return row;
            case TimerKind::kReservation:
                return size_t{claims_} + row;
            case TimerKind::kKept:
                return size_t{2} * claims_ + row;
            case TimerKind::kLease:
            case TimerKind::kGrace:
                break;
        }
        return size_t{2} * claims_ + slots_ + row;
    }
    static bool before(const Timer& left, const Timer& right) {
        if (left.due_ns != right.due_ns) return left.due_ns < right.due_ns;
        if (left.kind != right.kind) return left.kind < right.kind;
        return left.number < right.number;
    }
    void settle(uint32_t place, const Timer& timer);
    void store(uint32_t place, const Timer& timer) {
        heap_[place] = timer;
        place_[node(timer.kind, timer.row)] = place;
    }

    uint32_t claims_;
    uint32_t slots_;
    std::vector<Timer> heap_;
    std::vector<uint32_t> place_;
};

}  // namespace dibs::core
