// tests/sim/ledger.cpp -- who holds what, as clients and workers have been told.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/ledger.hpp"

namespace dibs::sim {

namespace {

std::string text(uint64_t number) {
    return std::to_string(number);
}

}  // namespace

void Ledger::asked(uint32_t process, uint64_t number, uint64_t now) {
    if (!open_.insert({{process, number}, now}).second) wrong("claim " + text(number) + " twice");
}

void Ledger::answered(uint32_t process, uint64_t number) {
    told(process);
    told(number);
    if (open_.erase({process, number}) == 0) {
        wrong("process " + text(process) + ": claim " + text(number) + " ended a second time");
    }
}

void Ledger::told_fence(const Use& use) {
    told(use.fence);
    const uint64_t lease = parking_.contains(use.pool) ? use.lease : 0;
    if (!fences_.insert({use.pool, lease, use.fence}).second) {
        wrong("pool " + text(use.pool) + ": fence " + text(use.fence) + " was given out twice");
    }
}

std::vector<Ledger::Holding*> Ledger::holdings_of(uint64_t lease) {
    std::vector<Holding*> found;
    const auto slots = slots_.find(lease);
    if (slots == slots_.end()) return found;
    for (const Place& place : slots->second) {
        Holding& holding = holdings_.at(place);
        if (holding.lease == lease) found.push_back(&holding);
    }
    return found;
}

std::vector<Ledger::Holding*> Ledger::holdings_of(const Use& use) {
    std::vector<Holding*> found = holdings_of(use.lease);
    std::erase_if(found, [&](const Holding* holding) { return holding->fence != use.fence; });
    return found;
}

void Ledger::doubt(uint64_t lease) {
    doubted_.insert(lease);
    for (Holding* holding : holdings_of(lease))
        holding->certain_until_ns = 0;
}

void Ledger::recalled(uint64_t lease, uint64_t now) {
    for (const Holding* holding : holdings_of(lease)) {
        if (holding->certain_until_ns <= now) continue;
        wrong("process " + text(holding->process) + " uses what is recalled, by fence " +
              text(holding->fence));
    }
}

void Ledger::granted(uint32_t process,
                     const Use& use,
                     const std::vector<uint32_t>& slots,
                     uint64_t certain_until_ns,
                     uint64_t now) {
    told_fence(use);
    if (is_doubted(use.lease)) certain_until_ns = 0;
    std::vector<Place>& places = slots_[use.lease];
    places.clear();
    for (const uint32_t slot : slots) {
        told(slot);
        const Place place{use.pool, slot};
        places.push_back(place);
        const std::string name = "pool " + text(use.pool) + " slot " + text(slot);
        const auto [known, is_new] =
            fences_of_slots_.try_emplace({place, use.fence}, process, use.lease);
        if (!is_new) {
            wrong(name + ": fence " + text(use.fence) + " of lease " + text(use.lease) +
                  " is told process " + text(process) + ", and was told process " +
                  text(known->second.first) + " of lease " + text(known->second.second));
        }
        Holding& holding = holdings_[place];
        // Told late, its time may be over already.
        if (holding.certain_until_ns > now && certain_until_ns > now) {
            wrong(name + ": process " + text(holding.process) + " holds it by fence " +
                  text(holding.fence) + ", process " + text(process) + " is granted it by fence " +
                  text(use.fence));
        }
        if (holding.fence > use.fence) continue;  // told late: somebody else has had it since
        holding = {process, use.lease, use.fence, certain_until_ns, false};
    }
}

void Ledger::prolonged(uint32_t process, const Use& use, uint64_t certain_until_ns) {
    if (is_doubted(use.lease)) return;
    for (Holding* holding : holdings_of(use)) {
        if (holding->process != process || holding->offered) continue;
        holding->certain_until_ns = certain_until_ns;
    }
}

void Ledger::returned(uint32_t process, const Use& use) {
    prolonged(process, use, 0);
}

void Ledger::offered(const Use& use) {
    for (Holding* holding : holdings_of(use)) {
        holding->certain_until_ns = 0;
        holding->offered = true;
    }
}

void Ledger::adopted(uint32_t process, const Use& use, uint64_t certain_until_ns) {
    told(process);
    told(use.fence);
    if (is_doubted(use.lease)) certain_until_ns = 0;
    for (Holding* holding : holdings_of(use))
        *holding = {process, use.lease, use.fence, certain_until_ns, false};
}

void Ledger::assigned(uint32_t process, uint64_t slot, bool may_be_busy) {
    ++assignments_;
    told(slot);
    if (busy_.erase({process, slot}) != 0 && !may_be_busy) {
        wrong("worker " + text(process) + ": slot " + text(slot) + " is assigned while it works");
    }
}

void Ledger::died(uint32_t process) {
    std::erase_if(open_, [process](const auto& claim) { return claim.first.first == process; });
    std::erase_if(busy_, [process](const auto& slot) { return slot.first == process; });
    for (auto& [place, holding] : holdings_) {
        if (holding.process == process) holding.certain_until_ns = 0;
    }
}

// Sessions may have ended with their broker, and what they held with them; but not where a lease
// ends with its process alone.
void Ledger::broker_died(const std::set<uint32_t>& strict_pools) {
    busy_.clear();
    for (auto& [place, holding] : holdings_) {
        if (!strict_pools.contains(place.first)) holding.certain_until_ns = 0;
    }
}

}  // namespace dibs::sim
