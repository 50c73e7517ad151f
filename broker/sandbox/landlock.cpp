// broker/sandbox/landlock.cpp -- restricts with Landlock which files the broker can reach.
//
// The kernel is asked for its Landlock version, and as much of the plan is denied as that version
// knows. Its calls have no wrappers in libc, and headers of its first version suffice: newer bits
// are numbers here.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "broker/sandbox/hardening.hpp"
#include "shm/descriptor.hpp"

namespace dibs {

namespace {

// The kernel's struct landlock_ruleset_attr as of version 4.
struct RulesetAttributes {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
};

constexpr uint64_t kRefer = 1ULL << 13;     // version 2
constexpr uint64_t kTruncate = 1ULL << 14;  // version 3
constexpr uint64_t kIoctl = 1ULL << 15;     // version 5
constexpr uint64_t kTcp = 3;                // bind and connect; version 4

constexpr uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kWrite = kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate |
                            LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
                            LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE;
constexpr uint64_t kExecute = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE;
constexpr uint64_t kOfFiles = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
                              LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;

uint64_t handled_by(int version) {
    uint64_t handled = (1ULL << 13) - 1;  // version 1: execute … make_sym
    if (version >= 2) handled |= kRefer;
    if (version >= 3) handled |= kTruncate;
    if (version >= 5) handled |= kIoctl;
    return handled;
}

int create_ruleset(const RulesetAttributes* attributes, size_t size, uint32_t flags) {
    return static_cast<int>(syscall(SYS_landlock_create_ruleset, attributes, size, flags));
}

// False if the kernel refuses the rule; true also if there is no such path.
bool allow(int ruleset, const std::string& path, uint64_t access) {
    const shm::Descriptor place(open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat about = {};
    if (!place.valid() || fstat(place.get(), &about) != 0) return true;
    struct landlock_path_beneath_attr rule = {};
    rule.allowed_access = S_ISDIR(about.st_mode) ? access : access & kOfFiles;
    rule.parent_fd = place.get();
    return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
}

}  // namespace

std::string restrict_files(const HardeningPlan& plan, std::string* what) {
    const int version = create_ruleset(nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1) {
        return errno == EOPNOTSUPP ? "switched off in this kernel" : "this kernel has none";
    }
    *what = "Landlock " + std::to_string(version);
    RulesetAttributes attributes = {};
    attributes.handled_access_fs = handled_by(version);
    attributes.handled_access_net = version >= 4 ? kTcp : 0;
    const size_t size = version >= 4 ? sizeof(attributes) : sizeof(uint64_t);
    const shm::Descriptor ruleset(create_ruleset(&attributes, size, 0));
    if (!ruleset.valid()) return std::strerror(errno);
    const auto allow_all = [&](const std::vector<std::string>& paths, uint64_t access) {
        for (const std::string& path : paths) {
            if (!allow(ruleset.get(), path, access & attributes.handled_access_fs)) return false;
        }
        return true;
    };
    if (!allow_all(plan.readable, kRead) || !allow_all(plan.writable, kWrite) ||
        !allow_all(plan.executable, kExecute) ||
        syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) {
        return std::strerror(errno);
    }
    return "";
}

}  // namespace dibs
