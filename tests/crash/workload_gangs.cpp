// tests/crash/workload_gangs.cpp -- what is drawn of applications, their gangs and their tasks.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>
#include <vector>

#include "tests/crash/workload.hpp"

namespace dibs::tests {

// Counted and worker pools, with resources too; now and then one that serves no gang.
uint32_t Workload::gang_pool() {
    static constexpr std::array<uint32_t, 6> kPools = {0, 1, 2, 9, 11, 12};
    return below(12) == 0 ? static_cast<uint32_t>(below(14)) : kPools[below(kPools.size())];
}

bool Workload::add_application() {
    const uint32_t session = any_session();
    if (session == shm::kNoRow) return false;
    const std::string name = any_application();
    const bool managed = below(4) != 0;
    core::AddApplication added;
    if (managed)
        added.session = session;
    else
        added.uid = static_cast<uint32_t>(below(3));
    added.application = name;
    added.pool = gang_pool();
    added.priority = static_cast<int32_t>(below(3));
    static constexpr std::array kPart = {core::Amount{"cpu", 2}};
    const bool of_parts = added.pool == 9U || added.pool == 11U;
    const std::span<const core::Amount> resource = of_parts && below(3) != 0
                                                       ? std::span<const core::Amount>(kPart)
                                                       : std::span<const core::Amount>();
    const std::array groups = {
        core::GroupSpec{"rank", static_cast<uint32_t>(1 + below(3)), resource},
        core::GroupSpec{"more", static_cast<uint32_t>(1 + below(2)), {}}};
    added.groups = std::span(groups).first(below(3));
    added.placeholder_timeout_ns = below(4) == 0 ? shm::kNever : 1 + below(8000);
    added.style = below(2) == 0 ? shm::GangStyle::kSoft : shm::GangStyle::kHard;
    if (below(4) == 0) added.tags = "a=b";
    added.manager_timeout_ns = 1 + below(8000);
    added.recover = below(4) == 0;
    core_.apply(added);
    return true;
}

bool Workload::claim_of_member() {
    const uint32_t session = any_session();
    if (session == shm::kNoRow) return false;
    const std::string application = any_application();
    const std::string task = any_task();
    core::MemberOf member{.application = application, .task = task};
    if (below(4) != 0) member.group = any_group();
    static constexpr std::array kPart = {core::Amount{"cpu", 1}};
    core::Claim claim;
    claim.session = session;
    claim.tag = static_cast<uint16_t>(below(8));
    claim.pool = gang_pool();
    if ((claim.pool == 9U || claim.pool == 11U) && below(3) != 0) claim.least = kPart;
    claim.member = &member;
    claim.timeout_ns = below(4) == 0 ? 0 : 1 + below(8000);
    claim.interval_ns = below(2) == 0 ? 0 : 500 + below(3000);
    claim.by_word = below(2) == 0;
    core_.apply(claim);
    return true;
}

bool Workload::say_of_application(std::initializer_list<core::ApplicationEvent::Kind> kinds) {
    const std::string application = any_application();
    const std::string task = any_task();
    core::ApplicationEvent event;
    event.kind = kinds.begin()[below(kinds.size())];
    if (below(4) != 0)
        event.session = any_session();
    else
        event.uid = static_cast<uint32_t>(below(3));
    event.application = application;
    event.task = task;
    event.group = below(2) == 0 ? any_group() : std::string_view();
    event.assigned = below(2) == 0;
    core_.apply(event);
    return true;
}

}  // namespace dibs::tests
