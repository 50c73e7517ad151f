// broker/ctl/output/who.cpp -- reads the user database, and /proc/PID/comm.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/output/who.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <map>
#include <mutex>
#include <vector>

#include "broker/config/quantity.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl {

namespace {

constexpr size_t kEntrySize = 1024;  // bytes of an entry's texts at first
constexpr size_t kEntrySizeMax = 1U << 20U;

// `look`: getpwuid_r or one of its relatives. What the entry has is handed to `take`.
template <class Entry, class Look, class Take>
void look_up(const Look& look, const Take& take) {
    Entry entry = {};
    Entry* found = nullptr;
    std::vector<char> texts(kEntrySize);
    int code = look(&entry, texts.data(), texts.size(), &found);
    while (code == ERANGE && texts.size() < kEntrySizeMax) {
        texts.resize(texts.size() * 2);
        code = look(&entry, texts.data(), texts.size(), &found);
    }
    if (code == 0 && found != nullptr) take(*found);
}

}  // namespace

// The database may be on another machine: each user is looked up once.
std::string user_name(uint32_t uid) {
    static std::mutex mutex;
    static std::map<uint32_t, std::string> known;
    const std::lock_guard lock(mutex);
    const auto [place, is_new] = known.try_emplace(uid, std::to_string(uid));
    if (is_new) {
        look_up<passwd>([uid](auto... rest) { return getpwuid_r(uid, rest...); },
                        [&place = place](const passwd& entry) { place->second = entry.pw_name; });
    }
    return place->second;
}

std::optional<uint32_t> user_number(const std::string& text) {
    std::optional<uint32_t> number;
    look_up<passwd>([&text](auto... rest) { return getpwnam_r(text.c_str(), rest...); },
                    [&number](const passwd& entry) { number = entry.pw_uid; });
    if (number) return number;
    const auto value = parse_number(text, {0, UINT32_MAX - 1});
    if (value) number = static_cast<uint32_t>(*value);
    return number;
}

std::string group_name(uint32_t gid) {
    std::string name = std::to_string(gid);
    look_up<group>([gid](auto... rest) { return getgrgid_r(gid, rest...); },
                   [&name](const group& entry) { name = entry.gr_name; });
    return name;
}

std::string command_name(uint32_t pid) {
    std::string name;
    if (pid == 0) return name;
    std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
    std::getline(file, name);
    return name;
}

std::string process_text(uint32_t pid, const std::string& command, uint32_t uid) {
    return "process " + std::to_string(pid) +
           (command.empty() ? "" : " (" + harmless(command) + ")") + " of user " +
           harmless(user_name(uid));
}

std::string process_text(uint32_t pid) {
    struct stat owner = {};
    (void)stat(("/proc/" + std::to_string(pid)).c_str(), &owner);
    return process_text(pid, command_name(pid), owner.st_uid);
}

}  // namespace dibs::ctl
