// broker/sandbox/hardening.cpp -- drops privileges before the broker serves.
// SPDX-License-Identifier: Apache-2.0
#include "broker/sandbox/hardening.hpp"

#include <sys/prctl.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "broker/session/control_group.hpp"

namespace dibs {

namespace {

// The runtime of a sanitizer opens, maps and asks for what the broker itself never does.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(undefined_behavior_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

std::string folder_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words)
        text += (text.empty() ? "" : ", ") + word;
    return text;
}

}  // namespace

std::string Hardening::text() const {
    const std::string in_force = had.empty() ? "none" : joined(had);
    return missing.empty() ? in_force : in_force + "; missing: " + joined(missing);
}

HardeningPlan hardening_plan(HardeningMode mode,
                             const std::string& config_file,
                             const std::string& socket,
                             const std::string& state_folder) {
    HardeningPlan plan;
    plan.mode = mode;
    plan.readable = {"/etc", "/proc", "/usr", "/lib", "/lib64", "/dev/null", "/sys/devices/system"};
    // Whether a tree still has processes. Groups that are made later are below it as well.
    if (const std::string groups = control_group_mount(); !groups.empty()) {
        plan.readable.push_back(groups);
    }
    if (!config_file.empty()) {
        plan.readable.push_back(folder_of(config_file));
        std::error_code none;  // it may be a link to elsewhere
        const auto real = std::filesystem::canonical(config_file, none);
        if (!none) plan.readable.push_back(real.parent_path());
    }
    plan.writable = {folder_of(socket), state_folder};
    // The loader is what the kernel executes first.
    plan.executable = {
        "/proc/self/exe", "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"};
    return plan;
}

Hardening harden(const HardeningPlan& plan, const SystemCalls* written) {
    Hardening hardening;
    if (plan.mode == HardeningMode::kOff) {
        hardening.missing.emplace_back("all of it (hardening = \"off\")");
        return hardening;
    }
    if (kSanitized) {
        hardening.missing.emplace_back("all of it (a sanitizer's runtime needs more)");
        return hardening;
    }
    const auto note = [&](const std::string& what, const std::string& why) {
        if (why.empty()) {
            hardening.had.push_back(what);
        } else {
            hardening.missing.push_back(what + " (" + why + ")");
        }
    };
    const auto control = [](int option, unsigned long value) {
        return prctl(option, value, 0, 0, 0) == 0 ? std::string() : std::strerror(errno);
    };
    const std::string no_new = control(PR_SET_NO_NEW_PRIVS, 1);
    note("no new privileges", no_new);
    note("not dumpable", control(PR_SET_DUMPABLE, 0));
    std::string files = "Landlock";
    const std::string why = restrict_files(plan, &files);
    note(files, why);
    const bool strict = plan.mode == HardeningMode::kStrict;
    SystemCalls now;
    if (written == nullptr || written->strict != strict) {
        now = write_down_system_calls(strict);
        written = &now;
    }
    note(strict ? "system calls (a violation kills)" : "system calls",
         restrict_system_calls(*written));
    return hardening;
}

}  // namespace dibs
