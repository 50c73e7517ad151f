// broker/admin/desk.cpp -- checks rights, bounds work, and turns requests into commands.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admin/desk.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include "broker/core/look.hpp"
#include "broker/text/log.hpp"
#include "broker/turn/clock.hpp"
#include "broker/turn/lease_words.hpp"
#include "broker/turn/pool_sets.hpp"

namespace dibs {

using admin::Ask;
using admin::Code;
using core::row_of;

namespace {

Code code_of(shm::Reason reason) {
    switch (reason) {
        case shm::Reason::kOk:
            return Code::ok;
        case shm::Reason::kAlreadyEnded:
            return Code::already_ended;
        case shm::Reason::kState:  // it is being ended, by a kill
            return Code::refused;
        default:
            return Code::not_found;
    }
}

template <class Row>
bool names_row(const Row& row, uint64_t id) {
    return row.head.generation == core::generation_of(id) && static_cast<int>(row.state) != 0;
}

}  // namespace

void Desk::serve(AdminJob& job) {
    switch (job.request.ask) {
        case Ask::status:
            return status(job);
        case Ask::pools:
            return pools(job);
        case Ask::slots:
            return slots(job);
        case Ask::claims:
            return claims(job);
        case Ask::leases:
            return leases(job);
        case Ask::workers:
        case Ask::clients:
            return clients(job);
        case Ask::explain:
            return explain(job);
        case Ask::release:
        case Ask::renew:
            return steer_lease(job);
        case Ask::cancel:
            return cancel(job);
        case Ask::drain:
            return drain(job, true);
        case Ask::undrain:
            return drain(job, false);
        case Ask::check:
            return check(job);
        case Ask::create:
            return create(job);
        case Ask::accounts:
            return accounts(job);
        case Ask::set_account:
            return set_account(job);
        case Ask::reset_account:
            return reset_account(job);
        case Ask::delete_account:
            return delete_account(job);
        case Ask::report:
            return job.request.report < admin::ReportKind::entry ? report(job)
                                                                 : report_dispatched(job);
        case Ask::entries:
            return entries(job);
        case Ask::orders:
            return orders(job);
        case Ask::pull:
            return pull(job);
        case Ask::stop_unused:
            return stop_unused(job);
        case Ask::sets:
            job.answer.sets = sets_.rows();
            return;
        case Ask::types:
            return types(job);
        case Ask::applications:
            return applications(job);
        case Ask::tasks:
            return tasks(job);
        case Ask::application:
            return application(job);
        case Ask::offers:
            return offers(job);
        case Ask::inspect:
            return inspect(job);
        case Ask::none:
        case Ask::dump:  // these do not come as far as this
        case Ask::load:
        case Ask::events:
        case Ask::record:
        case Ask::stop:
        case Ask::reload:
        case Ask::upgrade:
            break;
    }
    job.answer.code = Code::unsupported;
}

bool Desk::pool_of(AdminJob& job, uint32_t* pool) const {
    *pool = shm::kNoRow;
    if (job.request.pool.empty()) return true;
    *pool = core_.find_pool(job.request.pool);
    if (*pool != shm::kNoRow) return true;
    job.answer.code = Code::unknown_pool;
    for (uint32_t row = 0; row < core_.pools() && job.answer.names.size() < kRowsTold; ++row) {
        if (core_.pool_lives(row)) job.answer.names.push_back(name_of(row));
    }
    return false;
}

void Desk::status(AdminJob& job) const {
    const shm::CountersRow& counters = core_.counters();
    const auto rows = [&](shm::Table table) {
        return core_.head().table[static_cast<size_t>(table)].rows;
    };
    auto told = std::make_unique<admin::StatusT>();
    told->layout = shm::kLayoutVersion;
    told->epoch = core_.head().epoch;
    told->turns = counters.turns;
    told->next_number = counters.arrival_next;
    told->draining = core_.draining();
    told->stopping = stopping_;
    if (told->stopping) {
        told->stops_in_ns =
            end_ns_ == shm::kNever ? shm::kNever : end_ns_ - std::min(end_ns_, Clock::monotonic());
    }
    told->sessions_max = core_.sessions_max();
    told->sessions = told->sessions_max - counters.sessions_free;
    for (uint32_t row = 0; row < core_.pools(); ++row)
        told->pools += core_.pool_lives(row) ? 1 : 0;
    told->pools_max = rows(shm::Table::kPools);
    told->slots_max = core_.slots_max();
    told->slots = told->slots_max - counters.slots_free;
    told->claims_max = core_.claims_max();
    told->claims = told->claims_max - counters.claims_free;
    told->leases_max = core_.leases_max();
    told->leases = told->leases_max - counters.leases_free;
    told->arena_blocks_max = rows(shm::Table::kArena);
    told->arena_blocks = told->arena_blocks_max - counters.arena_free - counters.arena_freed;
    told->is_admin = job.is_admin;
    job.answer.status = std::move(told);
}

void Desk::pools(AdminJob& job) const {
    uint32_t only = shm::kNoRow;
    if (!pool_of(job, &only)) return;
    if (only != shm::kNoRow) {
        job.answer.pools.push_back(pool_row(only));
        return;
    }
    page(job, core_.pools(), [&](uint32_t row) {
        if (!core_.pool_lives(row)) return 0U;
        job.answer.pools.push_back(pool_row(row));
        return 1U;
    });
}

void Desk::slots(AdminJob& job) const {
    uint32_t pool = shm::kNoRow;
    if (!pool_of(job, &pool)) return;
    page(job, core_.slots_max(), [&](uint32_t row) {
        const shm::SlotRow& slot = core_.slot(row);
        if (slot.state == shm::SlotState::kFree) return 0U;
        if (pool != shm::kNoRow && slot.pool != pool) return 0U;
        if (job.request.number != 0 && uint64_t{slot.number} + 1 != job.request.number) {
            return 0U;
        }
        job.answer.slots.push_back(slot_row(job, row));
        return 1U;
    });
}

void Desk::claims(AdminJob& job) const {
    uint32_t pool = shm::kNoRow;
    if (!pool_of(job, &pool)) return;
    page(job, core_.claims_max(), [&](uint32_t row) {
        const shm::ClaimRow& claim = core_.claim(row);
        if (claim.state == shm::ClaimState::kFree) return 0U;
        if (claim.state == shm::ClaimState::kRunning) return 0U;  // its lease stands for it
        if (pool != shm::kNoRow && claim.pool != pool) return 0U;
        const bool named = job.request.number != 0;
        if (named && (claim.arrival != job.request.number || !sees_claim(job, row))) {
            return 0U;
        }
        job.answer.claims.push_back(claim_row(job, row));
        return 1U;
    });
}

void Desk::leases(AdminJob& job) const {
    uint32_t pool = shm::kNoRow;
    if (!pool_of(job, &pool)) return;
    page(job, core_.leases_max(), [&](uint32_t row) {
        const shm::LeaseRow& lease = core_.lease(row);
        if (lease.state == shm::LeaseState::kFree) return 0U;
        if (pool != shm::kNoRow && lease.pool != pool) return 0U;
        const bool named = job.request.number != 0;
        const bool shown = job.request.ask == Ask::inspect || sees(job, lease.session);
        if (named && (lease.arrival != job.request.number || !shown)) return 0U;
        job.answer.leases.push_back(lease_row(job, row));
        return 1U + lease.units / 8U;
    });
}

void Desk::clients(AdminJob& job) const {
    const bool workers = job.request.ask == Ask::workers;
    const uint32_t sessions = core_.sessions_max();
    // Behind those that are attached, the ones that are known by reports.
    page(job, workers ? sessions + core_.slots_max() : sessions, [&](uint32_t row) {
        if (row >= sessions) return reported_worker(job, row - sessions);
        const shm::SessionRow& session = core_.session(row);
        if (session.state == shm::SessionState::kFree) return 0U;
        if (workers && session.slots == 0) return 0U;
        job.answer.clients.push_back(client_row(job, row));
        return 1U;
    });
}

// Behind the types, the slots: those of one pool have no list of their own.
void Desk::types(AdminJob& job) const {
    uint32_t pool = shm::kNoRow;
    if (!pool_of(job, &pool)) return;
    const uint32_t types = core_.head().table[static_cast<size_t>(shm::Table::kTypes)].rows;
    page(job, types + core_.slots_max(), [&](uint32_t row) {
        const auto is_other = [&](uint32_t of) { return pool != shm::kNoRow && of != pool; };
        if (row >= types) {
            const uint32_t slot = row - types;
            return is_other(core_.slot(slot).pool) ? 0U : count_by_type(job, slot);
        }
        const shm::TypeRow& type = core::Look::type(core_, row);
        if (type.state == 0 || is_other(type.pool)) return 0U;
        job.answer.types.push_back(type_row(job, row));
        return 1U;
    });
}

void Desk::entries(AdminJob& job) const {
    uint32_t pool = shm::kNoRow;
    if (!job.is_admin) job.answer.code = Code::denied;
    if (!job.is_admin || !pool_of(job, &pool)) return;
    if (pool != shm::kNoRow && !dispatches(job, &pool)) return;
    page(job, entries_max(), [&](uint32_t row) {
        const shm::EntryRow& entry = core::Look::entry(core_, row);
        if (entry.state == shm::EntryState::kFree) return 0U;
        if (pool != shm::kNoRow && entry.pool != pool) return 0U;
        job.answer.entries.push_back(entry_row(row));
        return 1U;
    });
}

void Desk::explain(AdminJob& job) const {
    const admin::RequestT& request = job.request;
    uint32_t row = row_of(request.id);
    if (request.by_tag) {
        const uint32_t session = row_of(request.session);
        if (session >= core_.sessions_max() ||
            !names_row(core_.session(session), request.session) || request.tag >= shm::kTagsMax) {
            job.answer.code = Code::not_found;
            return;
        }
        row = core_.claim_of_tag(session, static_cast<uint16_t>(request.tag));
    } else if (row >= core_.claims_max() || !names_row(core_.claim(row), request.id) ||
               core_.claim(row).state == shm::ClaimState::kRunning) {
        row = shm::kNoRow;
    }
    // Of another user's it is not told that it exists, here and below.
    if (row == shm::kNoRow || !sees_claim(job, row)) {
        job.answer.code = Code::not_found;
    } else {
        job.answer.explanation = explanation(job, row);
    }
}

void Desk::steer_lease(AdminJob& job) {
    const admin::RequestT& request = job.request;
    const uint32_t row = row_of(request.id);
    if (row < core_.leases_max() && names_row(core_.lease(row), request.id) &&
        !sees(job, core_.lease(row).session)) {
        job.answer.code = Code::not_found;
        return;
    }
    core::Steer steer;
    steer.kind =
        request.ask == Ask::renew ? core::Steer::Kind::kRenew : core::Steer::Kind::kRelease;
    steer.lease = request.id;
    steer.interval_ns = request.interval_ns;
    const std::string what = request.ask == Ask::release ? released(row) : "";
    const bool there = row < core_.leases_max() && names_row(core_.lease(row), request.id);
    if (there && request.ask == Ask::release) words_.want(core::Look::first_lease(core_, row));
    shm::Reason reason = core_.apply(steer, &job.answer.granted_ns);
    // It was parked, and ended as its holder was kept from taking it again.
    if (there && reason == shm::Reason::kAlreadyEnded) reason = shm::Reason::kOk;
    job.answer.code = code_of(reason);
    if (reason == shm::Reason::kOk && !what.empty()) {
        log::client_info(job.uid, "released", "user " + std::to_string(job.uid) + what);
    }
    const bool killed = reason == shm::Reason::kOk && request.ask == Ask::release &&
                        core_.lease(row).state == shm::LeaseState::kKilling;
    if (killed || reason == shm::Reason::kState) job.answer.names.assign(1, being_killed(row));
}

// Text about a lease that is released from outside, which follows the releasing user; empty: there
// is no such row.
std::string Desk::released(uint32_t row) const {
    if (row >= core_.leases_max() || core_.lease(row).state == shm::LeaseState::kFree) return "";
    const shm::LeaseRow& lease = core_.lease(row);
    const shm::SessionRow& session = core_.session(lease.session);
    return " released lease l" + std::to_string(lease.arrival) + " of pool " + name_of(lease.pool) +
           ", which process " + std::to_string(session.pid) + " of user " +
           std::to_string(session.uid) + " held";
}

// Why the lease cannot be ended or prolonged: its holder, or what that has left, is being killed,
// and that death ends it.
std::string Desk::being_killed(uint32_t row) const {
    const shm::LeaseRow& lease = core_.lease(row);
    const bool lives = (lease.flags & shm::LeaseFlag::kKillFailed) != 0;
    const shm::SessionRow& session = core_.session(lease.session);
    if (is_outlived(lease.session)) {
        return "its process has ended, and what that had started " +
               std::string(
                   lives ? "could not be killed: its user or an administrator must end it"
                         : "is being killed: its slots are free when the last of it has ended");
    }
    return "its time is over, and process " + std::to_string(session.pid) + " of user " +
           std::to_string(session.uid) +
           (lives ? " could not be killed: an administrator must end it"
                  : " is being killed: its slots are free when it is dead");
}

void Desk::cancel(AdminJob& job) {
    const uint32_t row = row_of(job.request.id);
    if (row >= core_.claims_max() || !names_row(core_.claim(row), job.request.id) ||
        !sees_claim(job, row)) {
        job.answer.code = Code::already_ended;
        return;
    }
    const shm::ClaimRow& claim = core_.claim(row);
    if (claim.session == shm::kNoRow) return refuse_ask(job, row);
    core::TimeNs unused = 0;
    core::Steer steer;
    steer.kind = core::Steer::Kind::kCancel;
    steer.session = claim.session;
    steer.tag = claim.tag;
    steer.number = claim.arrival;
    job.answer.code = code_of(core_.apply(steer, &unused));
}

void Desk::drain(AdminJob& job, bool on) {
    uint32_t pool = shm::kNoRow;
    if (!job.is_admin) {
        job.answer.code = Code::denied;
    } else if (pool_of(job, &pool)) {
        if (!on && pool == shm::kNoRow && stopping_) {
            job.answer.code = Code::refused;
            job.answer.names.emplace_back("it was asked to stop, which nothing takes back");
            return;
        }
        const bool leaves =
            pool != shm::kNoRow && (core_.pool(pool).flags & shm::PoolFlag::kLeaving) != 0;
        if (!on && leaves) {
            job.answer.code = Code::refused;
            job.answer.names.emplace_back(
                "the configuration does not name it any more, and it goes");
            return;
        }
        if (on && job.request.if_idle) return drain_if_idle(job, pool);
        core::Drain drain{pool, on};
        if (job.request.number != 0) {
            drain.number =
                static_cast<uint32_t>(std::min<uint64_t>(job.request.number - 1, shm::kNoRow - 1));
            if (core_.find_number(pool, drain.number) == shm::kNoRow) {
                job.answer.code = Code::not_found;
                return;
            }
        }
        core_.apply(drain);
    }
}

// Whether the broker may end in this turn: leases and waiting claims up to now are counted, and no
// client is read after it.
void Desk::stop_unused(AdminJob& job) const {
    if (!job.is_admin) {
        job.answer.code = Code::denied;
        return;
    }
    const uint32_t leases = core_.leases_max() - core_.counters().leases_free;
    uint32_t waiting = 0;
    for (uint32_t row = 0; row < core_.pools(); ++row)
        waiting += core_.pool(row).waiting + core_.pool(row).confirming;
    job.stops = leases == 0 && waiting == 0;
    if (job.stops) return;
    std::string why;
    if (leases != 0)
        why = std::to_string(leases) + (leases == 1 ? " lease is" : " leases are") + " held";
    if (leases != 0 && waiting != 0) why += " and ";
    if (waiting != 0)
        why += std::to_string(waiting) + (waiting == 1 ? " claim waits" : " claims wait");
    job.answer.code = Code::refused;
    job.answer.names.push_back(why);
}

// A counted pool beside those of the configuration, which goes when it is no longer used
// (transient_pools.hpp). Asked for again in the same size, it is there.
void Desk::create(AdminJob& job) {
    if (!job.is_admin) {
        job.answer.code = Code::denied;
        return;
    }
    core::PoolConfig config;
    config.name = job.request.pool;
    config.is_transient = true;
    config.quantum_ns = core::kQuantumNs;
    config.slots = static_cast<uint32_t>(
        std::min<uint64_t>(job.request.number, std::numeric_limits<uint32_t>::max()));
    const uint32_t row = core_.find_pool(config.name);
    std::string why;
    if (row != shm::kNoRow) {
        const shm::PoolRow& pool = core_.pool(row);
        if (pool.kind == shm::PoolKind::kCounted && pool.slots_wanted == config.slots) return;
        why = pool.kind == shm::PoolKind::kCounted
                  ? "it has " + std::to_string(pool.slots_wanted) + " slots already"
                  : "there is a pool of that name, with workers";
    } else if (sets_.has(config.name)) {
        why = "there is a pool set of that name";
    } else if (core_.set_pool(config, &why) != shm::kNoRow) {
        job.made_pool = true;
        return;
    }
    job.answer.code = Code::refused;
    job.answer.names.push_back(why);
}

// The rows and links of a slice of the tables; the cursor counts over all of them.
void Desk::check(AdminJob& job) const {
    if (!job.is_admin) {
        job.answer.code = Code::denied;
        return;
    }
    uint64_t cursor = job.request.cursor;
    job.answer.names = core_.check_slice(&cursor, kRowsSeen);
    job.answer.more = cursor != 0;
    job.answer.cursor = cursor;
}

}  // namespace dibs
