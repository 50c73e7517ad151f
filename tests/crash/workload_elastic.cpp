// tests/crash/workload_elastic.cpp -- what is drawn for the elastic pool: its types, their
// provisioners, and the workers that they make.
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "broker/core/look.hpp"
#include "tests/crash/workload.hpp"

namespace dibs::tests {

using shm::kNoRow;
using shm::SlotState;

namespace {

constexpr const char* kTypes[] = {"small", "large", "odd"};

}  // namespace

core::PoolConfig Workload::elastic() {
    core::PoolConfig crowd;
    crowd.name = "crowd";
    crowd.kind = shm::PoolKind::kWorker;
    crowd.order = shm::PoolOrder::kPriority;
    crowd.workers_max = 2 + static_cast<uint32_t>(below(4));
    crowd.workers_min = 1;
    crowd.spare = 1;
    crowd.creates_max = static_cast<uint32_t>(below(3));
    crowd.create_throttle_ns = 200;
    crowd.quiet_ns = 2000;
    crowd.quota_error_ns = 3000;
    crowd.capacity_error_ns = 1000;
    crowd.idle_timeout_ns = 9000;
    crowd.boot_timeout_ns = 60'000;
    return crowd;
}

bool Workload::set_type() {
    const std::string name = kTypes[below(3)];
    if (name == "odd" && below(2) == 0) {
        return core_.apply(core::DeleteType{.name = name, .pool = "crowd"}) == shm::Reason::kOk;
    }
    core::TypeConfig type{.name = name, .pool = "crowd", .cost = 1 + below(3)};
    type.preemptible = below(2) == 0;
    if (below(2) == 0) type.quota_group = "group";
    return core_.set_type(type, nullptr);
}

bool Workload::provide() {
    const uint32_t session = any_session();
    if (session == kNoRow) return false;
    core_.apply(core::Provide{.session = session,
                              .pool = core_.find_pool("crowd"),
                              .type = kTypes[below(4) / 2],
                              .on = below(8) != 0});
    return true;
}

// Of an order that waits, or of another slot of the pool.
uint32_t Workload::any_order() {
    const auto start = static_cast<uint32_t>(below(core_.slots_max()));
    const bool waits = below(4) != 0;
    for (uint32_t step = 0; step < core_.slots_max(); ++step) {
        const uint32_t row = (start + step) % core_.slots_max();
        const shm::SlotRow& slot = core_.slot(row);
        if (slot.state == SlotState::kFree || slot.type == kNoRow) continue;
        if ((slot.state == SlotState::kOrdered) == waits) return row;
    }
    return kNoRow;
}

bool Workload::answer_order() {
    const uint32_t row = any_order();
    if (row == kNoRow) return false;
    core::Provisioned answer;
    answer.slot = core::row_id(core_.slot(row).head.generation, row);
    answer.session = core::Look::type(core_, core_.slot(row).type).session;
    answer.answer = static_cast<core::Provisioned::Answer>(below(6));
    answer.scope = static_cast<core::Provisioned::Scope>(below(3));
    if (answer.session == kNoRow) return false;
    core_.apply(answer);
    return true;
}

bool Workload::announce_order() {
    const uint32_t row = any_order();
    const uint32_t session = any_session();
    if (row == kNoRow || session == kNoRow) return false;
    const std::string name = "v" + std::to_string(below(20));
    core::Announce announce{.session = session, .pool = core_.slot(row).pool, .name = name};
    announce.order = core::row_id(core_.slot(row).head.generation, row);
    announce.ready = below(4) != 0;
    core_.apply(announce);
    return true;
}

// Of a queue that somebody else keeps, and of workers that run what somebody else starts.
bool Workload::report_to_dispatch() {
    const core::PoolId far = core_.find_pool("far");
    if (far == kNoRow) return false;
    const std::string entry = "e" + std::to_string(below(5));
    const std::string worker = "w" + std::to_string(below(4));
    const std::string_view entries[] = {"e0", "e1", "e2", "e3", "e4"};
    const core::TimeNs at = now_ - below(500);
    switch (below(7)) {
        case 0:
            core_.apply(core::EntryReport{.pool = far,
                                          .claim = entry,
                                          .state_given = below(3) == 0,
                                          .state = static_cast<core::QueueState>(below(5)),
                                          .priority_given = true,
                                          .priority = static_cast<int32_t>(below(4)),
                                          .supervisor_given = below(2) == 0,
                                          .supervisor = below(2) == 0});
            return true;
        case 1:
            core_.apply(core::QueueRead{.pool = far,
                                        .started_ns = at,
                                        .claims = std::span{entries}.first(below(6)),
                                        .failed = below(8) == 0});
            return true;
        case 2:
            core_.apply(core::QueueOperation{
                .pool = far, .claim = entry, .word = static_cast<core::QueueWord>(below(4))});
            return true;
        case 3:
            core_.apply(core::OperationDone{.pool = far, .claim = entry, .ok = below(4) != 0});
            return true;
        case 4:
            core_.apply(core::WorkerReport{
                .pool = far,
                .worker = worker,
                .type = "small",
                .state = static_cast<core::WorkerReport::State>(below(6)),
            });
            return true;
        case 5:
            core_.apply(core::ProcessReport{.pool = far,
                                            .worker = worker,
                                            .claim = entry,
                                            .exited_ns = below(2) == 0 ? shm::kNever : at});
            return true;
        default:
            core_.apply(
                core::Probe{.pool = far, .worker = worker, .ok = below(2) == 0, .started_ns = at});
            return true;
    }
}

}  // namespace dibs::tests
