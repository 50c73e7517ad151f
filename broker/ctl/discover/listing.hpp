// broker/ctl/discover/listing.hpp -- what nvidia-smi says of this host's GPUs, and a pool of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::ctl {

struct Gpu {
    std::string index{};      // as nvidia-smi counts: "0"; of a part of it, "0:1"
    std::string uuid{};       // what CUDA_VISIBLE_DEVICES takes, whatever the order of the devices
    std::string name{};       // "NVIDIA A100-SXM4-40GB"
    std::string profile{};    // of a MIG device: "3g.20gb"; empty: the whole GPU
    uint64_t memory_mib = 0;  // 0: not listed
    bool is_divided = false;  // it has MIG devices, which are what can be used of it
};

// Lines of `nvidia-smi -L` and of `nvidia-smi --query-gpu=uuid,memory.total --format=csv,noheader`,
// in any order. Failure: `source`, the line, and what it should be.
std::vector<Gpu> read_gpus(std::string_view text, const std::string& source);

// [[pool]] for a configuration: one of all whole GPUs, and one for each MIG profile.
std::string gpu_pools(const std::vector<Gpu>& gpus, const std::string& pool);

}  // namespace dibs::ctl
