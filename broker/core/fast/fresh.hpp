// broker/core/fast/fresh.hpp -- lists this turn's claims that need no row unless they wait.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "broker/core/command.hpp"
#include "shm/layout.hpp"

namespace dibs::core {

// The fields that such a claim can set, and no others: a turn has hundreds of them, beside a log
// that fills a first cache.
struct FreshClaim {
    uint64_t number;
    uint64_t user_data;
    TimeNs timeout_ns;
    TimeNs interval_ns;
    uint32_t session;
    uint32_t pool;
    uint32_t room;
    uint32_t room_lines;
    int32_t priority;
    uint32_t next;  // of the same pool
    uint16_t tag;
    uint16_t units;
    bool when_busy_given;
    shm::WhenBusy when_busy;

    [[nodiscard]] Claim command() const;
};
static_assert(sizeof(FreshClaim) == shm::kLineSize);

struct FreshList {
    uint32_t head = shm::kNoRow;
    uint32_t tail = shm::kNoRow;
    uint32_t count = 0;
    uint32_t units = 0;  // of them
};

}  // namespace dibs::core
