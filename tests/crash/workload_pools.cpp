// tests/crash/workload_pools.cpp -- the pools that a workload has.
// SPDX-License-Identifier: Apache-2.0
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

}  // namespace dibs::tests
