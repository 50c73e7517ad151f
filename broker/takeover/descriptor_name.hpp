// broker/takeover/descriptor_name.hpp -- how a descriptor is called where a service manager stores
// it.
//
//   state  board  config          the segments, and the text of the last good configuration
//   listener                      the socket, if the broker opened it itself
//   broker.PID                    the pidfd of a broker that has been started
//   s.ROW.GENERATION              what one session has, all of it; hexadecimal
//
// Short, because every descriptor's name is in one variable of the environment at the next start,
// and that holds 128 KiB (MAX_ARG_STRLEN).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dibs {

struct DescriptorName {
    enum class What : uint8_t { kState, kBoard, kListener, kConfig, kBroker, kSession };

    What what = What::kState;
    uint32_t row = 0;         // of a session; of a broker, its pid
    uint32_t generation = 0;  // of a session

    auto operator<=>(const DescriptorName&) const = default;

    [[nodiscard]] std::string text() const;
    // Nothing: no broker of ours has given that name.
    static std::optional<DescriptorName> of(std::string_view text);
};

}  // namespace dibs
