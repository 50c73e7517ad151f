// broker/turn/operations.hpp -- translates submission entries into commands of the core.
//
// It works on copies alone. What cannot be a command of the core (an unknown operation, an
// undefined flag, an invalid payload table) is answered here and leaves no trace in the core; a
// claim is always handed on, with the reason for its refusal, so that it has its number and its one
// end like any other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "broker/admission/quotas.hpp"
#include "broker/config/config.hpp"
#include "broker/config/uid_accounts.hpp"
#include "broker/core/core.hpp"
#include "broker/session/session.hpp"
#include "broker/turn/application/payload.hpp"
#include "broker/turn/lease_words.hpp"
#include "broker/turn/payload.hpp"
#include "broker/turn/pledges.hpp"
#include "shm/ring.hpp"
#include "shm/rule.hpp"

namespace dibs {

class PoolSets;

// The answer to an operation that never reaches the core.
struct OwnResult {
    Session* session;
    uint64_t user_data;
    shm::Reason reason;
};

// How a grant room of this pool is laid out: one unit's region, with two answers in it, and the
// first one's place.
constexpr uint32_t grant_stride(const shm::PoolRow& pool) {
    return static_cast<uint32_t>(shm::round_up(
        sizeof(shm::GrantSlot) + uint64_t{pool.attributes_max} + uint64_t{2} * pool.answer_max, 8));
}
constexpr uint32_t grant_answer_place(const shm::PoolRow& pool) {
    return static_cast<uint32_t>(sizeof(shm::GrantSlot)) + pool.attributes_max;
}

// "NAME=AMOUNT" and a zero byte.
inline constexpr uint32_t kAmountTextMax = shm::kResourceNameMax + sizeof "=9007199254740992";

// The lines that a slot of this pool takes in its worker's DOWN: a claim's payload, and what the
// part that is assigned has of each resource.
constexpr uint32_t slot_room_lines(const shm::PoolRow& pool) {
    return room_lines(uint64_t{pool.payload_max} + sizeof(shm::GrantSlot) +
                      pool.resources_count * kAmountTextMax);
}

// The room in a worker's DOWN that a slot's assignments use.
struct SlotRoom {
    Session* session = nullptr;
    uint32_t first = shm::kNoRow;
    uint32_t lines = 0;
    uint32_t parts = 0;  // of its slot, at most: each has completions reserved, too
};

class Operations {
  public:
    Operations(core::Core& core,
               Quotas& quotas,
               Pledges& pledges,
               UidAccounts& accounts,
               LeaseWords& words);

    void apply(Session& session, const shm::Submission& entry, std::span<const uint8_t> payload);
    void begin_turn();
    // More answers of its own than the log can take; or what comes next has to wait for a turn with
    // a time of its own.
    [[nodiscard]] bool full() const {
        return own_results_.size() >= kOwnResultsMax || words_.has_looked();
    }

    [[nodiscard]] std::span<const OwnResult> own_results() const { return own_results_; }
    // Places in Core::decisions() of results that are not sent to a client, in order.
    [[nodiscard]] std::span<const uint32_t> silenced() const { return silenced_; }
    // Places of claims that a key of the configuration has refused, in order, and the keys.
    struct Ruled {
        size_t place;
        shm::Rule rule;
    };
    [[nodiscard]] std::span<const Ruled> ruled() const { return ruled_; }

    // Places of results of adoptions of applications, in order, and those applications' numbers.
    struct Adopted {
        size_t place;
        uint64_t number;
    };
    [[nodiscard]] std::span<const Adopted> adopted() const { return adopted_; }

    // Frees the rooms of slots that the core has said are gone. A row can be taken again in the
    // same turn, so this is also done before each announcement.
    void collect_gone();
    [[nodiscard]] const SlotRoom& slot_room(uint32_t slot) const {
        static constexpr SlotRoom kNone;
        return slot < slot_rooms_.size() ? slot_rooms_[slot] : kNone;
    }
    // A part is told of in its slot's.
    [[nodiscard]] const SlotRoom& assigned_room(uint32_t slot) const {
        const uint32_t whole = core_.slot(slot).part_of;
        return slot_room(whole == shm::kNoRow ? slot : whole);
    }
    void restore_slot_room(uint32_t slot, const SlotRoom& room) { room_of_slot(slot) = room; }
    // The session is gone; its DOWN with it.
    void forget(const Session& session);

    // What happens to a claim of the pool when a better one wants its slot, if the claim does not
    // say.
    void set_preempt(uint32_t pool, const PoolPreempt& preempt);
    // Without them no claim of a set is taken.
    void serve_sets(const PoolSets& sets) { sets_ = &sets; }
    // Of applications that say none.
    void set_manager_timeout(core::TimeNs timeout_ns) {
        applications_.set_manager_timeout(timeout_ns);
    }

    // --- what a claim would meet (broker/turn/prepared_grant.hpp)
    struct GrantSize {
        uint32_t pool;
        uint32_t units;
    };
    // A claim that sets nothing but its times.
    [[nodiscard]] static bool is_plain_claim(const shm::Submission& entry);
    // Why the session may not claim from this pool now; kOk: it may.
    [[nodiscard]] shm::Reason pool_refusal(const Session& session,
                                           uint32_t pool,
                                           uint32_t rows = 1);
    // The tag that the session's next claim has, most likely.
    [[nodiscard]] static uint16_t tag_to_come(const Session& session);
    // The room of its next grant of this size; kNoRow: not foreseeable.
    [[nodiscard]] TagRoom room_to_come(const Session& session, const GrantSize& size) const;

  private:
    [[nodiscard]] static uint32_t row_of(uint64_t id) { return static_cast<uint32_t>(id); }
    [[nodiscard]] SlotRoom& room_of_slot(uint32_t slot);
    static constexpr size_t kOwnResultsMax = 64;

    void claim(Session& session, const shm::Submission& entry, std::span<const uint8_t> payload);
    [[nodiscard]] static core::Claim command_of(const Session& session,
                                                const shm::Submission& entry,
                                                std::span<const uint8_t> payload);
    void bring(core::Claim* command) const;
    void give_room(Session& session, uint32_t pool, core::Claim* command);
    // routed_claims.cpp
    void claim_of_several(Session& session, const shm::Submission& entry, core::Claim* command);
    [[nodiscard]] bool names_further(const Session& session) const;
    void claim_of_set(Session& session,
                      const shm::Submission& entry,
                      std::span<const uint8_t> payload);
    [[nodiscard]] shm::Reason members_of_claim(const Session& session,
                                               const shm::Submission& entry,
                                               std::span<const uint8_t> payload,
                                               const core::Route& set);
    [[nodiscard]] shm::Reason claim_refusal(const Session& session,
                                            const shm::Submission& entry,
                                            std::span<const uint8_t> payload);
    // Of the claim that comes next.
    shm::Reason ruled(shm::Reason refusal, shm::Rule rule) {
        ruled_.push_back({core_.decisions().size(), rule});
        return refusal;
    }
    [[nodiscard]] static shm::Reason tag_refusal(const Session& session, uint16_t tag);
    struct GrantRoom {
        uint32_t first = shm::kNoRow;
        uint32_t lines = 0;
    };
    [[nodiscard]] bool take_grant_room(Session& session,
                                       uint16_t tag,
                                       const GrantSize& size,
                                       GrantRoom* taken);
    [[nodiscard]] TagRoom room_of_several(std::span<const core::PoolUnits> pools) const;
    [[nodiscard]] bool take_room_of_several(Session& session,
                                            uint16_t tag,
                                            std::span<const core::PoolUnits> pools,
                                            GrantRoom* taken);
    [[nodiscard]] bool take_room_of_lease(Session& session,
                                          uint16_t tag,
                                          uint32_t row,
                                          GrantRoom* taken);
    [[nodiscard]] bool take_room(Session& session, uint16_t tag, TagRoom room, GrantRoom* taken);
    void cancel(Session& session, const shm::Submission& entry);
    void release(Session& session, const shm::Submission& entry);
    void give_up(Session& session, uint64_t id);
    void give_up_claim(Session& session, const shm::Submission& entry);
    void keepalive(Session& session, const shm::Submission& entry);
    void adopt(Session& session, const shm::Submission& entry);
    void announce(Session& session, const shm::Submission& entry, std::span<const uint8_t> payload);
    void worker_word(Session& session,
                     const shm::Submission& entry,
                     std::span<const uint8_t> payload);
    void provide(Session& session, const shm::Submission& entry, std::span<const uint8_t> payload);
    void provisioned(Session& session,
                     const shm::Submission& entry,
                     std::span<const uint8_t> payload);
    [[nodiscard]] core::SlotId order_of(Session& session, const shm::Submission& entry) const;
    [[nodiscard]] bool has_role(const Session& session, uint32_t pool, std::string_view type) const;
    [[nodiscard]] uint64_t words_of_role(uint32_t pool) const;
    [[nodiscard]] uint64_t words_of_roles(const Session& session) const;
    // application_operations.cpp
    void application(Session& session,
                     const shm::Submission& entry,
                     std::span<const uint8_t> payload);
    [[nodiscard]] shm::Reason application_refusal(const Session& session,
                                                  const shm::Submission& entry) const;
    [[nodiscard]] uint64_t words_of_applications(Session& session) const;
    [[nodiscard]] bool may_manage(Session& session) const;
    [[nodiscard]] bool hear_of_takes(const Session& session, const shm::Submission& entry);
    void want_lease_of(const Session& session, uint64_t slot);
    void own_result(Session& session, const shm::Submission& entry, shm::Reason reason);
    // For the command whose decisions begin at `first`: silences its result if it succeeded and the
    // client asked for quiet. Returns the result's reason.
    shm::Reason after(const shm::Submission& entry, size_t first);

    core::Core& core_;
    Quotas& quotas_;
    Pledges& pledges_;
    UidAccounts& accounts_;
    LeaseWords& words_;
    AnnouncementReader announcements_;
    ClaimReader claims_;
    ApplicationReader applications_;
    const PoolSets* sets_ = nullptr;
    std::vector<core::RouteMember> members_;  // of the claim that is made a command of
    std::vector<PoolPreempt> preempts_;       // by pool row, as far as they are configured
    std::vector<OwnResult> own_results_;
    std::vector<uint32_t> silenced_;
    std::vector<Ruled> ruled_;
    std::vector<Adopted> adopted_;
    // By slot row, as far as workers have announced slots: those of counted pools have no rooms,
    // and what is reserved for them is never touched.
    std::vector<SlotRoom> slot_rooms_;
    size_t gone_cursor_ = 0;  // decisions below it have been looked at
};

}  // namespace dibs
