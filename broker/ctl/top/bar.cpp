// broker/ctl/top/bar.cpp -- draws a pool's slots in proportion to their states.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/top/bar.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace dibs::ctl::top {

uint64_t leased_slots(const admin::PoolT& pool) {
    if (pool.shared == 0) return pool.leased;
    return uint64_t{pool.slots} - pool.idle - pool.reserved - pool.unknown;
}

std::string bar(const admin::PoolT& pool, size_t width) {
    struct Run {
        uint64_t slots;
        char letter;
        uint64_t letters = 0;
    };
    const uint64_t recovering = pool.shared == 0 ? pool.recovering : 0;
    std::array runs = {
        Run{leased_slots(pool), kLeased},
        Run{pool.reserved, kReserved},
        Run{recovering, kRecovering},
        Run{pool.idle, kIdle},
        Run{pool.unknown, kUnknown},
    };
    uint64_t slots = 0;
    for (const Run& run : runs)
        slots += run.slots;
    const uint64_t room = std::min<uint64_t>(slots, width);
    uint64_t letters = 0;
    for (Run& run : runs) {
        if (run.slots == 0) continue;
        run.letters = std::max<uint64_t>(run.slots * room / slots, 1);
        letters += run.letters;
    }
    // What rounding has left over or taken too much is the largest run's.
    while (letters != room) {
        const auto largest = std::max_element(
            runs.begin(), runs.end(), [letters, room](const Run& left, const Run& right) {
                if (letters > room) return left.letters < right.letters;
                return left.slots < right.slots;
            });
        if (letters > room && largest->letters <= 1) break;
        largest->letters += letters < room ? 1 : ~uint64_t{0};
        letters += letters < room ? 1 : ~uint64_t{0};
    }
    std::string text = "[";
    for (const Run& run : runs)
        text.append(run.letters, run.letter);
    return text + "]";
}

}  // namespace dibs::ctl::top
