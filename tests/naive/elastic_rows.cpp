// tests/naive/elastic_rows.cpp -- compares what elastic pools, their types, slots and claims show.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/elastic_rows.hpp"

#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "broker/core/look.hpp"

namespace dibs::naive {

namespace {

using Fields = std::vector<std::pair<std::string, uint64_t>>;

// Orders and workers of a type, as far as they can be told apart by their rows.
enum TypeCount { kAsked, kCreated, kAnnounced, kOrdinary, kStopTold, kTypeCounts };
using TypeCounts = std::array<uint64_t, kTypeCounts>;

void count_slot(TypeCounts& counts, shm::OrderState order, bool is_stop_told) {
    counts[kAsked] += order == shm::OrderState::kAsked;
    counts[kCreated] += order == shm::OrderState::kCreated;
    counts[kAnnounced] += order == shm::OrderState::kAnnounced;
    counts[kOrdinary] += order == shm::OrderState::kNone;
    counts[kStopTold] += is_stop_told;
}

void add_counts(Fields& fields, const TypeCounts& counts) {
    fields.emplace_back("asked", counts[kAsked]);
    fields.emplace_back("created", counts[kCreated]);
    fields.emplace_back("announced", counts[kAnnounced]);
    fields.emplace_back("ordinary workers", counts[kOrdinary]);
    fields.emplace_back("told to stop", counts[kStopTold]);
}

// An instant that has passed says nothing.
uint64_t to_come(TimeNs at, TimeNs now) {
    return at > now ? at : 0;
}

uint32_t label_of(const std::map<uint32_t, uint32_t>& rows, uint32_t row) {
    for (const auto& [label, known] : rows)
        if (known == row) return label;
    return kNoLabel;
}

Fields fields_of(const shm::ElasticRow& row, TimeNs now) {
    return {{"limit", row.limit},
            {"within_quota", row.within_quota},
            {"quota_below", row.quota_until_ns > now ? row.quota_below : 0},
            {"ordered", row.ordered},
            {"quota_until_ns", to_come(row.quota_until_ns, now)},
            {"throttle_until_ns", to_come(row.throttle_until_ns, now)},
            {"everything_until_ns", to_come(row.everything_until_ns, now)},
            {"overload_ns", row.overload_ns},
            {"overloaded", row.overloaded},
            {"headroom_told", row.headroom_told},
            {"gathered", row.gathered},
            {"gather_until_ns", to_come(row.gather_until_ns, now)}};
}

Fields fields_of(const Elastic& elastic, uint64_t ordered, TimeNs now) {
    return {{"limit", elastic.limit},
            {"within_quota", elastic.within_quota},
            {"quota_below", elastic.quota_until_ns > now ? elastic.quota_met.value_or(0) : 0},
            {"ordered", ordered},
            {"quota_until_ns", to_come(elastic.quota_until_ns, now)},
            {"throttle_until_ns", to_come(elastic.throttle_until_ns, now)},
            {"everything_until_ns", to_come(elastic.everything_until_ns, now)},
            {"overload_ns", elastic.overload_ns},
            {"overloaded", elastic.is_overload_new},
            {"headroom_told", static_cast<uint64_t>(elastic.headroom_told)},
            {"gathered", elastic.gathered},
            {"gather_until_ns", to_come(elastic.gather_until_ns, now)}};
}

Fields fields_of(const core::Core& core, uint32_t place, uint32_t session, TimeNs now) {
    const shm::TypeRow& row = core::Look::type(core, core::TypeId(place));
    TypeCounts counts{};
    for (uint32_t slot = 0; slot < core.slots_max(); ++slot) {
        const shm::SlotRow& of = core.slot(slot);
        if (of.state == shm::SlotState::kFree || of.type != place) continue;
        count_slot(counts,
                   of.order,
                   of.order == shm::OrderState::kAnnounced && of.stop_told != 0 &&
                       of.stop_told == row.role);
    }
    Fields fields = {{"provisioner", session},
                     {"cost", row.cost},
                     {"backoff_ns", row.backoff_ns},
                     {"failed_until_ns", to_come(row.failed_until_ns, now)},
                     {"capacity_until_ns", to_come(row.capacity_until_ns, now)}};
    add_counts(fields, counts);
    return fields;
}

Fields fields_of(const NaiveCore& naive, uint32_t place, const Type& type, uint32_t session) {
    const TimeNs now = naive.model().now;
    TypeCounts counts{};
    for (const auto& [id, slot] : naive.model().slots) {
        if (slot.type == place) count_slot(counts, slot.order, slot.is_stop_told);
    }
    Fields fields = {{"provisioner", session},
                     {"cost", type.cost},
                     {"backoff_ns", type.backoff_ns},
                     {"failed_until_ns", to_come(type.failed_until_ns, now)},
                     {"capacity_until_ns", to_come(type.capacity_until_ns, now)}};
    add_counts(fields, counts);
    return fields;
}

std::string difference(const Fields& real, const Fields& expected) {
    for (size_t at = 0; at < real.size(); ++at) {
        if (real[at].second == expected[at].second) continue;
        return real[at].first + ": core " + std::to_string(real[at].second) + ", naive " +
               std::to_string(expected[at].second);
    }
    return {};
}

// Numbers of claims that wait locked.
std::set<uint64_t> locked_claims(const core::Core& core) {
    std::set<uint64_t> numbers;
    for (uint32_t row = 0; row < core.claims_max(); ++row) {
        const shm::ClaimRow& claim = core.claim(row);
        const bool is_there =
            claim.state == shm::ClaimState::kWaiting || claim.state == shm::ClaimState::kReserved;
        if (is_there && (claim.flags & shm::ClaimFlag::kLocked) != 0) numbers.insert(claim.arrival);
    }
    return numbers;
}

std::set<uint64_t> locked_claims(const NaiveCore& naive) {
    std::set<uint64_t> numbers;
    for (const auto& [number, claim] : naive.model().claims) {
        if (claim.is_locked) numbers.insert(number);
    }
    return numbers;
}

}  // namespace

std::string elastic_difference(const core::Core& core,
                               const Player<core::Core>& player,
                               const NaiveCore& naive) {
    const Model& model = naive.model();
    for (uint32_t pool = 0; pool < model.pools.size(); ++pool) {
        if (!naive.is_elastic(pool)) continue;
        const std::string differs = difference(
            fields_of(core::Look::elastic(core, core::PoolId(pool)), model.now),
            fields_of(model.pools[pool].elastic, naive.counters(pool).ordered, model.now));
        if (!differs.empty()) return "pool " + std::to_string(pool) + " " + differs;
    }
    for (const auto& [place, type] : model.types) {
        const std::string who = "type " + type.name + " of pool " + std::to_string(type.pool) + " ";
        const uint32_t row = core::Look::find_type(core, core::PoolId(type.pool), type.name);
        if (row == shm::kNoRow) return who + "is not there";
        const uint32_t provisioner = core::Look::type(core, core::TypeId(row)).session;
        const uint32_t real = label_of(player.sessions(), provisioner);
        // Sessions of the naive core count openings: their labels are not known here.
        const bool is_away = type.session == shm::kNoRow;
        const std::string differs =
            difference(fields_of(core, row, real == kNoLabel ? 0 : 1, model.now),
                       fields_of(naive, place, type, is_away ? 0 : 1));
        if (!differs.empty()) return who + differs;
    }
    if (locked_claims(core) != locked_claims(naive)) return "other claims are locked";
    return {};
}

}  // namespace dibs::naive
