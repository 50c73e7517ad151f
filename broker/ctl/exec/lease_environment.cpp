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

// Of each pool that the lease is over.
std::vector<dibs_part> parts_of(const Attachment& attachment, const dibs_lease& lease) {
    std::vector<dibs_part> parts;
    for (;;) {
        dibs_part part = {};
        const auto index = static_cast<uint32_t>(parts.size());
        const int code = dibs_lease_part(attachment.session(), &lease, index, &part);
        if (code == DIBS_EUNITS && index != 0) return parts;
        if (code < 0) throw Failure(exit_code_of(code), dibs_strerror(code));
        parts.push_back(part);
    }
}

Slots slots_of(const Attachment& attachment, const dibs_lease& lease, const dibs_part& part) {
    Slots slots;
    for (uint32_t unit = 0; unit < part.units; ++unit) {
        dibs_slot slot = {};
        const int code =
            dibs_lease_slot(attachment.session(), &lease, part.first_unit + unit, &slot);
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
                       const dibs_part& part,
                       bool has_workers,
                       const Options& options) {
    Variables variables;
    for (const auto& [key, value] : slots.values) {
        const bool sets = key.rfind(kPoolVariable, 0) == 0;
        if (sets && !has_workers) {
            variables[key.substr(kPoolVariable.size())] = part.units > 1 ? once(value) : value;
        }
        if (!sets) variables[attribute_variable(key)] = value;
    }
    add_mapped(&variables, slots, options, part.units);
    variables["DIBS_POOL"] = options.pool.name;
    variables["DIBS_SLOT"] = slots.numbers;
    variables["DIBS_LEASE"] = id_text(Letter::kLease, part.id);
    variables["DIBS_FENCE"] = std::to_string(part.fence);
    if (!options.socket.empty()) variables["DIBS_SOCKET"] = options.socket;
    return variables;
}

// Of the part with that number, from 1: those of further ones are numbered.
void add_part(Variables* variables, const Variables& part, size_t number) {
    for (const auto& [name, value] : part) {
        const bool is_numbered = number > 1 && name.rfind("DIBS_", 0) == 0 &&
                                 name != "DIBS_SOCKET" && name.rfind(kLimit, 0) != 0;
        // What pools set by "env." has their own name: the first one's stays.
        variables->emplace(is_numbered ? name + "_" + std::to_string(number) : name, value);
    }
}

bool is_of_a_lease(const std::string& name) {
    static constexpr const char* kNumbered[] = {
        "DIBS_ATTR_", "DIBS_POOL_", "DIBS_SLOT_", "DIBS_LEASE_", "DIBS_FENCE_", "DIBS_PARTS"};
    return std::any_of(std::begin(kNumbered), std::end(kNumbered), [&](const char* start) {
        return name.rfind(start, 0) == 0;
    });
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
    const std::vector<dibs_part> parts = parts_of(attachment, lease);
    Variables variables;
    for (size_t at = 0; at < parts.size(); ++at) {
        const dibs_pool_limits limits = attachment.describe(at == 0 ? pool : parts[at].pool);
        const Slots slots = slots_of(attachment, lease, parts[at]);
        Options of_part = options;
        if (at != 0) {
            of_part.pool.name = limits.name;
            of_part.variables.clear();  // they name attributes of the first pool's slots
        }
        Variables its = variables_of(slots, parts[at], limits.has_workers != 0, of_part);
        keep_limits(&its, slots, of_part);
        add_part(&variables, its, at + 1);
    }
    if (parts.size() > 1) variables["DIBS_PARTS"] = std::to_string(parts.size());
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
