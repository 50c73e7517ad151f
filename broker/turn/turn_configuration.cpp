// broker/turn/turn_configuration.cpp -- makes pools and accounts as the file says.
// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/core/look.hpp"
#include "broker/text/log.hpp"
#include "broker/turn/turn.hpp"

namespace dibs {

// A pool that a successor cannot make as its file now says stays as it was: attached clients must
// not lose it.
void Turn::set_pools(Config& config, bool takeover) {
    for (PoolSettings& pool : config.pools) {
        std::string why;
        begin_unheard();
        const bool set = core_.set_pool(pool.view(), &why) != shm::kNoRow;
        if (!set && !takeover) throw std::runtime_error(why);
        if (!set) log::warning(why + "; it stays as it was");
        const uint32_t row = core_.find_pool(pool.name);
        if (row != shm::kNoRow) {
            operations_.set_preempt(row, pool.preempt);
            uid_accounts_.set_equal(row, pool.equal_share);
        }
        finish_unheard();
    }
    begin_unheard();
    const std::vector<std::string> refused = set_types(config.types);
    finish_unheard();
    if (!refused.empty() && !takeover) throw std::runtime_error(refused.front());
    for (const std::string& why : refused)
        log::warning(why);
    (void)sets_.set(std::move(config.sets));
}

// Types that the file does not name any more go, but for those that still have workers.
std::vector<std::string> Turn::set_types(const std::vector<TypeSettings>& types) {
    std::vector<std::string> refused;
    std::set<std::pair<std::string_view, std::string_view>> named;
    for (const TypeSettings& type : types) {
        named.emplace(type.pool, type.name);
        core::TypeConfig config;
        config.name = type.name;
        config.pool = type.pool;
        config.cost = type.cost;
        config.preemptible = type.preemptible;
        config.provider_type = type.provider_type;
        config.quota_group = type.quota_group;
        const std::vector<std::string_view> labels(type.labels.begin(), type.labels.end());
        config.labels = labels;
        std::string why;
        if (!core_.set_type(config, &why)) refused.push_back(why);
    }
    const uint32_t rows = core_.head().table[static_cast<size_t>(shm::Table::kTypes)].rows;
    for (uint32_t row = 0; row < rows; ++row) {
        const shm::TypeRow& type = core::Look::type(core_, row);
        if (type.state == 0) continue;
        const std::string name(type.name, type.name_size);
        const shm::PoolRow& row_of_pool = core_.pool(type.pool);
        const std::string pool(row_of_pool.name, row_of_pool.name_size);
        if (named.contains({pool, name})) continue;
        if (core_.apply(core::DeleteType{name, pool}) == shm::Reason::kState) {
            refused.push_back("type '" + name + "' of pool '" + pool +
                              "': it has workers, and goes with the last one; no more are made");
        }
    }
    return refused;
}

// A broker that takes over a served STATE leaves accounts as they are: an administrator may have
// changed them since the file was read.
void Turn::set_accounts(const Config& config) {
    file_accounts_.begin(config.accounts, config.account_default.has_value());
    bool done = false;
    while (!done) {
        begin_unheard();
        done = file_accounts_.step();
        finish_unheard();
    }
}

void Turn::take_over(Config* taken) {
    taken_.reset(taken);
    taken_pools_ = 0;
    refused_.clear();
    file_accounts_.begin(taken->accounts, taken->account_default.has_value());
    uid_accounts_.configure(*taken, true);
    drain_timeout_ns_ = taken->drain_timeout_ns;
    desk_.set_ended_leases_for(taken->ended_leases_for_ns);
    operations_.set_manager_timeout(taken->manager_timeout_ns);
    transient_.set_idle(taken->created_pool_idle_ns);
    sleep_.set_spin(taken->spin_ns);
    throttle_pause_.set_pause(taken->throttle_ns);
    quotas_.set_policy(taken->policy, sessions_.all());
}

// A new pool brings some two hundred rows, so the turn's log may end before the pools do. False if
// the rest must wait for the next turn.
bool Turn::take_configuration() {
    if (taken_ == nullptr) return true;
    for (; taken_pools_ < taken_->pools.size(); ++taken_pools_) {
        if (core_.turn_full()) return false;
        std::string why;
        PoolSettings& pool = taken_->pools[taken_pools_];
        const uint32_t row = core_.set_pool(pool.view(), &why);
        if (row == shm::kNoRow) {
            refused_.push_back(why + "; it stays as it was");
            log::warning(refused_.back());
        } else {
            operations_.set_preempt(row, pool.preempt);
            uid_accounts_.set_equal(row, pool.equal_share);
        }
    }
    if (core_.turn_full()) return false;
    for (const std::string& why : set_types(taken_->types)) {
        refused_.push_back(why);
        log::warning(why);
    }
    for (const std::string& name : taken_->struck) {
        if (core_.turn_full()) return false;
        const uint32_t row = core_.find_pool(name);
        if (row == shm::kNoRow) continue;
        (void)core_.delete_pool(row, true);
        transient_.asked_for(row);
    }
    if (!file_accounts_.step()) return false;
    sets_.set_cluster(taken_->cluster);
    for (const std::string& why : sets_.set(std::move(taken_->sets)))
        refused_.push_back(why);
    taken_.reset();
    words_.rules_change();
    publish_all_ = true;
    return true;
}

}  // namespace dibs
