// broker/admin/application_words.hpp -- what is told of an application, listed or refused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "broker/admin/admin.hpp"
#include "shm/app_state.hpp"

namespace dibs {

inline std::string_view word_of(shm::AppState state) {
    return shm::kAppStateWords[static_cast<size_t>(state)];
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
