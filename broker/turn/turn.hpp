// broker/turn/turn.hpp -- the broker's loop: one thread, and the only writer of STATE.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "broker/admin/copying.hpp"
#include "broker/admin/desk.hpp"
#include "broker/admission/quotas.hpp"
#include "broker/admission/throttle.hpp"
#include "broker/config/config.hpp"
#include "broker/config/file_accounts.hpp"
#include "broker/config/uid_accounts.hpp"
#include "broker/control/exchange.hpp"
#include "broker/core/core.hpp"
#include "broker/segments/segments.hpp"
#include "broker/session/sessions.hpp"
#include "broker/turn/answer.hpp"
#include "broker/turn/clock.hpp"
#include "broker/turn/clock_stop.hpp"
#include "broker/turn/deaths.hpp"
#include "broker/turn/ingest.hpp"
#include "broker/turn/lease_words.hpp"
#include "broker/turn/operations.hpp"
#include "broker/turn/pledges.hpp"
#include "broker/turn/pool_sets.hpp"
#include "broker/turn/prepared_grant.hpp"
#include "broker/turn/publish.hpp"
#include "broker/turn/sleep.hpp"
#include "broker/turn/transient_pools.hpp"

namespace dibs {

struct Inheritance;

class Turn {
  public:
    Turn(core::Core& core, BoardSegment& board, Exchange& exchange, HangWatch watch = {});

    // Prepares the first turn: adopts or ends sessions of an earlier broker, makes pools as
    // configured. Throws std::runtime_error with what is wrong.
    void prepare(Config& config, Inheritance& inheritance);
    void set_shared(bool shared) { quotas_.set_shared(shared); }  // several users may connect
    // Turns until a drain is over, or kStop or kYield comes.
    void serve();
    // True if it has left everything to a successor; once serve() has returned.
    [[nodiscard]] bool yielded() const { return yielded_; }
    [[nodiscard]] bool draining() const { return draining_; }  // before serve()
    [[nodiscard]] const std::vector<Session*>& adopted() const { return sessions_.all(); }
    [[nodiscard]] uint64_t clock_offset() const { return clock_.offset(); }

  private:
    [[nodiscard]] bool anything_to_do();
    void copy_on();
    void unrecord();
    void take(bool spun);
    void look_at_clock(bool spun);
    void hear();
    void drain(uint64_t within_ns);
    [[nodiscard]] core::TimeNs drain_until() const;
    void open(Session* session);
    void end(const Request& request);
    void administer(AdminJob* job);
    void replace();
    void answer_pulls();
    void answer_administered();
    void answer_waiting();
    [[nodiscard]] bool take_configuration();
    void take_over(Config* config);
    [[nodiscard]] bool others_wait();
    [[nodiscard]] Session* answer_prepared(bool spun, shm::Submission& claim);
    void read_answered(Session& session, const shm::Submission& claim);
    void read_submissions();
    void send_out();
    [[nodiscard]] bool one_speaks() const;
    bool serve_others();
    void retire();
    void tell_of(const Session& session, shm::EventKind what);
    [[nodiscard]] core::TimeNs next_due() const;
    [[nodiscard]] bool drained() const;
    void part();
    [[nodiscard]] core::TimeNs death_of(const Inheritance& inheritance) const;
    [[nodiscard]] uint64_t drain_left(uint64_t asked_ns) const;
    void adopt(Inheritance& inheritance);
    void end_the_lost();
    void set_pools(Config& config, bool takeover);
    // Why some stay as they were.
    std::vector<std::string> set_types(const std::vector<TypeSettings>& types);
    void set_accounts(const Config& config);
    void begin_unheard();
    void finish_unheard();
    void read_carefully();

    core::Core& core_;
    Exchange& exchange_;
    Clock clock_;
    Sessions sessions_;
    ClockStop clock_stop_;
    Quotas quotas_;
    FileAccounts file_accounts_;
    UidAccounts uid_accounts_;
    Pledges pledges_;
    LeaseWords words_;
    Operations operations_;
    PreparedGrant prepared_;
    Publisher publisher_;
    PoolSets sets_;
    Ingest ingest_;
    ReadBudget read_budget_;
    ThrottlePause throttle_pause_;
    Answers answers_;
    Kills kills_;
    Deaths deaths_;
    Desk desk_;
    std::vector<std::string> refused_;     // of the configuration that was taken over last
    std::vector<AdminJob*> pulling_;       // whose answer the pass decides
    std::vector<AdminJob*> administered_;  // served in this turn, to be answered behind its commit
    std::vector<std::unique_ptr<AdminJob>> waiting_;  // for offers: no more than conversations
    TransientPools transient_;
    Sleep sleep_;
    core::TimeNs now_ = 0;
    core::TimeNs due_ns_ = shm::kNever;  // what comes due first, when that was last looked up
    uint64_t end_ns_ = shm::kNever;      // monotonic: while broker time stands, a drain goes on
    core::TimeNs drain_timeout_ns_ = 0;
    core::TimeNs harvested_ns_ = 0;
    size_t first_ = 0;  // session that is read first: rotates
    size_t harvest_ = 0;
    bool draining_ = false;
    bool stopped_ = false;
    bool yielded_ = false;
    bool served_others_ = false;  // in the last turn
    bool publish_all_ = false;
    std::vector<Session*> opened_;      // in this turn
    std::vector<Session*> careful_;     // their entries may be what the last broker died of
    std::unique_ptr<Config> taken_;     // a configuration that is being taken over
    size_t taken_pools_ = 0;            // of its pools
    std::unique_ptr<Copying> copying_;  // a copy of STATE that is being made
};

}  // namespace dibs
