// broker/turn/pool_sets.cpp -- keeps the rows of pool sets on the BOARD as the file has them.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/pool_sets.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "broker/core/look.hpp"
#include "broker/text/log.hpp"
#include "shm/operation.hpp"

namespace dibs {

namespace {

// Its own writer reads it, so nothing is torn but what a broker was killed in: a row without
// members then, or with the name that it had.
shm::SetPicture written(const shm::BoardSet& row) {
    shm::SetPicture picture;
    shm::load_words(reinterpret_cast<const shm::SharedWord*>(&row),
                    reinterpret_cast<shm::SharedWord*>(&picture),
                    sizeof(row) / sizeof(uint64_t));
    picture.name_size = std::min<uint8_t>(picture.name_size, shm::kNameMax);
    return picture;
}

std::string_view name_in(const shm::SetPicture& picture) {
    return {picture.name, picture.name_size};
}

// Without a change its version stays.
void write_if_changed(shm::BoardSet& row, shm::SetPicture picture) {
    const shm::SetPicture before = written(row);
    picture.sequence = before.sequence;
    const bool same = std::memcmp(&before, &picture, sizeof(picture)) == 0;
    if (!same || (before.sequence & 1) != 0) shm::board_write(row, picture);
}

void write_cluster(shm::BoardCluster& row, const std::string& name) {
    shm::ClusterPicture picture;
    picture.name_size = static_cast<uint8_t>(std::min(name.size(), shm::kClusterNameMax));
    std::memcpy(picture.name, name.data(), picture.name_size);
    shm::board_write(row, picture);
}

}  // namespace

// A pool of the same name comes first. A file that is read again is refused then, unless the pool
// has come since; what a successor reads it cannot refuse.
std::vector<std::string> PoolSets::set(std::vector<SetSettings> sets) {
    std::vector<std::string> left_out;
    std::erase_if(sets, [&](const SetSettings& set) {
        if (core_.find_pool(set.name) == shm::kNoRow) return false;
        left_out.push_back("there is a pool \"" + set.name +
                           "\": the set of that name is left out");
        log::warning(left_out.back());
        return true;
    });
    sets_ = std::move(sets);
    if (sets_.size() > shm::kSetsMax) sets_.resize(shm::kSetsMax);  // of a copy that has mistakes
    return left_out;
}

bool PoolSets::has(std::string_view name) const {
    return std::any_of(
        sets_.begin(), sets_.end(), [&](const SetSettings& set) { return set.name == name; });
}

shm::BoardSet* PoolSets::row_of(const std::string& name, shm::SetPicture* picture) const {
    shm::BoardSet* free = nullptr;
    for (shm::BoardSet* row = board_.sets(); row != board_.sets() + shm::kSetsMax; ++row) {
        const shm::SetPicture there = written(*row);
        if (name_in(there) == name) {
            picture->use = there.use;
            return row;
        }
        // One that never was a set's before one that was.
        const bool fresh = there.name_size == 0;
        if (has(name_in(there)) || (free != nullptr && !fresh)) continue;
        if (free != nullptr && written(*free).name_size == 0) continue;
        free = row;
        picture->use = there.use + 1;
    }
    assert(free != nullptr);  // as many rows as sets
    return free;
}

void PoolSets::publish() {
    if (cluster_ != published_cluster_) write_cluster(*board_.cluster(), cluster_);
    published_cluster_ = cluster_;
    for (Routed& routed : routed_)
        routed = {};
    // What is no set any more first: its row may be the next one's.
    for (shm::BoardSet* row = board_.sets(); row != board_.sets() + shm::kSetsMax; ++row) {
        shm::SetPicture gone = written(*row);
        if (has(name_in(gone))) continue;
        gone.members = 0;
        std::memset(gone.pool, 0, sizeof(gone.pool));
        write_if_changed(*row, gone);
    }
    for (const SetSettings& set : sets_) {
        shm::SetPicture picture;
        shm::BoardSet* row = row_of(set.name, &picture);
        for (const std::string& name : set.pools) {
            if (picture.members == shm::kSetMembersMax) break;
            const uint32_t pool = core_.find_pool(name);
            picture.pool[picture.members++] =
                pool == shm::kNoRow ? shm::kNoPool : static_cast<uint16_t>(pool);
        }
        picture.name_size = static_cast<uint8_t>(std::min<size_t>(set.name.size(), shm::kNameMax));
        std::memcpy(picture.name, set.name.data(), picture.name_size);
        picture.rank = set.rank;
        write_if_changed(*row, picture);
        if (set.rank != shm::SetRank::kLoad) continue;
        const auto place = static_cast<uint32_t>(row - board_.sets());
        routed_[place].set = shm::set_of_claim(place, picture.use);
        routed_[place].route = route_of(set, &routed_[place].members);
    }
}

core::Route PoolSets::route_of(const SetSettings& set,
                               std::vector<core::RouteMember>* members) const {
    *members = set.members;
    for (size_t at = 0; at < members->size(); ++at)
        members->at(at).pool = core_.find_pool(set.pools[at]);
    std::erase_if(*members, [](const core::RouteMember& member) { return member.pool.is_none(); });
    return {.members = *members, .group_cap = set.group_cap, .cool_down_ns = set.cool_down_ns};
}

const core::Route* PoolSets::route_of_claim(uint16_t set) const {
    const Routed& routed = routed_[set % shm::kSetsMax];
    return routed.set == set && !routed.members.empty() ? &routed.route : nullptr;
}

std::string PoolSets::left_out(uint32_t pool) const {
    if (pool == shm::kNoRow) return "is not there";
    if ((core_.pool(pool).flags & shm::PoolFlag::kLeaving) != 0) return "goes";
    if (core_.draining() || core_.pool(pool).state == shm::PoolState::kDraining) return "drains";
    return core_.pool(pool).state == shm::PoolState::kOpen ? "" : "goes";
}

std::vector<uint32_t> PoolSets::answering(std::string_view name) const {
    std::vector<uint32_t> pools;
    for (const SetSettings& set : sets_) {
        for (const std::string& member : set.pools) {
            const uint32_t pool = core_.find_pool(member);
            if (set.name == name && left_out(pool).empty()) pools.push_back(pool);
        }
    }
    return pools;
}

// As a claim would be tried now, and which of them are saturated.
void PoolSets::rank(const SetSettings& set, admin::SetT* row) const {
    std::vector<core::RouteMember> members;
    const core::Route route = route_of(set, &members);
    const core::Ranking ranking = core::Look::ranking(core_, route);
    for (const uint32_t pool : ranking.ranked())
        row->ranked.emplace_back(core_.pool(pool).name, core_.pool(pool).name_size);
    for (const core::RouteMember& member : members) {
        const shm::PoolRow& pool = core_.pool(member.pool);
        if (pool.saturated_until_ns <= core_.now()) continue;
        row->saturated.emplace_back(pool.name, pool.name_size);
    }
}

std::vector<std::unique_ptr<admin::SetT>> PoolSets::rows() const {
    std::vector<std::unique_ptr<admin::SetT>> rows;
    for (const SetSettings& set : sets_) {
        auto row = std::make_unique<admin::SetT>();
        row->name = set.name;
        row->pools = set.pools;
        for (const std::string& name : set.pools)
            row->left_out.push_back(left_out(core_.find_pool(name)));
        row->rank = set.rank == shm::SetRank::kLoad ? "load" : "order";
        if (set.rank == shm::SetRank::kLoad) rank(set, row.get());
        rows.push_back(std::move(row));
    }
    return rows;
}

}  // namespace dibs
