// broker/admission/policy.cpp -- finds which policy table applies to a peer and what it allows.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admission/policy.hpp"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace dibs {

namespace {

bool named(const std::vector<std::string>& pools, std::string_view pool) {
    return std::find(pools.begin(), pools.end(), pool) != pools.end();
}

bool member(const Credentials& peer, uint32_t group) {
    return peer.gid == group ||
           std::find(peer.groups.begin(), peer.groups.end(), group) != peer.groups.end();
}

std::optional<uint32_t> number(const std::string& text) {
    uint32_t value = 0;
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || at != end) return std::nullopt;
    return value;
}

}  // namespace

bool Allowance::may_claim(std::string_view pool) const {
    return !pools || named(*pools, pool);
}

bool Allowance::may_offer(std::string_view pool, bool unnamed) const {
    return offers ? named(*offers, pool) : unnamed && may_claim(pool);
}

bool Allowance::may_provision(std::string_view pool, bool unnamed) const {
    return provisions ? named(*provisions, pool) : may_offer(pool, unnamed);
}

const Allowance& Policy::of(const Credentials& peer) const {
    if (const auto user = users.find(peer.uid); user != users.end()) return user->second;
    const auto group = std::find_if(
        groups.begin(), groups.end(), [&](const auto& rule) { return member(peer, rule.first); });
    return group != groups.end() ? group->second : others;
}

std::string Policy::account_of(const Credentials& peer) const {
    const Allowance& allowance = of(peer);
    return allowance.account.empty() ? "uid:" + std::to_string(peer.uid) : allowance.account;
}

namespace {

template <class Look>
void each_rule(const Policy& policy, Look look) {
    for (const auto& [user, allowance] : policy.users)
        look(allowance);
    for (const auto& [group, allowance] : policy.groups)
        look(allowance);
    look(policy.others);
}

}  // namespace

std::set<std::string> Policy::named_pools() const {
    std::set<std::string> named = offered_pools();
    each_rule(*this, [&](const Allowance& allowance) {
        for (const auto& pools : {allowance.pools, allowance.provisions}) {
            if (pools) named.insert(pools->begin(), pools->end());
        }
    });
    return named;
}

std::set<std::string> Policy::offered_pools() const {
    std::set<std::string> named;
    each_rule(*this, [&](const Allowance& allowance) {
        if (allowance.offers) named.insert(allowance.offers->begin(), allowance.offers->end());
    });
    return named;
}

bool Policy::is_admin(const Credentials& peer) const {
    return peer.uid == 0 || peer.uid == geteuid() || (admin_group && member(peer, *admin_group));
}

std::optional<uint32_t> user_id(const std::string& name) {
    if (const auto id = number(name)) return id;
    const struct passwd* user = getpwnam(name.c_str());
    if (user == nullptr) return std::nullopt;
    return user->pw_uid;
}

std::optional<uint32_t> group_id(const std::string& name) {
    if (const auto id = number(name)) return id;
    const struct group* group = getgrnam(name.c_str());
    if (group == nullptr) return std::nullopt;
    return group->gr_gid;
}

}  // namespace dibs
