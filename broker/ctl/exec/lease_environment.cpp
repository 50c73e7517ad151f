// broker/ctl/exec/lease_environment.cpp -- gathers the attributes of a lease's slots by key.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/exec/lease_environment.hpp"

#include <unistd.h>

#include <cctype>
#include <cstring>
#include <map>
#include <string_view>

#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/sheet.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl::exec {

namespace {

constexpr std::string_view kPoolVariable = "env.";

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

Variables variables_of(const Slots& slots,
                       const dibs_lease& lease,
                       bool has_workers,
                       const Options& options) {
    Variables variables;
    for (const auto& [key, value] : slots.values) {
        const bool sets = key.rfind(kPoolVariable, 0) == 0;
        if (sets && !has_workers) variables[key.substr(kPoolVariable.size())] = value;
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

}  // namespace

std::vector<std::string> lease_environment(const Attachment& attachment,
                                           uint32_t pool,
                                           const dibs_lease& lease,
                                           const Options& options) {
    const Slots slots = slots_of(attachment, lease);
    const bool has_workers = attachment.describe(pool).has_workers != 0;
    const Variables variables = variables_of(slots, lease, has_workers, options);
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        const std::string name = text.substr(0, text.find('='));
        if (variables.count(name) == 0 && !is_of_a_lease(name)) all.push_back(text);
    }
    for (const auto& [name, value] : variables)
        all.push_back(name + "=" + value);
    return all;
}

}  // namespace dibs::ctl::exec
