// broker/ctl/device_mask.cpp -- splits the lists of GPUs that variables hold, and compares entries.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/device_mask.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace dibs::ctl {

namespace {

bool is_index(std::string_view entry) {
    return !entry.empty() && entry.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool is_uuid(std::string_view entry) {
    return entry.size() > 4 && (entry.starts_with("gpu-") || entry.starts_with("mig-"));
}

std::string lower(std::string_view text) {
    std::string all(text);
    for (char& letter : all) {
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    }
    return all;
}

// HIP counts what ROCr has left.
DeviceMask counted_in(const DeviceMask& outer, const DeviceMask& inner) {
    DeviceMask both{outer.said + " with " + inner.said};
    for (const std::string& entry : inner.entries) {
        const auto found = std::find(outer.entries.begin(), outer.entries.end(), entry);
        auto place = static_cast<size_t>(found - outer.entries.begin());
        if (is_index(entry)) std::from_chars(entry.data(), entry.data() + entry.size(), place);
        if (place >= outer.entries.size()) break;
        both.entries.push_back(outer.entries[place]);
    }
    return both;
}

}  // namespace

std::vector<std::string> comma_parts(std::string_view text) {
    std::vector<std::string> parts;
    for (;;) {
        const size_t end = std::min(text.find(','), text.size());
        std::string_view part = text.substr(0, end);
        while (part.starts_with(' '))
            part.remove_prefix(1);
        while (part.ends_with(' '))
            part.remove_suffix(1);
        parts.emplace_back(part);
        if (end == text.size()) return parts;
        text.remove_prefix(end + 1);
    }
}

std::optional<DeviceMask> mask_of(const std::string& variable, const char* value) {
    if (value == nullptr) return std::nullopt;
    if (variable == kLevelZeroMask && *value == '\0') return std::nullopt;
    DeviceMask mask{variable + "=" + value};
    for (const std::string& part : comma_parts(value)) {
        const std::string entry = lower(part);
        if (!is_index(entry) && !is_uuid(entry)) break;
        mask.entries.push_back(entry);
    }
    return mask;
}

std::optional<DeviceMask> inherited_mask(const std::string& variable) {
    auto mask = mask_of(variable, std::getenv(variable.c_str()));
    if (variable != kRocrMask) return mask;
    auto inner = mask_of(kHipMask, std::getenv(kHipMask));
    return mask && inner ? counted_in(*mask, *inner) : mask ? mask : inner;
}

bool names_device(const std::string& entry, std::string_view device) {
    const std::string name = lower(device);
    if (!name.starts_with(entry)) return false;
    if (name.size() == entry.size() || is_uuid(entry)) return true;
    return name[entry.size()] == '.' || name[entry.size()] == ':';
}

}  // namespace dibs::ctl
