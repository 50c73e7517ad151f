// broker/core/look.hpp -- answers who looks at a scheduler: what is offered, what leases bring and
// were. It changes no row and decides nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/core/dispatch/entry_reason.hpp"
#include "broker/core/match/offers.hpp"
#include "broker/core/rules/ended_leases.hpp"
#include "broker/core/rules/router.hpp"
#include "broker/core/store/state.hpp"

namespace dibs::core {

class Look {
  public:
    // What is offered of a pool whose slots have resources. kOk, kUnknownPool, kVector, or
    // kUnavailable with the place of the resource of which no slot has so much.
    static shm::Reason offers(const Core& core,
                              const OffersQuery& query,
                              std::vector<Offer>* found,
                              uint64_t* resource);
    // Changes with what is offered.
    [[nodiscard]] static uint64_t offers_stamp(const Core& core, PoolId pool);
    // Leases that have ended, so many of them at most, from now on; 0 = none. Null: not known.
    static void keep_ended_leases(Core& core, size_t most);
    [[nodiscard]] static const EndedLease* ended_lease(const Core& core,
                                                       LeaseId id,
                                                       uint64_t number);
    // Where workers_max is 0 the pool is not elastic.
    [[nodiscard]] static const shm::ElasticRow& elastic(const Core& core, PoolId pool);
    // Slots that are ordered: their workers are not there yet. Looks at no other pool's row.
    [[nodiscard]] static uint32_t ordered(const Core& core, PoolId pool);
    [[nodiscard]] static const shm::TypeRow& type(const Core& core, TypeId row);
    // A row, or kNoRow.
    // May a worker of this user hand the token of the order back now?
    [[nodiscard]] static bool opens_order(const Core& core,
                                          SlotId order,
                                          const OrderToken& token,
                                          uint32_t uid);
    [[nodiscard]] static uint32_t find_type(const Core& core, PoolId pool, std::string_view name);
    struct OfElastic {
        bool at_quota = false;
        uint32_t headroom = 0;  // workers that may be made below the limit and the quota
    };
    [[nodiscard]] static OfElastic of_elastic(const Core& core, PoolId pool);
    // Of a type: `workers` that are unknown, booting (ordered, recovering), idle, running, stopping
    // (drained).
    struct OfType {
        uint32_t unallocated = 0;
        uint32_t creating = 0;  // orders without an answer
        bool at_quota = false;  // its pool
        bool at_capacity = false;
        std::array<uint32_t, 5> workers = {};
    };
    [[nodiscard]] static OfType of_type(const Core& core, TypeId type);
    // --- entries of dispatched pools
    [[nodiscard]] static bool is_dispatched(const Core& core, PoolId pool);
    [[nodiscard]] static uint32_t entries_max(const Core& core);
    [[nodiscard]] static const shm::EntryRow& entry(const Core& core, uint32_t row);
    // A row, or kNoRow.
    [[nodiscard]] static uint32_t find_entry(const Core& core, PoolId pool, std::string_view name);
    // Rows: those that wait as they are served, then the others as they were first seen. What is
    // still to be done for an entry stands in its row: EntryOp, EntryFlag::kStarting.
    [[nodiscard]] static std::vector<uint32_t> entries(const Core& core, PoolId pool);
    // Among the supervisors or the others that wait, from 1; 0: it does not.
    [[nodiscard]] static uint32_t entry_position(const Core& core, uint32_t row);
    [[nodiscard]] static EntryReason entry_reason(const Core& core, uint32_t row);
    // --- applications; rows in use have another state than kFree
    [[nodiscard]] static const Rows<shm::AppRow>& applications(const Core& core);
    [[nodiscard]] static const Rows<shm::GroupRow>& groups(const Core& core);
    [[nodiscard]] static const Rows<shm::TaskRow>& tasks(const Core& core);
    [[nodiscard]] static uint32_t applications_max(const Core& core);
    [[nodiscard]] static uint32_t tasks_max(const Core& core);
    [[nodiscard]] static const shm::AppRow& application(const Core& core, uint32_t row);
    [[nodiscard]] static const shm::GroupRow& group(const Core& core, uint32_t row);
    [[nodiscard]] static const shm::TaskRow& task(const Core& core, uint32_t row);
    // Rows, or kNoRow.
    [[nodiscard]] static uint32_t find_application(const Core& core, uint64_t number);
    [[nodiscard]] static uint32_t find_application(const Core& core,
                                                   uint32_t uid,
                                                   std::string_view name);
    // Of that user's application.
    [[nodiscard]] static uint32_t find_task(const Core& core, uint32_t uid, const MemberOf& member);
    [[nodiscard]] static uint32_t task_of_lease(const Core& core, uint32_t lease);  // kNoRow: none
    [[nodiscard]] static uint32_t supervisor_limit(const Core& core, PoolId pool);  // 0: none
    // Of the claim with that tag, which waits or came in this turn; kNoRow: there is none.
    [[nodiscard]] static uint32_t pool_of_claim(const Core& core, SessionId session, uint16_t tag);
    // How a claim with that route would be tried, if it came now.
    [[nodiscard]] static Ranking ranking(const Core& core, const Route& route);
    // Of any row of a lease over several pools; a plain one's is the only one.
    [[nodiscard]] static uint32_t first_lease(const Core& core, uint32_t lease);
    // In the order in which its claim named them; one that is not over several has one.
    [[nodiscard]] static std::vector<PoolUnits> pools_of_lease(const Core& core, uint32_t lease);
    [[nodiscard]] static std::vector<PoolUnits> pools_of_claim(const Core& core, uint32_t claim);
    // What its claim brought for who inspects.
    [[nodiscard]] static std::string meta_of_claim(const Core& core, uint32_t claim);
    [[nodiscard]] static std::string meta_of_lease(const Core& core, uint32_t lease);
};

}  // namespace dibs::core
