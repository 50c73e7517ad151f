// tests/naive/journal_of_parking.cpp -- what the words of leases say: parked, taken, touched.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "tests/naive/journal_writer.hpp"

namespace dibs::naive {

bool Writer::has_parkable() const {
    return std::any_of(model().leases.begin(), model().leases.end(), [](const auto& entry) {
        return entry.second.may_park;
    });
}

// A claim that asks for a slot and nothing else.
void Writer::make_plain(Step& step) {
    step.claim.units = 1;
    step.claim.interval_ns = 0;
    step.claim.by_word = false;
    step.claim.key = {};
    step.payload_size = 0;
}

// Now and then of one that has ended or may not be parked, with fewer takes than were said before,
// or with more than there can be.
void Writer::harvest() {
    std::vector<const Lease*> parkable;
    for (const auto& [number, lease] : model().leases) {
        if (lease.may_park) parkable.push_back(&lease);
    }
    Step step;
    step.kind = StepKind::kHarvest;
    step.subject = any_lease_label();
    uint64_t known = 0;
    if (!parkable.empty() && dice_.percent(92)) {
        const Lease& lease = *dice_.any(parkable);
        step.subject = label_of_number_[lease.claim];
        known = lease.takes;
    }
    step.harvest.takes = known + dice_.one_of<uint64_t>({0, 0, 1, 1, 2, 3, 40});
    if (dice_.percent(10)) step.harvest.takes = dice_.below(known + 1);
    if (dice_.percent(1)) step.harvest.takes = kTakesMax + 1;
    step.harvest.parked = dice_.percent(50);
    step.harvest.recalled = dice_.percent(35);
    put(step);
}

bool Writer::lapses(const Lease& lease) const {
    return lease.by_word && lease.expires_ns < model().now && !lease.is_in_grace &&
           !lease.is_uncollected && !lease.is_being_killed && !lease.is_revoking;
}

bool Writer::has_lapsing() const {
    return std::any_of(model().leases.begin(), model().leases.end(), [this](const auto& entry) {
        return lapses(entry.second);
    });
}

// Mostly of one that lapses in this turn, and touched since the last look.
void Writer::touch() {
    Step step;
    step.kind = StepKind::kTouch;
    step.subject = any_lease_label();
    step.touched = dice_.below(4);
    std::vector<const Lease*> lapsing;
    for (const auto& [number, lease] : model().leases) {
        if (lapses(lease)) lapsing.push_back(&lease);
    }
    if (!lapsing.empty() && dice_.percent(92)) {
        const Lease& lease = *dice_.any(lapsing);
        step.subject = label_of_number_[lease.claim];
        step.touched = lease.touched + dice_.one_of<uint64_t>({0, 1, 1, 1, 7});
    }
    put(step);
}

// Where a lease has been taken again, mostly of an earlier take or of none.
int32_t Writer::distance_of_fence(uint32_t label) {
    for (const auto& [number, lease] : model().leases) {
        if (label_of_number_[number] != label || lease.takes == 0 || dice_.percent(60)) continue;
        const auto takes = static_cast<int32_t>(lease.takes);
        return dice_.one_of({-1, -1, -takes, -takes - 1, 1});
    }
    return distance();
}

}  // namespace dibs::naive
