// broker/text/log_throttle.hpp -- bounds how many log lines each user can cause at each place.
//
// A client decides how often it is refused, killed or cut off, and each time is a line. So for each
// place in the code a user has some lines at once, and one a second from then on; dropped lines are
// counted, and the next line gives the count.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace dibs {

class LogThrottle {
  public:
    static constexpr uint64_t kLinesAtOnce = 10;
    static constexpr uint64_t kLineEveryNs = 1'000'000'000;
    static constexpr size_t kSourcesMax = 512;

    // Nothing: the line is left out. Else how many were since the last one.
    [[nodiscard]] std::optional<uint64_t> admit(uint32_t uid,
                                                std::string_view place,
                                                uint64_t now_ns);

  private:
    struct Source {
        uint64_t free_ns = 0;  // all its lines are unused from then on
        uint64_t left_out = 0;
    };
    using Name = std::pair<uint32_t, std::string>;

    Source& source(uint32_t uid, std::string_view place, uint64_t now_ns);

    std::map<Name, Source> sources_;
    Source others_;  // of whom there are too many to be told apart
};

}  // namespace dibs
