// broker/journal/journal_error.hpp -- an error found in a journal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace dibs::ctl {

// `column` counts from 1; 0 = not known.
class JournalError : public std::runtime_error {
  public:
    explicit JournalError(const std::string& what, uint32_t at_column = 0)
        : std::runtime_error(what), column(at_column) {}

    uint32_t column;
};

}  // namespace dibs::ctl
