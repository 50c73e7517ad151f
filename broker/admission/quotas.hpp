// broker/admission/quotas.hpp -- enforces in the turn what each uid may claim and offer.
//
// A claim beyond the policy reaches the core with its refusal, so it has its number and its one end
// like any other; it has no other effect. Claims and leases of all sessions of the uid, dying ones
// too, are counted from the core's own rows. Counting each time would be slow: as long as there are
// surely fewer than allowed, claims are only subtracted from that margin; once it is used up the
// rows are counted again, so the answer is always exact.
//
// Where the socket lets several users in, the last quarter of each table that all users share
// (kShared) is for uids that have less than a sixty-fourth of it: no uid can fill a table for other
// users.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "broker/admission/policy.hpp"
#include "broker/core/core.hpp"
#include "broker/session/session.hpp"
#include "shm/rule.hpp"

namespace dibs {

class Quotas {
  public:
    explicit Quotas(const core::Core& core) : core_(core) {}

    // Also for the sessions that there are.
    void set_policy(std::shared_ptr<const Policy> policy, std::span<Session* const> sessions);
    void add(Session& session);  // opened: it has its row
    // The socket lets several users in: a user that offers slots is named by a policy, or
    // administers.
    void set_shared(bool shared) { shared_ = shared; }

    // Why the session may not claim from, or announce a slot in, this pool now; kOk: it may. A
    // claim over several pools takes so many rows, and names the others, too.
    [[nodiscard]] shm::Reason claim(const Session& session, uint32_t pool, uint32_t rows = 1) {
        if (shared_ && !(has_share(session, shm::Table::kClaims, rows) &&
                         has_share(session, shm::Table::kLeases, rows))) {
            return shm::Reason::kLimit;
        }
        const bool may_be_part = pool < core_.pools() && core_.pool(pool).resources_count != 0;
        if (may_be_part && !has_part_share(session)) return shm::Reason::kLimit;
        return session.bounded ? bounded_claim(session, pool, rows) : shm::Reason::kOk;
    }
    // May its claims name the pool?
    [[nodiscard]] bool names(const Session& session, uint32_t pool) const;
    // The key behind a kLimit that claim() or bring() has just said to it.
    [[nodiscard]] shm::Rule limit(const Session& session, size_t bytes, uint32_t rows = 1) const;
    [[nodiscard]] shm::Reason announce(const Session& session, uint32_t pool) const;
    [[nodiscard]] shm::Reason provide(const Session& session, uint32_t pool) const;
    // The same of what a claim or an announcement in the pool brings: a payload or attributes,
    // labels.
    [[nodiscard]] shm::Reason bring(const Session& session,
                                    uint32_t pool,
                                    size_t bytes,
                                    std::span<const std::string_view> labels) const;
    // Whether its user may have one more application, with so many groups; one more task. Once half
    // of a table is used, whoever has a quarter of it gets no more.
    [[nodiscard]] shm::Reason application(uint32_t uid, size_t groups) const;
    [[nodiscard]] shm::Reason task(uint32_t uid) const;
    // Members of its user's applications that hold, or may come to hold, a slot without a lease:
    // with these not more than the policy's `leases`, if there is one; then *most is that. Of a
    // name that is there already the core says so.
    [[nodiscard]] bool may_reserve(const Credentials& peer,
                                   std::string_view application,
                                   std::span<const core::GroupSpec> groups,
                                   uint32_t* most) const;
    // What an application of a client without a session may be of.
    [[nodiscard]] bool may_claim(const Credentials& peer, uint32_t pool, int32_t priority) const;
    // The tables that are shared so. Sessions are in broker/admission.
    static constexpr std::array kShared = {shm::Table::kSlots,
                                           shm::Table::kClaims,
                                           shm::Table::kLeases,
                                           shm::Table::kLabelSets,
                                           shm::Table::kArena};
    // Of a claim in the pool: the core does, or a worker is handed them.
    [[nodiscard]] bool reads_labels(uint32_t pool) const {
        return pool >= core_.pools() || core_.pool(pool).kind == shm::PoolKind::kWorker ||
               core_.pool(pool).order == shm::PoolOrder::kAccount;
    }
    // Is there a pool whose claims are charged to an account?
    [[nodiscard]] bool charged() const;
    // May a claim of the session bring this priority?
    [[nodiscard]] static bool priority(const Session& session, int32_t priority) {
        return session.allowance == nullptr || priority <= session.allowance->priority_max;
    }
    // May it have this account pay? Its own, or none named; any, if it administers.
    [[nodiscard]] bool account(const Session& session, std::string_view account) const {
        return account.empty() || session.admin || account == account_of(session.peer.uid);
    }
    // What its claims are charged to.
    [[nodiscard]] std::string account_of(const Credentials& peer) const {
        return policy_->account_of(peer);
    }
    // What another user may see of a holder is its account: is that the uid's own?
    [[nodiscard]] bool own_account(uint32_t uid) const;
    [[nodiscard]] std::string account_of(uint32_t uid) const;  // its name, or "uid:<n>"

  private:
    static constexpr uint32_t kNewcomers = 4;  // the last of so many parts of a table is for them
    static constexpr uint32_t kLittle = 64;    // a uid with less than one of so many parts has
                                               // little

    struct Held {
        struct Row {
            uint32_t row;
            uint32_t generation;
        };
        std::vector<Row> rows;                  // of its sessions
        const Allowance* counted_by = nullptr;  // the margin is its
        uint32_t margin = 0;                    // so many more claims are surely allowed
        std::string account;                    // empty: the uid's own
    };

    void apply(Session& session);
    // Whether its uid may have so many more rows of the table: by its policy and by its share.
    [[nodiscard]] bool may_take(const Session& session, shm::Table table, uint64_t more) const {
        return may_have(session, table, more) && has_share(session, table);
    }
    [[nodiscard]] bool may_have(const Session& session, shm::Table table, uint64_t more) const;
    [[nodiscard]] bool has_share(const Session& session, shm::Table table, uint32_t more = 1) const;
    // Of slot rows for parts: whoever holds parts holds leases, so as many may be his.
    [[nodiscard]] bool has_part_share(const Session& session) const;
    // Whether its sessions hold so many rows of the table, or more.
    [[nodiscard]] bool holds(uint32_t uid, shm::Table table, uint64_t number) const;
    static constexpr uint32_t share_of(uint32_t rows) {
        return rows < kLittle ? 1 : rows / kLittle;
    }
    [[nodiscard]] shm::Reason bounded_claim(const Session& session, uint32_t pool, uint32_t rows);
    struct Room {
        uint32_t claims;  // so many more are allowed by each of the two numbers
        uint32_t leases;
    };
    [[nodiscard]] Room count_again(const Session& session, const Held& held) const;

    const core::Core& core_;
    std::shared_ptr<const Policy> policy_ = std::make_shared<const Policy>();
    std::unordered_map<uint32_t, Held> held_;  // by uid
    bool shared_ = false;
};

}  // namespace dibs
