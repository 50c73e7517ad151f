// broker/core/recovery/sound_text.cpp -- validates the texts in STATE.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/recovery/sound_text.hpp"

#include <cstddef>

#include "shm/layout.hpp"

namespace dibs::core {

uint32_t labels_in(std::string_view text) {
    uint32_t count = 0;
    std::string_view previous;
    while (!text.empty()) {
        const size_t size = text.find('\0');
        if (size == std::string_view::npos || size == 0 || size > shm::kNameMax) return 0;
        const std::string_view label = text.substr(0, size);
        if (count != 0 && label <= previous) return 0;
        previous = label;
        ++count;
        text.remove_prefix(size + 1);
    }
    return count;
}

bool are_limits(std::string_view text) {
    while (!text.empty()) {
        const size_t size = text.find('\0');
        if (size == std::string_view::npos || size == 0 || size > shm::kNameMax) return false;
        if (text.size() - size - 1 < sizeof(uint32_t)) return false;
        text.remove_prefix(size + 1 + sizeof(uint32_t));
    }
    return true;
}

}  // namespace dibs::core
