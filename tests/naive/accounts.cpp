// tests/naive/accounts.cpp -- "Money and time", "Accounts", "Fan-out and label limits" of
// docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/naive/naive_core.hpp"
#include "tests/naive/sums.hpp"

namespace dibs::naive {

namespace {

constexpr int64_t kBalanceMost = 1'000'000'000'000'000'000;
constexpr int64_t kRateMost = 1'000'000'000'000;
constexpr int64_t kMicros = 1'000'000;

__extension__ using Wide = __int128;

int64_t micros(TimeNs at) {
    return static_cast<int64_t>(at / 1000);
}

// floor(r · us(t) / 10⁶)
Wide earned_by(int64_t rate, TimeNs at) {
    return static_cast<Wide>(rate) * micros(at) / kMicros;
}

// "Balances stop at ±10¹⁸."
int64_t stopped(Wide value) {
    return static_cast<int64_t>(std::clamp<Wide>(value, -kBalanceMost, kBalanceMost));
}

bool begins_with_key(const std::string& label, const std::string& key) {
    return label.starts_with(key + ":");
}

// "With the key `*`: of all slots."
Labels counted_labels(const Slot& slot) {
    Labels labels = slot.labels;
    labels.insert("*:");
    return labels;
}

bool balance_is_refused(std::span<const int64_t> balance) {
    return balance.size() > shm::kClasses ||
           std::any_of(balance.begin(), balance.end(), [](int64_t value) {
               return value > kBalanceMost || value < -kBalanceMost;
           });
}

}  // namespace

// "For each class: v ← v − elapsed · running(p); then, if v < cap, v ← min(v + earned, cap);
// otherwise v stays." S2.3, S2.4
void NaiveCore::time_passes(TimeNs from, TimeNs to) {
    const int64_t elapsed = micros(to) - micros(from);
    for (auto& [name, account] : m_.accounts) {
        int64_t held = 0;
        for (uint8_t at = 0; at <= kFreeClass; ++at)
            held += running(name, at);
        account.used_us += static_cast<uint64_t>(elapsed * held);
        if (!account.is_configured) continue;
        for (uint8_t at = 0; at < shm::kClasses; ++at) {
            int64_t& value = account.balance[at];
            const int64_t rate = account.rate[at];
            value = stopped(value - static_cast<Wide>(elapsed) * running(name, at));
            const Wide cap = earned_by(rate, account.charge_max_ns);
            if (value >= cap) continue;
            const Wide earned = earned_by(rate, to) - earned_by(rate, from);
            value = stopped(std::min(value + earned, cap));
        }
    }
    for (auto& [number, lease] : m_.leases) {
        if (by_account(lease.pool) && lease.account_class < kFreeClass) {
            lease.cost[lease.account_class] += elapsed;
        }
    }
}

int64_t NaiveCore::running(const std::string& account, uint8_t at) const {
    int64_t slots = 0;
    for (const auto& [number, lease] : m_.leases) {
        if (!by_account(lease.pool) || lease.was.account != account) continue;
        if (lease.account_class == at && !lease.is_revoking) {
            slots += static_cast<int64_t>(lease.slots.size());
        }
    }
    return slots;
}

// "Until it is neither configured nor named by a claim that waits, confirms or runs, or by a
// session."
std::map<std::string, Account> NaiveCore::known_accounts() const {
    std::map<std::string, Account> known = m_.accounts;
    std::erase_if(known, [&](const auto& entry) {
        const std::string& name = entry.first;
        if (entry.second.is_configured) return false;
        for (const auto& [id, session] : m_.sessions) {
            if (session.account == name) return false;
        }
        for (const auto& [number, claim] : m_.claims) {
            if (claim.account == name) return false;
        }
        for (const auto& [number, lease] : m_.leases) {
            if (lease.was.account == name) return false;
        }
        return true;
    });
    return known;
}

// "The lowest place, from 0, that was free when it became known."
void NaiveCore::know_account(const std::string& name) {
    if (name.empty()) return;
    m_.accounts = known_accounts();
    if (m_.accounts.contains(name)) return;
    std::set<uint32_t> taken;
    for (const auto& [other, account] : m_.accounts)
        taken.insert(account.place);
    Account account;
    account.name = name;
    while (taken.contains(account.place))
        ++account.place;
    m_.accounts[name] = account;
}

// "More than five values, a negative rate, a rate above 10¹², a cap above 10¹⁸, a balance beyond
// ±10¹⁸, a limit without a key: refused, nothing changes."
bool NaiveCore::set_account(const core::AccountConfig& config, std::string* /*why*/) {
    if (config.name.empty() || config.name.size() > shm::kNameMax) return false;
    if (config.rate.size() > shm::kClasses || balance_is_refused(config.balance)) return false;
    for (const int64_t rate : config.rate) {
        if (rate < 0 || rate > kRateMost) return false;
        if (earned_by(rate, config.charge_max_ns) > kBalanceMost) return false;
    }
    for (const auto& limit : config.label_limits) {
        if (limit.key.empty()) return false;
    }
    const std::string name{config.name};
    know_account(name);
    Account& account = m_.accounts.at(name);
    const bool keeps = config.keep_balance && account.is_configured;
    account.is_configured = true;
    account.rate = {};
    std::copy(config.rate.begin(), config.rate.end(), account.rate.begin());
    if (!keeps) {
        account.balance = {};
        std::copy(config.balance.begin(), config.balance.end(), account.balance.begin());
    }
    account.charge_max_ns = config.charge_max_ns;
    account.fanout_max = config.fanout_max;
    account.free_tasks_disabled = config.free_tasks_disabled;
    account.label_limits.clear();
    for (const auto& limit : config.label_limits)
        account.label_limits.emplace_back(limit.key, limit.limit);
    return true;
}

// "Deleting removes configuration and balance; its leases stay at their class."
void NaiveCore::delete_account(std::string_view name) {
    const auto found = m_.accounts.find(std::string{name});
    if (found == m_.accounts.end() || !found->second.is_configured) return;
    Account gone;
    gone.name = found->second.name;
    gone.place = found->second.place;
    gone.used_us = found->second.used_us;
    found->second = gone;
}

// "Resetting sets the balance of a configured account, and does nothing to another."
bool NaiveCore::reset_balance(std::string_view name,
                              std::span<const int64_t> balance,
                              std::string* /*why*/) {
    if (balance_is_refused(balance)) return false;
    const auto found = m_.accounts.find(std::string{name});
    if (found == m_.accounts.end() || !found->second.is_configured) return true;
    found->second.balance = {};
    std::copy(balance.begin(), balance.end(), found->second.balance.begin());
    return true;
}

const Account* NaiveCore::configured(const std::string& name) const {
    const auto found = m_.accounts.find(name);
    return found == m_.accounts.end() || !found->second.is_configured ? nullptr : &found->second;
}

void NaiveCore::move_balance(Account& account, const Money& by, int sign) {
    for (size_t at = 0; at < by.size(); ++at) {
        account.balance[at] = stopped(static_cast<Wide>(account.balance[at]) + sign * by[at]);
    }
}

// "fanout_max less the slots, in this pool, of the account's claims with the same set base ∪
// provisionable that run, confirm or are promised one at a class below free." S2.14
int64_t NaiveCore::fanout_left(const Claim& claim) const {
    const Account* account = configured(claim.account);
    if (account == nullptr) return 0;
    if (account->fanout_max == 0) return INT64_MAX;
    const auto all_labels = [](const Claim& of) {
        Labels all = of.base;
        all.insert(of.provisionable.begin(), of.provisionable.end());
        return all;
    };
    const Labels group = all_labels(claim);
    int64_t left = account->fanout_max;
    const auto same = [&](const Claim& other) {
        return other.pool == claim.pool && other.account == claim.account &&
               all_labels(other) == group;
    };
    for (const auto& [number, other] : m_.claims) {
        if (other.is_promised && same(other)) left -= 1;
        if (other.is_confirming && other.served_class < kFreeClass && same(other)) {
            left -= static_cast<int64_t>(other.slots.size());
        }
    }
    for (const auto& [number, lease] : m_.leases) {
        if (lease.is_revoking || lease.account_class >= kFreeClass || !same(lease.was)) continue;
        left -= static_cast<int64_t>(lease.slots.size());
    }
    return left;
}

// "The account's claims of any class that run, confirm or are promised one in this pool": their
// slots with it.
int64_t NaiveCore::slots_with(const Claim& claim, const std::string& label) const {
    int64_t count = 0;
    const auto add = [&](const std::vector<uint64_t>& slots) {
        count += std::count_if(slots.begin(), slots.end(), [&](uint64_t id) {
            return counted_labels(m_.slots.at(id)).contains(label);
        });
    };
    for (const auto& [number, other] : m_.claims) {
        const bool same = other.pool == claim.pool && other.account == claim.account;
        if (same && other.is_confirming) add(other.slots);
    }
    for (const auto& [id, slot] : m_.slots) {
        if (slot.promised_to == 0 || slot.pool != claim.pool) continue;
        if (m_.claims.at(slot.promised_to).account == claim.account) add({id});
    }
    for (const auto& [number, lease] : m_.leases) {
        const bool same = lease.pool == claim.pool && lease.was.account == claim.account;
        if (same && !lease.is_revoking) add(lease.slots);
    }
    return count;
}

// S2.15. "Of a claim for several units each slot counts for the next."
bool NaiveCore::within_limits(const Claim& claim,
                              uint64_t id,
                              const std::vector<uint64_t>& with) const {
    const Account* account = configured(claim.account);
    if (account == nullptr) return true;
    for (const auto& [key, most] : account->label_limits) {
        for (const std::string& label : counted_labels(m_.slots.at(id))) {
            if (!begins_with_key(label, key)) continue;
            int64_t count = slots_with(claim, label);
            for (const uint64_t taken : with)
                count += counted_labels(m_.slots.at(taken)).contains(label);
            if (count >= int64_t{most}) return false;
        }
    }
    return true;
}

// "Any promotion if an account's label count on its slots is above (not at) its limit", and one out
// of the free class "if the lease's remaining fan-out is less than its units".
bool NaiveCore::promotion_is_barred(const Lease& lease) const {
    const auto units = static_cast<int64_t>(lease.slots.size());
    if (lease.account_class == kFreeClass && fanout_left(lease.was) < units) return true;
    for (const auto& [key, most] : configured(lease.was.account)->label_limits) {
        for (const uint64_t id : lease.slots) {
            for (const std::string& label : counted_labels(m_.slots.at(id))) {
                if (!begins_with_key(label, key)) continue;
                if (slots_with(lease.was, label) > int64_t{most}) return true;
            }
        }
    }
    return false;
}

}  // namespace dibs::naive
