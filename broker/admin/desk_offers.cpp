// broker/admin/desk_offers.cpp -- answers what is offered, what a lease is, and whether a pool is
// idle.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <vector>

#include "broker/admin/desk.hpp"
#include "broker/config/quantity.hpp"
#include "broker/core/look.hpp"
#include "broker/turn/payload.hpp"
#include "broker/turn/pool_sets.hpp"

namespace dibs {

using admin::Code;

namespace {

constexpr uint32_t kOffersTold = 10;
constexpr uint32_t kOffersMost = 100;
constexpr size_t kEndedLeasesMost = 1024;

std::vector<core::Amount> amounts_of(const std::vector<std::string>& texts) {
    std::vector<core::Amount> amounts;
    for (const std::string& text : texts)
        amounts.push_back(amount_of(text));
    return amounts;
}

std::string why_none(shm::Reason reason, const std::vector<core::Resource>& has, uint64_t of) {
    if (has.empty()) return "its slots have no resources";
    if (reason == shm::Reason::kUnavailable && of < has.size()) {
        return "no slot has as much of " + has[of].name + ": each has " +
               show_amount(has[of].amount);
    }
    std::string names;
    for (const core::Resource& resource : has)
        names += (names.empty() ? "" : ", ") + resource.name;
    return "what is wanted names resources of its slots (" + names +
           "), each once; something of one at least, and no more at least than at most";
}

}  // namespace

// The pool's, behind what the answer has. False: they were refused, and the answer says why.
bool Desk::list_offers(AdminJob& job, uint32_t pool) const {
    const std::vector<core::Amount> least = amounts_of(job.request.least);
    const std::vector<core::Amount> most = amounts_of(job.request.most);
    const uint64_t wanted = job.request.number == 0 ? kOffersTold : job.request.number;
    core::OffersQuery query{pool, least, most};
    // Who asks at one time is given equal offers in different orders.
    query.seed = job.conversation * 0x9e3779b97f4a7c15U;
    query.count =
        static_cast<uint32_t>(std::min<uint64_t>(wanted, kOffersMost) - job.answer.offers.size());
    std::vector<core::Offer> found;
    uint64_t resource = 0;
    const shm::Reason reason = core::Look::offers(core_, query, &found, &resource);
    const std::vector<core::Resource> has = core_.resources(pool);
    if (reason != shm::Reason::kOk) {
        job.answer.code = Code::refused;
        job.answer.reason = static_cast<int16_t>(reason);
        job.answer.names.assign(1, why_none(reason, has, resource));
        return false;
    }
    for (const core::Offer& offer : found) {
        auto told = std::make_unique<admin::OfferT>();
        told->pool = name_of(pool);
        told->slot = offer.slot;
        for (size_t at = 0; at < has.size(); ++at) {
            told->resources.push_back(has[at].name);
            told->amounts.push_back(offer.room[at]);
        }
        job.answer.offers.push_back(std::move(told));
    }
    return true;
}

// Of a pool set those that answer.
std::vector<uint32_t> Desk::offering(const AdminJob& job) const {
    if (sets_.has(job.request.pool)) return sets_.answering(job.request.pool);
    const uint32_t pool = core_.find_pool(job.request.pool);
    return pool == shm::kNoRow ? std::vector<uint32_t>{} : std::vector<uint32_t>{pool};
}

// One for one pool's, another one for others and for another order.
uint64_t Desk::stamp_of(const std::vector<uint32_t>& pools) const {
    uint64_t stamp = 0;
    for (const uint32_t pool : pools)
        stamp = stamp * 0x9e3779b97f4a7c15U + core::Look::offers_stamp(core_, pool);
    return stamp;
}

// Of each pool in its turn (S3.24: one that cannot answer is left out, unless all of them are).
void Desk::offers(AdminJob& job) const {
    uint32_t pool = shm::kNoRow;
    const bool is_set = sets_.has(job.request.pool);
    if (!is_set && !pool_of(job, &pool)) return;
    if (!is_set && pool == shm::kNoRow) {
        job.answer.code = Code::unknown_pool;
        return;
    }
    const std::vector<uint32_t> pools = offering(job);
    job.answer.offers.clear();
    job.answer.stamp = stamp_of(pools);
    bool answered = pools.empty();
    for (const uint32_t row : pools)
        answered |= list_offers(job, row);
    if (!answered) return;
    job.answer.code = Code::ok;
    job.answer.names.clear();
    if (!job.waits) {
        const uint64_t wait_ns = job.request.interval_ns;
        job.waits_until_ns =
            wait_ns < shm::kNever - core_.now() ? core_.now() + wait_ns : shm::kNever;
    }
    job.seen_stamp = job.answer.stamp;
    const bool is_news = job.answer.stamp != job.request.after_stamp;
    job.waits = core_.now() < job.waits_until_ns && (job.answer.offers.empty() || !is_news);
}

bool Desk::look_again(AdminJob& job) const {
    if (std::atomic_ref(job.is_abandoned).load(std::memory_order_relaxed)) return true;
    if (job.request.ask == admin::Ask::orders) return look_for_orders(job);
    const bool is_there =
        sets_.has(job.request.pool) || core_.find_pool(job.request.pool) != shm::kNoRow;
    const bool stays =
        is_there && core_.now() < job.waits_until_ns && stamp_of(offering(job)) == job.seen_stamp;
    if (stays) return false;
    offers(job);
    return job.answer.code != Code::ok || !job.waits;
}

void Desk::set_ended_leases_for(core::TimeNs for_ns) {
    if ((for_ns == 0) != (ended_leases_for_ns_ == 0)) {
        core::Look::keep_ended_leases(core_, for_ns == 0 ? 0 : kEndedLeasesMost);
    }
    ended_leases_for_ns_ = for_ns;
}

std::unique_ptr<admin::LeaseT> Desk::ended_row(const AdminJob& job,
                                               const core::EndedLease& ended) const {
    auto told = std::make_unique<admin::LeaseT>();
    told->account = quotas_.account_of(ended.uid);
    told->age_ns = age(ended.granted_ns);
    told->pool = name_of(ended.pool);
    told->ended = true;
    if (!job.is_admin && job.uid != ended.uid) return told;
    told->full = true;
    told->number = ended.number;
    told->id = ended.id;
    told->fence = ended.fence;
    told->state = "ended";
    told->units = ended.units;
    told->slots.push_back(ended.slot);
    told->uid = ended.uid;
    told->pid = ended.pid;
    told->interval_ns = ended.interval_ns;
    told->kept_ns = age(ended.kept_ns);
    told->meta = ended.meta;
    told->ended_ns = age(ended.ended_ns);
    told->reason = static_cast<int16_t>(ended.reason);
    told->killed = ended.killed;
    // When it ended.
    told->expired_ns = ended.ended_ns - std::min(ended.ended_ns, ended.expires_ns);
    if (!ended.is_part) return told;
    for (const core::Resource& resource : core_.resources(ended.pool)) {
        told->resources.push_back(resource.name);
        told->amounts.push_back(ended.amounts[told->amounts.size()]);
    }
    return told;
}

// By its id, or by its number, page by page.
void Desk::inspect(AdminJob& job) const {
    const uint64_t id = job.request.id;
    uint32_t pool = shm::kNoRow;
    if (!pool_of(job, &pool)) return;
    // A claim that has waited again has a lease of the number that its ended one had.
    const auto lives_again = [&](const core::EndedLease& ended) {
        for (uint32_t row = 0; id == 0 && row < core_.leases_max(); ++row) {
            const shm::LeaseRow& lease = core_.lease(row);
            const bool is_it =
                lease.state != shm::LeaseState::kFree && lease.arrival == ended.number;
            if (is_it && sees(job, lease.session)) return true;
        }
        return false;
    };
    if (job.request.cursor == 0 && (id != 0 || job.request.number != 0)) {
        const core::EndedLease* ended = core::Look::ended_lease(core_, id, job.request.number);
        const bool is_there = ended != nullptr && age(ended->ended_ns) <= ended_leases_for_ns_ &&
                              (pool == shm::kNoRow || pool == ended->pool);
        if (is_there && !lives_again(*ended))
            return job.answer.leases.push_back(ended_row(job, *ended));
    }
    if (id == 0 && job.request.number != 0) return leases(job);
    const uint32_t row = core::row_of(id);
    const bool lives = row < core_.leases_max() &&
                       core_.lease(row).state != shm::LeaseState::kFree &&
                       core_.lease(row).head.generation == core::generation_of(id) &&
                       (pool == shm::kNoRow || pool == core_.lease(row).pool);
    if (!lives) {
        job.answer.code = Code::not_found;
        return;
    }
    job.answer.leases.push_back(lease_row(job, row));
}

// S3.12.
void Desk::drain_if_idle(AdminJob& job, uint32_t pool) {
    core::Drain drain{pool};
    drain.if_idle_for_ns = std::min(job.request.interval_ns, shm::kNever - 1);
    if (pool == shm::kNoRow || job.request.number != 0) {
        job.answer.code = Code::refused;
        job.answer.names.emplace_back("it is of one whole pool");
        return;
    }
    if (core_.apply(drain, &job.answer.granted_ns) == shm::Reason::kOk) return;
    const shm::PoolRow& row = core_.pool(pool);
    const bool waits = row.waiting + row.confirming != 0;
    job.answer.code = Code::refused;
    job.answer.names.emplace_back(waits ? "claims wait for it"
                                        : "it is in use, or has not been idle for so long");
}

}  // namespace dibs
