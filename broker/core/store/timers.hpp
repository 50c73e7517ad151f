// broker/core/store/timers.hpp -- orders due timers in a heap, derived from the rows.
//
// Four children per node: shallow, and one line holds the keys of a node's children. A timer is
// identified by its kind and its row, so that it can be moved and removed without a search. Order:
// due instant, kind, number (docs/scheduling.md): total, so the same rows give the same order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
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
    // Of elastic pools, in timers of their own.
    kBoot = kKept,  // row: slot
    kLook = kLease  // row: pool
};

struct Timer {
    uint64_t due_ns;
    uint64_t number;
    TimerKind kind;
    uint32_t row;
};

class Timers {
  public:
    // At most so many claims confirm at once: each of those has two.
    Timers(uint32_t claims, uint32_t slots, uint32_t leases, uint32_t confirming_max = 0)
        : claims_(claims), slots_(slots), place_(size_t{2} * claims + slots + leases, kAbsent) {
        assert(place_.size() < kIsGrace);
        const size_t room = size_t{claims} + confirming_max + slots + leases;
        due_.reserve(room);
        number_.reserve(room);
        node_.reserve(room);
    }

    void set(TimerKind kind, uint32_t row, uint64_t due_ns, uint64_t number);
    void remove(TimerKind kind, uint32_t row);
    [[nodiscard]] bool has(TimerKind kind, uint32_t row) const {
        const uint32_t place = place_[node(kind, row)];
        return place != kAbsent && timer(place).kind == kind;
    }
    // Of one that is there.
    [[nodiscard]] uint64_t due_ns(TimerKind kind, uint32_t row) const {
        assert(has(kind, row));
        return due_[place_[node(kind, row)]];
    }
    [[nodiscard]] bool empty() const { return due_.empty(); }
    [[nodiscard]] Timer first() const {
        assert(!empty());
        return timer(0);
    }
    [[nodiscard]] size_t size() const { return due_.size(); }
    // Visits the timers that are due, in no order; the visit neither sets nor removes any.
    template <class Visit>
    void each_due(uint64_t now_ns, const Visit& visit, uint32_t place = 0) const {
        if (place >= due_.size() || due_[place] > now_ns) return;
        visit(timer(place));
        for (uint32_t child = 4 * place + 1; child <= 4 * place + 4; ++child)
            each_due(now_ns, visit, child);
    }

  private:
    static constexpr uint32_t kAbsent = 0xffffffffU;
    static constexpr uint32_t kIsGrace = 0x80000000U;  // of a lease's node: which kind it is

    // A lease has one timer, of either kind.
    [[nodiscard]] uint32_t node(TimerKind kind, uint32_t row) const {
        switch (kind) {
            case TimerKind::kDeadline:
                return row;
            case TimerKind::kReservation:
                return claims_ + row;
            case TimerKind::kKept:
                return 2 * claims_ + row;
            case TimerKind::kLease:
            case TimerKind::kGrace:
                break;
        }
        return 2 * claims_ + slots_ + row;
    }
    [[nodiscard]] Timer timer(uint32_t place) const;
    // The kinds stand in the order of their nodes.
    [[nodiscard]] uint32_t kind_of(uint32_t node) const {
        if (node < claims_) return 0;
        if (node < 2 * claims_) return 1;
        if (node < 2 * claims_ + slots_) return 2;
        return (node & kIsGrace) != 0 ? 4 : 3;
    }

    struct Entry {
        uint64_t due_ns;
        uint64_t number;
        uint32_t node;
    };
    [[nodiscard]] Entry entry(uint32_t place) const {
        return {due_[place], number_[place], node_[place]};
    }
    [[nodiscard]] bool before(const Entry& left, uint32_t right) const {
        if (left.due_ns != due_[right]) return left.due_ns < due_[right];
        return tie_before(left, entry(right));
    }
    [[nodiscard]] bool tie_before(const Entry& left, const Entry& right) const;
    void settle(uint32_t place, const Entry& entry);
    void store(uint32_t place, const Entry& entry) {
        due_[place] = entry.due_ns;
        number_[place] = entry.number;
        node_[place] = entry.node;
        place_[entry.node & ~kIsGrace] = place;
    }

    uint32_t claims_;
    uint32_t slots_;
    // The heap in columns: a look at a node's children reads one line of instants.
    std::vector<uint64_t> due_;
    std::vector<uint64_t> number_;
    std::vector<uint32_t> node_;
    std::vector<uint32_t> place_;  // node → place in the heap
};

}  // namespace dibs::core
