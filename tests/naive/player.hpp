// tests/naive/player.hpp -- plays a journal's steps to a core and writes down what it decides.
//
// The core is core::Core or NaiveCore: they take the same commands and name things by ids of
// their own, which a player learns from the decisions. A step about something that the core has
// not made is played with an id that names nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/naive/decision_line.hpp"
#include "tests/naive/journal.hpp"

namespace dibs::naive {

inline constexpr uint64_t kNoSuchId = 0x7fffffff'7fffffffULL;

template <class CoreType>
class Player {
  public:
    Player(CoreType& core, const Journal& journal) : core_(core), journal_(journal) {}

    // Any step but a turn's end.
    void play(const Step& step);
    // Writes down what the core has decided since the last time.
    void listen();

    [[nodiscard]] const std::vector<DecisionLine>& lines() const { return lines_; }
    // A new turn: the decisions so far have been looked at.
    void turn_opened() { heard_ = 0; }
    void forget_lines() { lines_.clear(); }

    [[nodiscard]] bool session_is_open(uint32_t label) const { return sessions_.contains(label); }
    // Its process is dead, and its tree is not.
    [[nodiscard]] bool session_is_outlived(uint32_t label) const {
        return outlived_.contains(label);
    }
    // The step is of a session that can take it.
    [[nodiscard]] bool can_take(const Step& step) const {
        return step.session == kNoLabel || session_is_open(step.session) ||
               (step.kind == StepKind::kDied && session_is_outlived(step.session));
    }
    [[nodiscard]] bool knows_pool(uint32_t label) const { return pools_.contains(label); }
    // Whether the last step that sets a pool was accepted.
    [[nodiscard]] bool pool_was_set() const { return pool_was_set_; }
    [[nodiscard]] uint32_t pool_row(uint32_t label) const;
    [[nodiscard]] const std::map<uint32_t, uint32_t>& sessions() const { return sessions_; }
    [[nodiscard]] const std::map<uint32_t, uint32_t>& outlived() const { return outlived_; }
    [[nodiscard]] const std::map<uint32_t, uint64_t>& slots() const { return slots_; }
    [[nodiscard]] const std::map<uint32_t, uint64_t>& numbers() const { return numbers_; }
    // Claims whose leases' rows have been given to newer leases since the last call.
    [[nodiscard]] std::vector<uint64_t> take_leases_of_reused_rows();
    // Id of the claim's latest lease.
    [[nodiscard]] uint64_t lease_id(uint64_t claim) const { return leases_.at(claim).id; }

  private:
    struct KnownLease {
        uint64_t id = 0;
        uint64_t fence = 0;  // of its grant, or of its last take as far as that was told
        bool may_park = false;
        uint64_t takes = 0;
    };

    void set_pool(const Step& step);
    void change_pool(const Step& step);
    void delete_pool(const Step& step);
    void meet_counted_slots(uint32_t pool);
    void set_account(const Step& step);
    void report(const Step& step);
    void pull(const Step& step);
    void unassign(const Step& step);
    void update_claim(const Step& step);
    uint64_t number_of(uint32_t label) const;
    void tell_accepted(const Step& step, bool accepted);
    void claim(const Step& step);
    void announce(const Step& step);
    void word(const Step& step);
    void steer(const Step& step, uint32_t session);
    void drain(const Step& step);
    void set_type(const Step& step);
    void delete_type(const Step& step);
    void provide(const Step& step);
    void provisioned(const Step& step);
    void dispatch(const Step& step);
    void gang(const Step& step);
    uint64_t next_number() const;
    void word_gang(const core::Decision& decision, DecisionLine& line) const;
    uint64_t slot_id(uint32_t label) const;
    void harvest(const Step& step);
    void hear(const core::Decision& decision);
    DecisionLine line_of(const core::Decision& decision) const;
    uint32_t session_label(uint32_t row) const;
    uint32_t session_row(uint32_t label) const;
    uint32_t pool_label(uint32_t row) const;
    KnownLease lease_of(uint32_t label) const;

    CoreType& core_;
    const Journal& journal_;
    std::map<uint32_t, uint32_t> pools_;             // label → row
    std::map<uint32_t, uint32_t> label_of_row_;      // a pool's: of the last one that had it
    std::map<uint32_t, uint32_t> sessions_;          // label → row, of those that live
    std::map<uint32_t, uint32_t> outlived_;          // and of those whose trees alone do
    std::map<uint32_t, uint64_t> slots_;             // label → id
    std::map<uint32_t, uint64_t> numbers_;           // claim's label → its number
    std::map<uint64_t, KnownLease> leases_;          // claim's number → its lease
    std::map<uint64_t, uint64_t> claims_of_leases_;  // lease id → its claim's number
    std::map<uint64_t, uint32_t> rounds_;            // last told, by the slot's id
    std::map<uint32_t, std::vector<uint64_t>> claims_of_lease_row_;
    std::vector<uint64_t> reused_;
    std::map<uint32_t, uint32_t> slots_wanted_;  // of counted pools, by label
    std::set<uint32_t> growing_;                 // counted pools that have not all their slots yet
    bool pool_was_set_ = false;
    uint32_t announcing_ = kNoLabel;
    size_t heard_ = 0;
    std::vector<DecisionLine> lines_;
};

}  // namespace dibs::naive
