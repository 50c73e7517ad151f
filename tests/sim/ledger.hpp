// tests/sim/ledger.hpp -- who holds what, as clients and workers have been told: the judge.
//
// It never looks at the broker. A holder is certain from the moment at which it was told of its
// grant until it gives back, dies, or its interval, counted from before it asked, is over; or until
// a better claim may have taken the slot; or until it lets another session have the lease. Whoever
// is granted the same slot meanwhile has it twice. Where somebody else may end a lease, a worker or
// an administrator, that lease is doubted from the moment at which the broker hears him
// (auditor.hpp). A lease that is parked and taken again is used by another fence each time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace dibs::sim {

class Ledger {
  public:
    // A lease, or one use of it.
    struct Use {
        uint32_t pool;
        uint64_t lease;
        uint64_t fence;
    };
    struct Holding {
        uint32_t process;
        uint64_t lease;
        uint64_t fence;
        uint64_t certain_until_ns;
        bool offered;  // whose it is says whoever has adopted it
    };

    // --- claims: each has exactly one outcome
    void asked(uint32_t process, uint64_t number, uint64_t now);
    void answered(uint32_t process, uint64_t number);
    // --- slots, by their numbers
    // Its leases may be parked: two of its slots may show the same fence.
    void parks(uint32_t pool) { parking_.insert(pool); }
    void granted(uint32_t process,
                 const Use& use,
                 const std::vector<uint32_t>& slots,
                 uint64_t certain_until_ns,
                 uint64_t now);
    void prolonged(uint32_t process, const Use& use, uint64_t certain_until_ns);
    void returned(uint32_t process, const Use& use);
    void offered(const Use& use);
    void adopted(uint32_t process, const Use& use, uint64_t certain_until_ns);
    // A grant that nobody will hold: its fence alone counts.
    void told_fence(const Use& use);
    // Somebody else may end it: from now on nobody is certain of it.
    void doubt(uint64_t lease);
    [[nodiscard]] bool is_doubted(uint64_t lease) const { return doubted_.contains(lease); }
    // It ends although its holder has said nothing: he must have put it aside.
    void recalled(uint64_t lease, uint64_t now);
    // --- a worker's slot
    void assigned(uint32_t process, uint64_t slot, bool may_be_busy);
    void busy(uint32_t process, uint64_t slot) { busy_.insert({process, slot}); }
    void free(uint32_t process, uint64_t slot) { busy_.erase({process, slot}); }
    // --- ends
    void died(uint32_t process);
    void broker_died(const std::set<uint32_t>& strict_pools);

    [[nodiscard]] size_t open_claims() const { return open_.size(); }
    [[nodiscard]] const std::vector<std::string>& wrongs() const { return wrongs_; }
    void wrong(const std::string& what) { wrongs_.push_back(what); }
    // Everything that was told, in one number.
    void told(uint64_t word) { hash_ = (hash_ ^ word) * 0x100000001b3ULL; }
    [[nodiscard]] uint64_t hash() const { return hash_; }
    [[nodiscard]] uint64_t grants() const { return fences_.size(); }
    [[nodiscard]] uint64_t assignments() const { return assignments_; }

  private:
    std::map<std::pair<uint32_t, uint64_t>, uint64_t> open_;
    using Place = std::pair<uint32_t, uint32_t>;  // pool and slot
    [[nodiscard]] std::vector<Holding*> holdings_of(uint64_t lease);
    [[nodiscard]] std::vector<Holding*> holdings_of(const Use& use);

    std::map<Place, Holding> holdings_;
    std::map<uint64_t, std::vector<Place>> slots_;               // by lease
    std::set<std::tuple<uint32_t, uint64_t, uint64_t>> fences_;  // pool, lease if it parks
    // process and lease, by place and fence
    std::map<std::pair<Place, uint64_t>, std::pair<uint32_t, uint64_t>> fences_of_slots_;
    std::set<uint32_t> parking_;                    // pools
    std::set<uint64_t> doubted_;                    // leases
    std::set<std::pair<uint32_t, uint64_t>> busy_;  // process and slot
    std::vector<std::string> wrongs_;
    uint64_t assignments_ = 0;
    uint64_t hash_ = 0xcbf29ce484222325ULL;
};

}  // namespace dibs::sim
