// tests/naive/journal_of_vectors.cpp -- claims of parts of slots.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/naive/journal_writer.hpp"

namespace dibs::naive {

// Mostly of what the slots have, and as much as they have.
void Writer::want_part(Step& step) {
    if (!character_.accounts && dice_.percent(8)) {
        step.meta.assign(dice_.one_of<size_t>({1, 30, 255, 255, 256}), 'm');
    }
    const auto& resources = model().pools[player_->pool_row(step.pool)].vector;
    if (resources.empty() && dice_.percent(98)) return;
    if (dice_.percent(97)) step.claim.units = 1;
    const bool has_most = dice_.percent(40);
    for (const char* name : {"cpu", "mem", "disk"}) {
        const auto known = std::find_if(
            resources.begin(), resources.end(), [&](const auto& has) { return has.first == name; });
        if (known == resources.end()) continue;
        const auto least = static_cast<int64_t>(dice_.below(known->second + 1));
        const auto more = static_cast<int64_t>(dice_.below(known->second + 1));
        if (dice_.percent(90)) step.least.push_back({name, least});
        if (has_most) step.most.push_back({name, least + more});
    }
    if (character_.elastic && !step.least.empty() && dice_.percent(4))
        step.least.back().amount += 9;
    if (dice_.percent(2)) step.least.push_back({"gpu", 1});
    if (dice_.percent(2)) step.least.push_back({"cpu", dice_.one_of<int64_t>({-1, 1, 9})});
    if (dice_.percent(1)) step.most.push_back({"cpu", 1});
    accept_offer(step);
}

// Of a slot that is there, mostly.
void Writer::accept_offer(Step& step) {
    if (!dice_.percent(20) || model().slots.empty()) return;
    const Slot& slot = dice_.any(model().slots).second;
    const bool is_there = slot.pool == player_->pool_row(step.pool);
    if (is_there || dice_.percent(10)) step.claim.offer = slot.number + 1;
}

// Some have less than the pool says, some more, some nothing of a resource.
void Writer::announce_vector(Step& step) {
    const auto& resources = model().pools[player_->pool_row(step.pool)].vector;
    if (resources.empty() && dice_.percent(98)) return;
    step.announce.parts = dice_.one_of<uint32_t>({0, 1, 2, 3, 8, 8});
    if (dice_.percent(2)) step.announce.parts = 257;
    if (dice_.percent(40)) return;
    for (const auto& [name, amount] : resources) {
        if (dice_.percent(10)) continue;
        const auto has = static_cast<int64_t>(dice_.below(2 * amount + 1));
        step.least.push_back({name == "cpu" ? "cpu" : name == "mem" ? "mem" : "disk", has});
    }
    if (dice_.percent(2)) step.least.push_back({"gpu", 1});
    if (dice_.percent(2)) step.least.push_back({"cpu", dice_.one_of<int64_t>({-1, 1})});
}

}  // namespace dibs::naive
