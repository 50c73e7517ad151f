// tests/sim/auditor_doubts.cpp -- what may have ended, so that nobody is sure to hold it.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/auditor.hpp"

namespace dibs::sim {

using shm::kNoRow;

void Auditor::doubt_lease(uint32_t row, bool strict_too) {
    const shm::LeaseRow& lease = core_->lease(row);
    if (lease.state == shm::LeaseState::kFree) return;
    if (lease.mode == shm::ExpiryMode::kStrict && !strict_too) return;
    ledger_.doubt(core::row_id(lease.head.generation, row));
}

// What a report may end, it may end only where it is not older than what is known.
uint64_t Auditor::time_of(uint64_t event_ns) const {
    return event_ns == shm::kNever ? core_->now() : event_ns;
}

// The lease that the claim runs under, or kNoRow.
uint32_t Auditor::lease_of(uint64_t number) const {
    const uint32_t row = core_->find_claim(number);
    const bool runs = row != kNoRow && core_->claim(row).state == shm::ClaimState::kRunning;
    return runs ? core_->claim(row).lease : kNoRow;
}

bool Auditor::is_on(uint32_t lease, uint32_t slot) const {
    return slot != kNoRow && core_->slot(slot).state == shm::SlotState::kLeased &&
           core_->slot(slot).holder == lease;
}

void Auditor::doubt_claim(uint64_t number) {
    if (const uint32_t lease = lease_of(number); lease != kNoRow) doubt_lease(lease, false);
}

void Auditor::doubt_slot(uint32_t row, bool strict_too) {
    const shm::SlotRow& slot = core_->slot(row);
    if (slot.state == shm::SlotState::kLeased) doubt_lease(slot.holder, strict_too);
}

// As of that time, if nobody has confirmed it since, nor its claim.
void Auditor::doubt_worker(uint32_t row, uint64_t at_ns) {
    if (row == kNoRow || core_->slot(row).confirmed_ns > at_ns) return;
    if (core_->slot(row).state != shm::SlotState::kLeased) return;
    const uint32_t claim = core_->find_claim(core_->lease(core_->slot(row).holder).arrival);
    if (claim != kNoRow && core_->claim(claim).confirmed_ns > at_ns) return;
    doubt_slot(row, false);
}

void Auditor::heard(const core::SessionDeath& death) {
    for (uint32_t row = 0; row < core_->slots_max(); ++row) {
        if (core_->slot(row).session == death.session) doubt_slot(row, true);
    }
}

void Auditor::heard(const core::Harvest& harvest) {
    const bool ends = harvest.recalled && harvest.parked;
    if (ends) ledger_.recalled(harvest.lease, core_->now());
    ++seen_[ends               ? "recalled"
            : harvest.recalled ? "wanted"
            : harvest.parked   ? "found parked"
                               : "found taken"];
}

void Auditor::heard(const core::Touch& /*touch*/) {
    ++seen_["found touched"];
}

void Auditor::heard(const core::WorkerWord& word) {
    const auto row = static_cast<uint32_t>(word.slot);
    if (row < core_->slots_max()) doubt_slot(row, true);
}

void Auditor::heard(const core::Steer& steer) {
    // One that is renewed may end earlier than it would have.
    const auto row = static_cast<uint32_t>(steer.lease);
    const bool of_lease = steer.kind != core::Steer::Kind::kCancel;
    if (of_lease && row < core_->leases_max()) doubt_lease(row, true);
    administered_();
}

// S2.23 to S2.25.
void Auditor::heard(const core::Report& report) {
    const uint64_t at_ns = time_of(report.event_ns);
    const uint32_t worker = core_->find_slot(report.pool, report.worker);
    const uint32_t claim = core_->find_claim(report.claim);
    const bool is_older = claim != kNoRow && core_->claim(claim).confirmed_ns > at_ns;
    switch (report.kind) {
        case core::Report::Kind::kIdle:
            doubt_if_reported(worker, at_ns);
            break;
        case core::Report::Kind::kRunning:
            if (is_older || is_on(lease_of(report.claim), worker)) break;
            doubt_claim(report.claim);
            doubt_worker(worker, at_ns);
            break;
        case core::Report::Kind::kAbsent:
            if (!is_older) doubt_claim(report.claim);
            break;
    }
    administered_();
}

void Auditor::doubt_if_reported(uint32_t slot, uint64_t at_ns) {
    if (slot != kNoRow && core_->slot(slot).session == kNoRow) doubt_worker(slot, at_ns);
}

// S2.30: what has not been confirmed for too long goes; whoever asks is idle, but for what it has
// been told and not confirmed.
void Auditor::heard(const core::Pull& pull) {
    const uint64_t at_ns = time_of(pull.event_ns);
    const bool is_there = pull.pool < core_->pools();
    const uint64_t limit_ns = is_there ? core_->pool(pull.pool).queue_timeout_ns : 0;
    const auto is_unconfirmed = [&](uint32_t row) {
        return (core_->slot(row).flags & shm::SlotFlag::kAssigned) != 0;
    };
    for (uint32_t row = 0; is_there && row < core_->slots_max(); ++row) {
        const shm::SlotRow& slot = core_->slot(row);
        if (slot.pool != pull.pool || slot.state != shm::SlotState::kLeased) continue;
        const uint64_t since_ns = core_->lease(slot.holder).granted_ns;
        if (is_unconfirmed(row) && at_ns >= since_ns && at_ns - since_ns >= limit_ns) {
            doubt_slot(row, false);
        }
    }
    for (const core::Pull::Worker& worker : pull.workers) {
        const uint32_t row = core_->find_slot(pull.pool, worker.name);
        if (row != kNoRow && !is_unconfirmed(row)) doubt_if_reported(row, at_ns);
    }
    administered_();
}

// S2.27
void Auditor::heard(const core::Unassign& unassign) {
    const uint32_t lease = lease_of(unassign.claim);
    if (is_on(lease, core_->find_slot(unassign.pool, unassign.worker))) {
        doubt_claim(unassign.claim);
    }
    administered_();
}

// S2.26
void Auditor::heard(const core::UpdateClaim& update) {
    const uint32_t claim = core_->find_claim(update.claim);
    if (claim != kNoRow && core_->claim(claim).confirmed_ns <= time_of(update.event_ns)) {
        doubt_claim(update.claim);
    }
    administered_();
}

void Auditor::heard(const core::PoolConfig&) {
    administered_();
}

}  // namespace dibs::sim
