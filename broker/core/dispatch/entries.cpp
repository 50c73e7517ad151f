// broker/core/dispatch/entries.cpp -- applies what is reported of entries.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/parts.hpp"

namespace dibs::core {

void Dispatch::refuse(uint64_t user_data, Reason reason) {
    turn().result(kNoRow, user_data, reason);
}

void Dispatch::apply(const EntryReport& report) {
    refuse(report.user_data, Reason::kState);
}
void Dispatch::apply(const QueueRead& read) {
    refuse(read.user_data, Reason::kState);
}
void Dispatch::apply(const QueueOperation& asked) {
    refuse(asked.user_data, Reason::kState);
}
void Dispatch::apply(const OperationDone& done) {
    refuse(done.user_data, Reason::kState);
}
void Dispatch::apply(const WorkerReport& report) {
    refuse(report.user_data, Reason::kState);
}
void Dispatch::apply(const ProcessReport& report) {
    refuse(report.user_data, Reason::kState);
}
void Dispatch::apply(const Probe& probe) {
    refuse(probe.user_data, Reason::kState);
}
void Dispatch::apply(const SetBehaviour& set) {
    refuse(set.user_data, Reason::kState);
}

}  // namespace dibs::core
