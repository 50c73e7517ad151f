// tests/naive/statements.hpp -- a judge of the core: the statements of S0, streaming pools, held
// against the commands of each turn and what was decided.
//
// Written from the statements, so that what both cores read wrongly is seen; but where they leave
// it open, the judge has learnt from the core what it means: a confirming claim counts in the
// backlog; the oldest wait is of those that wait; a reservation's end is told to nobody, and its
// slot is then its worker's to speak for, and told revoke once; a claim of more units than a
// lowered unconfirmed_max has it alone; what is cancelled from outside ends as revoked; a
// confirmation that nobody waits for is "state". There it sees changes, and no misreading.
//
// The judge decides nothing: it follows, in lists, what commands and decisions say of claims and
// slots, and asks of each decision whether the statements allow it, and of each turn's end whether
// they wanted one that did not come. Where a slot's state cannot be told from outside it is unsure,
// and the judge asks nothing of it until it is chosen or spoken for again.
//
// It steps aside from pools ordered by account, and asks for no grant where one is in the journal:
// it cannot tell then whether a lease row is left; from what leases do of themselves (expiry,
// grace, kills, adoption: S3); from ends that S0 does not know (keys, units, payloads, full
// tables).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/naive/decision_line.hpp"
#include "tests/naive/journal.hpp"
#include "tests/naive/statement_rows.hpp"

namespace dibs::naive {

inline constexpr size_t kStatements = 42;  // S0.1 to S0.41

// How often each statement was put to the test: index 17 is S0.17's.
using Tested = std::array<uint64_t, kStatements>;

// A command of the turn, and where its decisions end.
struct Heard {
    const Step* step = nullptr;
    uint32_t pool = kNoLabel;  // the pool that it names by now; a name may have gone and come back
    bool names_pool = true;    // false: a drain of the broker
    size_t lines_end = 0;
};

// What anybody can see of a pool at the turn's end.
struct PoolPicture {
    bool lives = true;
    uint32_t row = 0;
    uint32_t idle = 0;
    uint32_t waiting = 0;
    uint32_t confirming = 0;
    uint32_t unconfirmed = 0;
    uint32_t reserved = 0;
    uint64_t last_dispatch_ns = 0;
};

struct Turn {
    core::TimeNs now = 0;
    std::vector<Heard> heard;         // commands that were played
    std::vector<DecisionLine> lines;  // its opening's, theirs, then those of timers and the pass
    size_t opening_end = 0;           // of its lines
    std::vector<PoolPicture> pools;   // by label
    core::TimeNs next_due = shm::kNever;
};

class Statements {
  public:
    explicit Statements(const Journal& journal);

    // The first statement that the turn breaks, by its number and in words; empty = none.
    std::string judge(const Turn& turn);
    [[nodiscard]] const Tested& tested() const { return tested_; }

  private:
    // statements.cpp
    template <class Words>
    bool hold(size_t statement, bool holds, const Words& words, bool might_break = true);
    void hear_lines(const Turn& turn, size_t& at, size_t end);
    uint32_t living(const Turn& turn, uint32_t pool) const;

    // statement_commands.cpp: what commands do
    void begin(const Heard& heard);
    void take_effect(const DecisionLine& result);
    void confirmation_is_right(const DecisionLine& result);
    void end(const Heard& heard);
    void claim(const Heard& heard);
    void word(const Step& step);
    void confirm(JudgedSlot& slot, const JudgedClaim* claim);
    void word_is_over(const Step& step);
    void died(uint32_t session);
    void outlived(uint32_t session);
    void offers_no_more(uint32_t session);
    void drain(const Heard& heard);
    void drain_slot(JudgedSlot& slot, bool on);
    void leave(JudgedSlot& slot);
    void retire(JudgedPool& pool);
    void harvest(const Step& step);
    void configure(uint32_t label, const PoolSpec& spec);

    // statement_decisions.cpp: whether what is decided may be
    void hear(const DecisionLine& line, uint32_t pool);
    void announced(const DecisionLine& line);
    void assign(const DecisionLine& line);
    void grant(const DecisionLine& line);
    void confirmed_right(const JudgedClaim& claim, const DecisionLine& line);
    void end_claim(const DecisionLine& line);
    void end_is_right(const JudgedClaim& claim, const DecisionLine& line);
    void rejection_is_right(const JudgedClaim& claim, const DecisionLine& line);
    void adopted(const DecisionLine& line);
    void answer();
    void revoke(JudgedSlot& slot);
    void lease_end(const DecisionLine& line);
    void demand(const DecisionLine& line, uint32_t label);
    void drained(uint32_t label);
    void nothing_is_left(const JudgedPool& pool);
    void told_right(const JudgedClaim& claim, const DecisionLine& line);

    // statement_choices.cpp: who gets which slot
    void may_be_served(const JudgedClaim& claim);
    void may_be_chosen(const JudgedClaim& claim, const JudgedSlot& slot);
    void are_longest_idle(uint32_t pool, const std::vector<uint32_t>& chosen);
    void count_news(const JudgedClaim& claim, const JudgedSlot& slot);
    void count_traps(const JudgedPool& pool);
    static size_t statement_of(News news);
    [[nodiscard]] bool could_be_served(const JudgedClaim& claim) const;
    [[nodiscard]] bool has_room(const JudgedPool& pool, uint32_t units) const;
    [[nodiscard]] uint32_t ready_in(const JudgedPool& pool) const;

    // statement_turns.cpp: what the turn's end wants
    void sweep();
    void sweep(JudgedPool& pool);
    void reservations_end();
    void turn_ends(const Turn& turn);
    void head_is_served(const JudgedPool& pool);
    void nobody_is_late(const JudgedPool& pool);
    void reservations_hold(const JudgedPool& pool);
    void backlog_is_bounded(const JudgedPool& pool);
    void drain_is_complete(const JudgedPool& pool);
    void picture_is_true(const JudgedPool& pool, const PoolPicture& picture);
    static uint32_t reserved_in(const JudgedPool& pool);
    void demand_is_published(const JudgedPool& pool);
    static bool is_news(int64_t last, int64_t now);
    void timers_are_exact(const Turn& turn);
    [[nodiscard]] bool leases_have_timers() const;
    [[nodiscard]] uint32_t leased() const;

    // statement_rows.cpp: looking, and moving what is followed
    JudgedPool* pool_of(uint32_t label);
    JudgedSlot* slot_of(uint32_t pool, uint32_t number);
    JudgedSlot* slot_of_label(uint32_t label);
    JudgedClaim* claim_of(uint64_t number);
    JudgedClaim* claim_of_label(uint32_t label);
    [[nodiscard]] const JudgedClaim* first_waiting(uint32_t pool) const;
    [[nodiscard]] bool has_ended(uint64_t number) const;
    [[nodiscard]] uint32_t count(uint32_t pool, ClaimPhase phase) const;
    [[nodiscard]] uint32_t pending_in(uint32_t pool) const;
    [[nodiscard]] static uint32_t unconfirmed_in(const JudgedPool& pool);
    [[nodiscard]] bool is_draining(const JudgedPool& pool) const;
    [[nodiscard]] bool is_qualified(const JudgedSlot& slot) const;
    [[nodiscard]] bool is_ready(const JudgedSlot& slot) const;
    void become_idle(JudgedSlot& slot, News news);
    void wait_again(JudgedClaim& claim);
    void let_go(JudgedClaim& claim);
    void end_lease(JudgedClaim& claim, LeaseEnd end);  // the claim is gone after it
    void forget_slot(uint32_t pool, uint32_t number);

    const Journal& journal_;
    Tested tested_{};
    std::string broken_;
    core::TimeNs now_ = 0;
    uint64_t clock_ = 0;       // grows with every command and decision
    uint64_t turn_clock_ = 0;  // at the turn's beginning
    uint64_t turns_ = 0;
    uint64_t claims_seen_ = 0;
    const Step* step_ = nullptr;  // whose decisions are heard; null: of timers and the pass
    bool step_is_ok_ = false;
    uint32_t step_pool_ = kNoLabel;
    uint64_t spoken_of_ = 0;  // the claim for which the slot of the worker's word was reserved
    bool is_late_ = false;    // the worker's word is a confirmation for which it is too late
    bool broker_drains_ = false;
    bool broker_is_drained_ = true;
    bool leases_are_judged_ = true;
    uint32_t ready_chosen_ = 0;  // slots said ready and chosen in this turn
    std::vector<JudgedPool> pools_;
    std::map<uint64_t, JudgedClaim> claims_;  // by number: those that have not ended
    std::set<uint64_t> judged_;               // all of them that ever were
    std::map<uint32_t, uint64_t> numbers_;    // by label
    std::map<uint32_t, SlotPlace> places_;    // by the label of an announcement
    std::set<uint32_t> sessions_;             // those that live
    uint64_t incarnations_ = 0;
};

}  // namespace dibs::naive
