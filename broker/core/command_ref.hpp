// broker/core/command_ref.hpp -- names one command of any kind.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include "broker/core/command.hpp"

namespace dibs::core {

// Every command. Their fields are listed in command_fields.hpp, and both in the same order in
// schemas/journal.fbs.
using CommandRef = std::variant<const PoolConfig*,
                                const DeletePool*,
                                const AccountConfig*,
                                const DeleteAccount*,
                                const ResetBalance*,
                                const SessionOpen*,
                                const SessionDeath*,
                                const Claim*,
                                const PledgedClaim*,
                                const Cancel*,
                                const Release*,
                                const Keepalive*,
                                const Adopt*,
                                const KillFailed*,
                                const Announce*,
                                const WorkerWord*,
                                const Drain*,
                                const Steer*,
                                const Harvest*,
                                const Report*,
                                const Pull*,
                                const Unassign*,
                                const UpdateClaim*,
                                const Touch*,
                                const HolderDied*,
                                const TypeConfig*,
                                const DeleteType*,
                                const Provide*,
                                const Provisioned*,
                                const EntryReport*,
                                const QueueRead*,
                                const QueueOperation*,
                                const OperationDone*,
                                const WorkerReport*,
                                const ProcessReport*,
                                const Probe*,
                                const SetBehaviour*,
                                const AddApplication*,
                                const ApplicationEvent*>;

}  // namespace dibs::core
