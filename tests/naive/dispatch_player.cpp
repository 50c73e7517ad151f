// tests/naive/dispatch_player.cpp -- plays the steps that only dispatched pools look at.
// SPDX-License-Identifier: Apache-2.0
#include <string_view>
#include <vector>

#include "broker/core/core.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/player.hpp"

namespace dibs::naive {

namespace {

core::EntryReport entry_report(const Step& step, std::span<const std::string_view> types) {
    core::EntryReport report;
    report.claim = step.name;
    report.state_given = step.dispatch.state_given;
    report.state = step.dispatch.state;
    report.priority_given = step.terms.priority_given;
    report.priority = step.claim.priority;
    report.supervisor_given = step.dispatch.supervisor_given;
    report.supervisor = step.dispatch.supervisor;
    report.types_given = step.dispatch.types_given;
    report.types = types;
    report.event_ns = step.terms.event_ns;
    return report;
}

core::QueueRead queue_read(const Step& step, std::span<const std::string_view> names) {
    core::QueueRead read;
    read.started_ns = step.terms.event_ns;
    read.claims = names;
    read.failed = !step.dispatch.ok;
    return read;
}

core::QueueOperation queue_operation(const Step& step) {
    core::QueueOperation operation;
    operation.claim = step.name;
    operation.word = step.dispatch.word;
    return operation;
}

core::OperationDone operation_done(const Step& step) {
    core::OperationDone done;
    done.claim = step.name;
    done.ok = step.dispatch.ok;
    return done;
}

core::WorkerReport worker_report(const Step& step) {
    core::WorkerReport report;
    report.worker = step.dispatch.worker;
    report.type = step.type_name;
    report.state = step.dispatch.worker_state;
    report.event_ns = step.terms.event_ns;
    return report;
}

core::ProcessReport process_report(const Step& step) {
    core::ProcessReport report;
    report.worker = step.dispatch.worker;
    report.claim = step.name;
    report.exited_ns = step.terms.event_ns;
    return report;
}

core::Probe probe(const Step& step) {
    core::Probe probe;
    probe.worker = step.dispatch.worker;
    probe.ok = step.dispatch.ok;
    probe.started_ns = step.terms.event_ns;
    return probe;
}

core::SetBehaviour behaviour(const Step& step) {
    core::SetBehaviour set;
    set.number = step.number;
    set.behaviour = step.dispatch.behaviour;
    return set;
}

}  // namespace

template <class CoreType>
void Player<CoreType>::dispatch(const Step& step) {
    const auto play = [&](auto command) {
        command.pool = pool_row(step.pool);
        command.user_data = step.label;
        core_.apply(command);
    };
    const std::vector<std::string_view> types(step.dispatch.types.begin(),
                                              step.dispatch.types.end());
    const std::vector<std::string_view> names(step.labels.begin(), step.labels.end());
    switch (step.kind) {
        case StepKind::kEntryReport:
            return play(entry_report(step, types));
        case StepKind::kQueueRead:
            return play(queue_read(step, names));
        case StepKind::kQueueOperation:
            return play(queue_operation(step));
        case StepKind::kOperationDone:
            return play(operation_done(step));
        case StepKind::kWorkerReport:
            return play(worker_report(step));
        case StepKind::kProcess:
            return play(process_report(step));
        case StepKind::kProbe:
            return play(probe(step));
        case StepKind::kBehaviour:
            return play(behaviour(step));
        default:
            return gang(step);
    }
}

template void Player<NaiveCore>::dispatch(const Step&);
template void Player<core::Core>::dispatch(const Step&);

}  // namespace dibs::naive
