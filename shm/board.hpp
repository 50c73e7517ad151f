// shm/board.hpp -- places the BOARD's blocks, and reads and writes them without tearing.
//
// Each block has its own sequence: even, and odd while it is being written. The writer stores the
// odd sequence, then the words (release each: a reader of a new word sees the odd sequence), then
// the even sequence (release). The reader loads the sequence (acquire), the words (acquire each:
// none moves behind the second look), then the sequence again. There are no stand-alone fences,
// which the thread sanitizer does not understand; on x86-64 all of these are plain moves.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shm/layout.hpp"
#include "shm/pause.hpp"
#include "shm/words.hpp"

namespace dibs::shm {

// Blocks as their reader and writer hold them: the layout's, without the atomic.
struct PoolPicture {
    uint64_t sequence = 0;
    uint32_t idle = 0;
    uint32_t queued = 0;
    uint32_t reserved = 0;
    uint32_t confirming = 0;
    uint64_t last_dispatch_ns = 0;
    uint32_t leased = 0;
    uint32_t recovering = 0;
    uint32_t unknown = 0;
    uint32_t slots = 0;
    uint32_t parked = 0;
    uint32_t shared = 0;
    uint64_t hits = 0;
};
static_assert(sizeof(PoolPicture) == sizeof(BoardPool));
static_assert(offsetof(PoolPicture, leased) == offsetof(BoardPool, leased));
static_assert(offsetof(PoolPicture, hits) == offsetof(BoardPool, hits));

struct PoolTotalsPicture {
    uint64_t sequence = 0;
    uint64_t accepted = 0;
    uint64_t granted = 0;
    uint64_t expired = 0;
    uint64_t cancelled = 0;
    uint64_t rejected = 0;
    uint64_t released = 0;
    uint64_t demand = kNever;
};
static_assert(sizeof(PoolTotalsPicture) == sizeof(BoardPoolTotals));
static_assert(offsetof(PoolTotalsPicture, demand) == offsetof(BoardPoolTotals, demand));

struct PoolNamePicture {
    uint64_t sequence = 0;
    uint32_t units_max = 0;
    uint16_t payload_max = 0;
    uint8_t kind = 0;
    uint8_t state = 0;
    uint32_t answer_max = 0;
    uint32_t attributes_max = 0;
    uint8_t reserved0[39] = {};
    uint8_t name_size = 0;
    char name[64] = {};
};
static_assert(sizeof(PoolNamePicture) == sizeof(BoardPoolName));
static_assert(offsetof(PoolNamePicture, name) == offsetof(BoardPoolName, name));

struct AccountPicture {
    uint64_t sequence = 0;
    uint64_t used_us = 0;
    uint64_t time_ns = 0;
    uint64_t counted_since_ns = 0;
    uint64_t rate = 0;
    uint32_t held = 0;
    uint32_t waiting = 0;
    uint8_t state = 0;
    uint8_t name_size = 0;
    uint8_t reserved0[14] = {};
    char name[64] = {};
};
static_assert(sizeof(AccountPicture) == sizeof(BoardAccount));
static_assert(offsetof(AccountPicture, name) == offsetof(BoardAccount, name));

struct SetPicture {
    uint64_t sequence = 0;
    uint32_t use = 0;
    uint8_t members = 0;
    uint8_t name_size = 0;
    uint16_t pool[kSetMembersMax] = {};
    SetRank rank = SetRank::kOrder;
    uint8_t reserved0[17] = {};
    char name[64] = {};
};
static_assert(sizeof(SetPicture) == sizeof(BoardSet));
static_assert(offsetof(SetPicture, name) == offsetof(BoardSet, name));

struct ClusterPicture {
    uint64_t sequence = 0;
    uint8_t name_size = 0;
    uint8_t reserved0[23] = {};
    char name[32] = {};
};
static_assert(sizeof(ClusterPicture) == sizeof(BoardCluster));
static_assert(offsetof(ClusterPicture, name) == offsetof(BoardCluster, name));

namespace BoardAccountState {
inline constexpr uint8_t kNone = 0;
inline constexpr uint8_t kKnown = 1;
inline constexpr uint8_t kConfigured = 2;
}  // namespace BoardAccountState

// Writer: the turn. A block that a broker left half written is odd: the next write mends it.
template <typename Block, typename Picture>
void board_write(Block& block, const Picture& picture) {
    static_assert(sizeof(Block) == sizeof(Picture) && sizeof(Block) % sizeof(uint64_t) == 0);
    const uint64_t odd = block.sequence.load(std::memory_order_relaxed) | 1;
    block.sequence.store(odd, std::memory_order_relaxed);
    store_words(reinterpret_cast<SharedWord*>(&block) + 1,
                reinterpret_cast<const SharedWord*>(&picture) + 1,
                sizeof(Block) / sizeof(uint64_t) - 1,
                __ATOMIC_RELEASE);
    block.sequence.store(odd + 1, std::memory_order_release);
}

inline constexpr uint32_t kBoardTries = 4096;  // some 100 µs: a writer takes nanoseconds

// False if the block stays odd: its writer died within it, or was put aside.
template <typename Block, typename Picture>
[[nodiscard]] bool board_read(const Block& block, Picture& out) {
    static_assert(sizeof(Block) == sizeof(Picture) && sizeof(Block) % sizeof(uint64_t) == 0);
    for (uint32_t tries = 0; tries < kBoardTries; ++tries) {
        const uint64_t before = block.sequence.load(std::memory_order_acquire);
        if ((before & 1) == 0) {
            load_words(reinterpret_cast<const SharedWord*>(&block) + 1,
                       reinterpret_cast<SharedWord*>(&out) + 1,
                       sizeof(Block) / sizeof(uint64_t) - 1,
                       __ATOMIC_ACQUIRE);
            out.sequence = before;
            if (block.sequence.load(std::memory_order_relaxed) == before) return true;
        }
        pause();
    }
    return false;
}

// Where the blocks of a BOARD for `pools_max` pools begin: one array after the other.
struct BoardPlan {
    uint64_t pools;
    uint64_t totals;
    uint64_t names;
    uint64_t histograms;
    uint64_t sets;
    uint64_t cluster;
    uint64_t accounts;
    uint64_t size;
};

constexpr BoardPlan plan_board(uint32_t pools_max, uint32_t accounts_max = 0) {
    BoardPlan plan = {};
    plan.pools = sizeof(BoardHead);
    plan.totals = plan.pools + uint64_t{pools_max} * sizeof(BoardPool);
    plan.names = plan.totals + uint64_t{pools_max} * sizeof(BoardPoolTotals);
    plan.histograms = plan.names + uint64_t{pools_max} * sizeof(BoardPoolName);
    plan.sets = plan.histograms + uint64_t{pools_max} * sizeof(BoardHistogram);
    plan.cluster = plan.sets + uint64_t{kSetsMax} * sizeof(BoardSet);
    plan.accounts = plan.cluster + sizeof(BoardCluster);
    plan.size = plan.accounts + uint64_t{accounts_max} * sizeof(BoardAccount);
    return plan;
}

// The accounts that a BOARD of that size has room for.
constexpr uint32_t board_accounts(uint64_t size, uint32_t pools_max) {
    return static_cast<uint32_t>((size - plan_board(pools_max).size) / sizeof(BoardAccount));
}

// The arrays of a mapped BOARD; `Byte` is std::byte for the broker, const std::byte for the rest.
template <typename Byte, typename Block>
Block* board_array(Byte* board, uint64_t offset) {
    return reinterpret_cast<Block*>(board + offset);
}

}  // namespace dibs::shm
