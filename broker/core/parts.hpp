// broker/core/parts.hpp -- joins the rows and the modules of the scheduler.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/core/dispatch/dispatch.hpp"
#include "broker/core/fast/early_grants.hpp"
#include "broker/core/fast/parking.hpp"
#include "broker/core/gang/gangs.hpp"
#include "broker/core/ledger/ledger.hpp"
#include "broker/core/ledger/preemption.hpp"
#include "broker/core/match/crowds.hpp"
#include "broker/core/match/explainer.hpp"
#include "broker/core/match/matcher.hpp"
#include "broker/core/match/several_pools.hpp"
#include "broker/core/match/vectors.hpp"
#include "broker/core/provision/provisioning.hpp"
#include "broker/core/rules/claims.hpp"
#include "broker/core/rules/leases.hpp"
#include "broker/core/rules/pools.hpp"
#include "broker/core/rules/reports.hpp"
#include "broker/core/rules/sessions.hpp"
#include "broker/core/rules/slots.hpp"
#include "broker/core/rules/workers.hpp"
#include "broker/core/store/free_rows.hpp"
#include "broker/core/turn.hpp"

namespace dibs::core {

struct Core::Parts : Store,
                     FreeRows,
                     Turn,
                     Sessions,
                     Pools,
                     Slots,
                     Workers,
                     Claims,
                     EarlyGrants,
                     Parking,
                     Leases,
                     Ledger,
                     Preemption,
                     Crowds,
                     Matcher,
                     SeveralPools,
                     Vectors,
                     Provisioning,
                     Dispatch,
                     Gangs,
                     Explainer,
                     Reports {
    // Takes back an uncommitted turn. Nothing is derived yet.
    Parts(std::span<std::byte> bytes, uint64_t seed);

    using Claims::apply;
    using Dispatch::apply;
    using Gangs::apply;
    using Leases::apply;
    using Parking::apply;
    using Provisioning::apply;
    using Reports::apply;
    using Store::arena;
    using Store::book;
    using Store::edit;
    using Store::hash_seed;
    using Store::state;
    using Workers::apply;

    // recovery/
    void rebuild();
    [[nodiscard]] std::vector<std::string> check_all() const;
};

template <class It>
Core::Parts& Module<It>::all() {
    return static_cast<Core::Parts&>(static_cast<It&>(*this));
}
template <class It>
const Core::Parts& Module<It>::all() const {
    return static_cast<const Core::Parts&>(static_cast<const It&>(*this));
}
template <class It>
template <class Other>
Other& Module<It>::other() {
    return all();
}
template <class It>
template <class Other>
const Other& Module<It>::other() const {
    return all();
}

}  // namespace dibs::core
