// broker/ctl/discover/listing.hpp -- what a vendor's tool says of a host's GPUs, and pools of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::ctl {

struct Gpu {
    std::string index{};      // as its runtime counts: "0"; of a part of it, "0:1"
    std::string uuid{};       // as its runtime takes it; empty: there is none
    std::string name{};       // "NVIDIA A100-SXM4-40GB"
    std::string profile{};    // of a MIG device: "3g.20gb"; empty: the whole GPU
    std::string whole{};      // of a MIG device: the UUID of its GPU
    uint64_t memory_mib = 0;  // 0: not listed
    bool is_divided = false;  // it has MIG devices, which are what can be used of it
};

// What makes the slots of a pool devices of a vendor's runtime.
struct Vendor {
    const char* name;
    const char* mask;         // the variable that says which devices a program sees
    const char* environment;  // of a pool
    const char* attributes;   // of a slot, beside those of its device
};
extern const Vendor kNvidia;
extern const Vendor kAmd;
extern const Vendor kIntel;

struct Listing {
    const Vendor* vendor = nullptr;
    std::vector<Gpu> gpus{};
};

inline constexpr const char* kListings =
    "; dibs reads `nvidia-smi -L`, `amd-smi list --json`, `rocm-smi --showuniqueid --json` and "
    "`xpu-smi discovery -j`";

// UUIDs and names as they may stand in a file and in a variable.
bool is_plain(std::string_view text);
// What one vendor's tool printed. Failure: `source`, the place, and what it should be.
Listing read_listing(std::string_view text, const std::string& source);
// The same of JSON, which AMD's and Intel's tools print; it begins in this line of `source`.
Listing read_json_listing(const std::string& text, const std::string& source, int64_t line);

// Takes away what is not inside the mask that this process has inherited. Returns a comment that
// says so; empty: there is no mask.
std::string keep_inside(Listing* listing);
// [[pool]] for a configuration: one of all whole GPUs, and one for each MIG profile.
std::string gpu_pools(const Listing& listing, const std::string& pool);

}  // namespace dibs::ctl
