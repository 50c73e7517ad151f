// broker/turn/answer.hpp -- turns decisions into completions, event words and room bytes.
//
// stage() comes before the commit: it writes completions and event words into the turn's log, and
// room bytes into DOWN, which no client reads before a completion announces them. store() comes
// after: it repeats the log's stores into DOWN and wakes the sleeping clients. A broker that dies
// between the two leaves the log to its successor; one that dies before leaves no trace.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "broker/admission/throttle.hpp"
#include "broker/core/core.hpp"
#include "broker/session/sessions.hpp"
#include "broker/turn/operations.hpp"
#include "broker/turn/publish.hpp"
#include "shm/ring.hpp"

namespace dibs {

class Answers {
  public:
    Answers(core::Core& core,
            Sessions& sessions,
            Operations& operations,
            Publisher& publisher,
            const Quotas& quotas,
            ReadBudget& read_budget);

    void stage();
    void store();
    // Repeats the stores that a dead broker committed, for adopted sessions, and wakes all clients.
    void repeat();
    // The turn has decided to kill a holder.
    [[nodiscard]] bool kills() const { return kills_; }
    // Tells a session that it is over, and wakes it.
    static void farewell(Session& session);

  private:
    void stage_decision(const core::Decision& decision);
    void result(const core::Decision& decision);
    void assign(const core::Decision& decision);
    void revoke(const core::Decision& decision);
    void order(const core::Decision& decision);
    void order_of_size(const core::Decision& decision, Session& session, shm::Completion& entry);
    void application(const core::Decision& decision);
    void task(const core::Decision& decision);
    void tell_failed_tasks();
    void worker_answer(const core::Decision& decision);
    uint16_t write_grant(Session& session, const TagRoom& room, const core::Decision& decision);
    void tell_lease(Session* session, const core::Decision& decision, shm::Completion& entry);
    void grant(const core::Decision& decision);
    void pledge_kept(Session* session);
    void adopt(const core::Decision& decision, const core::Decision& left);
    void tell_again(Session& session, const core::Decision& adopted);
    void claim_end(const core::Decision& decision);
    void lease_grace(const core::Decision& decision);
    static void store_left(Session* session, uint16_t tag, uint32_t room, uint64_t left_ns);
    void lease_event(const core::Decision& decision, uint8_t event);
    void revival(const core::Revival& revival);
    void stage_event(Session& session, uint16_t tag, uint64_t word);
    [[nodiscard]] bool has_word(const Session& session, uint16_t tag) const;
    [[nodiscard]] TagRoom room_given_back(const core::Decision& decision) const;
    [[nodiscard]] uint32_t to_provision(uint64_t number, std::span<const core::DecidedSlot> slots);
    uint32_t copy_payload_of(const core::Decision& decision, const SlotRoom& room);
    [[nodiscard]] uint32_t first_asked(const shm::ClaimRow& claim) const;
    void forget_answers(const shm::ClaimRow& claim);
    void name_holder(const Session* to, const core::Decision& decision, shm::Completion& entry);
    void complete(Session* session, shm::Completion& entry);
    void store_staged();
    void publish(Session& session);

    core::Core& core_;
    Sessions& sessions_;
    Operations& operations_;
    Publisher& publisher_;
    const Quotas& quotas_;
    ReadBudget& read_budget_;
    bool kills_ = false;
    shm::Rule rule_ = {};  // behind the decision that is staged
    ClaimReader reader_;
    std::vector<uint8_t> payload_;  // that it reads
    std::vector<uint64_t> worded_;  // session's row and tag of each event of this turn
    // Of an application, that its manager has not been told of yet.
    struct FailedTasks {
        core::SessionId session;
        uint64_t number;
        uint32_t count;
    };
    std::vector<FailedTasks> failed_tasks_;
    size_t stored_ = 0;  // staged stores that have been done before the commit: a pledge
    shm::LogStore stage_store_ = {};  // the one that is being made: its padding stays zero
};

}  // namespace dibs
