// broker/ctl/attachment.cpp -- attaches to the broker, and words why that fails.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/attachment.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>

#include "broker/admission/socket_path.hpp"
#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/clock.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/spelling.hpp"
#include "shm/layout.hpp"
#include "shm/pool_name.hpp"

namespace dibs::ctl {

namespace {

constexpr int kConnections = 8;  // a broker that dies while it lets one in has a successor

std::string quoted(const std::string& text) {
    return "\"" + text + "\"";
}

// Whom the socket is for, and how to become one of them.
std::string denied(const std::string& path) {
    const std::string what = "you may not connect to " + path;
    struct stat status = {};
    if (stat(path.c_str(), &status) != 0) {
        return what + ": its folder is closed to you; ask whoever runs dibsd";
    }
    std::array<char, 8> mode{};
    std::snprintf(mode.data(), mode.size(), "%04o", status.st_mode & 07777);
    const std::string owner = user_name(status.st_uid);
    if ((status.st_mode & S_IWGRP) == 0) {
        return what + ": it is for user " + owner + " alone (mode " + mode.data() +
               "); ask for socket_mode = \"0660\" in dibsd's configuration";
    }
    const std::string whom = what + ": it is for user " + owner + " and group " +
                             group_name(status.st_gid) + " (mode " + mode.data() + "); ask ";
    // No user should join root's group for this.
    if (status.st_gid == 0) return whom + "for a dibsd that runs with a group of its own";
    return whom + "to be added to the group " + group_name(status.st_gid);
}

Failure no_answer(const std::string& path, const std::string& why) {
    return {kExitUnreachable,
            "no broker answers at " + path + " (" + why +
                "): start dibsd, or name its socket with --socket or DIBS_SOCKET"};
}

// `text` is the library's, which begins with the path.
Failure unattached(int code, int error, const std::string& path, std::string_view text) {
    if (code == DIBS_ESYSTEM && (error == EACCES || error == EPERM)) {
        return {kExitDenied, denied(path)};
    }
    if (text.starts_with(path + ": ")) text.remove_prefix(path.size() + 2);
    const std::string why(!text.empty() ? text : dibs_strerror(code));
    if (code == DIBS_ENOBROKER) return no_answer(path, why);
    return {exit_code_of(code), "no session with the broker at " + path + ": " + why};
}

}  // namespace

Failure silent(const std::string& path) {
    return {kExitUnreachable,
            "the broker at " + path + " does not answer: it is there, but stopped, or too busy"};
}

Failure unreachable(const std::string& path, int error) {
    if (error == EAGAIN) return silent(path);
    if (error == EACCES || error == EPERM) return {kExitDenied, denied(path)};
    return no_answer(path, std::strerror(error));
}

std::string against_policy(const std::string& what, const std::string& keys) {
    return "user " + user_name(geteuid()) + " may not " + what +
           ": [[policy]] in dibsd's configuration says so (" + keys + ")";
}

std::string unknown(const std::string& kind,
                    const std::string& name,
                    const std::vector<std::string>& names) {
    std::string text = "there is no " + kind + " " + quoted(name);
    const std::set<std::string_view> known(names.begin(), names.end());
    if (const auto near = nearest_word(name, known)) {
        text += "; did you mean " + quoted(std::string(*near)) + "?";
    }
    const char* before = text.ends_with('?') ? " There are: " : "; there are: ";
    for (const std::string_view one : known) {
        text += before + std::string(one);
        before = ", ";
    }
    return text;
}

Failure no_pool(const std::string& name,
                const std::vector<std::string>& names,
                const std::vector<std::string>& sets) {
    std::vector<std::string> known = names;
    known.insert(known.end(), sets.begin(), sets.end());
    return {kExitNotFound,
            unknown(sets.empty() ? "pool" : "pool or set", name, known) +
                (known.empty() ? "; this broker has none" : "")};
}

Failure no_account(const std::string& name, const std::vector<std::string>& known) {
    return {kExitNotFound,
            unknown("account", name, known) + (known.empty() ? "; none is configured" : "")};
}

PoolOperand parse_pool_operand(const std::string& text, uint32_t most) {
    PoolOperand operand;
    const size_t cluster = text.find("::");
    const size_t begin = cluster == std::string::npos ? 0 : cluster + 2;
    const size_t colon = text.find(':', begin);
    operand.name = text.substr(0, colon);
    const bool of_cluster = begin != 0 && shm::is_pool_name(text.data(), cluster);
    if (!shm::is_pool_name(operand.name.data() + begin, operand.name.size() - begin) ||
        of_cluster != (begin != 0)) {
        throw Failure(kExitUsage, quoted(text) + ": " + shm::kPoolNameRule);
    }
    if (colon == std::string::npos) return operand;
    const std::string_view count = std::string_view(text).substr(colon + 1);
    const auto [end, error] =
        std::from_chars(count.data(), count.data() + count.size(), operand.count);
    if (error != std::errc{} || end != count.data() + count.size() || operand.count == 0 ||
        operand.count > most) {
        throw Failure(
            kExitUsage,
            quoted(text) + ": behind the colon stands a number from 1 to " + std::to_string(most));
    }
    return operand;
}

std::string socket_path(const std::string& given) {
    return given.empty() ? default_socket() : given;
}

int exit_code_of(int code) {
    switch (code) {
        case DIBS_ENOBROKER:
        case DIBS_EBROKERLOST:
        case DIBS_EVERSION:
        case DIBS_EHANDSHAKE:
            return kExitUnreachable;
        case DIBS_EPOOL:
        case DIBS_EELSEWHERE:
        case DIBS_ENOTFOUND:
            return kExitNotFound;
        case DIBS_ENOTALLOWED:
        case DIBS_ENOTHOLDER:
            return kExitDenied;
        case DIBS_EUNITS:
        case DIBS_EPAYLOAD:
        case DIBS_EBACKLOG:
        case DIBS_EARENA:
        case DIBS_ELIMIT:
        case DIBS_ETABLES:
        case DIBS_ENOROOM:
            return kExitLimit;
        case DIBS_EBUSY:
        case DIBS_ECOLD:
        case DIBS_EDRAINING:
        case DIBS_EREFUSED:
            return kExitNoneFree;
        default:
            return kExitOwnFailure;
    }
}

dibs_connect_options small_session() {
    dibs_connect_options options = {};
    // A claim of a pool set is a claim of each of its members.
    options.submission_entries = 32;
    options.completion_entries = 64;
    options.up_payload = 64 << 10;
    options.leases_max = 32;
    options.spin_us = -1;
    return options;
}

Attachment::Attachment(const std::string& socket, dibs_connect_options options)
    : path_(socket_path(socket)) {
    attach(options, {});
}

Attachment::Attachment(const std::string& socket,
                       dibs_connect_options options,
                       const std::function<shm::Descriptor()>& connect)
    : path_(socket_path(socket)) {
    attach(options, connect);
}

void Attachment::attach(dibs_connect_options options,
                        const std::function<shm::Descriptor()>& connect) {
    std::array<char, 512> text{};
    options.size = sizeof options;
    options.socket_path = path_.c_str();
    options.error_text = text.data();
    options.error_text_size = text.size();
    const int64_t answer_timeout_ns =
        options.timeout_ns == 0 ? kAnswerTimeoutNs : options.timeout_ns;
    const int64_t until_ns = after(monotonic_ns(), answer_timeout_ns);
    for (int left = connect ? kConnections : 1; session_ == nullptr; --left) {
        shm::Descriptor connected = connect ? connect() : shm::Descriptor();
        const int fd = connected.get();
        options.connected = connect ? &fd : nullptr;
        options.timeout_ns = std::max<int64_t>(until_ns - monotonic_ns(), 1);
        const int code = dibs_connect(&options, &session_);
        const int error = errno;
        if (code == DIBS_OK) {
            (void)connected.release();
        } else if (code == DIBS_ENOBROKER && monotonic_ns() >= until_ns) {
            throw silent(path_);
        } else if (code != DIBS_ENOBROKER || left == 1) {
            throw unattached(code, error, path_, text.data());
        }
    }
}

Attachment::~Attachment() {
    dibs_close(session_);
}

dibs_pool_limits Attachment::describe(uint32_t pool) const {
    dibs_pool_limits limits = {};
    limits.size = sizeof limits;
    const int code = dibs_describe(session_, pool, &limits);
    if (code < 0) throw Failure(exit_code_of(code), dibs_strerror(code));
    return limits;
}

std::vector<std::string> Attachment::pools() const {
    std::vector<std::string> names;
    dibs_pool_limits limits = {};
    limits.size = sizeof limits;
    for (uint32_t row = 0; row < shm::kPoolsMax; ++row) {
        if (dibs_describe(session_, row, &limits) == DIBS_OK) names.emplace_back(limits.name);
    }
    return names;
}

std::vector<std::string> Attachment::accounts() const {
    std::vector<std::string> names;
    dibs_share share = {};
    share.size = sizeof share;
    int code = DIBS_OK;
    for (uint32_t place = 0; code != DIBS_EARGUMENT; ++place) {
        code = dibs_account_share(session_, place, &share);
        if (code == DIBS_OK && share.configured != 0) names.emplace_back(share.name);
        if (code != DIBS_OK && code != DIBS_ENOTFOUND && code != DIBS_ETORN) break;
    }
    std::sort(names.begin(), names.end());
    return names;
}

// Pool sets are the admin channel's to tell, which may be closed to this user.
Failure Attachment::no_such_pool(const std::string& name, bool takes_sets) const {
    try {
        AdminClient client(path_);
        if (takes_sets) client.take_sets();
        return client.no_such_pool(name, pools());
    } catch (const Failure&) {
        return no_pool(name, pools());
    }
}

uint32_t Attachment::pool_or_set(const std::string& name) const {
    uint32_t found = 0;
    const int code = dibs_pool(session_, name.c_str(), &found);
    if (code == DIBS_OK) return found;
    if (code != DIBS_EPOOL) {
        throw Failure(exit_code_of(code), "pool " + quoted(name) + ": " + dibs_strerror(code));
    }
    throw no_such_pool(name, true);
}

uint32_t Attachment::pool(const std::string& name) const {
    uint32_t found = 0;
    const int code = dibs_pool(session_, name.c_str(), &found);
    if (code == DIBS_EPOOL || (code == DIBS_OK && (found & DIBS_POOL_SET) != 0)) {
        throw no_such_pool(name, false);
    }
    return pool_or_set(name);
}

}  // namespace dibs::ctl
