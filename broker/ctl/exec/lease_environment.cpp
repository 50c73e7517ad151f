// broker/ctl/exec/lease_environment.cpp -- gathers the attributes of a lease's slots by key.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/exec/lease_environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string_view>

#include "broker/ctl/device_mask.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/sheet.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl::exec {

namespace {

constexpr std::string_view kPoolVariable = "env.";
// And the name of a mask: what it has been set to, "=", and what that had to stay within.
const std::string kLimit = "DIBS_LIMIT_";
constexpr const char* kUnlimited = "*";

using Variables = std::map<std::string, std::string>;

struct Slots {
    std::string numbers;                        // "3,5"
    std::map<std::string, std::string> values;  // by key, of every slot that has it
    std::map<std::string, uint32_t> counts;     // slots that have it
};

void add(std::string* list, std::string_view value, bool first) {
    if (!first) *list += ",";
    *list += value;
}

Slots slots_of(const Attachment& attachment, const dibs_lease& lease) {
    Slots slots;
    for (uint32_t unit = 0; unit < lease.units; ++unit) {
        dibs_slot slot = {};
        const int code = dibs_lease_slot(attachment.session(), &lease, unit, &slot);
        if (code < 0) throw Failure(exit_code_of(code), dibs_strerror(code));
        add(&slots.numbers, std::to_string(slot.number), unit == 0);
        const char* end = slot.attributes + slot.attributes_size;
        for (const char* at = slot.attributes; at < end; at += std::strlen(at) + 1) {
            const std::string_view text = at;
            const std::string key(text.substr(0, text.find('=')));
            if (key.size() == text.size()) continue;
            add(&slots.values[key], text.substr(key.size() + 1), slots.counts[key]++ == 0);
        }
    }
    return slots;
}

std::string attribute_variable(const std::string& key) {
    std::string name = "DIBS_ATTR_";
    for (const char letter : key) {
        const auto byte = static_cast<unsigned char>(letter);
        name += std::isalnum(byte) != 0 ? static_cast<char>(std::toupper(byte)) : '_';
    }
    return name;
}

std::string known_keys(const Slots& slots) {
    std::string text;
    for (const auto& [key, value] : slots.values)
        text += (text.empty() ? "" : ", ") + key;
    return text.empty() ? "none" : text;
}

void add_mapped(Variables* variables, const Slots& slots, const Options& options, uint32_t units) {
    for (const auto& [variable, key] : options.variables) {
        const auto found = slots.counts.find(key);
        if (found == slots.counts.end() || found->second != units) {
            throw Failure(kExitOwnFailure,
                          "--env " + variable + "=" + key + ": slot " + slots.numbers +
                              " of pool \"" + options.pool.name + "\" has no attribute \"" + key +
                              "\"; it has: " + known_keys(slots));
        }
        (*variables)[variable] = slots.values.at(key);
    }
}

// A setting that all slots have, CUDA_DEVICE_ORDER say, is no list.
std::string once(const std::string& list) {
    const std::vector<std::string> values = comma_parts(list);
    const bool same =
        std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
    return same ? values.front() : list;
}

Variables variables_of(const Slots& slots,
                       const dibs_lease& lease,
                       bool has_workers,
                       const Options& options) {
    Variables variables;
    for (const auto& [key, value] : slots.values) {
        const bool sets = key.rfind(kPoolVariable, 0) == 0;
        if (sets && !has_workers) {
            variables[key.substr(kPoolVariable.size())] = lease.units > 1 ? once(value) : value;
        }
        if (!sets) variables[attribute_variable(key)] = value;
    }
    add_mapped(&variables, slots, options, lease.units);
    variables["DIBS_POOL"] = options.pool.name;
    variables["DIBS_SLOT"] = slots.numbers;
    variables["DIBS_LEASE"] = id_text(Letter::kLease, lease.id);
    variables["DIBS_FENCE"] = std::to_string(lease.fence);
    if (!options.socket.empty()) variables["DIBS_SOCKET"] = options.socket;
    return variables;
}

bool is_of_a_lease(const std::string& name) {
    return name.rfind("DIBS_ATTR_", 0) == 0;
}

// What this process was limited to. What the caller's own `dibs exec` has set limits nothing; then
// it is what that one was limited to.
std::optional<DeviceMask> limit_of(const std::string& variable) {
    const auto text = [](const std::string& name) {
        const char* value = std::getenv(name.c_str());
        return std::string(value == nullptr ? "" : value);
    };
    const bool own = variable == kRocrMask && std::getenv(kHipMask) != nullptr;
    const std::string given = text(variable) + "=";
    const std::string limit = text(kLimit + variable);
    if (own || !limit.starts_with(given)) return inherited_mask(variable);
    if (limit == given + kUnlimited) return std::nullopt;
    auto mask = mask_of(variable, limit.substr(given.size()).c_str());
    if (mask) mask->said += ", set outside of the calling dibs exec,";
    return mask;
}

// The attributes uuid, index and gpu name the slots' devices, as `dibs discover gpu` writes them.
void check_limit(const DeviceMask& mask,
                 const std::string& value,
                 const Slots& slots,
                 const Options& options) {
    const std::vector<std::string> devices = comma_parts(value);
    std::vector<std::vector<std::string>> names = {devices};
    for (const char* key : {"uuid", "index", "gpu"}) {
        const auto found = slots.values.find(key);
        if (found != slots.values.end()) names.push_back(comma_parts(found->second));
    }
    for (size_t place = 0; place < devices.size(); ++place) {
        const bool inside = std::any_of(names.begin(), names.end(), [&](const auto& all) {
            return all.size() == devices.size() &&
                   std::any_of(mask.entries.begin(), mask.entries.end(), [&](const auto& entry) {
                       return names_device(entry, all[place]);
                   });
        });
        if (inside) continue;
        throw Failure(kExitMasked,
                      mask.said + " leaves out " + devices[place] + ", which slot " +
                          slots.numbers + " of pool \"" + options.pool.name +
                          "\" gives: the command is not started, and the slot is given back. "
                          "Unset it, or use a pool of what is inside it, as dibs discover gpu "
                          "prints it where it is set");
    }
}

// A mask is replaced by what lies inside it, never widened.
void keep_limits(Variables* variables, const Slots& slots, const Options& options) {
    for (const char* variable : {kCudaMask, kRocrMask, kHipMask, kLevelZeroMask}) {
        const auto set = variables->find(variable);
        if (set == variables->end()) continue;
        const auto mask = limit_of(variable);
        if (mask) check_limit(*mask, set->second, slots, options);
        std::string entries = mask ? "" : kUnlimited;
        for (size_t place = 0; mask && place < mask->entries.size(); ++place)
            add(&entries, mask->entries[place], place == 0);
        (*variables)[kLimit + variable] = set->second + "=" + entries;
    }
}

}  // namespace

std::vector<std::string> lease_environment(const Attachment& attachment,
                                           uint32_t pool,
                                           const dibs_lease& lease,
                                           const Options& options) {
    const Slots slots = slots_of(attachment, lease);
    const bool has_workers = attachment.describe(pool).has_workers != 0;
    Variables variables = variables_of(slots, lease, has_workers, options);
    keep_limits(&variables, slots, options);
    const bool counts_anew = variables.count(kRocrMask) != 0;  // what HIP's mask counted in is gone
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        const std::string name = text.substr(0, text.find('='));
        if (variables.count(name) != 0 || is_of_a_lease(name)) continue;
        if (!counts_anew || name != kHipMask) all.push_back(text);
    }
    for (const auto& [name, value] : variables)
        all.push_back(name + "=" + value);
    return all;
}

}  // namespace dibs::ctl::exec
