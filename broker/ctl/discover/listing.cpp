// broker/ctl/discover/listing.cpp -- reads what nvidia-smi lists, and writes pools of it.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/discover/listing.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include "broker/ctl/failure.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl {

namespace {

std::string_view trimmed(std::string_view text) {
    const size_t first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// What stands between the two, without them; nothing: they are not there.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
    const size_t first = text.find(before);
    if (first == std::string_view::npos) return {};
    text.remove_prefix(first + before.size());
    const size_t last = text.find(after);
    return last == std::string_view::npos ? std::string_view() : trimmed(text.substr(0, last));
}

bool is_number(std::string_view text) {
    return !text.empty() && text.size() < 6 &&
           text.find_first_not_of("0123456789") == std::string_view::npos;
}

// UUIDs and names as they may stand in a file and in a variable.
bool is_plain(std::string_view text) {
    return !text.empty() && text.size() < 128 && std::all_of(text.begin(), text.end(), [](char c) {
        return c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != ',';
    });
}

// "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5b…)"
bool read_whole(std::string_view line, std::vector<Gpu>& gpus) {
    const std::string_view index = between(line, "GPU ", ":");
    const std::string_view name = between(line, ": ", "(UUID:");
    const std::string_view uuid = between(line, "(UUID:", ")");
    if (!is_number(index) || !is_plain(name) || !is_plain(uuid)) return false;
    gpus.push_back(
        {.index = std::string(index), .uuid = std::string(uuid), .name = std::string(name)});
    return true;
}

// "MIG 3g.20gb     Device  0: (UUID: MIG-c6d4…)", behind its GPU
bool read_part(std::string_view line, std::vector<Gpu>& gpus) {
    const auto whole = std::find_if(
        gpus.rbegin(), gpus.rend(), [](const Gpu& gpu) { return gpu.profile.empty(); });
    const std::string_view profile = between(line, "MIG ", "Device");
    const std::string_view index = between(line, "Device", ":");
    const std::string_view uuid = between(line, "(UUID:", ")");
    if (whole == gpus.rend() || !is_plain(profile) || !is_number(index) || !is_plain(uuid)) {
        return false;
    }
    whole->is_divided = true;
    gpus.push_back({.index = whole->index + ":" + std::string(index),
                    .uuid = std::string(uuid),
                    .name = whole->name,
                    .profile = std::string(profile)});
    return true;
}

// "GPU-5d5b…, 40960 MiB"
bool read_memory(std::string_view line, std::map<std::string, uint64_t>& memory) {
    const size_t comma = line.find(',');
    if (comma == std::string_view::npos) return false;
    std::string_view count = trimmed(line.substr(comma + 1));
    if (count.ends_with(" MiB")) count.remove_suffix(4);
    uint64_t mib = 0;
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), mib);
    if (error != std::errc() || end != count.data() + count.size()) return false;
    memory[std::string(trimmed(line.substr(0, comma)))] = mib;
    return true;
}

std::string slot_text(const Gpu& gpu) {
    std::string text = "    { uuid = \"" + gpu.uuid + "\", order = \"PCI_BUS_ID\", index = \"" +
                       gpu.index + "\", name = \"" + gpu.name + "\"";
    if (gpu.memory_mib != 0) text += ", memory = \"" + std::to_string(gpu.memory_mib) + "MiB\"";
    return text + " },\n";
}

std::string pool_text(const std::string& name, const std::vector<const Gpu*>& slots) {
    std::string text = "[[pool]]\nname = \"" + name +
                       "\"\nkind = \"counted\"\nslots = " + std::to_string(slots.size()) +
                       "\nenvironment = { CUDA_VISIBLE_DEVICES = \"uuid\", "
                       "CUDA_DEVICE_ORDER = \"order\" }\nattributes = [\n";
    for (const Gpu* gpu : slots)
        text += slot_text(*gpu);
    return text + "]\n";
}

}  // namespace

std::vector<Gpu> read_gpus(std::string_view text, const std::string& source) {
    std::vector<Gpu> gpus;
    std::map<std::string, uint64_t> memory;
    for (uint64_t number = 1; !text.empty(); ++number) {
        const size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = trimmed(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        const bool known = line.empty()               ? true
                           : line.starts_with("GPU ") ? read_whole(line, gpus)
                           : line.starts_with("MIG ") ? read_part(line, gpus)
                                                      : read_memory(line, memory);
        if (!known) {
            throw Failure(kExitFailed,
                          source + ":" + std::to_string(number) + ": \"" + std::string(line) +
                              "\" is no line of `nvidia-smi -L`, nor \"UUID, memory\"");
        }
    }
    for (Gpu& gpu : gpus) {
        const auto known = memory.find(gpu.uuid);
        if (known != memory.end()) gpu.memory_mib = known->second;
    }
    return gpus;
}

std::string gpu_pools(const std::vector<Gpu>& gpus, const std::string& pool) {
    std::map<std::string, std::vector<const Gpu*>> pools;  // by profile
    for (const Gpu& gpu : gpus) {
        if (!gpu.is_divided) pools[gpu.profile].push_back(&gpu);
    }
    std::string text;
    for (const auto& [profile, slots] : pools) {
        if (!text.empty()) text += "\n";
        std::string name = profile.empty() ? pool : pool + "-" + profile;
        std::replace(name.begin(), name.end(), '+', '-');  // "1g.10gb+me" is no name of a pool
        text += pool_text(name, slots);
    }
    return text;
}

}  // namespace dibs::ctl
