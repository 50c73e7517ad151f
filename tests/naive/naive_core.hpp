// tests/naive/naive_core.hpp -- the scheduler a second time: obvious, slow, from what it must do.
//
// Pools ordered by arrival are written from the statements of S0, the invariants and the settled
// questions beside them, which are named above each function (S0.17): turns, the pass, claims,
// slots, words, timers, deaths, drains, demand, counters. From the words of docs/scheduling.md,
// which are quoted, is what S0 leaves open (what leases do of themselves, keys, units, reasons of
// refusals, in which order decisions are told) and what pools ordered by account have of their own.
// Nothing is indexed, every question is a scan. It takes the commands of core::Core and gives
// decisions of the same kind, so that a journal can be played to both and compared. Ids differ: see
// model.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "broker/core/command.hpp"
#include "broker/core/core.hpp"
#include "broker/core/decision.hpp"
#include "broker/core/match/offers.hpp"
#include "tests/naive/model.hpp"
#include "tests/naive/passes.hpp"

namespace dibs::naive {

class Gangs;

class NaiveCore {
  public:
    explicit NaiveCore(const core::Limits& limits) : limits_(limits) {}

    // A pass of its own of the same turn, or a turn that begins.
    void begin_turn(TimeNs now, bool same_turn = false);
    void decide(bool last_pass = true);
    void forget_pulls() { m_.pulled.clear(); }

    uint32_t set_pool(const core::PoolConfig& config, std::string* why);
    shm::Reason delete_pool(uint32_t row, bool when_unused = false);
    uint32_t open_session(const core::SessionOpen& open);
    void session_died(uint32_t session, bool tree_lives = false);
    void apply(const core::Claim& claim);
    void apply(const core::Cancel& cancel);
    void apply(const core::Release& release);
    void apply(const core::Keepalive& keepalive);
    void apply(const core::Adopt& adopt);
    void apply(const core::KillFailed& failed);
    void apply(const core::Harvest& harvest);
    void apply(const core::Touch& touch);
    void apply(const core::Announce& announce);
    void apply(const core::WorkerWord& word);
    shm::Reason apply(const core::Drain& drain, TimeNs* left_ns = nullptr);
    shm::Reason apply(const core::Steer& steer, core::TimeNs* granted_ns);
    bool set_account(const core::AccountConfig& config, std::string* why);
    void delete_account(std::string_view name);
    bool reset_balance(std::string_view name, std::span<const int64_t> balance, std::string* why);
    void apply(const core::Report& report);
    void apply(const core::Pull& pull);
    void apply(const core::Unassign& unassign);
    void apply(const core::UpdateClaim& update);
    bool set_type(const core::TypeConfig& config, std::string* why);
    shm::Reason apply(const core::DeleteType& deleted);
    void apply(const core::Provide& provide);
    void apply(const core::Provisioned& provisioned);
    void apply(const core::EntryReport& report);
    void apply(const core::QueueRead& read);
    void apply(const core::QueueOperation& operation);
    void apply(const core::OperationDone& done);
    void apply(const core::WorkerReport& report);
    void apply(const core::ProcessReport& report);
    void apply(const core::Probe& probe);
    void apply(const core::SetBehaviour& set);
    shm::Reason apply(const core::AddApplication& command, uint64_t* number);
    shm::Reason apply(const core::ApplicationEvent& event, uint64_t* value);

    [[nodiscard]] std::span<const core::Decision> decisions() const { return decisions_; }
    [[nodiscard]] std::span<const core::DecidedSlot> decided_slots(
        const core::Decision& decision) const;
    [[nodiscard]] std::span<const int64_t> decided_amounts(const core::Decision& decision) const;

    // Where rows of leases lie is the other core's affair, but what is said of a lease that has
    // ended depends on it: whoever plays a journal tells when an ended lease's row is used again.
    void lease_row_used_again(uint64_t lease);

    // A preemption made a claim wait again, or one that has ended with the pass had kept others
    // from slots: "another pass over the pool follows at once, in a turn of its own at the same
    // time".
    [[nodiscard]] bool wants_turn() const { return m_.pass_once_more; }
    // The next instant at which a timer is due; kNever = none.
    [[nodiscard]] TimeNs next_due() const;
    [[nodiscard]] PoolCounters counters(uint32_t pool) const;
    // By the pool's order of its resources; sound vectors, or none.
    [[nodiscard]] std::vector<core::Offer> offers(uint32_t pool,
                                                  std::span<const core::Amount> least,
                                                  std::span<const core::Amount> most,
                                                  uint64_t seed) const;
    // Claims whose leases may be parked and are not wanted, oldest grant first.
    [[nodiscard]] std::vector<uint64_t> parkable_of(uint32_t pool) const;
    [[nodiscard]] bool parks(uint32_t pool) const;
    [[nodiscard]] const Model& model() const { return m_; }
    [[nodiscard]] bool tag_in_use(uint32_t session, uint16_t tag) const;
    // That a pass would give it now.
    [[nodiscard]] uint8_t class_of(const Claim& claim) const;
    // Slots of the account's leases at this class, in all pools.
    [[nodiscard]] int64_t running(const std::string& account, uint8_t at) const;
    // Of an elastic pool: "F" of S1, of one type or of all.
    [[nodiscard]] uint64_t unallocated(uint32_t pool, uint32_t type = shm::kNoRow) const;
    [[nodiscard]] bool at_quota(uint32_t pool) const;
    [[nodiscard]] bool quota_is_met(uint32_t pool) const;
    [[nodiscard]] bool at_capacity(const Type& type) const;
    [[nodiscard]] bool is_elastic(uint32_t pool) const;
    [[nodiscard]] bool is_dispatched(uint32_t pool) const;
    // Entries that wait, in order.
    [[nodiscard]] std::vector<uint64_t> entry_order(uint32_t pool) const;
    [[nodiscard]] uint64_t supervisors_max(uint32_t pool) const;
    // Instants at which time alone may change what provisioners are told, in order.
    [[nodiscard]] std::vector<TimeNs> provision_instants() const;
    // Those that somebody still names.
    [[nodiscard]] std::map<std::string, Account> known_accounts() const;

  private:
    friend class Gangs;  // gangs.hpp
    Gangs gangs();

    // turn
    void sweep_reservations();
    void run_timers();
    void pass_over(uint32_t pool);
    void pass_in_order(uint32_t pool);
    std::vector<uint64_t> order_of(uint32_t pool) const;
    bool is_held(const Claim& claim) const;
    void tell_drained();
    [[nodiscard]] uint64_t oldest_wait_of(uint32_t row) const;
    void publish_demand();
    void tell_demand(uint32_t pool);
    static bool is_news(int64_t last, int64_t cur);

    // pools
    uint32_t row_for(std::string_view name) const;
    bool pool_lives(uint32_t pool) const;
    bool is_draining(uint32_t pool) const;
    bool by_account(uint32_t pool) const;
    bool change_is_refused(uint32_t row, const core::PoolConfig& config) const;
    void grow_pool(uint32_t row);
    void shrink_pool(uint32_t row);
    void end_waiting(uint32_t row);
    void drain_slot(Slot& slot, bool on);
    std::vector<uint64_t> pending_of(uint32_t pool) const;
    uint64_t unconfirmed_of(uint32_t pool) const;
    bool may_ask(uint32_t pool, uint64_t workers) const;
    const Lease* oldest_lease_of(uint32_t pool) const;
    uint32_t arena_free() const;
    void arena_freed(uint32_t blocks) { m_.arena_freed_in_turn += blocks; }

    // claims
    shm::Reason refusal_of(const core::Claim& claim, uint64_t* first_claim) const;
    std::vector<uint32_t> routed(const core::Route& route) const;  // router.cpp
    core::Claim placed(const core::Claim& claim);
    uint64_t claim_with_key(uint32_t uid, const core::Key& key) const;
    uint64_t lease_rows_free() const;
    uint64_t claim_rows_used() const;
    void take_terms(Claim& claim, const core::ClaimTerms* terms);
    bool can_be_served(const Claim& claim) const;
    void serve(uint64_t number);
    void reject_impatient(uint64_t number);
    void wait_again(uint64_t number);
    void end_claim(uint64_t number, shm::Outcome outcome, shm::Reason reason, uint64_t value);
    void end_claim_and_free(uint64_t number, shm::Outcome outcome, shm::Reason reason);

    // claims over several pools
    shm::Reason refusal_of_several(const core::Claim& claim, uint64_t* first_claim) const;
    bool is_first_everywhere(const Claim& claim) const;
    bool several_can_be_served(const Claim& claim) const;
    void serve_several(uint64_t number);
    void pass_over_pools();
    std::optional<uint64_t> first_that_ends_late() const;
    uint32_t pool_that_lacks(const Claim& claim) const;
    void count_release(const Lease& lease);
    TimeNs grace_of(const Lease& lease) const;
    void tell_further(size_t first, const Lease& lease);
    template <class Holder>
    std::vector<uint64_t> slots_in(const Holder& holder, uint32_t pool) const {
        std::vector<uint64_t> found = holder.slots;
        std::erase_if(found, [&](uint64_t slot) { return m_.slots.at(slot).pool != pool; });
        return found;
    }

    // leases
    void grant(uint64_t number);
    void end_lease_and_free(uint64_t lease, bool broken);
    void tell_lease_end(const Lease& lease, shm::Reason reason);
    core::Decision& tell_of_lease(core::DecisionKind kind, const Lease& lease);
    TimeNs keep_alive(Lease& lease, TimeNs asked_ns);
    shm::Reason adoption_refusal(const core::Adopt& adopt) const;

    // expiry
    void begin_grace(Lease& lease);
    void kill_holder(Lease& lease);
    void take_off_lease(uint64_t slot);
    std::vector<uint64_t> uncollected_of(uint32_t pool) const;
    std::vector<uint64_t> would_come_back(uint64_t lease) const;
    void collect_for(const Claim& claim);
    std::vector<uint64_t> remove_lease(uint64_t lease);
    std::optional<shm::Reason> lease_refusal(uint32_t session,
                                             uint64_t lease,
                                             uint64_t fence) const;

    // slots
    std::vector<uint64_t> ready_of(uint32_t pool) const;
    void become_idle(uint64_t slot);
    void become_recovering(uint64_t slot);
    void become_unknown(uint64_t slot);
    void leave(uint64_t slot);
    void free_slot(uint64_t slot, bool broken = false);
    void revoke(const Slot& slot);
    void protect(Slot& slot);
    static bool is_only_waiting(const Slot& slot);
    void stop_admission(Slot& slot);
    void admit_if_only_waiting(Slot& slot);
    void announce_again(Slot& slot, const core::Announce& announce);
    shm::Reason announce_refusal(const core::Announce& announce,
                                 const Slot* existing,
                                 const Slot* order) const;
    Slot* slot_named(uint32_t pool, std::string_view name);
    bool lacks_label(uint32_t pool, const Labels& labels) const;

    // worker words
    shm::Reason word_refusal(const core::WorkerWord& word) const;
    static bool can_say(core::WorkerWord::Kind kind, const Slot& slot);
    void ready(Slot& slot);
    void ready_while_reserved(Slot& slot);
    void confirm(Slot& slot, std::span<const uint8_t> answer);
    void confirm_late(Slot& slot);
    void refuse(Slot& slot, const core::WorkerWord& word);
    void free_others(const std::vector<uint64_t>& slots, uint64_t spoken_of);
    void done(Slot& slot, bool then_ready, std::span<const uint8_t> answer);
    void withdraw(Slot& slot);

    // vectors
    std::optional<Vector> vector_of(uint32_t pool, std::span<const core::Amount> amounts) const;
    shm::Reason vector_refusal(const core::Claim& claim, uint64_t* resource) const;
    void take_vectors(Claim& claim, const core::Claim& command) const;
    Vector free_of(const Slot& slot) const;
    std::optional<uint64_t> slot_for_part(const Claim& claim) const;
    uint64_t slot_rows_used() const;
    uint64_t parts_of(uint64_t slot) const;
    void serve_part(uint64_t number, uint64_t slot);
    void join_part(uint64_t part);
    void list_part(core::Decision& decision, const Slot& slot, const Vector& most);
    bool is_leaving(const Slot& slot) const;
    Vector usual_capacity(uint32_t pool) const;
    shm::Reason announced_vector_refusal(const core::Announce& announce,
                                         const Slot* existing) const;
    bool must_answer(uint64_t slot) const;
    bool may_have_part(const Claim& claim) const;
    Slot part_from(uint64_t slot, const Vector& most);
    bool holds_back_some(const Claim& claim) const;
    bool is_held_back(const Slot& slot) const;
    bool is_all_held_back(uint32_t pool) const;
    std::vector<uint64_t> ready_for(const Claim& claim) const;
    void collect_vectors(const Claim& claim);
    bool is_idle_for(uint32_t pool, TimeNs for_ns, TimeNs* left_ns) const;
    bool same_vector(uint32_t pool, const core::PoolConfig& config) const;

    // timers
    void reservation_expired(uint64_t number);
    void lease_expired(uint64_t lease);
    void lease_ended_by_time(uint64_t lease);

    // sessions
    void cancel_claims(uint32_t session);
    void client_died(uint32_t session);
    void holder_died(uint32_t session);
    void outlive(Lease& lease);
    void worker_died(uint32_t session);
    void slot_lost(uint64_t slot);

    // accounts
    void time_passes(TimeNs from, TimeNs to);
    void know_account(const std::string& name);
    const Account* configured(const std::string& name) const;
    int64_t fanout_left(const Claim& claim) const;
    int64_t slots_with(const Claim& claim, const std::string& label) const;
    bool within_limits(const Claim& claim, uint64_t slot, const std::vector<uint64_t>& with) const;
    static void move_balance(Account& account, const Money& by, int sign);

    // the pass over a pool ordered by account
    using Pass = AccountPass;
    void pass_by_account(uint32_t pool);
    std::vector<uint64_t> list_of(const Pass& pass, uint8_t at) const;
    void match(Pass& pass, uint8_t at, bool provisioned);
    bool can_use(const Pass& pass, const Claim& claim, uint64_t slot, bool provisioned) const;
    bool limits_stop(const Claim& claim, const std::vector<uint64_t>& found) const;
    bool holds_in_vain(uint64_t number, const Pass::Held& held) const;
    void serve_with(Pass& pass, uint64_t number, const std::vector<uint64_t>& slots, uint8_t at);
    void reserve(uint64_t number);
    void reprioritise(uint32_t pool, uint8_t at);
    void demote(uint32_t pool, const Account& account, uint8_t at, int64_t units);
    void promote(uint32_t pool, const Account& account, uint8_t at, int64_t units);
    bool promotion_is_barred(const Lease& lease) const;
    // elastic pools
    [[nodiscard]] std::vector<std::vector<uint64_t>> alike(const Pass& pass) const;
    [[nodiscard]] static std::vector<uint64_t> held_for(const Pass& pass,
                                                        const std::vector<uint64_t>& crowd);
    [[nodiscard]] bool may_be_served(const Claim& claim,
                                     const Labels& labels,
                                     const std::vector<Labels>& coming) const;
    void provision(const Pass& pass);
    void order_one(const Pass& pass, AccountLook& look);
    [[nodiscard]] uint32_t cheapest_for(const Claim& claim,
                                        const std::vector<Labels>& others) const;
    void stop_for_others(const Pass& pass, const std::set<uint64_t>& kept);
    void move_lease(Lease& lease, uint8_t to);
    void spill_to_free(Pass& pass, uint8_t at);

    // elastic pools: types and answers
    [[nodiscard]] uint32_t type_named(uint32_t pool, std::string_view name) const;
    [[nodiscard]] Slot* open_order(uint64_t order, uint32_t pool);
    void slot_count_fell(uint32_t pool);
    void drop_types(uint32_t pool);
    void give_up_roles(uint32_t session);
    void use_ended(const Lease& lease);
    void order_failed(uint64_t slot);
    void meet_quota(uint32_t pool);
    void forget_quota(uint32_t pool);
    void meet_capacity(const Type& of, const core::Provisioned& answer);
    static bool may_time_out(const Slot& slot);
    void boots_time_out();
    void cut_pauses(uint32_t pool);
    bool type_goes(uint32_t type);
    void start_failed(uint32_t type);

    // elastic pools: the pass
    bool provision(uint32_t pool);
    void adapt_limit(uint32_t pool);
    [[nodiscard]] int64_t headroom(uint32_t pool) const;
    [[nodiscard]] uint64_t running_units(uint32_t pool) const;
    [[nodiscard]] uint64_t locked_units(uint32_t pool) const;
    [[nodiscard]] uint64_t workers(uint32_t pool) const;
    [[nodiscard]] uint64_t asked(uint32_t pool) const;
    [[nodiscard]] std::vector<uint64_t> in_line(uint32_t pool, bool locked) const;
    [[nodiscard]] std::vector<uint32_t> types_by_cost(uint32_t pool) const;
    [[nodiscard]] uint32_t cheapest(uint32_t pool) const;
    bool create(uint32_t pool, uint32_t type, const Vector& least = {}, uint64_t width = 0);
    [[nodiscard]] bool can_be_made(uint32_t type) const;
    void create_missing(uint32_t pool);
    bool unlock_over_quota(uint32_t pool);
    bool lock_queued(uint32_t pool);
    void create_spare(uint32_t pool, uint64_t needed);
    [[nodiscard]] bool is_below_limit(uint32_t pool) const;
    static bool is_unallocated(const Slot& slot);
    bool is_to_stop(const Slot& slot) const;
    void stop_idle(uint32_t pool, const std::set<uint64_t>& held = {});
    bool stop_if_idle_too_long(Slot& slot);
    [[nodiscard]] bool drains_alone(uint32_t pool) const;
    void tell_provisioners(uint32_t pool);
    void tell_again(uint32_t type);
    void tell_to_make(Slot& slot);
    bool time_changes(TimeNs at) const;

    // elastic pools whose slots have resources
    using Task = SizedTask;
    using Box = WorkerBox;
    void order_for_tasks(uint32_t pool);
    bool order_and_stop(uint32_t pool);
    [[nodiscard]] std::vector<Task> tasks_of(uint32_t pool) const;
    [[nodiscard]] std::map<uint32_t, Box> workers_of(uint32_t pool) const;
    static bool put_into(Box& box, const Task& task);
    [[nodiscard]] Vector smallest_order(uint32_t pool) const;
    // dispatched pools: reports
    shm::Reason dispatch_refusal(uint32_t pool,
                                 std::initializer_list<std::string_view> names) const;
    std::optional<std::set<uint32_t>> types_named(uint32_t pool,
                                                  std::span<const std::string_view> names) const;
    void come_back(Entry& entry);
    void suits_no_type(const core::EntryReport& report, Entry* known);
    shm::Reason operation_refusal(const Entry* entry, core::QueueWord word) const;
    Entry* entry_named(uint32_t pool, std::string_view name);
    Entry* new_entry(uint32_t pool, std::string_view name);
    void lock(Entry& entry);
    void unlock(Entry& entry);
    void behave(Slot& slot, shm::Behaviour behaviour);
    void worker_says(Slot& slot, core::WorkerReport::State state, TimeNs at);
    void put_on(Entry& entry, Slot& worker);
    void process_is_gone(uint64_t entry);
    void process_has_exited(Entry& entry, TimeNs at);
    void leave_queue(Entry& entry);
    Slot* new_worker(uint32_t pool, std::string_view name, uint32_t type);

    // dispatched pools: the pass
    struct Overs {
        std::vector<uint64_t> supervisors;
        std::vector<uint64_t> quota;
        std::map<uint32_t, uint64_t> free;  // workers that the pass has left, by type
    };
    void dispatch(uint32_t pool);
    bool stale_locks_are_mended(uint32_t pool);
    [[nodiscard]] bool has_unknown_worker(uint32_t pool) const;
    [[nodiscard]] std::vector<uint64_t> entries_by_number(uint32_t pool) const;
    [[nodiscard]] std::vector<uint32_t> eligible_types(const Entry& entry) const;
    [[nodiscard]] uint32_t available_type(const Entry& entry) const;
    [[nodiscard]] uint64_t running_supervisors(uint32_t pool) const;
    [[nodiscard]] std::vector<uint64_t> stale_locks(uint32_t pool) const;
    Slot* worker_to_start_on(uint32_t type);
    Overs map_entries(uint32_t pool);
    void unlock_over(uint32_t pool, const Overs& over);
    void stop_for_room(uint32_t pool, Overs& over);
    void stop_idle_left(uint32_t pool, Overs& over);
    void create_spare_beside(uint32_t pool, const Overs& over);
    bool begin(Entry& entry, Operation operation);
    void start(Entry& entry, Slot& worker);
    core::Decision& tell_of_entry(core::DecisionKind kind, const Entry& entry);
    void reconcile(uint64_t entry);
    bool reconcile_once(Entry& entry);
    bool kill(Entry& entry);
    bool cancel(Entry& entry, shm::Reason reason);
    bool drop_exited(Entry& entry);
    bool forget(Entry& entry);
    [[nodiscard]] bool may_be_forgotten(const Entry& entry) const;
    void end_entry(const Entry& entry, shm::Outcome outcome, shm::Reason reason);

    // preemption
    void preempt_at(Pass& pass, uint8_t at);
    bool may_preempt(const Claim& claim, const Lease& victim) const;
    void preempt(uint64_t number, uint64_t victim, uint8_t at);
    void revoke_with_grace(Lease& lease);
    void revocation_over(uint64_t lease);
    void queue_again(const Lease& lease);
    bool promise_is_void(const Slot& slot) const;
    static bool is_held_over(const Slot& slot);
    void hand_over_held(uint32_t pool);
    std::map<uint64_t, uint64_t> held_over_in(uint32_t pool) const;
    void promised_claim_ended(uint64_t slot);
    void give_promised(uint64_t slot);
    void void_promise(uint64_t slot);

    // workers that are only reported
    shm::Reason report_refusal(uint32_t pool) const;
    shm::Reason idle_refusal(uint32_t pool,
                             std::string_view name,
                             std::span<const std::string_view> labels);
    TimeNs event_time(TimeNs event_ns) const { return event_ns == shm::kNever ? m_.now : event_ns; }
    void worker_idle(uint32_t pool, std::string_view name, const Labels& labels, TimeNs at);
    void claim_running(const core::Report& report);
    void claim_absent(const core::Report& report);
    TimeNs latest_confirmed(const Slot& slot) const;
    void delete_worker(uint64_t slot);
    void delete_worker_and_claim(uint64_t slot);
    void lose_lease(uint64_t lease, shm::Reason reason, bool again);
    bool is_strict(const Lease& lease) const;
    void end_strictly(Lease& lease);
    void unassign(uint64_t number, TimeNs at, std::string_view error);
    TimeNs silent_too_long(const Slot& slot) const;
    void forget_idle_workers();
    void tell_pulled();

    // decisions
    void list_cost(core::Decision& decision, const Money& cost);
    core::Decision& tell(core::DecisionKind kind, uint32_t session);
    void tell_result(uint32_t session, uint64_t user_data, shm::Reason reason, uint64_t value = 0);
    void tell_answer(const Slot& slot, std::span<const uint8_t> answer);
    void list_slots(core::Decision& decision, const std::vector<uint64_t>& slots);
    void name_holder(core::Decision& decision, const Lease* lease) const;

    core::Limits limits_;
    Model m_;
    uint32_t dying_ = shm::kNoRow;  // the session whose death is being worked off
    std::vector<core::Decision> decisions_;
    std::vector<core::DecidedSlot> decided_slots_;
    std::vector<int64_t> decided_costs_;
    std::deque<std::string> entry_names_;  // that decisions of this turn name
    std::vector<Vector> held_back_;        // in a pass: what those want at least who wait
    bool goes_back_ = false;               // in a pass: one over several pools was served
    bool gave_way_ = false;                // an application, in this pass
};

}  // namespace dibs::naive
