// broker/ctl/discover/pool_text.cpp -- writes pools of listed GPUs, with their runtime's variables.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "broker/ctl/device_mask.hpp"
#include "broker/ctl/discover/listing.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/terminal_text.hpp"
#include "shm/pool_name.hpp"

namespace dibs::ctl {

// The order of devices is said where a runtime has more than one, and to Level Zero that an index
// counts cards, not their tiles.
const Vendor kNvidia = {"nvidia",
                        kCudaMask,
                        "CUDA_VISIBLE_DEVICES = \"uuid\", CUDA_DEVICE_ORDER = \"order\"",
                        "order = \"PCI_BUS_ID\", "};
const Vendor kAmd = {"amd", kRocrMask, "ROCR_VISIBLE_DEVICES = \"device\"", ""};
const Vendor kIntel = {"intel",
                       kLevelZeroMask,
                       "ZE_AFFINITY_MASK = \"index\", ZE_ENABLE_PCI_ID_DEVICE_ORDER = \"order\", "
                       "ZE_FLAT_DEVICE_HIERARCHY = \"hierarchy\"",
                       "order = \"1\", hierarchy = \"COMPOSITE\", "};

namespace {

std::string attribute(const char* key, const std::string& value) {
    return value.empty() ? "" : std::string(key) + " = \"" + value + "\", ";
}

std::string slot_text(const Gpu& gpu, const Vendor* vendor) {
    const std::string& device = gpu.uuid.empty() ? gpu.index : gpu.uuid;
    std::string text = vendor == &kAmd ? attribute("device", device) : attribute("uuid", gpu.uuid);
    text += vendor->attributes + attribute("index", gpu.index) + attribute("gpu", gpu.whole) +
            attribute("name", gpu.name);
    if (gpu.memory_mib != 0) text += attribute("memory", std::to_string(gpu.memory_mib) + "MiB");
    return "    { " + text.substr(0, text.size() - 2) + " },\n";
}

size_t usable(const std::vector<Gpu>& gpus) {
    return static_cast<size_t>(
        std::count_if(gpus.begin(), gpus.end(), [](const Gpu& gpu) { return !gpu.is_divided; }));
}

}  // namespace

std::string keep_inside(Listing* listing) {
    const auto mask = inherited_mask(listing->vendor->mask);
    if (!mask) return "";
    const size_t before = usable(listing->gpus);
    std::vector<Gpu> kept;
    for (const std::string& entry : mask->entries) {
        const auto named = [&](const Gpu& gpu) {
            return gpu.index == entry || names_device(entry, gpu.uuid);
        };
        const auto found = std::find_if(listing->gpus.begin(), listing->gpus.end(), named);
        if (std::count_if(listing->gpus.begin(), listing->gpus.end(), named) != 1) break;
        const std::string uuid = found->uuid;
        kept.push_back(std::move(*found));  // nothing names it again
        listing->gpus.erase(found);
        std::copy_if(listing->gpus.begin(),
                     listing->gpus.end(),
                     std::back_inserter(kept),
                     [&](const Gpu& gpu) { return !uuid.empty() && gpu.whole == uuid; });
    }
    listing->gpus = std::move(kept);
    return "# " + harmless(mask->said) + " leaves " + std::to_string(usable(listing->gpus)) +
           " of " + std::to_string(before) + " devices; dibs discover gpu --all writes all.\n";
}

std::string gpu_pools(const Listing& listing, const std::string& pool) {
    std::map<std::string, std::vector<std::string>> slots;  // by pool
    for (const Gpu& gpu : listing.gpus) {
        std::string name = gpu.profile.empty() ? pool : pool + "-" + gpu.profile;
        std::replace(name.begin(), name.end(), '+', '-');  // "1g.10gb+me" is no name of a pool
        if (!shm::is_pool_name(name.data(), name.size())) {
            throw Failure(kExitUsage, "\"" + name + "\": " + shm::kPoolNameRule);
        }
        if (!gpu.is_divided) slots[name].push_back(slot_text(gpu, listing.vendor));
    }
    std::string text;
    for (const auto& [name, lines] : slots) {
        text += (text.empty() ? "" : "\n") + ("[[pool]]\nname = \"" + name) +
                "\"\nkind = \"counted\"\nslots = " + std::to_string(lines.size()) +
                "\nenvironment = { " + listing.vendor->environment + " }\nattributes = [\n";
        for (const std::string& line : lines)
            text += line;
        text += "]\n";
    }
    return text;
}

}  // namespace dibs::ctl
