// broker/core/turn.hpp -- holds what the running turn has decided, and runs its end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "broker/core/decision.hpp"
#include "broker/core/fast/fresh.hpp"
#include "broker/core/match/backlog.hpp"
#include "broker/core/module.hpp"
#include "broker/core/store/pool_set.hpp"
#include "broker/core/store/timers.hpp"

namespace dibs::core {

struct Turn : Module<Turn> {
    explicit Turn(const State& rows)
        : Module(rows),
          timers(rows.claims.size(), 0, rows.leases.size(), rows.slots.size()),
          dirty(rows.pools.size()),
          touched(rows.pools.size()),
          fresh_of_pool(rows.pools.size()) {}

    Timers timers;    // of claims and leases
    PoolSet dirty;    // the pass has to look at them
    PoolSet touched;  // counters changed in this turn
    static constexpr uint32_t kFreshMax = 256;
    static_assert(kFreshMax <= Backlog::kGap);
    std::vector<FreshClaim> fresh;  // never grows: kFreshMax are reserved
    std::vector<FreshList> fresh_of_pool;
    TimeNs now_ns = 0;
    uint64_t first_number = 0;  // of the claims that came in this turn, cuts included
    bool cut = false;
    bool passes_again = false;  // another pass of the turn follows, in a turn of its own
    bool forgetting = false;    // the turn opened, and the log was full before all were forgotten
    bool pledged = false;       // the claim that is applied next is granted already
    bool just_attached = true;  // its first turn tells what a predecessor's cut turn did not
    std::vector<Decision> decisions;
    uint32_t grants = 0;  // among the decisions; an adoption is two
    std::vector<Revival> revivals;
    std::vector<DecidedSlot> decided_slots;
    std::vector<int64_t> decided_amounts;
    std::vector<uint32_t> scratch;
    std::vector<uint32_t> touched_list;

    // decide.cpp
    // A cut gives each fresh claim a row after all. The line of its session is one of those that
    // are touched because they have been read from.
    bool full() const {
        return edit().full(decisions.size() + fresh.size(), grants + revivals.size());
    }
    bool sweep_kept();
    bool run_timers();
    bool tell_news();
    bool serve_all();
    Decision& decide_that(DecisionKind kind) {
        // A copy of a blank one: g++ 12 would clear it with "rep stos", at 30 cycles a time.
        static constexpr Decision kBlank{.kind = DecisionKind::kResult};
        decisions.push_back(kBlank);
        decisions.back().kind = kind;
        return decisions.back();
    }
    void result(SessionId session, uint64_t user_data, Reason reason, uint64_t value = 0);

    // leases.cpp
    void list_slots(Decision* decision, uint32_t first);

    [[nodiscard]] TimeNs event_time(TimeNs given) const { return given == kNever ? now_ns : given; }

  private:
    // decide.cpp
    void run_timer(const Timer& timer);
    bool tell_drained();
    bool tell_demand();
};

}  // namespace dibs::core
