// broker/admin/desk_rows.cpp -- shows rows as an administrator, an owner or a stranger sees them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "broker/admin/desk.hpp"
#include "broker/core/look.hpp"
#include "broker/session/sessions.hpp"
#include "shm/operation.hpp"

namespace dibs {

namespace {

std::string_view word(shm::SlotState state) {
    static constexpr std::string_view kWords[] = {
        "free", "idle", "reserved", "leased", "recovering", "unknown", "shared", "ordered"};
    return kWords[static_cast<size_t>(state)];
}

std::string_view word(shm::ClaimState state) {
    static constexpr std::string_view kWords[] = {
        "free", "waiting", "confirming", "running", "promised", "held"};
    return kWords[static_cast<size_t>(state)];
}

std::string_view word(shm::LeaseState state) {
    static constexpr std::string_view kWords[] = {
        "free", "live", "grace", "expired", "revoking", "killing"};
    return kWords[static_cast<size_t>(state)];
}

// Put aside by its holder when its word was last read.
bool is_parked(const shm::LeaseRow& lease) {
    return lease.state == shm::LeaseState::kLive && (lease.flags & shm::LeaseFlag::kParked) != 0;
}

constexpr uint32_t kAttributesTold = 1024;  // bytes of one slot's attributes in a list

}  // namespace

bool Desk::sees(const AdminJob& job, uint32_t session) const {
    return job.is_admin || (session != shm::kNoRow && core_.session(session).uid == job.uid);
}

std::string Desk::account_of(uint32_t session) const {
    return quotas_.account_of(core_.session(session).uid);
}

// The account that a claim or lease names, else its user's.
std::string Desk::payer(uint32_t account, uint32_t session) const {
    if (account == shm::kNoRow) return account_of(session);
    const shm::AccountRow& row = core_.account(account);
    return {row.name, row.name_size};
}

template <class Row>
std::string Desk::payer_of(const Row& row) const {
    const bool by_account = core_.pool(row.pool).order == shm::PoolOrder::kAccount;
    return payer(by_account ? row.account : shm::kNoRow, row.session);
}

std::string Desk::client_of(uint32_t session) const {
    return "s" + std::to_string(session) + "." +
           std::to_string(core_.session(session).head.generation);
}

std::string Desk::name_of(uint32_t pool) const {
    return {core_.pool(pool).name, core_.pool(pool).name_size};
}

uint64_t Desk::age(uint64_t since_ns) const {
    return core_.now() - std::min(core_.now(), since_ns);
}

uint64_t Desk::left(uint64_t until_ns) const {
    if (until_ns == shm::kNever) return shm::kNever;
    return until_ns - std::min(until_ns, core_.now());
}

std::unique_ptr<admin::PoolT> Desk::pool_row(uint32_t row) const {
    const shm::PoolRow& pool = core_.pool(row);
    auto told = std::make_unique<admin::PoolT>();
    told->name = name_of(row);
    told->kind = pool.kind == shm::PoolKind::kCounted ? "counted" : "worker";
    told->by_account = pool.order == shm::PoolOrder::kAccount;
    told->leaving = (pool.flags & shm::PoolFlag::kLeaving) != 0;
    told->draining = core_.draining() || told->leaving || pool.state == shm::PoolState::kDraining;
    told->slots = pool.slots - pool.parts - core::Look::ordered(core_, row);
    told->shared = pool.shared;
    for (const core::Resource& resource : core_.resources(row)) {
        told->resources.push_back(resource.name);
        told->capacity.push_back(resource.amount);
    }
    told->idle = pool.idle;
    told->reserved = pool.reserved;
    told->leased = pool.leased;
    told->parked = pool.parked;
    told->quantum_ns =
        (pool.flags & shm::PoolFlag::kParks) != 0 ? uint64_t{pool.quantum_us} * 1'000 : 0;
    told->recovering = pool.recovering;
    told->unknown = pool.unknown;
    told->waiting = pool.waiting;
    told->confirming = pool.confirming;
    told->accepted = pool.accepted_total;
    told->granted = pool.granted_total;
    told->hits = pool.hit_total;
    told->expired = pool.expired_total;
    told->cancelled = pool.cancelled_total;
    told->rejected = pool.rejected_total;
    told->turned_away = pool.turned_away_total;
    told->released = pool.released_total;
    told->refused = pool.refused_total;
    told->units_max = pool.units_max;
    told->backlog_max = pool.backlog_max;
    told->interval_max_ns = pool.interval_max_ns;
    told->grace_ns = pool.grace_ns;
    told->reservation_ttl_ns = pool.reservation_ttl_ns;
    if (core::Look::elastic(core_, row).workers_max != 0) told->elastic = elastic_row(row);
    const uint32_t first = core_.first_waiting(row);
    if (first != shm::kNoRow) told->oldest_wait_ns = age(core_.claim(first).enqueued_ns);
    const uint32_t oldest = core_.oldest_lease(row);
    if (oldest != shm::kNoRow) told->oldest_lease_ns = age(core_.lease(oldest).granted_ns);
    told->last_grant_ns = pool.last_dispatch_ns == 0 ? shm::kNever : age(pool.last_dispatch_ns);
    return told;
}

// Public of a holder are its account and for how long; `full` adds its identity.
void Desk::slot_holder(const AdminJob& job, const shm::SlotRow& slot, admin::SlotT* told) const {
    if (slot.state == shm::SlotState::kReserved && slot.holder == shm::kNoRow) {
        return placeholder_of(job, slot, told);
    }
    if (slot.holder == shm::kNoRow) return;
    // Recovering, it is under a lease whose holder is being killed.
    const bool leased = slot.state != shm::SlotState::kReserved;
    const uint32_t session =
        leased ? core_.lease(slot.holder).session : core_.claim(slot.holder).session;
    told->account =
        leased ? payer_of(core_.lease(slot.holder)) : payer_of(core_.claim(slot.holder));
    if (leased) told->held_ns = age(core_.lease(slot.holder).granted_ns);
    if (!sees(job, session)) return;
    told->full = true;
    told->holder = leased ? core_.lease(slot.holder).arrival : core_.claim(slot.holder).arrival;
    told->holder_pid = core_.session(session).pid;
    told->fence = slot.fence;
}

std::unique_ptr<admin::SlotT> Desk::slot_row(const AdminJob& job, uint32_t row) const {
    const shm::SlotRow& slot = core_.slot(row);
    auto told = std::make_unique<admin::SlotT>();
    told->pool = name_of(slot.pool);
    told->number = slot.number;
    const bool parked =
        slot.state == shm::SlotState::kLeased && is_parked(core_.lease(slot.holder));
    told->state = parked ? "parked" : word(slot.state);
    const bool runs = slot.entry != shm::kNoRow && core::Look::is_dispatched(core_, slot.pool);
    if (runs) told->state = "running";
    told->drained = slot.behaviour == shm::Behaviour::kDrain;
    told->held = slot.behaviour == shm::Behaviour::kHold;
    for (const core::Resource& resource : core_.resources(slot.pool, row)) {
        told->resources.push_back(resource.name);
        told->amounts.push_back(resource.amount);
    }
    if (slot.type != shm::kNoRow) {
        const shm::TypeRow& type = core::Look::type(core_, slot.type);
        told->type.assign(type.name, type.name_size);
    }
    slot_holder(job, slot, told.get());
    if (slot.session != shm::kNoRow && sees(job, slot.session)) {
        told->full = true;
        told->worker = client_of(slot.session);
        told->worker_pid = core_.session(slot.session).pid;
    }
    if (job.is_admin) told->full = true;
    if (!told->full) return told;
    told->id = core::row_id(slot.head.generation, row);
    told->name.assign(slot.name, slot.name_size);
    told->round = slot.round;
    told->protected_ = (slot.flags & shm::SlotFlag::kProtected) != 0;
    told->unqualified = (slot.flags & shm::SlotFlag::kUnqualified) != 0;
    told->draining = (slot.flags & shm::SlotFlag::kDraining) != 0;
    if (slot.attributes == shm::kNoRow || slot.attributes_size > kAttributesTold) return told;
    std::string text(slot.attributes_size, '\0');
    core_.copy_chain(
        slot.attributes, slot.attributes_size, reinterpret_cast<std::byte*>(text.data()));
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\0', at), text.size());
        told->attributes.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return told;
}

std::unique_ptr<admin::ClaimT> Desk::claim_row(const AdminJob& job, uint32_t row) const {
    const shm::ClaimRow& claim = core_.claim(row);
    if (claim.session == shm::kNoRow) return ask_row(job, row);
    auto told = std::make_unique<admin::ClaimT>();
    told->account = payer_of(claim);
    told->age_ns = age(claim.enqueued_ns);
    told->pool = name_of(claim.pool);
    if (!sees(job, claim.session)) return told;
    const shm::SessionRow& session = core_.session(claim.session);
    told->full = true;
    told->number = claim.arrival;
    told->id = core::row_id(claim.head.generation, row);
    told->state = word(claim.state);
    told->units = claim.units;
    told->uid = session.uid;
    told->pid = session.pid;
    told->client = client_of(claim.session);
    told->left_ns = left(claim.deadline_ns);
    told->position = core_.explain(row).position;
    told->attempts = claim.attempts;
    told->has_key =
        std::any_of(std::begin(claim.key), std::end(claim.key), [](uint8_t b) { return b != 0; });
    told->meta = core::Look::meta_of_claim(core_, row);
    member_of(claim.task, told.get());
    return told;
}

bool Desk::is_outlived(uint32_t session) const {
    return core_.session(session).state == shm::SessionState::kOutlived;
}

std::unique_ptr<admin::LeaseT> Desk::lease_row(const AdminJob& job, uint32_t row) const {
    const shm::LeaseRow& lease = core_.lease(row);
    auto told = std::make_unique<admin::LeaseT>();
    told->account = payer_of(lease);
    told->age_ns = age(lease.granted_ns);
    told->pool = name_of(lease.pool);
    if (!sees(job, lease.session)) return told;
    const shm::SessionRow& session = core_.session(lease.session);
    told->full = true;
    told->number = lease.arrival;
    told->id = core::row_id(lease.head.generation, row);
    const bool taken_again = (lease.flags & shm::LeaseFlag::kTakesSeen) != 0;
    told->fence = lease.fence + (taken_again ? lease.takes : 0);
    const bool lives = lease.state == shm::LeaseState::kKilling &&
                       (lease.flags & shm::LeaseFlag::kKillFailed) != 0;
    told->state = lives              ? "unkillable"
                  : is_parked(lease) ? "parked"
                  : lease.state == shm::LeaseState::kLive && is_outlived(lease.session)
                      ? "outlived"
                      : word(lease.state);
    told->killed = lease.state == shm::LeaseState::kKilling;
    told->units = lease.units;
    for (uint32_t slot = lease.first_slot; slot != shm::kNoRow; slot = core_.slot(slot).holder_next)
        told->slots.push_back(core_.slot(slot).number);
    told->uid = session.uid;
    told->pid = session.pid;
    told->client = client_of(lease.session);
    told->interval_ns = lease.interval_ns;
    const bool ends_with_grace =
        lease.state == shm::LeaseState::kGrace || lease.state == shm::LeaseState::kRevoking;
    told->left_ns = left(ends_with_grace ? lease.grace_until_ns : lease.expires_ns);
    told->kept_ns = age(lease.kept_ns);
    told->meta = core::Look::meta_of_lease(core_, row);
    member_of(core::Look::task_of_lease(core_, row), told.get());
    told->expired_ns = age(lease.expires_ns);
    if (lease.first_slot == shm::kNoRow) return told;  // its workers have gone
    if (core_.slot(lease.first_slot).part_of == shm::kNoRow) return told;
    for (const core::Resource& resource : core_.resources(lease.pool, lease.first_slot)) {
        told->resources.push_back(resource.name);
        told->amounts.push_back(resource.amount);
    }
    return told;
}

std::unique_ptr<admin::ClientT> Desk::client_row(const AdminJob& job, uint32_t row) const {
    const shm::SessionRow& session = core_.session(row);
    auto told = std::make_unique<admin::ClientT>();
    told->account = account_of(row);
    told->age_ns = age(session.opened_ns);
    if (!sees(job, row)) return told;
    told->full = true;
    told->id = client_of(row);
    told->uid = session.uid;
    told->gid = session.gid;
    told->pid = session.pid;
    told->state = session.state == shm::SessionState::kDying ? "dying"
                  : is_outlived(row)                         ? "outlived"
                                                             : "open";
    told->claims = session.claims;
    told->leases = session.leases;
    told->slots = session.slots;
    return told;
}

std::unique_ptr<admin::ExplanationT> Desk::explanation(const AdminJob& job, uint32_t row) const {
    const shm::ClaimRow& claim = core_.claim(row);
    const core::Explanation why = core_.explain(row);
    const uint32_t its_pool = why.pool != shm::kNoRow ? why.pool : claim.pool;
    const shm::PoolRow& pool = core_.pool(its_pool);
    auto told = std::make_unique<admin::ExplanationT>();
    told->pool = name_of(its_pool);
    const bool is_ask = claim.session == shm::kNoRow;  // an application's, for its gang
    told->account = is_ask ? account_of_ask(claim) : payer(claim.account, claim.session);
    explain_gang(job, why, told.get());
    told->label = why.label;
    told->drained = pool.drained;
    if (why.obstacle == core::WaitReason::kLacks && why.resource != shm::kNoRow) {
        told->resource = core_.resources(claim.pool)[why.resource].name;
        told->wanted = why.wanted;
        told->most_free = why.most_free;
    }
    told->ordered = why.ordered;
    told->limit = why.limit;
    told->pause_ns = why.pause_ns;
    const bool pauses = why.obstacle == core::WaitReason::kPausing;
    if (pauses) told->pause = static_cast<uint8_t>(why.pause);
    if (pauses || why.obstacle == core::WaitReason::kNoProvisioner) told->type = why.type;
    const bool held = why.holder != shm::kNoRow;
    uint64_t number = 0;
    uint64_t holder_age = 0;
    uint32_t uid = shm::kNoRow;
    uint32_t pid = 0;
    if (held) {
        const shm::LeaseRow& lease = core_.lease(why.holder);
        told->holder_account = payer(lease.account, lease.session);
        told->holder_killed = lease.state == shm::LeaseState::kKilling;
        told->holder_lives =
            told->holder_killed && (lease.flags & shm::LeaseFlag::kKillFailed) != 0;
        holder_age = age(lease.granted_ns);
        uid = core_.session(lease.session).uid;
        if (!sees(job, lease.session)) {
            if (!quotas_.own_account(uid)) uid = shm::kHiddenUid;
        } else {
            number = lease.arrival;
            pid = core_.session(lease.session).pid;
        }
        told->holder_outlived = is_outlived(lease.session);
        const Session* session = sessions_.at(lease.session);
        if (told->holder_outlived && session != nullptr && sees(job, lease.session)) {
            told->holder_tree = session->tree.folder;
        }
    }
    told->facts = std::make_unique<admin::WaitFacts>(static_cast<uint8_t>(why.reason),
                                                     static_cast<uint8_t>(why.obstacle),
                                                     why.position,
                                                     why.waiting,
                                                     why.units,
                                                     why.confirmed,
                                                     pool.idle,
                                                     pool.slots - pool.parts,
                                                     pool.leased,
                                                     why.waited_ns,
                                                     why.left_ns,
                                                     number,
                                                     holder_age,
                                                     uid,
                                                     pid,
                                                     claim.arrival,
                                                     why.at_class,
                                                     static_cast<uint8_t>(why.class_reason),
                                                     static_cast<uint8_t>(why.preempt),
                                                     why.better,
                                                     why.fitting,
                                                     why.fanout_max,
                                                     why.fanout_held,
                                                     why.label_limit,
                                                     why.label_held);
    return told;
}

}  // namespace dibs
