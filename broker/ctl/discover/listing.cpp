// broker/ctl/discover/listing.cpp -- reads the lines of nvidia-smi, and tells them from JSON.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/discover/listing.hpp"

#include <algorithm>
#include <map>

#include "broker/config/quantity.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/subcommand.hpp"

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
                    .profile = std::string(profile),
                    .whole = whole->uuid});
    return true;
}

// "GPU-5d5b…, 40960 MiB"
bool read_memory(std::string_view line, std::map<std::string, uint64_t>& memory) {
    const size_t comma = line.find(',');
    if (comma == std::string_view::npos) return false;
    std::string_view count = trimmed(line.substr(comma + 1));
    if (count.ends_with(" MiB")) count.remove_suffix(4);
    const auto mib = parse_number(count, {});
    if (mib) memory[std::string(trimmed(line.substr(0, comma)))] = *mib;
    return mib.has_value();
}

// Lines of `nvidia-smi -L` and of `nvidia-smi --query-gpu=uuid,memory.total --format=csv,noheader`,
// in any order.
std::vector<Gpu> read_lines(std::string_view text, const std::string& source) {
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
                              "\" is no line of `nvidia-smi -L`, nor \"UUID, memory\"" + kListings);
        }
    }
    for (Gpu& gpu : gpus) {
        const auto known = memory.find(gpu.uuid);
        if (known != memory.end()) gpu.memory_mib = known->second;
    }
    return gpus;
}

}  // namespace

bool is_plain(std::string_view text) {
    return !text.empty() && text.size() < 128 && std::all_of(text.begin(), text.end(), [](char c) {
        return c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != ',';
    });
}

// Warnings of the tool may stand before its JSON.
Listing read_listing(std::string_view text, const std::string& source) {
    int64_t line = 1;
    for (size_t at = 0; at < text.size(); ++line) {
        if (text[at] == '{' || text[at] == '[') {
            return read_json_listing(std::string(text.substr(at)), source, line);
        }
        at = std::min(text.find('\n', at), text.size() - 1) + 1;
    }
    return {&kNvidia, read_lines(text, source)};
}

}  // namespace dibs::ctl
