// tests/crash/workload_pools.cpp -- the pools that a workload has, and claims that name several.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "tests/crash/workload.hpp"

namespace dibs::tests {

namespace {

constexpr core::TimeNs kQuantum = 2000;

}  // namespace

// Now and then its leases may not be parked.
core::PoolConfig Workload::tokens_of(uint32_t slots) {
    core::PoolConfig tokens;
    tokens.name = "tokens";
    tokens.slots = slots;
    tokens.backlog_max = 12;
    tokens.quantum_ns = below(4) == 0 ? 0 : kQuantum;
    return tokens;
}

void Workload::set_up() {
    core_.begin_turn(next_time());
    const core::PoolConfig tokens = tokens_of(counted_slots_);
    core_.set_pool(tokens, nullptr);
    core::PoolConfig workers;
    workers.name = "workers";
    workers.kind = shm::PoolKind::kWorker;
    workers.unconfirmed_max = 4;
    workers.reservation_ttl_ns = 3000;
    workers.answer_max = 64;
    workers.attributes_max = 700;
    workers.grace_ns = 500;
    core_.set_pool(workers, nullptr);
    core::PoolConfig easy = workers;
    easy.name = "easy";
    easy.release_is_ready = true;
    easy.when_busy = shm::WhenBusy::kReject;
    core_.set_pool(easy, nullptr);
    core::PoolConfig room;
    room.name = "room";
    room.slots = 4;
    room.expiry = shm::ExpiryMode::kLazy;
    room.quantum_ns = kQuantum;
    core_.set_pool(room, nullptr);
    core::PoolConfig lent = workers;
    lent.name = "lent";
    lent.grace_ns = 0;
    lent.expiry = shm::ExpiryMode::kLazy;
    lent.quantum_ns = kQuantum;
    lent.park = true;
    core_.set_pool(lent, nullptr);
    core::PoolConfig strict = lent;
    strict.name = "strict";
    strict.expiry = shm::ExpiryMode::kStrict;
    core_.set_pool(strict, nullptr);
    core::PoolConfig shares = tokens;
    shares.name = "shares";
    shares.slots = 4;
    shares.order = shm::PoolOrder::kAccount;
    shares.promote_threshold = 3;
    shares.demote_threshold = -3;
    core_.set_pool(shares, nullptr);
    core::PoolConfig farm = workers;
    farm.name = "farm";
    farm.order = shm::PoolOrder::kAccount;
    farm.promote_threshold = 3;
    farm.demote_threshold = -3;
    farm.account_expiry_ns = 20'000;
    farm.queue_timeout_ns = 6000;
    farm.request_age_max_ns = 30'000;
    core_.set_pool(farm, nullptr);
    core::PoolConfig vault = farm;
    vault.name = "vault";
    vault.grace_ns = 0;
    vault.expiry = shm::ExpiryMode::kStrict;
    core_.set_pool(vault, nullptr);
    static constexpr core::Amount kHost[] = {{"cpu", 4}, {"mem", 9}};
    core::PoolConfig hosts;
    hosts.name = "hosts";
    hosts.slots = 2;
    hosts.expiry = shm::ExpiryMode::kLazy;
    hosts.vector = kHost;
    core_.set_pool(hosts, nullptr);
    hosts.name = "racks";
    hosts.expiry = shm::ExpiryMode::kStrict;
    core_.set_pool(hosts, nullptr);
    core::PoolConfig boxes = workers;
    boxes.name = "boxes";
    boxes.vector = kHost;
    core_.set_pool(boxes, nullptr);
    core_.set_pool(elastic(), nullptr);
    core_.set_type({.name = "small", .pool = "crowd"}, nullptr);
    core::PoolConfig far = elastic();
    far.name = "far";
    far.dispatch = true;
    core_.set_pool(far, nullptr);
    core_.set_type({.name = "small", .pool = "far"}, nullptr);
    for (uint32_t uid = 0; uid < 3; ++uid)
        core_.open_session({.uid = uid, .tags_max = 8, .account = uid == 0 ? "" : "a1"});
    core_.decide();
    core_.commit();
    core_.clear();
}

// Of those in order of arrival: tokens, workers, easy and, while it is there, spare.
bool Workload::claim_over_pools() {
    const uint32_t session = any_session();
    if (session == shm::kNoRow) return false;
    std::vector<uint32_t> pools = {0, 1, 2};
    if (const uint32_t spare = core_.find_pool("spare"); spare != shm::kNoRow)
        pools.push_back(spare);
    std::shuffle(pools.begin(), pools.end(), random_);
    pools.resize(2 + below(pools.size() - 1));
    core::Claim claim;
    claim.session = session;
    claim.tag = static_cast<uint16_t>(below(8));
    claim.pool = pools.front();
    claim.units = static_cast<uint16_t>(1 + below(2));
    std::vector<core::PoolUnits> also;
    for (size_t at = 1; at < pools.size(); ++at)
        also.push_back({pools[at], static_cast<uint16_t>(1 + below(2))});
    claim.also = also;
    claim.timeout_ns = below(4) == 0 ? 0 : 1 + below(8000);
    claim.interval_ns = below(2) == 0 ? 0 : 500 + below(3000);
    claim.by_word = below(2) == 0;
    if (below(4) == 0) claim.key[0] = static_cast<uint8_t>(1 + below(3));
    if (below(4) == 0) claim.meta = "several";
    core_.apply(claim);
    return true;
}

// One that is full is saturated behind it.
bool Workload::claim_by_load() {
    const uint32_t session = any_session();
    if (session == shm::kNoRow) return false;
    core::Claim claim;
    claim.session = session;
    claim.tag = static_cast<uint16_t>(below(8));
    claim.pool = {};
    claim.timeout_ns = below(4) == 0 ? 0 : 1 + below(8000);
    std::vector<core::RouteMember> members;
    for (uint32_t pool = 0; pool < 6; ++pool) {
        if (below(2) == 0)
            members.push_back({.pool = pool, .priority = static_cast<int32_t>(below(2))});
    }
    const core::Route route{.members = members, .cool_down_ns = below(2000)};
    claim.route = &route;
    core_.apply(claim);
    return true;
}

}  // namespace dibs::tests
