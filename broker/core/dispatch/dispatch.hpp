// broker/core/dispatch/dispatch.hpp -- decides which entries of a dispatched pool's queue are
// locked, started, unlocked and killed, and reconciles the queue with what its workers run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "broker/core/module.hpp"

namespace dibs::core {

struct Dispatch : Module<Dispatch> {
    explicit Dispatch(const State& rows) : Module(rows) {}

    void apply(const EntryReport& report);
    void apply(const QueueRead& read);
    void apply(const QueueOperation& asked);
    void apply(const OperationDone& done);
    void apply(const WorkerReport& report);
    void apply(const ProcessReport& report);
    void apply(const Probe& probe);
    void apply(const SetBehaviour& set);

  private:
    void refuse(uint64_t user_data, Reason reason);
};

}  // namespace dibs::core
