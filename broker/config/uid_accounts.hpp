// broker/config/uid_accounts.hpp -- makes accounts for users that the file does not name.
//
// With [account_default] or a pool with share = "equal", a uid that pays from "uid:<n>" gets that
// account, made from the template, with its first claim in a pool ordered by account. These
// accounts belong to the file: a file without a template deletes them. When all rows are in use,
// each new account replaces one that owes nothing, of a user without a session, a claim or a lease.
//
// An equal share is a rate: all slots of the pools that are shared so and that may be granted,
// divided by the users that are active in them. A user is active while it holds or waits for a slot
// and until the next look, a second later at least: users that come and go between two looks change
// no rates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "broker/config/account_settings.hpp"
#include "broker/config/config.hpp"
#include "broker/core/core.hpp"
#include "broker/session/session.hpp"

namespace dibs {

class UidAccounts {
  public:
    explicit UidAccounts(core::Core& core) : core_(core) {}

    // Its template and the names that it has accounts for. `renew`: what has been made from an
    // earlier template becomes as this one says.
    void configure(const Config& config, bool renew);
    void set_equal(uint32_t pool, bool equal);

    // Before a claim of the session in a pool ordered by account.
    void admit(const Session& session);
    // As much as the turn has room for: rates by the users that are active now, accounts to renew.
    void step(core::TimeNs now);
    // step() goes on whatever the time: the turn had no room for all of it.
    [[nodiscard]] bool unfinished() const {
        return template_ && (renewing_ || next_ != shm::kNoRow);
    }
    // Behind the pass of a turn.
    void note();
    // When the next look is due though nothing happens until then; kNever: the last one has seen
    // all that has happened, or there is nothing to look at.
    [[nodiscard]] core::TimeNs next_due() const { return stale_ ? next_look() : shm::kNever; }

  private:
    static constexpr core::TimeNs kLookEvery = 1'000'000'000;
    // A pool of another name may have its row when it has gone.
    struct EqualPool {
        uint32_t row;
        std::string name;
    };

    [[nodiscard]] bool is_made(uint32_t row) const;  // from a template
    [[nodiscard]] bool is_active(uint32_t row) const;
    [[nodiscard]] bool lives(const EqualPool& pool) const;
    [[nodiscard]] bool shares() const;
    [[nodiscard]] int64_t slots() const;  // of the pools that are shared
    // The wait and the look use the same condition, or the turn would wake for nothing.
    [[nodiscard]] core::TimeNs next_look() const {
        return shares() ? looked_ns_ + kLookEvery : shm::kNever;
    }
    [[nodiscard]] int64_t share_of(uint32_t users) const;
    void look(core::TimeNs now);
    bool set(const std::string& name, bool keep_balance, std::string* why);
    void make(const std::string& name);
    [[nodiscard]] bool may_give_way(uint32_t row) const;
    bool give_way();
    void find_users();

    core::Core& core_;
    std::optional<AccountSettings> template_;
    std::set<std::string> named_;  // accounts of the file
    std::vector<EqualPool> equal_pools_;
    std::vector<uint8_t> has_claimed_;  // account row → since the last look
    int64_t share_ = 0;                 // the rate
    int64_t slots_ = 0;                 // that it was reckoned from
    core::TimeNs looked_ns_ = 0;
    uint32_t next_ = shm::kNoRow;  // account row to be looked at; kNoRow: all have been
    bool renewing_ = false;
    bool stale_ = false;  // the last look missed decisions, or counts users that may be gone
    bool has_warned_ = false;
    bool shared_ = false;                      // in the last turn
    uint32_t gives_way_ = 0;                   // account row to be asked next
    uint32_t asked_ = 0;                       // rows, in this turn: each once at most
    std::optional<std::set<uint32_t>> users_;  // uids with a session; none: not counted this turn
};

}  // namespace dibs
