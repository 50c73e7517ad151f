// broker/admin/application_words.hpp -- what is told of an application, listed or refused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "broker/admin/admin.hpp"
#include "shm/layout.hpp"

namespace dibs {

inline std::string_view word_of(shm::AppState state) {
    static constexpr std::string_view kWords[] = {"free",
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
    return kWords[static_cast<size_t>(state)];
}

inline bool is_over(const shm::AppRow& app) {
    return app.state == shm::AppState::kCompleted || app.state == shm::AppState::kFailed ||
           app.state == shm::AppState::kKilled;
}

template <class Row>
std::string_view row_name(const Row& row) {
    return {row.name, row.name_size};
}

inline void refuse_with(AdminJob& job, admin::Code code, std::string why) {
    job.answer.code = code;
    job.answer.names.assign(1, std::move(why));
}

}  // namespace dibs
