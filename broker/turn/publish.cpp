// broker/turn/publish.cpp -- publishes pools and accounts on the BOARD.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/publish.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "broker/core/look.hpp"
#include "shm/histogram.hpp"

namespace dibs {

namespace {

constexpr core::TimeNs kPublishEvery = 1'000;
constexpr core::TimeNs kPublishPressed = 10'000;
constexpr core::TimeNs kAccountsEvery = 1'000'000;

}  // namespace

Publisher::Publisher(core::Core& core, BoardSegment& board)
    : core_(core), board_(board), is_dirty_(board.pools_max(), 0), waits_(board.pools_max()) {
    dirty_.reserve(board.pools_max());
}

void Publisher::publish_all() {
    const uint32_t pools = std::min(core_.pools(), board_.pools_max());
    for (uint32_t pool = 0; pool < pools; ++pool) {
        write_name(pool);
        write_pool(pool);
    }
    for (uint32_t row = 0; row < std::min(core_.accounts_max(), board_.accounts_max()); ++row) {
        if (core_.account(row).state != 0) write_account(row);
    }
    write_accounts();
    shm::BoardHead& head = board_.head();
    head.epoch.store(core_.head().epoch, std::memory_order_relaxed);
    // Pairs with a reader's acquire: the blocks below it are written.
    head.pools.store(pools, std::memory_order_release);
}

void Publisher::publish(bool pressed) {
    for (const uint32_t pool : core_.touched_pools()) {
        if (pool >= is_dirty_.size() || is_dirty_[pool] != 0) continue;
        is_dirty_[pool] = 1;
        dirty_.push_back(pool);
    }
    if (!dirty_.empty() &&
        core_.now() - written_ns_ >= (pressed ? kPublishPressed : kPublishEvery)) {
        write_dirty();
    }
    if (!core_.changed_accounts().empty() && core_.now() - accounts_ns_ >= kAccountsEvery) {
        write_accounts();
    }
}

void Publisher::flush() {
    if (!dirty_.empty()) write_dirty();
    if (!core_.changed_accounts().empty()) write_accounts();
}

void Publisher::write_dirty() {
    for (const uint32_t pool : dirty_) {
        is_dirty_[pool] = 0;
        write_pool(pool);
    }
    dirty_.clear();
    written_ns_ = core_.now();
    shm::BoardHead& head = board_.head();
    head.turns.store(head.turns.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    head.time_ns.store(written_ns_, std::memory_order_relaxed);
}

void Publisher::write_pool(uint32_t pool) {
    const shm::PoolRow& row = core_.pool(pool);
    shm::PoolPicture picture;
    picture.idle = row.idle;
    picture.queued = row.waiting + row.confirming;
    picture.reserved = row.reserved;
    picture.confirming = row.confirming;
    picture.last_dispatch_ns = row.last_dispatch_ns;
    picture.leased = row.leased;
    picture.parked = row.parked;
    picture.recovering = row.recovering;
    picture.unknown = row.unknown;
    picture.slots = row.slots - row.parts - core::Look::ordered(core_, pool);
    picture.shared = row.shared;
    picture.hits = row.hit_total;
    shm::board_write(board_.pools()[pool], picture);

    shm::PoolTotalsPicture totals;
    totals.accepted = row.accepted_total;
    totals.granted = row.granted_total;
    totals.expired = row.expired_total;
    totals.cancelled = row.cancelled_total;
    totals.rejected = row.rejected_total;
    totals.released = row.released_total;
    totals.demand = static_cast<uint64_t>(row.demand_published);
    shm::board_write(board_.totals()[pool], totals);
}

void Publisher::write_accounts() {
    for (const uint32_t row : core_.changed_accounts()) {
        if (row < board_.accounts_max()) write_account(row);
    }
    core_.forget_changed_accounts();
    accounts_ns_ = core_.now();
    // Their use until now is counted up to here.
    board_.head().time_ns.store(accounts_ns_, std::memory_order_relaxed);
}

void Publisher::write_account(uint32_t row) {
    const shm::AccountRow& account = core_.account(row);
    shm::AccountPicture picture;
    if (account.state != 0) {
        const bool configured = (account.flags & shm::AccountFlag::kConfigured) != 0;
        picture.state =
            configured ? shm::BoardAccountState::kConfigured : shm::BoardAccountState::kKnown;
        picture.used_us = core_.used_us(row);
        picture.time_ns = core_.now();
        picture.counted_since_ns = account.counted_since_ns;
        for (const int64_t rate : account.rate)
            picture.rate += static_cast<uint64_t>(rate);
        picture.held = account.held;
        picture.waiting = core_.waiting_of(row);
        picture.name_size = account.name_size;
        std::memcpy(picture.name, account.name, account.name_size);
    }
    shm::board_write(board_.accounts()[row], picture);
}

void Publisher::write_name(uint32_t pool) {
    const shm::PoolRow& row = core_.pool(pool);
    shm::PoolNamePicture picture;
    picture.units_max = row.units_max;
    picture.payload_max = static_cast<uint16_t>((row.payload_max + 63) / 64);
    picture.kind = static_cast<uint8_t>(row.kind);
    const bool leaves = (row.flags & shm::PoolFlag::kLeaving) != 0;
    const shm::PoolState state = leaves ? shm::PoolState::kDraining : row.state;
    picture.state = static_cast<uint8_t>(core_.pool_lives(pool) ? state : shm::PoolState::kFree);
    picture.answer_max = row.answer_max;
    picture.attributes_max = row.attributes_max;
    picture.name_size = row.name_size;
    std::memcpy(picture.name, row.name, row.name_size);
    shm::board_write(board_.names()[pool], picture);
    if (core_.pool_lives(pool)) return;
    for (std::atomic<uint64_t>& count : board_.histograms()[pool].bucket)
        count.store(0, std::memory_order_relaxed);  // the row's next pool counts from 0
    waits_[pool] = {};
}

void Publisher::granted(uint32_t pool, Path path, uint64_t waited_ns) {
    if (pool >= board_.pools_max()) return;
    shm::histogram_record(board_.histograms()[pool].bucket, waited_ns);
    waits_[pool][static_cast<size_t>(path)].record(waited_ns);
}

const PoolWaits* Publisher::waits(uint32_t pool) const {
    return pool < waits_.size() ? &waits_[pool] : nullptr;
}

Waits Publisher::self_reported() const {
    Waits waits;
    for (uint32_t i = 0; i < shm::kHistogramBuckets; ++i) {
        const uint64_t count =
            board_.head().self_reported.bucket[i].load(std::memory_order_relaxed);
        const uint64_t first = shm::histogram_lower_bound(i);
        waits.record(std::midpoint(first, shm::histogram_lower_bound(i + 1) - 1), count);
    }
    return waits;
}

void Publisher::net_found_work(bool believed) {
    if (!believed) {
        ++net_reported_;
        return;
    }
    std::atomic<uint64_t>& count = board_.head().net_found_work;
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

uint64_t Publisher::net_count() const {
    return board_.head().net_found_work.load(std::memory_order_relaxed);
}

void Publisher::set_sessions(size_t sessions) {
    board_.head().sessions.store(static_cast<uint32_t>(sessions), std::memory_order_relaxed);
}

void Publisher::harvest(Session& session) {
    uint64_t credit = session.completion_tail - session.completions_harvested;
    for (uint32_t i = 0; i < shm::kHistogramBuckets; ++i) {
        const uint32_t count = session.up.bucket(i);
        const uint32_t grown = count - session.histogram_seen[i];
        const uint64_t added =
            count < session.histogram_seen[i] ? 0 : std::min<uint64_t>(grown, credit);
        session.histogram_seen[i] = count;
        if (added == 0) continue;
        credit -= added;
        std::atomic<uint64_t>& sum = board_.head().self_reported.bucket[i];
        sum.store(sum.load(std::memory_order_relaxed) + added, std::memory_order_relaxed);
    }
    session.completions_harvested = session.completion_tail;
}

}  // namespace dibs
