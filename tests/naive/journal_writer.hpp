// tests/naive/journal_writer.hpp -- writes a random journal, step by step, and plays it to a naive
// core while it does, so that most steps mean something.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/naive/dice.hpp"
#include "tests/naive/journal_character.hpp"
#include "tests/naive/journal_generator.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/player.hpp"

namespace dibs::naive {

class Writer {
  public:
    Writer(uint64_t seed, size_t steps, Flavour flavour) : dice_(seed) {
        journal_.seed = seed;
        character_ = choose_character(dice_, journal_, flavour);
        core_.emplace(journal_.limits);
        player_.emplace(*core_, journal_);
        write(steps);
    }
    Journal take() { return std::move(journal_); }

  private:
    using Word = core::WorkerWord::Kind;

    void write(size_t steps);
    void write_one();
    bool write_one_of_accounts();
    void put(Step step);

    void open();
    void died();
    void died_of_a_kill();
    void tree_died();
    void claim();
    void route(Step& step);  // journal_of_pools.cpp
    void change_priority();
    int32_t any_priority();
    void cancel();
    void steer();
    void release();
    void keepalive();
    void adopt();
    void kill_failed();
    void drain();
    void change_pool();
    void bring_back(uint32_t pool);
    void end_turn();

    // journal_of_workers.cpp
    void announce();
    void word();
    void refuse_for_now();

    // journal_of_elastic.cpp: what elastic pools have of their own
    bool write_one_of_elastic();
    void set_type();
    void delete_type();
    void provide();
    void provisioned();
    void announce_for_order();
    void stopped_worker_goes();
    void put_announcement(const Step& step);
    std::string any_type();
    uint32_t any_elastic_pool();
    const Slot* any_order(bool open);

    // journal_of_dispatch.cpp: what dispatched pools have of their own
    bool write_one_of_dispatch();
    void report_entry();
    void read_queue();
    void operate_queue();
    void end_operation();
    void report_worker();
    void report_process();
    void probe();
    void set_behaviour();
    uint32_t any_dispatched_pool();
    template <class Wanted>
    const Entry* any_entry(uint32_t pool, const Wanted& wanted);
    const Entry* any_entry(uint32_t pool);
    const Slot* any_worker_slot(uint32_t pool);
    TimeNs instant_near(std::initializer_list<TimeNs> instants);
    std::string entry_name();
    std::string any_type_of(uint32_t pool);
    bool all_queues_are_read() const;

    void want_several(Step& step);

    // journal_of_gangs.cpp: applications, their gangs and their tasks
    bool write_one_of_gangs();
    void add_application();
    void application_event();
    void be_member(Step& step);
    std::vector<core::Amount> share_of(uint32_t pool, uint64_t percent);
    const Application* any_application();
    uint32_t session_of(uint32_t uid);

    // journal_of_vectors.cpp
    void want_part(Step& step);
    void accept_offer(Step& step);
    void announce_vector(Step& step);

    // journal_of_parking.cpp
    bool has_parkable() const;
    static void make_plain(Step& step);
    void harvest();
    bool lapses(const Lease& lease) const;
    bool has_lapsing() const;
    void touch();
    int32_t distance_of_fence(uint32_t label);

    // journal_of_accounts.cpp: what pools ordered by account have of their own
    void set_account();
    void take_account();
    void reset_balance();
    void report();
    void pull();
    void unassign();
    void update_claim();
    void add_terms(Step& step);
    void take_longer(core::Claim& claim);
    AccountSpec account_spec();
    std::string any_account();
    std::string any_worker(uint32_t pool, uint64_t attached_percent);
    std::vector<std::string> some_labels(uint64_t most);
    std::vector<std::string> labels_of_worker(uint32_t pool, const std::string& name);
    uint64_t event_time();
    std::vector<uint32_t> pools_of_reports() const;
    uint32_t claim_on(const std::string& worker, uint32_t pool);

    uint32_t any_session();
    uint32_t label_of_session(uint32_t id) const;
    [[nodiscard]] uint32_t label_of_pool(uint32_t row) const;
    uint32_t any_pool(bool workers_only);
    uint32_t any_lease_label();
    uint16_t any_tag(uint32_t session_id);
    Word word_for(const Slot& slot);
    bool is_too_late(const Slot& slot) const;
    const Slot* any_late_slot();
    const Slot* promised_slot() const;
    int32_t distance() { return dice_.percent(93) ? 0 : dice_.one_of({-1, -1, 1, -2}); }
    std::vector<TimeNs> instants() const;
    const Model& model() const { return core_->model(); }

    Dice dice_;
    Journal journal_;
    Character character_;
    std::optional<NaiveCore> core_;
    std::optional<Player<NaiveCore>> player_;
    std::vector<uint32_t> label_of_number_ = {kNoLabel};  // of claims, by number
    std::map<uint64_t, uint32_t> label_of_slot_;
};

}  // namespace dibs::naive
