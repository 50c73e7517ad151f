// clientlib/pool.cpp -- reads pools from the BOARD.
// It touches neither the rings nor the session's tables, so any thread may take a snapshot.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "clientlib/pool_set.hpp"
#include "clientlib/session.hpp"
#include "shm/board.hpp"
#include "shm/target.hpp"

namespace dibs::client {
namespace {

uint32_t pools(const Session& session) {
    const auto* head = reinterpret_cast<const shm::BoardHead*>(session.board);
    const uint32_t count = head->pools.load(std::memory_order_acquire);  // pairs: the turn's store
    return count < session.pools_max ? count : session.pools_max;
}

template <typename Block>
const Block& block(const Session& session, uint64_t array, uint32_t pool) {
    return shm::board_array<const std::byte, const Block>(session.board, array)[pool];
}

int read_name(const Session& session, uint32_t pool, shm::PoolNamePicture& out) {
    const shm::BoardPlan plan = shm::plan_board(session.pools_max);
    if (!shm::board_read(block<shm::BoardPoolName>(session, plan.names, pool), out)) {
        return DIBS_ETORN;
    }
    out.name[sizeof out.name - 1] = 0;
    return out.state == static_cast<uint8_t>(shm::PoolState::kFree) ? DIBS_EPOOL : DIBS_OK;
}

// What the name may say: a pool, a set, or of which cluster a pool is.
shm::Target target_of(const Session& session, const char* text) {
    const uint64_t place = shm::plan_board(session.pools_max).cluster;
    const auto* row =
        shm::board_array<const std::byte, const shm::BoardCluster>(session.board, place);
    shm::ClusterPicture own;
    if (!shm::board_read(*row, own)) own.name_size = 0;
    const size_t most = sizeof own.name;
    const size_t size = strnlen(text, 2 * DIBS_NAME_MAX + 3);
    return shm::target_of(text, size, own.name, own.name_size < most ? own.name_size : most);
}

}  // namespace
}  // namespace dibs::client

using namespace dibs::client;

int dibs_pool(dibs_session* session, const char* name, uint32_t* pool) {
    const int code = check(session);
    if (code != DIBS_OK) return code;
    if (name == nullptr || pool == nullptr) return DIBS_EARGUMENT;
    const dibs::shm::Target target = target_of(*session, name);
    if (target.kind == dibs::shm::TargetKind::kElsewhere) return DIBS_EELSEWHERE;
    if (target.kind == dibs::shm::TargetKind::kNone) return DIBS_ENAME;
    const uint32_t count = pools(*session);
    for (uint32_t number = 0; number < count; ++number) {
        dibs::shm::PoolNamePicture picture;
        const int read = read_name(*session, number, picture);
        if (read == DIBS_ETORN) return read;
        if (read == DIBS_OK && strcmp(picture.name, target.name) == 0) {
            *pool = number;
            return DIBS_OK;
        }
    }
    const bool is_pool = target.kind == dibs::shm::TargetKind::kPool;
    return is_pool ? DIBS_EPOOL : find_set(*session, target.name, pool);
}

int dibs_describe(dibs_session* session, uint32_t pool, dibs_pool_limits* limits) {
    const int code = check(session);
    if (code != DIBS_OK) return code;
    if (limits == nullptr) return DIBS_EARGUMENT;
    if (limits->size < sizeof *limits) return DIBS_ESIZE;
    if (pool >= pools(*session)) return DIBS_EPOOL;
    dibs::shm::PoolNamePicture picture;
    const int read = read_name(*session, pool, picture);
    if (read != DIBS_OK) return read;
    memcpy(limits->name, picture.name, sizeof limits->name);
    limits->units_max = picture.units_max;
    limits->payload_max = uint32_t{picture.payload_max} * 64;
    limits->answer_max = picture.answer_max;
    limits->attributes_max = picture.attributes_max;
    limits->has_workers = picture.kind == static_cast<uint8_t>(dibs::shm::PoolKind::kWorker);
    limits->draining = picture.state == static_cast<uint8_t>(dibs::shm::PoolState::kDraining);
    return DIBS_OK;
}

int dibs_snapshot(dibs_session* session, uint32_t pool, dibs_counters* counters) {
    const int code = check(session);
    if (code != DIBS_OK) return code;
    if (counters == nullptr) return DIBS_EARGUMENT;
    if (counters->size < sizeof *counters) return DIBS_ESIZE;
    if (pool >= session->pools_max) return DIBS_EPOOL;
    dibs::shm::PoolPicture picture;
    if (!dibs::shm::board_read(
            block<dibs::shm::BoardPool>(*session, sizeof(dibs::shm::BoardHead), pool), picture)) {
        return DIBS_ETORN;
    }
    // A block that was never published is no pool; told apart without the head's busy line.
    if (picture.sequence == 0) return DIBS_EPOOL;
    counters->slots = picture.slots;
    counters->idle = picture.idle;
    counters->reserved = picture.reserved;
    counters->leased = picture.leased;
    counters->parked = picture.parked;
    counters->recovering = picture.recovering;
    counters->unknown = picture.unknown;
    counters->queued = picture.queued;
    counters->confirming = picture.confirming;
    counters->shared = picture.shared;
    counters->hits = picture.hits;
    counters->last_grant_ns = static_cast<int64_t>(picture.last_dispatch_ns);
    return DIBS_OK;
}

int dibs_pool_totals(dibs_session* session, uint32_t pool, dibs_totals* totals) {
    const int code = check(session);
    if (code != DIBS_OK) return code;
    if (totals == nullptr) return DIBS_EARGUMENT;
    if (totals->size < sizeof *totals) return DIBS_ESIZE;
    if (pool >= pools(*session)) return DIBS_EPOOL;
    const uint64_t array = dibs::shm::plan_board(session->pools_max).totals;
    dibs::shm::PoolTotalsPicture picture;
    if (!dibs::shm::board_read(block<dibs::shm::BoardPoolTotals>(*session, array, pool), picture)) {
        return DIBS_ETORN;
    }
    totals->accepted = picture.accepted;
    totals->granted = picture.granted;
    totals->expired = picture.expired;
    totals->cancelled = picture.cancelled;
    totals->rejected = picture.rejected;
    totals->released = picture.released;
    const auto* head = reinterpret_cast<const dibs::shm::BoardHead*>(session->board);
    totals->net_found_work = head->net_found_work.load(std::memory_order_relaxed);
    return DIBS_OK;
}
