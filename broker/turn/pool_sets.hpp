// broker/turn/pool_sets.hpp -- publishes pool sets on the BOARD, and says which members answer.
//
// A set comes from the configuration and is no part of STATE. Where it has an order, a claim of it
// is claims of its pools, which its client makes; where it is ranked by load, the claim's command
// brings the members to the core. Clients read members where they
// are published, so the row of each set stays the same set's for as long as it can: a broker that
// takes over finds it on the BOARD by its name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/admin/admin.hpp"
#include "broker/config/config.hpp"
#include "broker/core/core.hpp"
#include "broker/segments/segments.hpp"

namespace dibs {

class PoolSets {
  public:
    PoolSets(const core::Core& core, BoardSegment& board) : core_(core), board_(board) {}

    // Those of the configuration; published by the next publish(). What is left out, and why.
    std::vector<std::string> set(std::vector<SetSettings> sets);
    // What clients put before the names of this broker's pools; published likewise.
    void set_cluster(const std::string& name) { cluster_ = name; }
    // Behind a change of sets, and of which pools there are. Writes what has changed.
    void publish();

    [[nodiscard]] bool has(std::string_view name) const;
    // The members of a set that are not left out, in its order.
    [[nodiscard]] std::vector<uint32_t> answering(std::string_view name) const;
    // Of a set that is ranked by load, as the claim names it; null: there is none. Valid until the
    // next publish().
    [[nodiscard]] const core::Route* route_of_claim(uint16_t set) const;
    // With what keeps a member out of claims now.
    [[nodiscard]] std::vector<std::unique_ptr<admin::SetT>> rows() const;

  private:
    // The row of that name; else one that no set has, whose clients are told by its `use`.
    shm::BoardSet* row_of(const std::string& name, shm::SetPicture* picture) const;
    [[nodiscard]] std::string left_out(uint32_t pool) const;
    [[nodiscard]] core::Route route_of(const SetSettings& set,
                                       std::vector<core::RouteMember>* members) const;
    void rank(const SetSettings& set, admin::SetT* row) const;

    const core::Core& core_;
    BoardSegment& board_;
    std::vector<SetSettings> sets_;
    struct Routed {
        uint16_t set = 0;
        std::vector<core::RouteMember> members;  // none: it is no such set
        core::Route route;
    };
    std::array<Routed, shm::kSetsMax> routed_;  // by row, as published
    std::string cluster_ = shm::kOwnCluster;
    std::string published_cluster_;
};

}  // namespace dibs
