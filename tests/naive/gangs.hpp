// tests/naive/gangs.hpp -- applications, their gangs and their tasks, as the naive core has them.
//
// Written from "Applications and gangs" in docs/scheduling.md, which is quoted, and from S4. All
// that it remembers is in the model; this is only the place of its functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/naive/naive_core.hpp"

namespace dibs::naive {

// What a claim that names a task is refused for, behind what it would be refused for without.
shm::Reason member_refusal(const Model& model, const core::Claim& claim, uint64_t* first_claim);

// Rows that are in use.
uint64_t groups_in(const Model& model);
uint64_t tasks_in(const Model& model);

// The application that holds a part of its placeholders in this pool.
std::optional<uint64_t> half_reserved(const Model& model, uint32_t pool);

// The number of the group whose placeholder's slot it is, and which one of these; nothing:
// nobody's.
std::pair<uint64_t, uint32_t> place_in_gang(const Model& model, const Slot& slot);

// The next instant at which an application has something due.
TimeNs next_of_applications(const Model& model);

class Gangs {
  public:
    explicit Gangs(NaiveCore& core) : core_(core), m_(core.m_) {}

    // gang_commands.cpp
    shm::Reason add(const core::AddApplication& command, uint64_t* number_of);
    shm::Reason apply(const core::ApplicationEvent& event, uint64_t* value);
    shm::Reason room_for_task(const core::Claim& claim);
    void take_member(Claim& claim, const core::MemberOf& member);

    // gang_ends.cpp: what becomes of claims, leases, slots and sessions
    void granted(const Claim& claim);
    void let_go(const Claim& claim);
    void claim_ended(const Claim& claim, shm::Outcome outcome);
    void lease_ends(const Lease& lease, shm::TaskState as);
    void slot_goes(const Slot& slot);
    bool comes_back(Slot& slot);
    void session_gone(uint32_t session);
    void ask_drains(uint64_t ask);
    void pool_goes(uint32_t pool);

    // gang_pass.cpp
    void take_placeholders(uint64_t ask);
    void serve_half_reserved(uint32_t pool);

    // gang_turn.cpp
    void run_timers();
    void end_those_that_end();
    bool look();
    void reject_held();

  private:
    // commands
    void tell(uint32_t session, uint64_t user_data, shm::Reason reason, uint64_t value);
    Application* find(uint32_t session, uint32_t uid, std::string_view name);
    shm::Reason addition_refusal(const core::AddApplication& command, uint64_t* number);
    std::vector<Group> groups_of(const core::AddApplication& command, bool* malformed) const;
    shm::Reason admission_refusal(uint32_t of, const std::vector<Group>& groups) const;
    shm::Reason size_refusal(uint32_t of, const std::vector<Group>& groups) const;
    shm::Reason event_refusal(const core::ApplicationEvent& event, uint64_t* value);
    shm::Reason task_refusal(const core::ApplicationEvent& event, const Application* app);
    void do_event(const core::ApplicationEvent& event, Application& app);
    void add_task(const core::ApplicationEvent& event, Application& app);
    void complete_task(Task& task);
    [[nodiscard]] uint64_t tasks_left(const Application& app) const;

    // turns
    bool decide(Application& app);
    bool reserve(Application& app);
    bool ask(Application& app);
    bool look_at_held(Application& app);
    bool look_at(Application& app, uint64_t claim);
    bool wants_more(const Claim& claim, const Group& group) const;
    void replace(uint64_t claim, const PlaceholderName& name);
    void time_is_over(Application& app);
    void reservation_fails(Application& app);
    void strip(Application& app);
    void end_claims(Application& app);
    [[nodiscard]] std::vector<uint64_t> remembered() const;
    void forget_oldest(const Application& last);
    void make_room(uint32_t uid, size_t groups = 0);
    void forget(uint64_t number);
    void free_rows_of(uint64_t number);

    // placeholders
    std::optional<uint64_t> slot_for(const Claim& ask);
    void bind(Claim& ask, uint64_t slot);
    void release_all(Application& app, bool also_replaced);
    bool release_group(Application& app, size_t group, bool also_replaced);
    void drop_asks(const Application& app);

    void go_to(Application& app, shm::AppState state, shm::Reason reason = shm::Reason::kOk);
    void tell_state(const Application& app, shm::AppState from, shm::Reason reason);
    void tell_task(const Application& app, const Task& task, shm::TaskState from);
    void tell_placeholder(const PlaceholderName& name,
                          const Slot& slot,
                          core::PlaceholderNews news);
    std::string_view keep(std::string_view name);

    NaiveCore& core_;
    Model& m_;
};

}  // namespace dibs::naive
