// shm/app_state.hpp -- what an application's states are called, and which of them are ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shm/layout.hpp"

namespace dibs::shm {

// By AppState; those of dibs_app_state_name, too.
inline constexpr const char* kAppStateWords[] = {"free",
                                                 "new",
                                                 "submitted",
                                                 "accepted",
                                                 "reserving",
                                                 "resuming",
                                                 "running",
                                                 "completed",
                                                 "failing",
                                                 "failed",
                                                 "killing",
                                                 "killed",
                                                 "rejected",
                                                 "recovering",
                                                 "removed"};

inline bool has_ended(AppState state) {
    return state == AppState::kCompleted || state == AppState::kFailed ||
           state == AppState::kKilled;
}

}  // namespace dibs::shm
