// broker/core/dispatch/entry_reason.hpp -- names why an entry of a dispatched pool is where it is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dibs::core {

// Why an entry is where it is.
enum class EntryReason : uint8_t {
    kNone,             // it is over, or not in the queue
    kRunning,          // its process is alive
    kExited,           // its process was
    kPreparing,        // it is started, or being locked or unlocked
    kOldProcess,       // one is still alive, and must not be
    kHeld,             // its priority is below 1
    kReading,          // the queue was not read yet, or stale locks are being mended
    kSupervisorLimit,  // there are as many supervisors as there may be
    kLimit,            // as many run as may
    kAtQuota,
    kAtCapacity,
    kNoProvisioner,  // of any type that suits it
    kBeingMade,      // its worker is
    kStarts,         // nothing keeps it any more
};

}  // namespace dibs::core
