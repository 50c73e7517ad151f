// tests/naive/elastic_gathering.cpp -- workers of the size that claims need.
//
// What names a statement is written from it, what quotes is of docs/scheduling.md. Claims stand for
// tasks, orders for pending allocs.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "tests/naive/naive_core.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

// S3.30: "tasks sorted by size descending". Size is the sum of permille of what the pool says that
// a slot has. "A claim of whole slots counts as so many whole slots; the first 256 are looked at."
std::vector<NaiveCore::Task> NaiveCore::tasks_of(uint32_t pool) const {
    std::vector<Task> tasks;
    const Vector usual = usual_capacity(pool);
    for (const uint64_t number : in_line(pool, false)) {
        const Claim& claim = m_.claims.at(number);
        Task task;
        task.number = number;
        task.is_whole = !claim.wants_part;
        task.least = task.is_whole ? usual : claim.least;
        for (size_t at = 0; at < usual.size(); ++at)
            task.size += 1000 * task.least[at] / usual[at];
        for (uint64_t unit = 0; unit < claim.units && tasks.size() < 256; ++unit)
            tasks.push_back(task);
    }
    std::stable_sort(tasks.begin(), tasks.end(), [](const Task& one, const Task& other) {
        return std::tuple(other.size, one.number) < std::tuple(one.size, other.number);
    });
    return tasks;
}

// By number: "the workers that are there and may be leased, with what is free of them, and the
// orders with their minimum".
std::map<uint32_t, NaiveCore::Box> NaiveCore::workers_of(uint32_t pool) const {
    std::map<uint32_t, Box> boxes;
    for (const auto& [id, slot] : m_.slots) {
        if (slot.pool != pool || slot.part_of) continue;
        const bool is_stopped = slot.is_protected || slot.is_unqualified || slot.is_draining;
        const bool is_shared = slot.is == SlotIs::kShared && !is_stopped;
        if (!is_shared && !is_unallocated(slot)) continue;
        Box& box = boxes[slot.number];
        box.is_untouched = !is_shared;
        box.left = free_of(slot);
        if (slot.is == SlotIs::kOrdered) {
            box.left = slot.wanted;
        } else {
            box.parts = slot.parts_max - std::min<uint64_t>(slot.parts_max, parts_of(id));
        }
    }
    return boxes;
}

// Whole slots take what nothing else has been put into; nothing else goes there any more.
bool NaiveCore::put_into(Box& box, const Task& task) {
    if (task.is_whole) {
        if (!box.is_untouched) return false;
        box.parts = 0;
    } else {
        if (box.parts == 0) return false;
        for (size_t at = 0; at < task.least.size(); ++at)
            if (task.least[at] > box.left[at]) return false;
        for (size_t at = 0; at < task.least.size(); ++at)
            box.left[at] -= task.least[at];
        box.parts -= 1;
    }
    box.is_untouched = false;
    return true;
}

// S3.30: "Submissions are collected for 50 ms of silence. Remaining tasks are first mock-placed
// onto pending allocs; only the rest produces a new request, at most 5 pending."
void NaiveCore::order_for_tasks(uint32_t pool) {
    Pool& of = m_.pools.at(pool);
    const std::vector<uint64_t> waiting = pending_of(pool);
    for (const uint64_t number : waiting) {
        if (m_.claims.at(number).is_confirming || number <= of.elastic.gathered) continue;
        of.elastic.gathered = number;
        of.elastic.gather_until_ns = later(m_.now, of.config.gather_ns);
    }
    if (m_.now < of.elastic.gather_until_ns) return;
    for (;;) {
        // Placed anew for each request: the last one is among the pending.
        std::map<uint32_t, Box> boxes = workers_of(pool);
        std::vector<Task> rest;
        for (const Task& task : tasks_of(pool)) {
            bool is_placed = false;
            for (auto& [number, box] : boxes)
                is_placed = is_placed || put_into(box, task);
            if (!is_placed) rest.push_back(task);
        }
        if (rest.empty()) return;
        uint64_t pending = 0;
        for (const auto& [id, slot] : m_.slots)
            pending += slot.pool == pool && slot.is == SlotIs::kOrdered;
        const uint64_t used = running_units(pool) + unallocated(pool);
        if (pending >= 5 || used >= of.elastic.limit) return;
        // "Open a box of the current minimum, always take the largest task that still fits the open
        // box; when none fits, AddParallel(largest remaining) and open a new box." S3.2: width + 1
        // unless it was empty before.
        Vector least(of.vector.size(), 0);
        uint64_t width = 0;
        bool is_empty = true;
        Box box;
        box.left = least;
        box.parts = 0;
        box.is_untouched = false;
        while (!rest.empty()) {
            auto fits = rest.begin();
            while (fits != rest.end() && !put_into(box, *fits))
                ++fits;
            if (fits != rest.end()) {
                rest.erase(fits);
                continue;
            }
            for (size_t at = 0; at < least.size(); ++at)
                least[at] = std::max(least[at], rest.front().least[at]);
            width += is_empty ? 0 : 1;
            is_empty = false;
            box = Box{};
            box.left = least;
        }
        // "Finally raise min to MinAlloc."
        for (size_t at = 0; at < least.size(); ++at)
            least[at] = std::max(least[at], of.create_min[at]);
        if (!create(pool, cheapest(pool), least, width)) return;
    }
}

// True: it has stopped a worker.
bool NaiveCore::order_and_stop(uint32_t pool) {
    if (!is_draining(pool)) {
        order_for_tasks(pool);
        create_spare(pool, locked_units(pool));
    }
    adapt_limit(pool);
    const uint64_t before = unallocated(pool);
    stop_idle(pool);
    return unallocated(pool) != before;
}

Vector NaiveCore::smallest_order(uint32_t pool) const {
    const Pool& of = m_.pools.at(pool);
    const bool is_said = std::any_of(
        of.create_min.begin(), of.create_min.end(), [](uint64_t amount) { return amount > 0; });
    return is_said ? of.create_min : usual_capacity(pool);
}

}  // namespace dibs::naive
