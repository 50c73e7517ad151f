// broker/core/provision/types.cpp -- configures elastic pools and their types of workers, and gives
// a type's role of provisioner to a session.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <tuple>

#include "broker/core/parts.hpp"
#include "broker/core/provision/provisioning.hpp"
#include "broker/core/store/invariant.hpp"
#include "shm/pool_name.hpp"

namespace dibs::core {

namespace {

std::string refusal_of(const TypeConfig& config) {
    if (!shm::is_pool_name(config.name.data(), config.name.size())) {
        return std::string("a type's name is as a pool's: ") + shm::kPoolNameRule;
    }
    if (config.cost == 0) return "its cost must be at least 1";
    if (std::max(config.provider_type.size(), config.quota_group.size()) > shm::kTypeWordMax) {
        return "provider_type and quota_group have at most 31 bytes";
    }
    return {};
}

}  // namespace

std::string elastic_refusal(const PoolConfig& config) {
    if (config.workers_max == 0) return config.dispatch ? "dispatch needs workers_max" : "";
    if (config.supervisor_permille > 1000) return "supervisor_permille is at most 1000";
    if (config.kind != shm::PoolKind::kWorker) return "workers_max is for pools of workers";
    if (config.order == shm::PoolOrder::kArrival) {
        return "workers_max needs order = \"priority\", which is the order of arrival where claims "
               "bring no priority, or \"account\"";
    }
    for (size_t at = 0; at < config.create_min.size(); ++at) {
        const Amount& amount = config.create_min[at];
        const auto is_it = [&](const Amount& other) { return other.name == amount.name; };
        const auto before = config.create_min.first(at);
        if (std::none_of(config.vector.begin(), config.vector.end(), is_it) ||
            std::any_of(before.begin(), before.end(), is_it) || amount.amount < 0 ||
            static_cast<uint64_t>(amount.amount) > shm::kAmountMax) {
            return "create_min has amounts of its slots' resources, from 0 to 2^53";
        }
    }
    if (config.dispatch && config.order != shm::PoolOrder::kPriority) {
        return "dispatch needs order = \"priority\"";
    }
    if (config.dispatch && !config.vector.empty()) {
        return "the workers of a dispatched pool have no resources";
    }
    if (config.park) return "an elastic pool parks no leases";
    if (config.workers_min > config.workers_max) return "workers_min is above workers_max";
    if (config.spare > config.workers_max) return "spare is above workers_max";
    return {};
}

void Provisioning::configure(uint32_t pool, const PoolConfig& config, bool is_new) {
    if (!is_new && !is_elastic(pool)) return;
    shm::ElasticRow& row = edit().row(state.elastics[pool], 0x1fU);
    if (is_new) {
        put(row.gather_until_ns, 0);
        put(row.gathered, 0);
        put(row.within_quota, 0);
        put(row.quota_below, 0);
        put(row.ordered, 0);
        put(row.overload_ns, kNever);
        put(row.quota_until_ns, 0);
        put(row.everything_until_ns, 0);
        put(row.throttle_until_ns, 0);
        put(row.overloaded, 0);
        put(row.headroom_told, 0);
    }
    if (is_new || row.workers_max != config.workers_max ||
        row.quota_estimate != config.quota_estimate) {
        put(row.limit, config.quota_estimate != 0 ? config.quota_estimate : config.workers_max);
    }
    put(row.workers_max, config.workers_max);
    put(row.workers_min, config.workers_min);
    put(row.spare, config.spare);
    put(row.quota_estimate, config.quota_estimate);
    put(row.creates_max, config.creates_max);
    put(row.create_throttle_ns, config.create_throttle_ns);
    put(row.quiet_ns, config.quiet_ns);
    put(row.quota_error_ns, config.quota_error_ns);
    put(row.capacity_error_ns, config.capacity_error_ns);
    put(row.idle_timeout_ns, config.idle_timeout_ns);
    put(row.boot_timeout_ns, config.boot_timeout_ns);
    put(row.price_factor_permille, config.price_factor_permille);
    // What goes on is not longer than what would begin now.
    const auto bound = [&](uint64_t& until_ns, TimeNs pause_ns) {
        put(until_ns, std::min<TimeNs>(until_ns, sum_or_never(turn().now_ns, pause_ns)));
    };
    bound(row.quota_until_ns, config.quota_error_ns);
    bound(row.everything_until_ns, config.capacity_error_ns);
    bound(row.throttle_until_ns, config.create_throttle_ns);
    for (const uint32_t type : types_of(pool))
        bound(edit().row(state.types[type], 1).capacity_until_ns, config.capacity_error_ns);
    dispatch().configure(pool, config, is_new);
    put(row.gather_ns, config.gather_ns);
    Vector least = {};
    if (has_resources(state.pools[pool])) (void)vectors().read(pool, config.create_min, &least);
    for (size_t at = 0; at < least.size(); ++at)
        put(row.create_min[at], least[at]);
}

void Provisioning::close_pool(uint32_t pool) {
    if (!is_elastic(pool)) return;
    dispatch().close_pool(pool);
    while (!types_of(pool).empty())
        drop_type(types_of(pool).front());
    put(edit().row(state.elastics[pool], 0x1fU).workers_max, 0);
    due_.remove(TimerKind::kLook, pool);
}

std::span<const uint32_t> Provisioning::types_of(uint32_t pool) const {
    const auto [first, last] = std::equal_range(
        by_cost.begin(), by_cost.end(), kNoRow, [&](uint32_t left, uint32_t right) {
            const auto of = [&](uint32_t type) {
                return type == kNoRow ? pool : uint32_t{state.types[type].pool};
            };
            return of(left) < of(right);
        });
    return {first, last};
}

uint32_t Provisioning::find_type(uint32_t pool, std::string_view name) const {
    for (const uint32_t type : types_of(pool)) {
        if (name_of(state.types[type]) == name) return type;
    }
    return kNoRow;
}

void Provisioning::list_type(uint32_t type) {
    const auto key = [&](uint32_t row) {
        const shm::TypeRow& listed = state.types[row];
        return std::tuple(listed.pool, listed.cost, name_of(listed));
    };
    const auto place =
        std::upper_bound(by_cost.begin(), by_cost.end(), type, [&](uint32_t left, uint32_t right) {
            return key(left) < key(right);
        });
    by_cost.insert(place, type);
}

void Provisioning::find_types() {
    for (uint32_t type = 0; type < state.types.size(); ++type) {
        if (state.types[type].state != 0) list_type(type);
    }
}

bool Provisioning::set_type(const TypeConfig& config, std::string* why) {
    const uint32_t pool = pools().pool_named(config.pool);
    std::string wrong = refusal_of(config);
    if (wrong.empty() && pool == kNoRow) {
        wrong = "there is no pool '" + std::string(config.pool) + "'";
    }
    if (wrong.empty() && !is_elastic(pool)) {
        wrong = "pool '" + std::string(config.pool) + "' is not elastic";
    }
    uint32_t type = wrong.empty() ? find_type(pool, config.name) : kNoRow;
    const bool is_new = type == kNoRow;
    for (uint32_t row = 0; is_new && row < state.types.size() && type == kNoRow; ++row) {
        if (state.types[row].state == 0) type = row;
    }
    if (wrong.empty() && type == kNoRow) {
        wrong = "more types than the " + std::to_string(state.types.size()) + " configured";
    }
    uint32_t set = kNoRow;
    if (wrong.empty() && !config.labels.empty()) {
        const bool listed = matcher().has_labels(pool);
        const Reason reason = listed ? crowds().intern_announced(config.labels) : Reason::kState;
        if (reason == Reason::kState) wrong = "labels are for pools ordered by account";
        if (reason == Reason::kPayload) {
            wrong = "there are at most 32 labels, of 1 to 63 bytes each, without a zero byte";
        }
        if (reason == Reason::kTablesFull) wrong = "there are too many label sets";
        if (reason == Reason::kOk) set = book()->announced_set;
    }
    if (!wrong.empty()) {
        if (why != nullptr) *why = "type '" + std::string(config.name) + "': " + wrong;
        return false;
    }
    shm::TypeRow& row = edit().row(state.types[type], 0x7U);
    if (is_new) {
        put(row.pool, pool);
        put(row.session, kNoRow);
        put(row.role, 0);
        put(row.backoff_ns, 0);
        put(row.failed_until_ns, 0);
        put(row.capacity_until_ns, 0);
        put(row.label_set, 0);
        config.name.copy(row.name, sizeof(row.name));
        stored();
        put(row.name_size, config.name.size());
    } else {
        std::erase(by_cost, type);
    }
    label_type(type, set);
    put(row.state, 1);
    put(row.flags, config.preemptible ? shm::TypeFlag::kPreemptible : 0);
    put(row.cost, config.cost);
    config.provider_type.copy(row.provider_type, sizeof(row.provider_type));
    config.quota_group.copy(row.quota_group, sizeof(row.quota_group));
    stored();
    put(row.provider_type_size, config.provider_type.size());
    put(row.quota_group_size, config.quota_group.size());
    list_type(type);
    matcher().touch(pool);
    return true;
}

// The set of labels stays as long as it has it.
void Provisioning::label_type(uint32_t type, uint32_t set) {
    shm::TypeRow& row = edit().row(state.types[type], 1);
    if (!matcher().has_labels(row.pool) || labels_of(type) == set) return;
    book()->labels.hold(set);
    book()->labels.drop(labels_of(type));
    put(row.label_set, set + 1);  // kNoRow: 0
}

bool Provisioning::has_promised(uint32_t order, std::span<const std::string_view> labels) const {
    const uint32_t set = labels_of(state.slots[order].type);
    if (set == kNoRow) return true;
    bool has_all = true;
    each_label(book()->labels.text(set), [&](std::string_view wanted) {
        has_all = has_all && std::find(labels.begin(), labels.end(), wanted) != labels.end();
    });
    return has_all;
}

void Provisioning::drop_type(uint32_t type) {
    label_type(type, kNoRow);
    std::erase(by_cost, type);
    put(edit().row(state.types[type], 1).state, 0);
}

Reason Provisioning::delete_type(const DeleteType& command) {
    const uint32_t pool = pools().pool_named(command.pool);
    if (pool == kNoRow) return Reason::kUnknownPool;
    const uint32_t type = find_type(pool, command.name);
    if (type == kNoRow) return Reason::kNotFound;
    matcher().touch(pool);
    if (!is_used(type)) {
        drop_type(type);
        return Reason::kOk;
    }
    put(edit().row(state.types[type], 1).flags, state.types[type].flags | shm::TypeFlag::kGoing);
    return Reason::kState;
}

void Provisioning::worker_leaves(uint32_t type) {
    if (type != kNoRow && is_going(type) && !is_used(type)) drop_type(type);
}

// By a worker, or by an entry that names it.
bool Provisioning::is_used(uint32_t type) const {
    if (dispatch().names_type(state.types[type].pool, type)) return true;
    for (uint32_t row = 0; row < state.slots.size(); ++row) {
        const shm::SlotRow& slot = state.slots[row];
        if (slot.state != SlotState::kFree && slot.type == type) return true;
    }
    return false;
}

void Provisioning::apply(const Provide& command) {
    const auto tell = [&](Reason reason) {
        turn().result(command.session, command.user_data, reason);
    };
    if (!pools().pool_lives(command.pool)) return tell(Reason::kUnknownPool);
    const uint32_t type = find_type(command.pool, command.type);
    if (type == kNoRow) return tell(Reason::kNotFound);
    const uint32_t holder = state.types[type].session;
    if (command.on && holder != kNoRow && holder != command.session) {
        return tell(Reason::kNameInUse);
    }
    if (!command.on && holder != command.session) return tell(Reason::kNotHolder);
    tell(Reason::kOk);
    shm::TypeRow& row = edit().row(state.types[type], 1);
    const bool comes = command.on && holder == kNoRow;
    put(row.session, command.on ? command.session.number : kNoRow);
    put(row.tag, command.tag);
    matcher().touch(command.pool);
    if (!comes) return;
    put(row.role, row.role % 255 + 1);  // what the one before it was told it may not have read
    for (uint32_t slot = 0; slot < state.slots.size(); ++slot) {
        const shm::SlotRow& its = state.slots[slot];
        if (its.state != SlotState::kFree && its.type == type) slot_changes(slot);
    }
}

void Provisioning::keep_token(uint32_t slot, const OrderToken& token, uint32_t uid) {
    shm::SlotRow& row = edit().row(state.slots[slot], 0x6U);
    assert(row.state == SlotState::kOrdered);
    std::memcpy(row.order_token, token.data(), sizeof(row.order_token));
    stored();
    put(row.order_uid, uid);
}

bool Provisioning::opens_order(SlotId order, const OrderToken& token, uint32_t uid) const {
    const uint32_t slot = row_of(order);
    if (slot >= state.slots.size()) return false;
    const shm::SlotRow& row = state.slots[slot];
    if (row.state != SlotState::kOrdered || row_id(row.head.generation, slot) != order)
        return false;
    uint8_t differs = row.order_uid != uid ? 1 : 0;
    for (size_t i = 0; i < token.size(); ++i)
        differs |= static_cast<uint8_t>(row.order_token[i] ^ token[i]);
    return differs == 0;
}

// Its orders wait for the next provisioner, their workers, or their boot time-out.
void Provisioning::session_ends(uint32_t session) {
    for (const uint32_t type : by_cost) {
        if (state.types[type].session != session) continue;
        put(edit().row(state.types[type], 1).session, kNoRow);
        matcher().touch(state.types[type].pool);
    }
}

}  // namespace dibs::core
