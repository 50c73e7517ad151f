// broker/admission/quotas.cpp -- enforces what each uid may claim and offer.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admission/quotas.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "broker/core/look.hpp"
#include "shm/app_state.hpp"

namespace dibs {

using shm::Reason;
using shm::Table;

namespace {

constexpr uint64_t kBlockBytes = sizeof(shm::ArenaBlock::bytes);

constexpr uint64_t blocks_of(size_t bytes) {
    return (bytes + kBlockBytes - 1) / kBlockBytes;
}

// The rows of a table that a policy allows; kNoLimit: it has no key for the table, or sets none.
uint32_t most_of(const Allowance& allowance, Table table) {
    switch (table) {
        case Table::kSlots:
            return allowance.slots;
        case Table::kLabelSets:
            return allowance.label_sets;
        case Table::kArena:
            return static_cast<uint32_t>(
                std::min<uint64_t>(allowance.arena / kBlockBytes, kNoLimit));
        default:
            return kNoLimit;
    }
}

template <class Row>
std::string_view name_of(const Row& row) {
    return {row.name, row.name_size};
}

}  // namespace

void Quotas::set_policy(std::shared_ptr<const Policy> policy, std::span<Session* const> sessions) {
    policy_ = std::move(policy);
    for (Session* session : sessions)
        apply(*session);
    for (auto& [uid, held] : held_)
        held.counted_by = nullptr;
}

void Quotas::apply(Session& session) {
    const Allowance& allowance = policy_->of(session.peer);
    session.allowance = &allowance;
    session.bounded =
        allowance.pools || allowance.leases != kNoLimit || allowance.backlog != kNoLimit;
    session.admin = policy_->is_admin(session.peer);
    held_[session.peer.uid].account = allowance.account;
    const uint32_t row = core_.session(session.row).account;
    const std::string account = policy_->account_of(session.peer);
    const bool of_row = row != shm::kNoRow && name_of(core_.account(row)) == account;
    session.charged_to = of_row ? std::string() : account;
}

bool Quotas::charged() const {
    for (uint32_t pool = 0; pool < core_.pools(); ++pool) {
        if (core_.pool(pool).order == shm::PoolOrder::kAccount) return true;
    }
    return false;
}

void Quotas::add(Session& session) {
    apply(session);
    // Rows whose session has been buried hold nothing any more.
    Held& held = held_[session.peer.uid];
    std::erase_if(held.rows, [&](const Held::Row& row) {
        return core_.session(row.row).head.generation != row.generation;
    });
    held.rows.push_back({session.row, session.generation});
    if (held_.size() <= core_.sessions_max()) return;
    std::erase_if(held_, [&](const auto& entry) {
        return std::none_of(entry.second.rows.begin(), entry.second.rows.end(), [&](auto row) {
            return core_.session(row.row).head.generation == row.generation;
        });
    });
}

bool Quotas::names(const Session& session, uint32_t pool) const {
    return !session.bounded || pool >= core_.pools() ||
           session.allowance->may_claim(name_of(core_.pool(pool)));
}

Reason Quotas::bounded_claim(const Session& session, uint32_t pool, uint32_t rows) {
    if (pool >= core_.pools()) return Reason::kOk;  // the core says what is wrong with it
    if (!names(session, pool)) return Reason::kNotAllowed;
    Held& held = held_[session.peer.uid];
    if (held.margin < rows || held.counted_by != session.allowance) {
        const Room room = count_again(session, held);
        held.margin = std::min(room.claims, room.leases);
        held.counted_by = session.allowance;
    }
    if (held.margin < rows) return Reason::kLimit;
    held.margin -= rows;
    return Reason::kOk;
}

bool Quotas::holds(uint32_t uid, Table table, uint64_t number) const {
    const auto held = held_.find(uid);
    if (held == held_.end()) return number == 0;
    uint64_t sum = 0;
    for (const Held::Row& row : held->second.rows) {
        if (sum >= number) break;
        if (core_.session(row.row).head.generation == row.generation) {
            sum += core_.held(row.row, table);
        }
    }
    return sum >= number;
}

bool Quotas::has_share(const Session& session, Table table, uint32_t more) const {
    if (!shared_) return true;
    const core::Core::Room room = core_.room(table);
    const uint32_t share = share_of(room.rows);
    return room.free > room.rows / kNewcomers ||
           !holds(session.peer.uid, table, share - std::min(share, more - 1));
}

bool Quotas::has_part_share(const Session& session) const {
    if (!shared_) return true;
    const core::Core::Room room = core_.room(Table::kSlots);
    return room.free > room.rows / kNewcomers ||
           !holds(session.peer.uid, Table::kLeases, share_of(room.rows));
}

bool Quotas::may_have(const Session& session, Table table, uint64_t more) const {
    if (session.allowance == nullptr) return true;
    const uint64_t most = most_of(*session.allowance, table);
    return most == kNoLimit || (more <= most && !holds(session.peer.uid, table, most - more + 1));
}

Reason Quotas::bring(const Session& session,
                     uint32_t pool,
                     size_t bytes,
                     std::span<const std::string_view> labels) const {
    if (bytes != 0 && !may_take(session, Table::kArena, blocks_of(bytes))) return Reason::kLimit;
    const bool takes_set = !labels.empty() && pool < core_.pools() &&
                           core_.pool(pool).order == shm::PoolOrder::kAccount &&
                           !core_.knows_labels(labels);
    return takes_set && !may_take(session, Table::kLabelSets, 1) ? Reason::kLimit : Reason::kOk;
}

Quotas::Room Quotas::count_again(const Session& session, const Held& held) const {
    uint32_t claims = core_.fresh_claims(session.peer.uid);
    uint32_t leases = 0;
    for (const Held::Row& row : held.rows) {
        const shm::SessionRow& its = core_.session(row.row);
        if (its.head.generation != row.generation) continue;
        claims += its.claims;
        leases += its.leases;
    }
    const Allowance& may = *session.allowance;
    return {may.backlog - std::min(may.backlog, claims),
            may.leases - std::min(may.leases, claims + leases)};
}

shm::Rule Quotas::limit(const Session& session, size_t bytes, uint32_t rows) const {
    using shm::RuleKey;
    const auto short_of = [&](Table table) { return !has_share(session, table, rows); };
    const auto share = [&](RuleKey key, Table table) {
        return shm::Rule{key, share_of(core_.room(table).rows)};
    };
    if (bytes != 0 && !may_have(session, Table::kArena, blocks_of(bytes))) {
        const uint64_t most = session.allowance->arena;
        return {RuleKey::kArena, most < kNoLimit ? static_cast<uint32_t>(most) : kNoLimit};
    }
    if (bytes != 0 && short_of(Table::kArena)) return share(RuleKey::kPayloadShare, Table::kArena);
    if (short_of(Table::kClaims)) return share(RuleKey::kClaimShare, Table::kClaims);
    if (short_of(Table::kLeases)) return share(RuleKey::kLeaseShare, Table::kLeases);
    const auto held = held_.find(session.peer.uid);
    if (session.bounded && held != held_.end()) {
        const Room room = count_again(session, held->second);
        if (room.claims < rows) return {RuleKey::kBacklog, session.allowance->backlog};
        if (room.leases < rows) return {RuleKey::kLeases, session.allowance->leases};
    }
    if (!has_part_share(session)) return share(RuleKey::kSlotShare, Table::kSlots);
    if (!may_have(session, Table::kLabelSets, 1)) {
        return {RuleKey::kLabelSets, session.allowance->label_sets};
    }
    return short_of(Table::kLabelSets) ? share(RuleKey::kLabelShare, Table::kLabelSets)
                                       : shm::Rule{};
}

bool Quotas::own_account(uint32_t uid) const {
    const auto held = held_.find(uid);
    return held == held_.end() || held->second.account.empty();
}

std::string Quotas::account_of(uint32_t uid) const {
    return own_account(uid) ? "uid:" + std::to_string(uid) : held_.find(uid)->second.account;
}

Reason Quotas::announce(const Session& session, uint32_t pool) const {
    if (pool >= core_.pools() || session.allowance == nullptr) return Reason::kOk;
    const bool may =
        session.allowance->may_offer(name_of(core_.pool(pool)), session.admin || !shared_);
    if (!may) return Reason::kNotAllowed;
    return may_take(session, Table::kSlots, 1) ? Reason::kOk : Reason::kLimit;
}

Reason Quotas::provide(const Session& session, uint32_t pool) const {
    if (pool >= core_.pools() || session.allowance == nullptr) return Reason::kOk;
    const bool may =
        session.allowance->may_provision(name_of(core_.pool(pool)), session.admin || !shared_);
    return may ? Reason::kOk : Reason::kNotAllowed;
}

namespace {

bool is_past(shm::AppState state) {
    using shm::AppState;
    return state == AppState::kFree || state == AppState::kGoing || has_ended(state);
}

// Of what it keeps for its applications, by `count(app)`. Ended ones of which nothing lives are
// forgotten for new ones: they do not count.
template <class Count>
bool has_a_quarter(const core::Core& core, uint32_t uid, uint32_t rows, const Count& count) {
    uint64_t held = 0;
    for (uint32_t row = 0; row < core::Look::applications_max(core); ++row) {
        const shm::AppRow& app = core::Look::application(core, row);
        const bool is_over = is_past(app.state) && app.claims == 0 && app.leases == 0;
        if (app.uid == uid && !is_over) held += count(app);
    }
    return held >= rows / 4;
}

uint64_t groups_of(const core::Core& core, const shm::AppRow& app) {
    uint64_t count = 0;
    for (uint32_t row = app.first_group; row != shm::kNoRow;
         row = core::Look::group(core, row).next)
        ++count;
    return count;
}

uint32_t rows_of(const core::Core& core, Table table) {
    return core.head().table[static_cast<size_t>(table)].rows;
}

}  // namespace

Reason Quotas::application(uint32_t uid, size_t groups) const {
    if (!shared_) return Reason::kOk;
    const auto one = [](const shm::AppRow&) { return uint64_t{1}; };
    const auto its_groups = [&](const shm::AppRow& app) { return groups_of(core_, app); };
    const uint32_t apps = rows_of(core_, Table::kApps);
    const uint32_t all_groups = rows_of(core_, Table::kGroups);
    const bool apps_short = core_.counters().apps_free <= apps / 2;
    const bool groups_short = core_.counters().groups_free <= all_groups / 2;
    if (apps_short && has_a_quarter(core_, uid, apps, one)) return Reason::kLimit;
    if (groups != 0 && groups_short && has_a_quarter(core_, uid, all_groups, its_groups)) {
        return Reason::kLimit;
    }
    return task(uid);
}

bool Quotas::may_reserve(const Credentials& peer,
                         std::string_view application,
                         std::span<const core::GroupSpec> groups,
                         uint32_t* most) const {
    *most = policy_->of(peer).leases;
    if (*most == kNoLimit) return true;
    if (core::Look::find_application(core_, peer.uid, application) != shm::kNoRow) return true;
    uint64_t members = 0;
    for (const core::GroupSpec& group : groups)
        members += group.members;
    for (uint32_t row = 0; row < core::Look::applications_max(core_); ++row) {
        const shm::AppRow& app = core::Look::application(core_, row);
        if (app.state == shm::AppState::kFree || app.uid != peer.uid) continue;
        if (app.state == shm::AppState::kRunning) {
            members += app.placeholders;
            continue;
        }
        const bool may_come =
            app.state < shm::AppState::kRunning || app.state == shm::AppState::kRecovering;
        for (uint32_t at = may_come ? app.first_group : shm::kNoRow; at != shm::kNoRow;
             at = core::Look::group(core_, at).next)
            members += core::Look::group(core_, at).members;
    }
    return members <= *most;
}

Reason Quotas::task(uint32_t uid) const {
    if (!shared_) return Reason::kOk;
    const uint32_t tasks = rows_of(core_, Table::kTasks);
    if (core_.counters().tasks_free > tasks / 2) return Reason::kOk;
    const auto its_tasks = [](const shm::AppRow& app) { return uint64_t{app.tasks}; };
    return has_a_quarter(core_, uid, tasks, its_tasks) ? Reason::kLimit : Reason::kOk;
}

bool Quotas::may_claim(const Credentials& peer, uint32_t pool, int32_t priority) const {
    const Allowance& may = policy_->of(peer);
    const bool names = pool >= core_.pools() || may.may_claim(name_of(core_.pool(pool)));
    return names && priority <= may.priority_max;
}

}  // namespace dibs
