// tests/naive/step_wording.cpp -- the names of steps.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/wording.hpp"

namespace dibs::naive {

const char* name_of(StepKind kind) {
    switch (kind) {
        case StepKind::kSetPool:
            return "set-pool";
        case StepKind::kChangePool:
            return "change-pool";
        case StepKind::kSetAccount:
            return "account";
        case StepKind::kDeleteAccount:
            return "delete-account";
        case StepKind::kResetBalance:
            return "reset-balance";
        case StepKind::kReport:
            return "report";
        case StepKind::kPull:
            return "pull";
        case StepKind::kUnassign:
            return "unassign";
        case StepKind::kUpdateClaim:
            return "update-claim";
        case StepKind::kOpen:
            return "open";
        case StepKind::kDied:
            return "died";
        case StepKind::kHolderDied:
            return "holder-died";
        case StepKind::kClaim:
            return "claim";
        case StepKind::kCancel:
            return "cancel";
        case StepKind::kRelease:
            return "release";
        case StepKind::kKeepalive:
            return "keepalive";
        case StepKind::kAdopt:
            return "adopt";
        case StepKind::kKillFailed:
            return "kill-failed";
        case StepKind::kHarvest:
            return "harvest";
        case StepKind::kTouch:
            return "touch";
        case StepKind::kAnnounce:
            return "announce";
        case StepKind::kWord:
            return "word";
        case StepKind::kDeletePool:
            return "delete-pool";
        case StepKind::kDrain:
            return "drain";
        case StepKind::kSteer:
            return "steer";
        case StepKind::kSetType:
            return "type";
        case StepKind::kDeleteType:
            return "delete-type";
        case StepKind::kProvide:
            return "provide";
        case StepKind::kProvisioned:
            return "provisioned";
        case StepKind::kEntryReport:
            return "entry";
        case StepKind::kQueueRead:
            return "queue-read";
        case StepKind::kQueueOperation:
            return "queue-operation";
        case StepKind::kOperationDone:
            return "operation-done";
        case StepKind::kWorkerReport:
            return "worker";
        case StepKind::kProcess:
            return "process";
        case StepKind::kProbe:
            return "probe";
        case StepKind::kBehaviour:
            return "behaviour";
        case StepKind::kApplication:
            return "application";
        case StepKind::kApplicationEvent:
            return "application-event";
        case StepKind::kRestart:
            return "restart";
        case StepKind::kTurnEnd:
            return "turn-end";
    }
    return "?";
}

}  // namespace dibs::naive
