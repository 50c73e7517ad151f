// shm/target.hpp -- says what the target of a claim names: a pool, a set, another cluster's pool.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>

#include "shm/pool_name.hpp"

namespace dibs::shm {

inline constexpr const char* kOwnCluster = "local";  // where the configuration says none
inline constexpr size_t kClusterNameMax = 31;

enum class TargetKind {
    kNone,       // it names nothing
    kName,       // a pool or a set
    kPool,       // `own::pool`: a pool
    kElsewhere,  // `other::pool`: another cluster's
};

struct Target {
    TargetKind kind = TargetKind::kNone;
    const char* name = nullptr;  // of kName and kPool, within the text
    size_t size = 0;
};

// `own` is the name of this broker's cluster.
inline Target target_of(const char* text, size_t size, const char* own, size_t own_size) {
    size_t colon = 0;
    while (colon != size && text[colon] != ':')
        ++colon;
    if (colon == size) {
        if (!is_pool_name(text, size)) return {};
        return {TargetKind::kName, text, size};
    }
    const size_t behind = colon + 2;
    if (behind > size || text[colon + 1] != ':' || !is_pool_name(text, colon) ||
        !is_pool_name(text + behind, size - behind)) {
        return {};
    }
    if (colon != own_size || std::memcmp(text, own, colon) != 0) return {TargetKind::kElsewhere};
    return {TargetKind::kPool, text + behind, size - behind};
}

}  // namespace dibs::shm
