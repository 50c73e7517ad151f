// broker/journal/replayer_routes.cpp -- replays claims of places, which the router gives to a pool.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/look.hpp"
#include "broker/journal/journal_texts.hpp"
#include "broker/journal/json_text.hpp"
#include "broker/journal/replayer.hpp"
#include "shm/target.hpp"

namespace dibs::ctl {

void Replayer::apply(const journal::Place& place) {
    Place& known = places_[place.name()->str()] = {};
    known.route.group_cap = place.group_cap().value_or(shm::kNoRow);
    known.route.cool_down_ns = place.cool_down_ns();
    if (place.members() == nullptr) return;
    for (const journal::Member* member : *place.members()) {
        known.pools.push_back(member->pool()->str());
        known.members.push_back({.priority = member->priority(),
                                 .cap = member->cap().value_or(shm::kNoRow),
                                 .idle_seen = member->idle_seen()});
    }
}

// S0.35. Pools are looked up now: a member may have come since the place was named.
std::unique_ptr<Replayer::Routed> Replayer::routed(const flatbuffers::String& target,
                                                   const flatbuffers::String* cluster,
                                                   uint8_t version) const {
    const std::string_view own = cluster == nullptr ? shm::kOwnCluster : view(cluster);
    const shm::Target named = shm::target_of(target.c_str(), target.size(), own.data(), own.size());
    auto found = std::make_unique<Routed>();
    if (named.kind == shm::TargetKind::kElsewhere) {
        found->refusal = shm::Reason::kElsewhere;
        return found;
    }
    const std::string name(named.name == nullptr ? "" : std::string(named.name, named.size));
    const auto place = named.kind == shm::TargetKind::kName ? places_.find(name) : places_.end();
    found->pool = core_->find_pool(name);
    if (place == places_.end()) {
        if (found->pool.is_none()) found->refusal = shm::Reason::kNotFound;
        return found;
    }
    found->members = place->second.members;
    for (size_t at = 0; at < found->members.size(); ++at)
        found->members[at].pool = core_->find_pool(place->second.pools[at]);
    found->of_place = place->second.route;
    found->of_place.members = found->members;
    found->of_place.version = version;
    found->route = &found->of_place;
    return found;
}

void Replayer::apply(const journal::Route& route) {
    claim_from(*route.claim(), *routed(*route.target(), route.cluster(), route.version()));
}

std::string Replayer::ranking_text(const journal::RankingRow& asked) const {
    const auto found = routed(*asked.target(), asked.cluster(), asked.version());
    core::Ranking ranking;
    if (found->route != nullptr) {
        ranking = core::Look::ranking(*core_, *found->route);
    } else if (!found->pool.is_none()) {
        ranking = {.pools = {found->pool}, .count = 1, .fresh = true};
    }
    JsonText json;
    json.open_object();
    json.open_object("ranking");
    json.text("target", asked.target()->string_view());
    if (asked.cluster() != nullptr) json.text("cluster", asked.cluster()->string_view());
    json.number("version", asked.version());
    json.open_list("pools");
    for (const uint32_t pool : ranking.ranked())
        json.text({}, map_.names().pool(pool));
    json.close_list();
    json.truth("fresh", ranking.fresh);
    json.truth("found", ranking.count != 0);
    json.close_object();
    json.close_object();
    return json.line();
}

}  // namespace dibs::ctl
