// broker/config/uid_accounts.cpp -- makes accounts for users that the file does not name.
// SPDX-License-Identifier: Apache-2.0
#include "broker/config/uid_accounts.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "broker/text/log.hpp"

namespace dibs {

namespace AccountFlag = shm::AccountFlag;

namespace {

template <class Row>
std::string name_of(const Row& row) {
    return {row.name, row.name_size};
}

// Of an account "uid:<n>".
uint32_t uid_of(std::string_view name) {
    uint32_t uid = shm::kNoRow;
    name.remove_prefix(name.find(':') + 1);
    std::from_chars(name.data(), name.data() + name.size(), uid);
    return uid;
}

bool is_configured(const shm::AccountRow& account) {
    return account.state != 0 && (account.flags & AccountFlag::kConfigured) != 0;
}

}  // namespace

void UidAccounts::configure(const Config& config, bool renew) {
    template_ = config.account_default;
    named_.clear();
    for (const AccountSettings& account : config.accounts)
        named_.insert(account.name);
    has_claimed_.resize(core_.accounts_max());
    has_warned_ = false;
    looked_ns_ = 0;
    stale_ = false;
    renewing_ = template_ && (renewing_ || renew);
    if (renewing_ || !template_) next_ = shm::kNoRow;
    // Here, before the accounts are made anew: the file's pools are made one by one, and those that
    // it does not name leave when none of their slots is held any more.
    std::set<std::string> equal;
    for (const PoolSettings& pool : config.pools) {
        if (pool.equal_share) equal.insert(pool.name);
    }
    std::erase_if(equal_pools_, [&](const EqualPool& pool) { return !equal.contains(pool.name); });
    shared_ = shares();
}

void UidAccounts::set_equal(uint32_t pool, bool equal) {
    std::erase_if(equal_pools_, [&](const EqualPool& known) { return known.row == pool; });
    if (equal) equal_pools_.push_back({pool, name_of(core_.pool(pool))});
}

bool UidAccounts::lives(const EqualPool& pool) const {
    if (!core_.pool_lives(pool.row)) return false;
    const shm::PoolRow& row = core_.pool(pool.row);
    return std::string_view{row.name, row.name_size} == pool.name;
}

bool UidAccounts::shares() const {
    return template_ && std::any_of(equal_pools_.begin(),
                                    equal_pools_.end(),
                                    [&](const EqualPool& pool) { return lives(pool); });
}

// Neither those that leave nor those that are drained: none of these is granted.
int64_t UidAccounts::slots() const {
    int64_t sum = 0;
    for (const EqualPool& equal : equal_pools_) {
        if (!lives(equal)) continue;
        const shm::PoolRow& pool = core_.pool(equal.row);
        if (pool.state == shm::PoolState::kDraining) continue;
        const bool is_counted = pool.kind == shm::PoolKind::kCounted;
        const uint32_t slots = pool.slots - pool.parts;
        const uint32_t staying = is_counted ? std::min(slots, pool.slots_wanted) : slots;
        sum += staying - std::min(staying, pool.drained);
    }
    return sum;
}

bool UidAccounts::is_made(uint32_t row) const {
    const shm::AccountRow& account = core_.account(row);
    return is_configured(account) && (account.flags & AccountFlag::kOfFile) != 0 &&
           !named_.contains(name_of(account)) && is_own_account(name_of(account));
}

bool UidAccounts::is_active(uint32_t row) const {
    return has_claimed_[row] != 0 || core_.account(row).held != 0 || core_.waiting_of(row) != 0;
}

int64_t UidAccounts::share_of(uint32_t users) const {
    return std::min(slots(), kRateMax) * kMicros / std::max(users, 1U);
}

void UidAccounts::admit(const Session& session) {
    if (!template_) return;
    stale_ = stale_ || shares();
    const uint32_t row = session.charged_to.empty() ? core_.session(session.row).account
                                                    : core_.find_account(session.charged_to);
    if (row != shm::kNoRow && is_configured(core_.account(row))) {
        has_claimed_[row] = 1;
        return;
    }
    const std::string name = row == shm::kNoRow ? session.charged_to : name_of(core_.account(row));
    if (is_own_account(name)) make(name);
}

void UidAccounts::make(const std::string& name) {
    if (shares()) {
        uint32_t users = 1;
        for (uint32_t row = 0; row < core_.accounts_max(); ++row)
            users += is_made(row) && is_active(row) ? 1 : 0;
        share_ = share_of(users);
    }
    std::string why;
    bool made = set(name, false, &why);
    if (!made && core_.find_account(name) == shm::kNoRow) {
        made = give_way() && set(name, false, &why);
    }
    if (made) {
        has_claimed_[core_.find_account(name)] = 1;
    } else if (!has_warned_) {
        has_warned_ = true;
        log::warning(
            why + "; its claims are refused until one that is not used is there (limits.accounts)");
    }
}

bool UidAccounts::set(const std::string& name, bool keep_balance, std::string* why) {
    AccountSettings settings = *template_;
    settings.name = name;
    if (shares()) {
        settings.rate = {share_};
        settings.balance = {static_cast<int64_t>(static_cast<__int128>(share_) *
                                                 (settings.charge_max_ns / 1000) / kMicros)};
    }
    std::vector<core::AccountConfig::Limit> limits;
    core::AccountConfig config = settings.view(limits);
    config.keep_balance = keep_balance;
    config.of_file = true;
    return core_.set_account(config, why);
}

// No user loses by it now: an account that is wanted again is made again. A debt would be lost.
bool UidAccounts::may_give_way(uint32_t row) const {
    if (!is_made(row) || core_.uses_of(row) != 0) return false;
    const auto balance = core_.balance(row);
    const bool owes =
        std::any_of(balance.begin(), balance.end(), [](int64_t of) { return of < 0; });
    return !owes && !users_->contains(uid_of(name_of(core_.account(row))));
}

// One at a time; in a turn each row is asked once.
bool UidAccounts::give_way() {
    if (!users_) find_users();
    for (; asked_ < core_.accounts_max(); ++asked_) {
        const uint32_t row = gives_way_;
        gives_way_ = (gives_way_ + 1) % core_.accounts_max();
        if (!may_give_way(row)) continue;
        ++asked_;
        has_claimed_[row] = 0;
        core_.delete_account(name_of(core_.account(row)));
        return true;
    }
    return false;
}

// A session need not use its user's account: it may be older than the pools that charge one.
void UidAccounts::find_users() {
    users_.emplace();
    for (uint32_t row = 0; row < core_.sessions_max(); ++row) {
        const shm::SessionRow& session = core_.session(row);
        if (session.state != shm::SessionState::kFree) users_->insert(session.uid);
    }
}

void UidAccounts::note() {
    asked_ = 0;
    users_.reset();
    const bool shared = shares();
    if (shared_ && !shared && template_) {  // their rate is the template's again
        renewing_ = true;
        next_ = shm::kNoRow;
    }
    shared_ = shared;
    stale_ = stale_ || (shared && (!core_.decisions().empty() || slots() != slots_));
}

void UidAccounts::look(core::TimeNs now) {
    looked_ns_ = now;
    next_ = 0;
    stale_ = false;
    if (!shares()) return;
    slots_ = slots();
    uint32_t users = 0;
    for (uint32_t row = 0; row < core_.accounts_max(); ++row)
        users += is_made(row) && is_active(row) ? 1 : 0;
    share_ = share_of(users);
}

void UidAccounts::step(core::TimeNs now) {
    if (!unfinished() && now < next_look()) return;
    if (next_ == shm::kNoRow) look(now);
    for (; next_ < core_.accounts_max(); ++next_) {
        if (!is_made(next_)) continue;
        const shm::AccountRow& account = core_.account(next_);
        const bool counted = is_active(next_);
        const bool due = shares() && counted && account.rate[0] != share_;
        if (renewing_ || due) {
            if (core_.turn_full()) return;
            std::string why;
            if (!set(name_of(account), true, &why)) log::warning(why + "; it stays as it was");
        }
        has_claimed_[next_] = 0;
        stale_ = stale_ || (shares() && counted && !is_active(next_));
    }
    next_ = shm::kNoRow;
    renewing_ = false;
}

}  // namespace dibs
