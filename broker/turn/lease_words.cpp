// broker/turn/lease_words.cpp -- reads the words of leases, and recalls those that are parked.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/lease_words.hpp"

#include <algorithm>

namespace dibs {

namespace LeaseFlag = shm::LeaseFlag;
namespace PoolFlag = shm::PoolFlag;

namespace {

constexpr core::TimeNs kSecond = 1'000'000'000;
// While no word changes, harvests become rarer: what holds a lease for hours costs no wake-ups.
constexpr core::TimeNs kHarvestMost = 8 * kSecond;
constexpr uint32_t kLookedAtOnce = 1024;  // words, for one claim or recall
constexpr uint32_t kHarvestedAtOnce = 512;
// No client takes and releases a lease in less: more takes than fit since the grant were not made.
constexpr core::TimeNs kTakeNs = 4;
constexpr uint64_t kTakesSpare = 1'000;
// What brokers before this one may have lost, and the time until it began.
constexpr core::TimeNs kLostBefore = 86'400 * kSecond;

bool has_to_come_back(const core::Core& core, uint32_t row) {
    const shm::PoolRow& pool = core.pool(row);
    return (pool.flags & PoolFlag::kParks) == 0 || (pool.flags & PoolFlag::kLeaving) != 0 ||
           pool.state != shm::PoolState::kOpen || pool.drained != 0 ||
           (pool.kind == shm::PoolKind::kCounted && pool.slots - pool.parts > pool.slots_wanted) ||
           core.draining();
}

}  // namespace

LeaseWords::LeaseWords(core::Core& core, Sessions& sessions, const Clock& clock)
    : core_(core),
      sessions_(sessions),
      clock_(clock),
      offset_(clock.offset()),
      lost_ns_(kLostBefore),
      lost_until_ns_(core.now()),
      harvest_every_ns_(kSecond) {
    contended_.reserve(shm::kPoolsMax);
    parking_.reserve(shm::kPoolsMax);
}

bool LeaseWords::in_use(uint32_t row) const {
    const shm::LeaseRow& lease = core_.lease(row);
    return lease.state != shm::LeaseState::kFree && (lease.flags & LeaseFlag::kMayPark) != 0;
}

// By now, which may be long after this turn began.
uint64_t LeaseWords::takes_at_most(const shm::LeaseRow& lease) {
    if (clock_.offset() != offset_) {
        const auto lost_ns = static_cast<int64_t>(offset_ - clock_.offset());
        lost_ns_ += static_cast<uint64_t>(std::max<int64_t>(lost_ns, 0));
        offset_ = clock_.offset();
        lost_until_ns_ = core_.now();
    }
    const core::TimeNs now = std::max(clock_.now(), lease.granted_ns);
    const core::TimeNs lost_ns = lease.granted_ns <= lost_until_ns_ ? lost_ns_ : 0;
    return (now - lease.granted_ns + lost_ns) / kTakeNs + kTakesSpare;
}

LeaseWords::Found LeaseWords::take_in(uint32_t row, const LeaseWordSeen& seen, bool recalled) {
    const shm::LeaseRow lease = core_.lease(row);
    Session& session = *sessions_.at(lease.session);
    core::Harvest harvest;
    harvest.lease = core::row_id(lease.head.generation, row);
    harvest.takes = seen.fence - std::min(seen.fence, lease.fence);
    harvest.parked = seen.parked;
    harvest.recalled = recalled;
    if (harvest.takes > kTakesSpare && harvest.takes > takes_at_most(lease)) {
        harvest.takes = 0;
        sessions_.end(&session, shm::Reason::kMalformed);
    }
    const bool was_parked = (lease.flags & LeaseFlag::kParked) != 0;
    const uint64_t known = (lease.flags & LeaseFlag::kTakesSeen) != 0 ? lease.takes : 0;
    if (!recalled && harvest.parked == was_parked && harvest.takes <= known) {
        return {harvest.parked, false};
    }
    core_.apply(harvest);
    const bool ended = recalled && harvest.parked;
    // A client that has put it aside reads nothing there any more.
    if (ended) session.free_tag(lease.tag, 0);
    return {harvest.parked, ended};
}

LeaseWordSeen LeaseWords::seen(uint32_t row) const {
    const shm::LeaseRow& lease = core_.lease(row);
    const Session* session = sessions_.at(lease.session);
    return session == nullptr ? LeaseWordSeen{} : session->up.lease_word(lease.tag, lease.arrival);
}

LeaseWords::Found LeaseWords::read(uint32_t row) {
    if (sessions_.at(core_.lease(row).session) == nullptr) return {};
    return take_in(row, seen(row), false);
}

LeaseWords::Found LeaseWords::recall(uint32_t row) {
    const shm::LeaseRow& lease = core_.lease(row);
    const Session* session = sessions_.at(lease.session);
    if (session == nullptr) return {};
    return take_in(row, session->up.want_lease(lease.tag, lease.arrival), true);
}

// Until one says that it was the last. False: the turn is full.
template <class Visit>
bool LeaseWords::each_parkable(uint32_t pool, const Visit& visit) {
    for (uint32_t lease = core_.next_parkable(pool); lease != shm::kNoRow;) {
        if (core_.turn_full()) return false;
        const uint32_t next = core_.next_parkable(pool, lease);  // it may leave the list
        if (!visit(lease)) return true;
        lease = next;
    }
    return true;
}

// Of those that are free: up to so many, oldest grant first. Returns how many are still missing.
uint32_t LeaseWords::recall_free(uint32_t pool, uint32_t count) {
    uint32_t left = kLookedAtOnce;
    (void)each_parkable(pool, [&](uint32_t lease) {
        if (count == 0 || left-- == 0) return false;
        if (seen(lease).parked && recall(lease).ended) --count;
        return true;
    });
    return count;
}

void LeaseWords::make_room(uint32_t pool, uint32_t units) {
    if (pool >= core_.pools()) return;
    if (core_.room(shm::Table::kLeases).free == 0) [[unlikely]] {
        // A row that is put aside in any pool will do.
        for (uint32_t any = 0; any < core_.pools() && recall_free(any, 1) != 0; ++any) {
        }
    }
    if ((core_.pool(pool).flags & PoolFlag::kParks) == 0) return;
    const shm::PoolRow& row = core_.pool(pool);
    if (units > row.units_max || row.state != shm::PoolState::kOpen) return;  // it is refused
    // Until step() finds that nothing waits there.
    if (std::find(contended_.begin(), contended_.end(), pool) == contended_.end())
        contended_.push_back(pool);
    harvest_every_ns_ = kSecond;
    harvest_due_ns_ = std::min(harvest_due_ns_, core_.now() + kSecond);
    const uint32_t lacking = core_.lacking(pool, units);
    if (lacking == 0) return;
    has_looked_ = true;
    (void)recall_free(pool, lacking);
}

// What is put aside counts as idle where pools are ranked, and may have been since the last
// harvest.
void LeaseWords::look_for_free(std::span<const core::RouteMember> members, uint32_t units) {
    uint32_t left = kLookedAtOnce;
    for (const core::RouteMember& member : members) {
        if ((core_.pool(member.pool).flags & PoolFlag::kParks) == 0) continue;
        uint32_t lacking = core_.lacking(member.pool, units);
        (void)each_parkable(member.pool, [&](uint32_t lease) {
            if (lacking == 0 || left == 0) return false;
            --left;
            has_looked_ = true;
            if (read(lease).parked) --lacking;
            return true;
        });
    }
}

void LeaseWords::want(uint32_t lease) {
    const bool wanted = (core_.lease(lease).flags & LeaseFlag::kWanted) != 0;
    if (in_use(lease) && !wanted) (void)recall(lease);
}

bool LeaseWords::put_aside(const Session& session, uint16_t tag) {
    const uint32_t row = core_.lease_of_tag(session.row, tag);
    if (row == shm::kNoRow || !in_use(row)) return false;
    LeaseWordSeen seen = session.up.want_lease(tag, core_.lease(row).arrival);
    seen.parked = true;
    return take_in(row, seen, true).ended;
}

bool LeaseWords::hear(uint32_t row, uint64_t fence) {
    if (!in_use(row)) return true;
    const shm::LeaseRow& lease = core_.lease(row);
    const Session* session = sessions_.at(lease.session);
    if (session == nullptr) return true;
    LeaseWordSeen seen = session->up.lease_word(lease.tag, lease.arrival);
    // Its word is another lease's by now: the fence that the client shows is all that is known.
    const bool may_be = fence > lease.fence && fence - lease.fence <= takes_at_most(lease);
    if (seen.later && may_be) seen.fence = fence;
    (void)take_in(row, seen, false);
    return !seen.parked;
}

bool LeaseWords::session_ends(uint32_t row) {
    const Session* session = sessions_.at(row);
    uint32_t left = core_.session(row).leases;
    for (uint16_t tag = 0; left != 0 && tag < core_.session(row).tags_max; ++tag) {
        const uint32_t lease = core_.lease_of_tag(row, tag);
        if (lease == shm::kNoRow) continue;
        --left;
        // What is wanted already has been read, and cannot be taken again.
        if (!in_use(lease) || (core_.lease(lease).flags & LeaseFlag::kWanted) != 0) continue;
        if (core_.turn_full()) return false;
        if (session != nullptr) {
            want(lease);  // its process may live
        } else {
            const shm::LeaseRow& lost = core_.lease(lease);
            core_.apply(core::Harvest{.lease = core::row_id(lost.head.generation, lease),
                                      .takes = takes_at_most(lost),
                                      .parked = false,
                                      .recalled = false});
        }
    }
    // And the leases of its slots, which end with it.
    for (uint32_t slot = core_.next_slot_of(row); slot != shm::kNoRow;
         slot = core_.next_slot_of(row, slot)) {
        if (core_.slot(slot).state != shm::SlotState::kLeased) continue;
        if (core_.turn_full()) return false;
        want(core_.slot(slot).holder);
    }
    return true;
}

bool LeaseWords::recall_of(uint32_t uid) {
    bool any = false;
    uint32_t left = kLookedAtOnce;
    for (uint32_t pool = 0; pool < core_.pools() && left != 0; ++pool) {
        (void)each_parkable(pool, [&](uint32_t lease) {
            const bool its = core_.session(core_.lease(lease).session).uid == uid;
            if (its && seen(lease).parked) any = recall(lease).ended || any;
            return --left != 0;
        });
    }
    return any;
}

void LeaseWords::recall_parked() {
    for (uint32_t pool = 0; pool < core_.pools(); ++pool)
        (void)recall_free(pool, UINT32_MAX);
}

void LeaseWords::recall_of(const Session& session) {
    for (uint16_t tag = 0; tag < core_.session(session.row).tags_max; ++tag) {
        const uint32_t lease = core_.lease_of_tag(session.row, tag);
        if (core_.turn_full()) return;
        if (lease != shm::kNoRow && in_use(lease) && seen(lease).parked) (void)recall(lease);
    }
}

bool LeaseWords::resume() {
    for (uint32_t pool = 0; pool < core_.pools(); ++pool) {
        const bool all = each_parkable(pool, [this](uint32_t lease) {
            if (seen(lease).wanted) (void)recall(lease);
            return true;
        });
        if (!all) return false;
    }
    return true;
}

void LeaseWords::read_all() {
    for (uint32_t pool = 0; pool < core_.pools(); ++pool) {
        (void)each_parkable(pool, [this](uint32_t lease) {
            (void)read(lease);
            return true;
        });
    }
}

void LeaseWords::read_touches() {
    for (const uint32_t row : core_.lapsing()) {
        if (core_.turn_full()) return;
        const shm::LeaseRow& lease = core_.lease(row);
        const Session* session = sessions_.at(lease.session);
        if (session == nullptr) continue;
        const uint64_t touches = session->up.touches(lease.tag);
        if (touches == lease.touched) continue;
        core_.apply(core::Touch{core::row_id(lease.head.generation, row), touches});
    }
}

// Each holder has had its quantum; those that wait may be served by any slot. One more than is
// missing, if those that are wanted have not come back for a quantum.
void LeaseWords::recall_due(uint32_t pool, core::TimeNs now) {
    const uint32_t lacking = core_.lacking(pool, 0);
    uint32_t count = std::max(lacking - std::min(lacking, core_.wanted(pool)), 1U);
    count = recall_free(pool, count);
    const core::TimeNs quantum_ns = uint64_t{core_.pool(pool).quantum_us} * 1'000;
    (void)each_parkable(pool, [&](uint32_t lease) {
        if (count-- == 0 || core_.lease(lease).granted_ns + quantum_ns > now) return false;
        (void)recall(lease);
        return true;
    });
}

void LeaseWords::recall_all(uint32_t pool) {
    (void)each_parkable(pool, [this](uint32_t lease) {
        (void)recall(lease);
        return true;
    });
}

void LeaseWords::step(core::TimeNs now) {
    if (all_due_) {
        parking_.clear();
        for (uint32_t pool = 0; pool < core_.pools(); ++pool) {
            if ((core_.pool(pool).flags & PoolFlag::kParks) != 0) parking_.push_back(pool);
            if (all_back_ || has_to_come_back(core_, pool)) recall_all(pool);
            const bool listed =
                std::find(contended_.begin(), contended_.end(), pool) != contended_.end();
            const bool asked =
                core_.first_waiting(pool) != shm::kNoRow || core_.pool(pool).confirming != 0;
            if (!listed && asked) contended_.push_back(pool);
        }
        all_due_ = core_.turn_full();
        all_back_ = all_back_ && all_due_;
    }
    for (size_t at = contended_.size(); at-- > 0;) {
        const uint32_t pool = contended_[at];
        const shm::PoolRow& row = core_.pool(pool);
        if (row.waiting == 0 && row.confirming == 0) {
            contended_.erase(contended_.begin() + static_cast<std::ptrdiff_t>(at));
        } else if (core_.recall_due(pool) <= now) {
            recall_due(pool, now);
        }
    }
    if (harvest_due_ns_ <= now) harvest(now);
}

core::TimeNs LeaseWords::next_due(core::TimeNs now) {
    const bool any = std::any_of(parking_.begin(), parking_.end(), [this](uint32_t pool) {
        return core_.next_parkable(pool) != shm::kNoRow;
    });
    if (!any) {
        harvest_due_ns_ = shm::kNever;
        return all_due_ ? now : shm::kNever;
    }
    if (all_due_) return now;
    if (harvest_due_ns_ == shm::kNever) {
        harvest_every_ns_ = kSecond;
        harvest_due_ns_ = now + harvest_every_ns_;
    }
    core::TimeNs due = harvest_due_ns_;
    for (const uint32_t pool : contended_)
        due = std::min(due, core_.recall_due(pool));
    return due;
}

// A lease that is free and was so at the harvest before, and has not been taken since, goes back.
void LeaseWords::harvest(core::TimeNs now) {
    uint32_t looked = 0;
    for (; harvest_pool_ < core_.pools(); ++harvest_pool_, harvest_lease_ = shm::kNoRow) {
        uint32_t lease = core_.next_parkable(harvest_pool_);
        if (harvest_lease_ != shm::kNoRow) {
            const shm::LeaseRow& last = core_.lease(harvest_lease_);
            const bool there = in_use(harvest_lease_) && last.pool == harvest_pool_ &&
                               last.head.generation == harvest_generation_ &&
                               (last.flags & LeaseFlag::kWanted) == 0;
            lease = there ? core_.next_parkable(harvest_pool_, harvest_lease_) : shm::kNoRow;
        }
        while (lease != shm::kNoRow) {
            if (core_.turn_full() || looked == kHarvestedAtOnce) return;
            ++looked;
            const uint32_t next = core_.next_parkable(harvest_pool_, lease);
            const shm::LeaseRow before = core_.lease(lease);
            const bool parked = read(lease).parked;
            const shm::LeaseRow& after = core_.lease(lease);
            const bool unchanged = before.flags == after.flags && before.takes == after.takes;
            harvest_found_ = harvest_found_ || parked || !unchanged;
            if (parked && unchanged) {
                (void)recall(lease);
            } else {
                harvest_lease_ = lease;
                harvest_generation_ = before.head.generation;
            }
            lease = next;
        }
    }
    harvest_every_ns_ = harvest_found_ ? kSecond : std::min(2 * harvest_every_ns_, kHarvestMost);
    harvest_due_ns_ = now + harvest_every_ns_;
    harvest_pool_ = 0;
    harvest_lease_ = shm::kNoRow;
    harvest_found_ = false;
}

}  // namespace dibs
