// broker/journal/name_map.hpp -- maps a journal's names to rows, numbers, tags and ids.
//
// The author of the journal chose the names. What only the scheduler knows (a lease's id and fence,
// a slot's id and round) is learned from its decisions, as a client and a worker learn it. Tags are
// handed out as the client library does: the lowest that is free.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "broker/core/decision.hpp"
#include "broker/core/ids.hpp"
#include "broker/journal/decision_text.hpp"
#include "shm/layout.hpp"

namespace dibs::ctl {

class NameMap {
  public:
    struct Session {
        std::string name;
        core::SessionId row;
        bool alive = true;
        bool outlived = false;   // its holder has died
        std::vector<bool> tags;  // taken
    };
    struct Claim {
        std::string name;
        core::ClaimNumber number;
        size_t session;  // place in sessions
        uint16_t tag;
        bool holds_tag = true;
        core::LeaseId lease = {};  // once granted
        uint64_t fence = 0;
    };
    struct Slot {
        std::string name;
        std::string session;
        core::SlotId id = {};          // once announced
        uint32_t round = 0;            // of its last assignment
        std::string provisioner = {};  // the session that was asked for it
    };

    // The name must be new: JournalError otherwise. A session's name is free again when it died.
    void add_session(const std::string& name, core::SessionId row, uint16_t tags_max);
    // `number`: that it will have.
    Claim& add_claim(const std::string& name, const std::string& session, core::ClaimNumber number);
    // The same name again is the same slot announced again.
    Slot& add_slot(const std::string& name, const std::string& session);

    // Throw JournalError for an unknown name, and for a session whose process is dead.
    Session& live_session(const std::string& name);
    Session& session_there(const std::string& name);  // or outlived
    [[nodiscard]] const Claim& claim(const std::string& name) const;
    [[nodiscard]] const Slot& slot(const std::string& name) const;

    [[nodiscard]] const Claim* find_claim(const std::string& name) const;
    [[nodiscard]] const Slot* find_slot(const std::string& name) const;
    [[nodiscard]] const Session* find_session(const std::string& name) const;

    [[nodiscard]] const std::string& session_name(const Claim& claim) const {
        return sessions_[claim.session].name;
    }
    // The tag with which `claim` can be named; where it has none any more, one that names nothing.
    [[nodiscard]] uint16_t tag_of(const Claim& claim) const;

    [[nodiscard]] static uint16_t lowest_free_tag(const Session& session);

    // The number of this operation, to be sent as its user_data.
    uint64_t add_operation(Operation operation);
    // Their rows; JournalError for a session that has died, and for a holder that has.
    core::SessionId session_died(const std::string& name);
    core::SessionId holder_died(const std::string& name);
    void learn(const core::Decision& decision);

    [[nodiscard]] const NameTables& names() const { return names_; }
    void name_pool(core::PoolId row, const std::string& name);
    void name_account(core::AccountId row, const std::string& name);
    void name_type(core::TypeId row, const std::string& name);
    void name_resources(core::PoolId row, const std::vector<core::Resource>& resources) {
        names_.resources[row].clear();
        for (const core::Resource& resource : resources)
            names_.resources[row].push_back(resource.name);
    }
    // A worker that is only reported: its slot is there now.
    void learn_worker(const std::string& name, core::PoolId pool, uint32_t number, core::SlotId id);

  private:
    void add_order(const core::Decision& created);
    void add_part(const core::Decision& assigned);
    void move_claim(const core::Decision& adopted);
    void free_tag(Claim& claim);
    Claim* claim_of(const core::Decision& decision);  // null: it is of none
    void learn_result(const core::Decision& decision);

    NameTables names_;
    std::deque<Session> sessions_;
    std::deque<Claim> claims_;
    std::unordered_map<uint64_t, size_t> claim_by_number_;
    std::unordered_map<std::string, size_t> session_by_name_;
    std::unordered_map<std::string, size_t> claim_by_name_;
    std::unordered_map<std::string, Slot> slots_;
    std::unordered_map<uint64_t, std::string> slot_by_id_;
};

}  // namespace dibs::ctl
