// broker/ctl/device_mask.hpp -- reads the variables that limit which GPUs a process may use.
//
//   CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES   indices, UUIDs, beginnings of UUIDs
//   HIP_VISIBLE_DEVICES                          the same, counted in what ROCR_VISIBLE_DEVICES has
//   ZE_AFFINITY_MASK                             indices; empty: no limit
//
// The first entry that names no device ends the list; so an empty one is a limit to no device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::ctl {

inline constexpr const char* kCudaMask = "CUDA_VISIBLE_DEVICES";
inline constexpr const char* kRocrMask = "ROCR_VISIBLE_DEVICES";
inline constexpr const char* kHipMask = "HIP_VISIBLE_DEVICES";
inline constexpr const char* kLevelZeroMask = "ZE_AFFINITY_MASK";

struct DeviceMask {
    std::string said{};                  // "CUDA_VISIBLE_DEVICES=0,1", as it was found
    std::vector<std::string> entries{};  // in lower case; none: no device
};

// `value` null, or as good as unset: there is no limit.
std::optional<DeviceMask> mask_of(const std::string& variable, const char* value);
// This process's, of what `variable` names; ROCR_VISIBLE_DEVICES together with HIP's.
std::optional<DeviceMask> inherited_mask(const std::string& variable);
// Whether an entry is this UUID, its beginning, this index, or that of what it is a part of ("2" of
// "2:1" and "2.1").
bool names_device(const std::string& entry, std::string_view device);
// What stands between commas, without spaces.
std::vector<std::string> comma_parts(std::string_view text);

}  // namespace dibs::ctl
