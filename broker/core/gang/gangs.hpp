// broker/core/gang/gangs.hpp -- applications, their tasks, and gangs that run all or none.
//
// A group of an application has a claim without a session for its placeholders that are missing:
// its ask. It waits in the pool as a claim does, and each slot that it takes is reserved for the
// group, with no worker asked. A task's claim is held, in no backlog, until its application runs,
// and then replaces a placeholder, or waits as others do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/core/decision.hpp"
#include "broker/core/gang/parameters.hpp"
#include "broker/core/module.hpp"
#include "broker/core/store/chains.hpp"
#include "broker/core/store/index.hpp"
#include "broker/core/store/timers.hpp"
#include "shm/app_state.hpp"

namespace dibs::core {

// Some of a slot's resources; nothing of any is a whole slot.
inline bool wants_some(const auto& resource) {
    return std::any_of(
        std::begin(resource), std::end(resource), [](uint64_t much) { return much != 0; });
}

// For placeholders that are missing.
inline bool is_ask(const shm::ClaimRow& claim) {
    return claim.session == kNoRow;
}

inline bool is_ending(shm::AppState state) {
    return state == shm::AppState::kFailing || state == shm::AppState::kKilling;
}
// It may still serve its tasks.
inline bool is_live(shm::AppState state) {
    return state == shm::AppState::kAccepted || state == shm::AppState::kReserving ||
           state == shm::AppState::kRunning || state == shm::AppState::kRecovering;
}
inline bool has_ended(shm::TaskState state) {
    return state >= shm::TaskState::kCompleted;
}

struct Gangs : Module<Gangs> {
    explicit Gangs(const State& rows);

    Index app_names;                // (uid, name) → application, until it is removed
    Index task_names;               // (application, name) → task
    Chains app_tasks;               // list: application, row: task, by number
    Chains session_apps;            // list: session, row: application that it manages
    Chains pool_apps;               // list: pool, row: application that has not ended
    Chains held;                    // list: application, row: claim, by priority, then number
    Chains placeholders;            // list: group, row: slot, by index
    Chains ended_apps;              // list: 0, row: application, as they ended
    std::vector<uint32_t> holder;   // pool → application that holds a part of its placeholders
    std::vector<uint32_t> held_in;  // pool → claims that are held
    std::vector<uint32_t> task_of;  // lease → task; of those with LeaseRow::of_task
    Timers due;                     // kKept: placeholders', kLease: managers'; rows: applications
    uint32_t linked = 0;            // slots with a group
    // In this look at a pool: one has come to hold a part, or has given its part back.
    bool is_new_holder = false, has_given_way = false;

    // applications.cpp
    Reason apply(const AddApplication& command, uint64_t* number);
    Reason apply(const ApplicationEvent& command, uint64_t* value);
    [[nodiscard]] uint32_t find(uint32_t uid, std::string_view name) const;
    [[nodiscard]] uint32_t find_task(uint32_t app, std::string_view name) const;
    // One of its manager's session, which ends; false: it has none.
    bool orphan_one(uint32_t session);
    void pool_changes(uint32_t pool);  // it drains, or leaves
    bool pool_goes(uint32_t pool);     // false: the log is full
    [[nodiscard]] bool has_claims(uint32_t pool) const;

    // looks.cpp
    [[nodiscard]] bool has_news() const { return !news_.empty() || !ending_.empty(); }
    [[nodiscard]] bool has_work() const { return has_news() || !blocked_.empty(); }
    // Timers, ends and looks at applications with news. False: the log is full.
    bool go_on() { return (due.empty() && !has_work()) || run_looks(); }
    [[nodiscard]] bool has_unblocked() const;
    bool end_impatient() { return impatient_.empty() || end_impatient_held(); }
    [[nodiscard]] TimeNs next_due() const { return due.empty() ? kNever : due.first().due_ns; }

    // placeholders.cpp
    // False: the log is full. What is still missing afterwards waits.
    bool serve_ask(uint32_t claim);
    bool serve_holder(uint32_t pool);
    void ask_drains(uint32_t claim);
    // A slot that would become idle is its placeholder's again; false: it is nobody's.
    bool comes_back(uint32_t slot);
    void is_lost(uint32_t slot);
    // Placeholders are in the order of their groups, then by index; 0, 0: it is none.
    [[nodiscard]] std::pair<uint64_t, uint32_t> place(const shm::SlotRow& slot) const;
    void whole_leaves(uint32_t slot);
    // Slots, by place; those of applications that end with this turn, too.
    [[nodiscard]] std::vector<uint32_t> placeholders_in(uint32_t pool) const;

    // tasks.cpp
    void apply_claim(const Claim& command);
    void wait_again(uint32_t claim);
    void is_granted(uint32_t claim, uint32_t lease);  // the claim's row is still there
    void claim_ends(uint32_t claim, Outcome outcome, Reason reason);
    void lease_ends(uint32_t lease, Reason reason);

    // recovery.cpp
    void rebuild_gangs();
    void seat_held(uint32_t claim);
    void placeholder_is_found(uint32_t slot);
    void check_gangs(std::vector<std::string>* wrongs) const;

  private:
    // applications.cpp
    [[nodiscard]] uint64_t app_hash(uint32_t uid, std::string_view name) const;
    [[nodiscard]] uint64_t task_hash(uint32_t app, std::string_view name) const;
    [[nodiscard]] Reason admission(const AddApplication& command) const;
    [[nodiscard]] Reason size_refusal(uint32_t pool, std::span<const Members> groups) const;
    [[nodiscard]] bool are_groups(const AddApplication& command) const;
    void make_groups(const AddApplication& command, uint32_t app, uint64_t number);
    Reason add(const AddApplication& command, uint32_t uid, uint64_t* number);
    Reason happens(const ApplicationEvent& command, uint32_t uid, uint64_t* value);
    Reason happens_to_task(const ApplicationEvent& command, uint32_t app);
    Reason adopt(uint32_t app, uint32_t session);
    void set_state(uint32_t app, shm::AppState to, Reason reason = Reason::kOk);
    void tell_state(uint32_t app, shm::AppState from, shm::AppState to, Reason reason);
    Decision& tell_of(DecisionKind kind, uint32_t app, std::string_view name);
    void set_manager(uint32_t app, uint32_t session);
    void set_manager_limit(uint32_t app, TimeNs until_ns);
    [[nodiscard]] bool is_managed(const shm::AppRow& app) const {
        return app.manager != kNoRow || (app.flags & shm::AppFlag::kUnmanaged) != 0;
    }

    // looks.cpp
    void add_news(uint32_t app);
    bool run_looks();
    bool run_app_timers();
    bool look_at(uint32_t app);
    bool look_at_all();
    [[nodiscard]] bool is_whole(uint32_t app) const;
    [[nodiscard]] bool can_be_whole(uint32_t app) const;
    void go_on_reserving(uint32_t app);
    void decide_on(uint32_t app);
    void open_gate(uint32_t app);
    void time_is_over(uint32_t app);
    void reservation_fails(uint32_t app, Reason reason);
    void set_timeout(uint32_t app, TimeNs until_ns);
    bool end_impatient_held();

    // endings.cpp
    void fail(uint32_t app, shm::AppState to, Reason reason);
    Reason complete(uint32_t app);
    Reason remove(uint32_t app, SessionId by, uint64_t* left);
    void stop_holding(uint32_t app);
    void begin_to_end(uint32_t app);
    bool go_on_ending();
    bool end_tasks(uint32_t app);
    bool free_rows_of(uint32_t app);
    void leave(uint32_t app);
    void make_room(uint32_t uid, size_t groups = 0);
    void forget(uint32_t app);
    void revoke(uint32_t lease);

    // placeholders.cpp
    bool ask(uint32_t group);  // false: no claim row
    void drop_ask(uint32_t group);
    [[nodiscard]] uint32_t slot_for(uint32_t claim);
    void hold(uint32_t slot, uint32_t group);
    void tell_of_slot(uint32_t slot, PlaceholderNews news);
    void unlink(uint32_t slot, PlaceholderNews news);
    void release_group(uint32_t group);
    void release_all(uint32_t app);
    void put_back(uint32_t slot);
    bool give_way(uint32_t app);

    // tasks.cpp
    struct Member {
        uint32_t app = kNoRow;
        uint32_t task = kNoRow;
        uint32_t group = kNoRow;
    };
    [[nodiscard]] Reason member_refusal(const Claim& command,
                                        Member* member,
                                        uint64_t* other) const;
    [[nodiscard]] Reason find_group(uint32_t app, std::string_view name, uint32_t* group) const;
    uint32_t add_task(const Member& member, std::string_view name, int32_t priority);
    void end_task(uint32_t task, shm::TaskState to, Reason reason);
    void end_claim(uint32_t claim, Outcome outcome, Reason reason);
    void complete_task(uint32_t task);
    void leave_lease(uint32_t task);
    void hold_claim(uint32_t claim);
    void unhold(uint32_t claim);
    bool serve_held(uint32_t app);
    void enter_backlog(uint32_t claim);
    [[nodiscard]] bool fits(uint32_t claim, uint32_t group) const;
    [[nodiscard]] uint32_t free_placeholder(uint32_t group) const;
    [[nodiscard]] bool is_withdrawn(uint32_t slot) const;
    [[nodiscard]] bool may_be_granted(uint32_t slot) const;
    [[nodiscard]] bool may_be_replaced(uint32_t slot) const;
    void replace(uint32_t claim, uint32_t slot);
    void free_task(uint32_t task);

    template <class Visit>
    void each_group(uint32_t app, const Visit& visit) const {
        for (uint32_t group = state.apps[app].first_group; group != kNoRow;) {
            const uint32_t next = state.groups[group].next;
            visit(group);
            group = next;
        }
    }

    std::vector<uint32_t> news_;       // applications to look at,
    std::vector<uint8_t> has_news_;    // by row
    std::vector<uint32_t> ending_;     // with tasks to end, or rows to free
    std::vector<uint32_t> blocked_;    // a placeholder was there, and could not be replaced
    std::vector<uint32_t> impatient_;  // claims that were held
    std::vector<uint32_t> looks_;
};

}  // namespace dibs::core
