// broker/config/config.cpp -- finds and reads the configuration, and compares and copies it.
// SPDX-License-Identifier: Apache-2.0
#include "broker/config/config.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "broker/admission/policy.hpp"
#include "broker/config/file_bytes.hpp"
#include "broker/text/log.hpp"
#include "broker/text/spelling.hpp"
#include "shm/memfd.hpp"

namespace dibs {

namespace {

constexpr size_t kMostWithAttributes = 200;  // no file can give more slots any

// Rates are of users, not of pools: those with an equal share are shared as one.
std::optional<std::string> doubt_about_shares(const Config& config) {
    std::string names;
    size_t count = 0;
    for (const PoolSettings& pool : config.pools) {
        if (!pool.equal_share) continue;
        names += (count++ == 0 ? "\"" : ", \"") + pool.name + "\"";
    }
    if (count < 2) return std::nullopt;
    return config.file + ": note: pools " + names +
           " have share = \"equal\" and are shared together: every user gets as much of all of "
           "them as every other, and who uses only one of them may use more of that one";
}

}  // namespace

core::PoolConfig PoolSettings::view() {
    core::PoolConfig config = values;
    slot_attribute_views.assign(slot_attributes.begin(), slot_attributes.end());
    config.name = name;
    config.required_label = required_label;
    config.slot_attributes = slot_attribute_views;
    resource_views.clear();
    for (const auto& [resource, amount] : resources)
        resource_views.push_back({resource, amount});
    config.vector = resource_views;
    create_min_views.clear();
    for (const auto& [resource, amount] : create_min)
        create_min_views.push_back({resource, amount});
    config.create_min = create_min_views;
    return config;
}

ConfigResult read_config(const std::string& path, const PoolsThere& there) {
    try {
        std::string text = prompt_file_bytes(path);
        ConfigResult result = parse_config(text, path, there);
        result.config.text = std::move(text);
        return result;
    } catch (const std::runtime_error& error) {
        ConfigResult result;
        result.mistakes.push_back(path + ": cannot be read" +
                                  std::string(error.what()).substr(path.size()));
        return result;
    }
}

std::vector<std::string> pools_that_kill(const Config& config) {
    std::vector<std::string> lines;
    for (const PoolSettings& pool : config.pools) {
        if (pool.values.expiry != shm::ExpiryMode::kStrict) continue;
        lines.push_back(config.file + ": warning: pool \"" + pool.name +
                        "\" has expiry = \"strict\", and this broker may not kill processes of "
                        "other users: their claims are refused. Give it the capability CAP_KILL "
                        "(AmbientCapabilities=CAP_KILL in its systemd unit)");
    }
    return lines;
}

// A pool may come later: another file, dibs exec --create.
std::vector<std::string> doubts_about(const Config& config) {
    std::vector<std::string> doubts;
    std::set<std::string_view> known;
    for (const PoolSettings& pool : config.pools)
        known.insert(pool.name);
    for (const std::string& name : config.policy->named_pools()) {
        if (known.contains(name)) continue;
        std::string line = config.file + ": note: [[policy]] names pool \"" + name +
                           "\", which is not configured here";
        if (const auto nearest = nearest_word(name, known))
            line += "; did you mean \"" + std::string(*nearest) + "\"?";
        doubts.push_back(std::move(line));
    }
    if ((config.socket_mode & 0066) != 0) {
        const auto offered = config.policy->offered_pools();
        for (const PoolSettings& pool : config.pools) {
            if (pool.values.kind != shm::PoolKind::kWorker || offered.contains(pool.name)) continue;
            doubts.push_back(config.file +
                             ": note: several users may connect, and no [[policy]] names pool \"" +
                             pool.name + "\" in offers: only administrators may offer slots of it");
        }
    }
    for (const PoolSettings& pool : config.pools) {
        const size_t given = pool.slot_attributes.size();
        if (given == 0 || given >= pool.values.slots || given == kMostWithAttributes) continue;
        doubts.push_back(config.file + ": note: pool \"" + pool.name + "\" has attributes for " +
                         std::to_string(given) + " of its " + std::to_string(pool.values.slots) +
                         " slots: grants of slot " + std::to_string(given) +
                         " and those behind it bring none");
    }
    const auto shared =
        std::find_if(config.pools.begin(), config.pools.end(), [](const auto& pool) {
            return pool.values.order == shm::PoolOrder::kAccount;
        });
    if (auto doubt = doubt_about_shares(config)) doubts.push_back(std::move(*doubt));
    const bool has_accounts = !config.accounts.empty() || config.account_default;
    if (shared != config.pools.end() && !has_accounts) {
        doubts.push_back(
            config.file + ": note: pool \"" + shared->name +
            "\" is ordered by account, and there are no accounts: all claims are of the "
            "free class, which is first come, first served. With share = \"equal\" "
            "every user gets as much of the pool; [account_default] and [[account]] "
            "say who gets what");
    }
    if (shared == config.pools.end() && has_accounts) {
        const std::string which = config.accounts.empty()
                                      ? "[account_default]"
                                      : "[[account]] \"" + config.accounts.front().name + "\"";
        doubts.push_back(config.file + ": note: " + which +
                         ": no pool has order = \"account\", so accounts change nothing");
    }
    return doubts;
}

std::string default_state_dir() {
    const char* folder = std::getenv("DIBS_STATE_DIR");
    return folder != nullptr && *folder != '\0' ? folder : "/var/lib/dibs";
}

std::vector<std::string> fixed_differences(const Config& before, const Config& after) {
    std::vector<std::string> fixed;
    const core::Limits& a = before.limits;
    const core::Limits& b = after.limits;
    if (a.pools != b.pools || a.sessions != b.sessions || a.slots != b.slots ||
        a.claims != b.claims || a.leases != b.leases || a.arena_blocks != b.arena_blocks ||
        a.accounts != b.accounts || a.label_sets != b.label_sets || a.entries != b.entries ||
        a.applications != b.applications || a.groups != b.groups || a.tasks != b.tasks ||
        a.log_images != b.log_images || a.log_stores != b.log_stores) {
        fixed.emplace_back("limits are fixed until the next start");
    }
    const bool other_socket = !after.socket.empty() && after.socket != before.socket;
    if (other_socket || before.socket_mode != after.socket_mode) {
        fixed.emplace_back("the socket is fixed until the next start");
    }
    if (before.hardening != after.hardening) {
        fixed.emplace_back("hardening is fixed until the next start");
    }
    return fixed;
}

namespace {

[[noreturn]] void no_copy(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

shm::Descriptor copy_config(std::string_view text) {
    shm::Descriptor copy(memfd_create("dibs-config", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!copy.valid()) no_copy("memfd_create");
    while (!text.empty()) {
        const ssize_t written = write(copy.get(), text.data(), text.size());
        if (written < 0 && errno != EINTR) no_copy("writing a copy of the configuration");
        if (written > 0) text.remove_prefix(static_cast<size_t>(written));
    }
    constexpr int kSealed = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_SEAL;
    if (fcntl(copy.get(), F_ADD_SEALS, kSealed) != 0) no_copy("sealing a memfd");
    return copy;
}

std::string text_of_copy(int memfd) {
    std::string text(shm::size_of(memfd), '\0');
    for (size_t read = 0; read < text.size();) {
        const ssize_t some =
            pread(memfd, &text[read], text.size() - read, static_cast<off_t>(read));
        if (some == 0 || (some < 0 && errno != EINTR))
            no_copy("reading a copy of the configuration");
        if (some > 0) read += static_cast<size_t>(some);
    }
    return text;
}

Config config_as_read_before(const std::string& file, const shm::Descriptor& copy) {
    ConfigResult before;
    try {
        if (copy.valid()) {
            std::string text = text_of_copy(copy.get());
            before = parse_config(
                text, file + " as it was read last", {.created = {}, .all = {}, .unknown = true});
            before.config.text = std::move(text);
        }
    } catch (const std::system_error& error) {
        log::error(std::string("what was read last is lost: ") + error.what());
    }
    for (const std::string& mistake : before.mistakes)
        log::error(mistake);
    if (before.config.text) {
        log::warning("going on with " + file + " as it was read last" +
                     (before.mistakes.empty() ? "" : ", but for these mistakes"));
    } else {
        log::error("no copy of " + file + " is held: going on with policy and limits as built in");
    }
    before.config.file = file;
    return std::move(before.config);
}

}  // namespace dibs
