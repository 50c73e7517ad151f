// tests/naive/reports.cpp -- "Workers that are only reported" of docs/scheduling.md, S2.23–32.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>
#include <utility>

#include "tests/naive/labels.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

using core::Decision;
using core::DecisionKind;
using shm::Outcome;
using shm::Reason;

// "In a worker pool ordered by account."
Reason NaiveCore::report_refusal(uint32_t pool) const {
    if (!pool_lives(pool)) return Reason::kUnknownPool;
    const bool of_workers = m_.pools[pool].config.kind == shm::PoolKind::kWorker;
    return of_workers && by_account(pool) ? Reason::kOk : Reason::kState;
}

// "Of an attached worker: state"; labels are "checked last".
Reason NaiveCore::idle_refusal(uint32_t pool,
                               std::string_view name,
                               std::span<const std::string_view> labels) {
    const Slot* slot = slot_named(pool, name);
    if (slot == nullptr && slot_rows_used() >= limits_.slots) return Reason::kTablesFull;
    if (slot != nullptr && slot->session != shm::kNoRow) return Reason::kState;
    return labels_are_sound(labels) ? Reason::kOk : Reason::kPayload;
}

// "L(w) = the later of the worker's confirmed time and its running claim's."
TimeNs NaiveCore::latest_confirmed(const Slot& slot) const {
    if (slot.is != SlotIs::kLeased && !slot.holder_is_killed) return slot.confirmed_ns;
    return std::max(slot.confirmed_ns, m_.leases.at(slot.claim).was.confirmed_ns);
}

void NaiveCore::apply(const core::Report& report) {
    Reason refusal = report_refusal(report.pool);
    if (refusal == Reason::kOk && report.kind == core::Report::Kind::kIdle) {
        refusal = idle_refusal(report.pool, report.worker, report.labels);
    }
    if (refusal != Reason::kOk) {
        tell_result(shm::kNoRow, report.user_data, refusal);
        return;
    }
    switch (report.kind) {
        case core::Report::Kind::kIdle:
            worker_idle(
                report.pool, report.worker, label_set(report.labels), event_time(report.event_ns));
            break;
        case core::Report::Kind::kRunning:
            claim_running(report);
            break;
        case core::Report::Kind::kAbsent:
            claim_absent(report);
            break;
    }
}

// S2.23
void NaiveCore::worker_idle(uint32_t pool, std::string_view name, const Labels& labels, TimeNs at) {
    Slot* known = slot_named(pool, name);
    if (known == nullptr) {
        Slot slot;
        slot.id = m_.slots_seen++;
        slot.pool = pool;
        slot.number = m_.pools[pool].number_next++;
        slot.name = name;
        slot.labels = labels;
        slot.is_unqualified = lacks_label(pool, labels);
        slot.confirmed_ns = at;
        slot.modified_ns = m_.now;
        m_.slots[slot.id] = slot;
        become_idle(slot.id);
        return;
    }
    Slot& slot = *known;
    if (at < latest_confirmed(slot)) return;
    slot.confirmed_ns = at;
    if (slot.is == SlotIs::kReserved) return;
    const bool same_labels = slot.labels == labels;
    slot.labels = labels;
    slot.is_unqualified = lacks_label(pool, labels);
    if (slot.is == SlotIs::kIdle && same_labels && !slot.is_unqualified) return;
    slot.modified_ns = m_.now;
    const bool is_under_lease = slot.is == SlotIs::kLeased || slot.holder_is_killed;
    if (is_under_lease) {
        const auto next = m_.claims.find(slot.promised_to);
        if (next != m_.claims.end()) next->second.abort = 0;  // there is nothing to abort any more
    }
    if (is_under_lease && is_strict(m_.leases.at(slot.claim))) {
        end_strictly(m_.leases.at(slot.claim));
        slot.is_reported_idle = true;
        slot.is_draining = false;
    } else if (is_under_lease) {
        done(slot, true, {});
    } else {
        become_idle(slot.id);
    }
}

// "A running claim that is deleted loses its lease: holder told", and its slots go with it: what
// was promised of them is void.
void NaiveCore::lose_lease(uint64_t id, Reason reason, bool again) {
    const Lease lease = m_.leases.at(id);
    for (const uint64_t slot : lease.slots)
        void_promise(slot);
    if (is_strict(lease)) {
        end_strictly(m_.leases.at(id));
        for (const uint64_t slot : lease.slots)
            delete_worker(slot);
        return;
    }
    Decision& end = tell_of_lease(DecisionKind::kLeaseEnd, lease);
    end.reason = reason;
    end.value = again ? 1 : 0;
    remove_lease(id);
    if (again) queue_again(lease);
    for (const uint64_t slot : lease.slots)
        free_slot(slot, true);
    for (const uint64_t slot : lease.slots)
        delete_worker(slot);
}

// What has outlived its holder is as in a pool of strict expiry.
bool NaiveCore::is_strict(const Lease& lease) const {
    return lease.is_outlived || m_.pools.at(lease.pool).config.expiry == shm::ExpiryMode::kStrict;
}

// "What would end a lease, or delete a worker under one, in a pool of strict expiry kills its
// holder first. From there on the lease pays no more and counts nowhere."
void NaiveCore::end_strictly(Lease& lease) {
    lease.is_revoking = true;
    lease.account_class = kFreeClass;
    if (!lease.is_being_killed) kill_holder(lease);
}

// "Deleting a worker removes its slot; of an attached slot it makes it unknown and its worker is
// told revoke." Nothing happens to one that is reserved, or another's by now.
void NaiveCore::delete_worker(uint64_t id) {
    const auto found = m_.slots.find(id);
    if (found == m_.slots.end()) return;
    Slot& slot = found->second;
    const bool counted = m_.pools.at(slot.pool).config.kind == shm::PoolKind::kCounted;
    if (slot.holder_is_killed) {
        const bool is_reported = !counted && slot.session == shm::kNoRow;
        slot.is_draining = slot.is_draining || is_reported;
        slot.is_reported_idle = false;
        return;
    }
    const bool is_held =
        slot.is == SlotIs::kLeased || slot.is == SlotIs::kReserved || is_held_over(slot);
    if (counted || is_held || slot.is == SlotIs::kUnknown) return;
    if (slot.session == shm::kNoRow) {
        leave(id);
        return;
    }
    // Where it was just freed it has been told; where it only waits for admission it has said
    // ready.
    if (slot.is != SlotIs::kRecovering || slot.only_waits_for_admission) revoke(slot);
    become_unknown(id);
}

void NaiveCore::delete_worker_and_claim(uint64_t id) {
    const Slot& slot = m_.slots.at(id);
    if (slot.is == SlotIs::kLeased || slot.holder_is_killed) {
        lose_lease(slot.claim, Reason::kWorkerLost, false);
    } else {
        delete_worker(id);
    }
}

// S2.24, and first S2.31: "w's unconfirmed assignment, if made at or before t, is confirmed, its
// cancellation forgotten, whatever r is".
void NaiveCore::claim_running(const core::Report& report) {
    const TimeNs at = event_time(report.event_ns);
    Slot* worker = slot_named(report.pool, report.worker);
    if (worker != nullptr && worker->is_unconfirmed && worker->assigned_ns <= at) {
        worker->is_unconfirmed = false;
        worker->abort = 0;
    }
    const auto delete_unless_older = [&] {
        Slot* named = slot_named(report.pool, report.worker);
        if (named != nullptr && at >= latest_confirmed(*named)) delete_worker_and_claim(named->id);
    };
    const auto lease = m_.leases.find(report.claim);
    const auto waits = m_.claims.find(report.claim);
    const bool is_known = (lease != m_.leases.end() && by_account(lease->second.pool)) ||
                          (waits != m_.claims.end() && by_account(waits->second.pool));
    if (worker == nullptr && !is_known) {
        tell_result(shm::kNoRow, report.user_data, Reason::kNotFound);
        return;
    }
    if (lease != m_.leases.end() && by_account(lease->second.pool)) {
        if (at < lease->second.was.confirmed_ns) return;
        const std::vector<uint64_t> slots = lease->second.slots;
        const bool is_there =
            worker != nullptr && std::count(slots.begin(), slots.end(), worker->id);
        if (is_there) {
            lease->second.was.confirmed_ns = at;
            worker->confirmed_ns = std::max(worker->confirmed_ns, at);
            return;
        }
        lose_lease(report.claim, Reason::kWorkerLost, false);
        delete_unless_older();
    } else if (waits != m_.claims.end() && by_account(waits->second.pool)) {
        if (at < waits->second.confirmed_ns) return;
        // "Same worker → confirm request and worker": chosen for r, so that nothing contradicts.
        const std::vector<uint64_t>& chosen = waits->second.slots;
        const bool is_chosen = worker != nullptr && waits->second.is_confirming &&
                               std::count(chosen.begin(), chosen.end(), worker->id) != 0;
        if (is_chosen) {
            waits->second.confirmed_ns = at;
            worker->confirmed_ns = std::max(worker->confirmed_ns, at);
            return;
        }
        end_claim_and_free(report.claim, Outcome::kCancelled, Reason::kWorkerLost);
        delete_unless_older();
    } else {
        delete_unless_older();
    }
}

// S2.25, S2.31: "Cancellations of r made before t are forgotten, errors of r too."
void NaiveCore::claim_absent(const core::Report& report) {
    const TimeNs at = event_time(report.event_ns);
    for (auto& [id, slot] : m_.slots) {
        if (slot.abort == report.claim && slot.assigned_ns < at) slot.abort = 0;
    }
    m_.errors.erase(report.claim);
    const auto lease = m_.leases.find(report.claim);
    const auto waits = m_.claims.find(report.claim);
    if (lease != m_.leases.end() && by_account(lease->second.pool)) {
        const std::vector<uint64_t> slots = lease->second.slots;
        if (at < latest_confirmed(m_.slots.at(slots.front()))) return;
        lose_lease(report.claim, Reason::kHolderGone, false);
    } else if (waits != m_.claims.end() && by_account(waits->second.pool)) {
        if (at < waits->second.confirmed_ns) return;
        end_claim_and_free(report.claim, Outcome::kCancelled, Reason::kHolderGone);
    }
}

// S2.26
void NaiveCore::apply(const core::UpdateClaim& update) {
    const TimeNs at = event_time(update.event_ns);
    const auto lease = m_.leases.find(update.claim);
    const auto waits = m_.claims.find(update.claim);
    const bool has_priority =
        waits != m_.claims.end() &&
        m_.pools.at(waits->second.pool).config.order == shm::PoolOrder::kPriority;
    if (has_priority) {  // S1.9: until its priority changes
        if (update.priority_given) waits->second.priority = update.priority;
        if (is_held(waits->second)) waits->second.is_locked = false;
        return;
    }
    const bool runs = lease != m_.leases.end() && by_account(lease->second.pool);
    const bool waits_there = waits != m_.claims.end() && by_account(waits->second.pool);
    if (!runs && !waits_there) {
        tell_result(shm::kNoRow, update.user_data, Reason::kNotFound);
        return;
    }
    if (!runs) {
        waits->second.confirmed_ns = std::max(waits->second.confirmed_ns, at);
        return;
    }
    if (at < latest_confirmed(m_.slots.at(lease->second.slots.front()))) return;
    if (is_strict(lease->second)) {
        lose_lease(update.claim, Reason::kWorkerLost, false);
        return;
    }
    if (!labels_are_sound(update.labels) || !labels_are_sound(update.provisionable)) {
        tell_result(shm::kNoRow, update.user_data, Reason::kPayload);
        return;
    }
    if (update.account_given) {
        know_account(std::string{update.account});
        lease->second.was.account = update.account;
    }
    if (update.labels_given) lease->second.was.base = label_set(update.labels);
    if (update.provisionable_given) {
        lease->second.was.provisionable = label_set(update.provisionable);
    }
    lease->second.was.confirmed_ns = at;
    lose_lease(update.claim, Reason::kWorkerLost, true);
}

// S2.27
void NaiveCore::apply(const core::Unassign& command) {
    Reason refusal = report_refusal(command.pool);
    const auto lease = m_.leases.find(command.claim);
    const Slot* worker = nullptr;
    if (refusal == Reason::kOk) {
        worker = slot_named(command.pool, command.worker);
        const bool is_there =
            worker != nullptr && lease != m_.leases.end() &&
            std::count(lease->second.slots.begin(), lease->second.slots.end(), worker->id) != 0;
        if (!is_there) refusal = Reason::kNotFound;
    }
    if (refusal != Reason::kOk) {
        tell_result(shm::kNoRow, command.user_data, refusal);
        return;
    }
    unassign(command.claim, event_time(command.event_ns), command.error);
}

// S2.27: "r is queued again unless its enqueue time is more than 46 h ago". S2.21: a victim's
// request is deleted, so that there is none to queue; but for one that is to be requeued.
void NaiveCore::unassign(uint64_t number, TimeNs at, std::string_view error) {
    const Lease& lease = m_.leases.at(number);
    const TimeNs age = at - std::min(at, lease.was.enqueued_ns);
    bool again = age <= m_.pools.at(lease.pool).config.request_age_max_ns;
    if (lease.is_revoking && !lease.was.requeue) again = false;
    if (!error.empty()) m_.errors[number] = error;
    lose_lease(number, Reason::kWorkerLost, again);
}

// The instant after which a worker that is only reported and holds nothing has been silent for too
// long; kNever of any other slot.
TimeNs NaiveCore::silent_too_long(const Slot& slot) const {
    const core::PoolConfig& pool = m_.pools.at(slot.pool).config;
    const bool is_reported = pool.kind == shm::PoolKind::kWorker && slot.session == shm::kNoRow &&
                             slot.order == shm::OrderState::kNone && by_account(slot.pool);
    const bool is_held =
        slot.is == SlotIs::kLeased || slot.is == SlotIs::kReserved || slot.holder_is_killed;
    if (!is_reported || is_held) return shm::kNever;
    constexpr TimeNs kUsual = 300'000'000'000;
    return later(slot.confirmed_ns, pool.account_expiry_ns == 0 ? kUsual : pool.account_expiry_ns);
}

// S2.6: "reported workers that hold nothing and whose confirmed time is more than account_expiry_ns
// ago (strictly) are deleted, in order of (confirmed time + expiry, pool row, slot number)."
void NaiveCore::forget_idle_workers() {
    std::map<std::tuple<TimeNs, uint32_t, uint32_t>, uint64_t> over;
    for (const auto& [id, slot] : m_.slots) {
        const TimeNs ends_ns = silent_too_long(slot);
        if (m_.now > ends_ns) over[{ends_ns, slot.pool, slot.number}] = id;
    }
    for (const auto& [order, id] : over)
        delete_worker(id);
}

// "Workers that ask, in order, at t. First every unconfirmed assignment in the pool made at or
// before t − queue_timeout_ns is unassigned, oldest first (then slot number). Then each caller
// without an unconfirmed assignment is reported idle at t." S2.30 Who may not be is refused alone.
void NaiveCore::apply(const core::Pull& pull) {
    Reason refusal = report_refusal(pull.pool);
    for (const core::Pull::Worker& worker : pull.workers) {
        const bool is_sound = labels_are_sound(worker.labels);
        if (refusal == Reason::kOk && !is_sound) refusal = Reason::kPayload;
    }
    if (refusal != Reason::kOk) {
        tell_result(shm::kNoRow, pull.user_data, refusal);
        return;
    }
    const TimeNs at = event_time(pull.event_ns);
    std::map<std::tuple<TimeNs, uint32_t>, uint64_t> old;
    for (const auto& [id, slot] : m_.slots) {
        if (slot.pool != pull.pool || !slot.is_unconfirmed || slot.is != SlotIs::kLeased) continue;
        const TimeNs over_ns =
            later(slot.assigned_ns, m_.pools.at(pull.pool).config.queue_timeout_ns);
        if (over_ns <= at) old[{slot.assigned_ns, slot.number}] = id;
    }
    for (const auto& [order, id] : old) {
        if (!m_.slots.contains(id) || m_.slots.at(id).is != SlotIs::kLeased) continue;
        unassign(m_.slots.at(id).claim, at, {});
    }
    for (const core::Pull::Worker& worker : pull.workers) {
        const Slot* slot = slot_named(pull.pool, worker.name);
        if (slot == nullptr || slot->is != SlotIs::kLeased || !slot->is_unconfirmed) {
            const Reason refused = idle_refusal(pull.pool, worker.name, worker.labels);
            if (refused != Reason::kOk) {
                tell_result(shm::kNoRow, pull.user_data, refused);
                continue;
            }
            worker_idle(pull.pool, worker.name, label_set(worker.labels), at);
        }
        m_.pulled.push_back(
            {slot_named(pull.pool, worker.name)->id, pull.user_data, label_set(worker.labels)});
    }
}

// "After the turn's last pass each caller is told in order", if its worker is there; "provision, by
// the labels of this very call".
void NaiveCore::tell_pulled() {
    for (const auto& [id, user_data, labels] : std::exchange(m_.pulled, {})) {
        const auto found = m_.slots.find(id);
        if (found == m_.slots.end()) continue;
        const Slot& slot = found->second;
        Decision& pulled = tell(DecisionKind::kPulled, shm::kNoRow);
        pulled.pool = slot.pool;
        pulled.id = id;
        pulled.user_data = user_data;
        pulled.slot_number = slot.number;
        if (slot.is != SlotIs::kLeased || !slot.is_unconfirmed) continue;
        pulled.claim = slot.claim;
        pulled.holder_claim = slot.abort;
        pulled.provision = !has_all(labels, m_.leases.at(slot.claim).was.provisionable);
    }
}

}  // namespace dibs::naive
