// broker/core/ledger/runs.cpp -- keeps each lease's cost, class and rank in account pools.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/parts.hpp"

namespace dibs::core {

namespace {

// The last one takes the place; its own place is the caller's to set.
void leave_list(std::vector<uint32_t>& list, uint32_t place) {
    assert(place < list.size());
    list[place] = list.back();
    list.pop_back();
}

}  // namespace

// Order of leases at one class: what they pay grows alike, so it is the order of the numbers that
// stand in the rows. Ties: the lower number of the first slot.
bool Ledger::cheaper(uint32_t left, uint32_t right) const {
    const shm::LeaseRow& one = state.leases[left];
    const shm::LeaseRow& other = state.leases[right];
    for (uint32_t p = 0; p < shm::kClasses; ++p) {
        if (one.cost[p] != other.cost[p]) return one.cost[p] < other.cost[p];
    }
    const uint32_t number = state.slots[one.first_slot].number;
    const uint32_t other_number = state.slots[other.first_slot].number;
    return number != other_number ? number < other_number : left < right;
}

Cost Ledger::cost_of(uint32_t row) const {
    const shm::LeaseRow& lease = state.leases[row];
    Cost cost;
    for (uint32_t p = 0; p < shm::kClasses; ++p)
        cost[p] = lease.cost[p];
    if (lease.account_class < kFreeClass) {
        cost[lease.account_class] += static_cast<int64_t>(turn().now_ns / 1000);
    }
    return cost;
}

bool Ledger::may_be_preempted(uint32_t lease) const {
    const shm::ClaimRow& claim = state.claims[book()->claim_of_lease[lease]];
    constexpr auto kStops = static_cast<uint8_t>(
        shm::SlotFlag::kProtected | shm::SlotFlag::kUnqualified | shm::SlotFlag::kDraining);
    // Of a lease whose holder is being killed the slots come back by themselves.
    if (state.leases[lease].state == shm::LeaseState::kKilling) return false;
    return claim.units == 1 && (state.slots[state.leases[lease].first_slot].flags & kStops) == 0 &&
           static_cast<shm::PreemptMode>(claim.preempt_mode) != shm::PreemptMode::kForbidden;
}

// Into the lists of its class, or out of them.
void Ledger::list_lease(uint32_t row, bool in) {
    const shm::LeaseRow& lease = state.leases[row];
    const uint8_t at_class = lease.account_class;
    const auto less = [this](uint32_t left, uint32_t right) { return cheaper(left, right); };
    const auto change = [&](OrderedRows& rows, uint32_t* root) {
        in ? rows.insert(root, row, less) : rows.remove(root, row, less);
    };
    if (may_be_preempted(row)) {
        const uint32_t stall = book()->stall_of_slot[lease.first_slot];
        change(book()->stall_leases, &book()->stalls[stall].leases[at_class]);
    }
    if (lease.account == kNoRow) return;
    Crowd& crowd = book()->crowds[book()->crowd_of_claim[book()->claim_of_lease[row]]];
    if (crowd.tenant == kNoRow) crowd.tenant = book()->tenant_for(lease.pool, lease.account);
    const uint32_t place = crowd.tenant;
    Tenant& tenant = book()->tenants[place];
    book()->watch_tenant(place);
    change(book()->tenant_leases, &tenant.leases[at_class]);
    const uint32_t before = tenant.units_total;
    assert(tenant.in_use && (in || tenant.units[at_class] >= lease.units));
    tenant.units[at_class] =
        in ? tenant.units[at_class] + lease.units : tenant.units[at_class] - lease.units;
    tenant.units_total = in ? before + lease.units : before - lease.units;
    std::vector<uint32_t>& tenants = book()->tenants_of_pool[lease.pool];
    if (before == 0) {
        tenant.place = static_cast<uint32_t>(tenants.size());
        tenants.push_back(place);
    } else if (tenant.units_total == 0) {
        leave_list(tenants, tenant.place);
        if (tenant.place < tenants.size())
            book()->tenants[tenants[tenant.place]].place = tenant.place;
        tenant.place = kNoRow;
    }
}

// The claim has just been granted: its row stays, for it may have to wait again.
void Ledger::begin_run(uint32_t claim_row, uint32_t lease_row) {
    shm::ClaimRow& claim = edit().row(state.claims[claim_row], kClaimRunLines);
    shm::LeaseRow& lease = edit().row(state.leases[lease_row], 0x7U);
    Decision& granted = turn().decisions.back();
    granted.has_class = true;
    granted.to_class = claim.account_class;
    const bool prefers = claim.preferred_set != kNoRow;
    for (uint32_t slot = lease.first_slot; prefers && slot != kNoRow;
         slot = state.slots[slot].holder_next) {
        granted.provision = granted.provision || crowds().lacks_preferred(claim_row, slot);
    }
    book()->note_grant(lease_row);
    put(claim.state, shm::ClaimState::kRunning);
    put(claim.first_slot, kNoRow);
    put(claim.deadline_ns, kNever);
    put(claim.lease, lease_row);
    put(lease.account, claim.account);
    put(lease.account_class, claim.account_class);
    Cost carried = {};
    if (claim.carried_cost != kNoRow) {
        arena().copy(
            claim.carried_cost, sizeof(Cost), reinterpret_cast<std::byte*>(carried.data()));
        arena().free(claim.carried_cost, sizeof(Cost));
        put(claim.carried_cost, kNoRow);
    }
    if (claim.account_class < kFreeClass) {
        carried[claim.account_class] -= static_cast<int64_t>(turn().now_ns / 1000);
    }
    for (uint32_t p = 0; p < shm::kClasses; ++p)
        put(lease.cost[p], carried[p]);
    book()->claim_of_lease[lease_row] = claim_row;
    crowds().occupy(claim_row, lease.first_slot, 1);
    if (state.pools[lease.pool].kind == shm::PoolKind::kWorker) {
        for (uint32_t slot = lease.first_slot; slot != kNoRow; slot = state.slots[slot].holder_next)
            reports().assignment_begins(slot);
    }
    count_run(lease.account, lease.account_class, lease.units);
    list_lease(lease_row, true);
}

// It pays no more and counts nowhere. Its cost stays as it is now, its class is free.
void Ledger::end_run(uint32_t row) {
    if ((state.leases[row].flags & shm::LeaseFlag::kTaken) != 0) return;
    list_lease(row, false);
    shm::LeaseRow& lease = edit().row(state.leases[row], 0x7U);
    const uint32_t claim = book()->claim_of_lease[row];
    assert(state.claims[claim].lease == row);
    crowds().count_fanout(claim, lease.account_class, -1);
    if (lease.account != kNoRow && !book()->limits[lease.account].empty()) {
        for (uint32_t slot = lease.first_slot; slot != kNoRow; slot = state.slots[slot].holder_next)
            crowds().count_labels(lease.account, slot, -1);
    }
    count_run(lease.account, lease.account_class, -int32_t{lease.units});
    if (lease.account_class < kFreeClass) {
        int64_t& paid = lease.cost[lease.account_class];
        put(paid, paid + static_cast<int64_t>(turn().now_ns / 1000));
    }
    put(lease.account_class, kFreeClass);
}

// A lease that stands in the lists goes from those of one class to those of another.
class Ledger::ClassLists {
  public:
    ClassLists(Core::Parts& parts, uint32_t row) : parts_(parts), row_(row) {
        const AccountBook& known = *parts.book;
        const shm::LeaseRow& lease = parts.state.leases[row];
        if (parts.may_be_preempted(row)) stall_ = known.stall_of_slot[lease.first_slot];
        if (lease.account == kNoRow) return;
        tenant_ = known.crowds[known.crowd_of_claim[known.claim_of_lease[row]]].tenant;
    }
    void change(uint8_t at_class, bool in) {
        AccountBook& known = *parts_.book;
        if (stall_ != kNoRow) order(known.stall_leases, &known.stalls[stall_].leases[at_class], in);
        if (tenant_ == kNoRow) return;
        Tenant& tenant = known.tenants[tenant_];
        order(known.tenant_leases, &tenant.leases[at_class], in);
        const uint32_t units = parts_.state.leases[row_].units;
        assert(in || tenant.units[at_class] >= units);
        tenant.units[at_class] += in ? units : 0U - units;
    }

  private:
    void order(OrderedRows& rows, uint32_t* root, bool in) {
        const auto less = [this](uint32_t left, uint32_t right) {
            return parts_.cheaper(left, right);
        };
        in ? rows.insert(root, row_, less) : rows.remove(root, row_, less);
    }

    Core::Parts& parts_;
    const uint32_t row_;
    uint32_t stall_ = kNoRow;   // kNoRow: it may not be preempted
    uint32_t tenant_ = kNoRow;  // kNoRow: it has no account
};

void Ledger::move_class(uint32_t row, uint8_t to) {
    shm::LeaseRow& lease = edit().row(state.leases[row], 0x7U);
    const auto now_us = static_cast<int64_t>(turn().now_ns / 1000);
    const uint8_t from = lease.account_class;
    assert(from != to && to <= kFreeClass && (lease.flags & shm::LeaseFlag::kTaken) == 0);
    ClassLists lists(all(), row);
    lists.change(from, false);
    const uint32_t claim = book()->claim_of_lease[row];
    assert(state.claims[claim].lease == row && state.claims[claim].account_class == from);
    count_move(lease.account, from, to, lease.units);
    if (from < kFreeClass) put(lease.cost[from], lease.cost[from] + now_us);
    put(lease.account_class, to);
    if (to < kFreeClass) put(lease.cost[to], lease.cost[to] - now_us);
    put(edit().row(state.claims[claim], 1).account_class, to);
    if (from == kFreeClass) {
        crowds().count_fanout(claim, to, 1);
        book()->come_to_hold(lease.account, lease.first_slot);
    }
    if (to == kFreeClass) crowds().count_fanout(claim, from, -1);
    lists.change(to, true);
    Decision& told = turn().decide_that(to < from ? DecisionKind::kPromote : DecisionKind::kDemote);
    told.pool = lease.pool;
    told.claim = lease.arrival;
    told.account = lease.account;
    told.from_class = from;
    told.to_class = to;
    told.slot_number = state.slots[lease.first_slot].number;
    turn().touched.add(lease.pool);
    matcher().account_news();
}

// After end_lease: the claim's row goes, or waits again in its old place.
void Ledger::after_run(uint32_t row, bool again) {
    assert(state.claims[row].state == shm::ClaimState::kRunning);
    if (!again) {
        crowds().forget_claim(row);
        return claims().drop_claim(row);
    }
    shm::ClaimRow& claim = edit().row(state.claims[row], kClaimRunLines);
    shm::SessionRow& session = edit().row(state.sessions[claim.session], 1);
    put(claim.lease, kNoRow);
    put(claim.flags, claim.flags & ~uint32_t{kImpatient});
    put(claim.confirmed, 0);
    put(session.claims, session.claims + 1);
    assert(sessions().tags[claim.session][claim.tag] == kTagFree);
    sessions().tags[claim.session][claim.tag] = row;
    claims().add_key(claim.session, claim.key, row);
    shm::PoolRow& pool = edit().row(state.pools[claim.pool], kPoolAccounts);
    put(pool.requeued_total, pool.requeued_total + 1);
    if (const Reason reason = pools().waits_for_nothing(row); reason != Reason::kOk) {
        return claims().end_claim(row, Outcome::kRejected, reason, 0, true);
    }
    claims().wait_in_backlog(row);
}

}  // namespace dibs::core
