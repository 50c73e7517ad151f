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

void Ledger::told_fence(uint32_t pool, uint64_t fence) {
    told(fence);
    if (!fences_.insert({pool, fence}).second) {
        wrong("pool " + text(pool) + ": fence " + text(fence) + " was given out twice");
    }
}

std::vector<Ledger::Holding*> Ledger::holdings_of(uint32_t pool, uint64_t fence) {
    std::vector<Holding*> found;
    const auto slots = slots_.find({pool, fence});
    if (slots == slots_.end()) return found;
    for (const uint32_t slot : slots->second) {
        Holding& holding = holdings_.at({pool, slot});
        if (holding.fence == fence) found.push_back(&holding);
    }
    return found;
}

void Ledger::doubt(uint32_t pool, uint64_t fence) {
    doubted_.insert({pool, fence});
    for (Holding* holding : holdings_of(pool, fence))
        holding->certain_until_ns = 0;
}

void Ledger::granted(uint32_t process,
                     uint32_t pool,
                     const std::vector<uint32_t>& slots,
                     uint64_t fence,
                     uint64_t certain_until_ns,
                     uint64_t now) {
    told_fence(pool, fence);
    if (is_doubted(pool, fence)) certain_until_ns = 0;
    for (const uint32_t slot : slots) {
        told(slot);
        Holding& holding = holdings_[{pool, slot}];
        // Told late, its time may be over already.
        if (holding.certain_until_ns > now && certain_until_ns > now) {
            wrong("pool " + text(pool) + " slot " + text(slot) + ": process " +
                  text(holding.process) + " holds it by fence " + text(holding.fence) +
                  ", process " + text(process) + " is granted it by fence " + text(fence));
        }
        if (holding.fence > fence) continue;  // told late: somebody else has had it since
        holding = {process, fence, certain_until_ns, false};
    }
    slots_[{pool, fence}] = slots;
}

void Ledger::prolonged(uint32_t process, uint32_t pool, uint64_t fence, uint64_t certain_until_ns) {
    if (is_doubted(pool, fence)) return;
    for (Holding* holding : holdings_of(pool, fence)) {
        if (holding->process != process || holding->offered) continue;
        holding->certain_until_ns = certain_until_ns;
    }
}

void Ledger::returned(uint32_t process, uint32_t pool, uint64_t fence) {
    prolonged(process, pool, fence, 0);
}

void Ledger::offered(uint32_t pool, uint64_t fence) {
    for (Holding* holding : holdings_of(pool, fence)) {
        holding->certain_until_ns = 0;
        holding->offered = true;
    }
}

void Ledger::adopted(uint32_t process, uint32_t pool, uint64_t fence, uint64_t certain_until_ns) {
    told(process);
    told(fence);
    if (is_doubted(pool, fence)) certain_until_ns = 0;
    for (Holding* holding : holdings_of(pool, fence))
        *holding = {process, fence, certain_until_ns, false};
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
