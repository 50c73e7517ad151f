// broker/text/shortage.cpp -- names the limits behind a shortage of resources.
// SPDX-License-Identifier: Apache-2.0
#include "broker/text/shortage.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>

#include "shm/descriptor.hpp"

namespace dibs {

namespace {

constexpr uint64_t kFewTasks = 4;          // that a broker may lack to begin: processes, threads
constexpr uint64_t kMemory = 64ULL << 20;  // and bytes

struct TaskLimit {
    std::string group;
    uint64_t tasks = 0;
    uint64_t now = 0;
};
std::optional<TaskLimit> noted;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

uint64_t number_in(const std::string& file, uint64_t otherwise) {
    std::ifstream stream(file);
    uint64_t number = 0;
    return stream >> number ? number : otherwise;
}

// What /proc/PID/status says behind `key`, a line's first word; 0: nothing. Without memory of its
// own.
uint64_t status_of(const std::string& process, const char* key, int base = 10) {
    std::array<char, 8192> text = {};
    const shm::Descriptor file(
        open(("/proc/" + process + "/status").c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid() || read(file.get(), text.data(), text.size() - 1) <= 0) return 0;
    const char* const found = std::strstr(text.data(), key);
    return found == nullptr ? 0 : std::strtoull(found + std::strlen(key), nullptr, base);
}

// The one with the least room of those of the control group and the groups around it (of the second
// version, or of the first where it is mounted beside).
std::optional<TaskLimit> task_limit() {
    std::optional<TaskLimit> least;
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        const size_t name = line.find(':') + 1;
        const size_t path = line.find(':', name) + 1;
        const std::string controllers = path > name ? line.substr(name, path - 1 - name) : "-";
        if (!controllers.empty() && controllers != "pids") continue;
        const std::string root = "/sys/fs/cgroup" + (controllers.empty() ? "" : "/" + controllers);
        for (std::string group = line.substr(path); group.size() > 1;
             group.resize(group.rfind('/'))) {
            const std::string file = root + group + "/pids.";
            const TaskLimit found{
                root + group, number_in(file + "max", UINT64_MAX), number_in(file + "current", 0)};
            if (found.tasks == UINT64_MAX) continue;
            if (!least || found.tasks - found.now < least->tasks - least->now) least = found;
        }
    }
    return least;
}

// Of this process's user; root, and any process with that privilege, has no limit.
uint64_t tasks_of_user() {
    constexpr uint64_t kAdministers = (1U << 21U) | (1U << 24U);  // CAP_SYS_ADMIN, _RESOURCE
    if (getuid() == 0 || (status_of("self", "\nCapEff:", 16) & kAdministers) != 0) return 0;
    uint64_t tasks = 0;
    std::error_code error;
    for (std::filesystem::directory_iterator one("/proc", error), end; !error && one != end;
         one.increment(error)) {
        const std::string name = one->path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        const uint64_t threads = status_of(name, "\nThreads:");
        if (threads != 0 && status_of(name, "\nUid:") == getuid()) tasks += threads;
    }
    return tasks;
}

using Resource = decltype(RLIMIT_AS);

// Appended to the text about other limits.
void add(std::string* said, const std::string& what, const std::string& is, const char* remedy) {
    *said += (said->empty() ? ": the limit of " : "; or the limit of ") + what + " is " + is +
             ", which is too little: raise it (" + remedy + ")";
}

// Nothing where there is no limit, or it is far from what is `used`.
void add(std::string* said,
         Resource resource,
         uint64_t used,
         uint64_t more,
         const char* what,
         const char* remedy) {
    struct rlimit limit = {};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    if (used + more <= limit.rlim_cur) return;
    const bool bytes = resource == RLIMIT_AS || resource == RLIMIT_DATA;
    add(said, what, std::to_string(limit.rlim_cur) + (bytes ? " bytes" : ""), remedy);
}

void add_descriptors(std::string* said) {
    add(said,
        RLIMIT_NOFILE,
        RLIM_INFINITY - 1,  // the error says so
        1,
        "descriptors (RLIMIT_NOFILE)",
        "ulimit -n, or LimitNOFILE= of the service");
}

// Mappings, and the stacks of threads, count against both.
void add_memory(std::string* said) {
    add(said,
        RLIMIT_AS,
        status_of("self", "\nVmSize:") << 10U,
        kMemory,
        "address space (RLIMIT_AS)",
        "ulimit -v, or LimitAS= of the service");
    add(said,
        RLIMIT_DATA,
        status_of("self", "\nVmData:") << 10U,
        kMemory,
        "data (RLIMIT_DATA)",
        "ulimit -d, or LimitDATA= of the service");
}

void add_tasks(std::string* said) {
    const uint64_t tasks = tasks_of_user();
    if (tasks != 0) {
        add(said,
            RLIMIT_NPROC,
            tasks,
            kFewTasks,
            "the user's processes and threads (RLIMIT_NPROC)",
            "ulimit -u, or LimitNPROC= of the service");
    }
    const auto now = task_limit();
    const auto& limit = now ? now : noted;
    if (!limit || limit->now + kFewTasks <= limit->tasks) return;
    add(said,
        "processes and threads (pids.max) of " + limit->group,
        std::to_string(limit->tasks),
        "TasksMax= of the service, or the container's option");
}

// Those alone that are near: what lacks may be another's.
std::string limits_behind(int error) try {
    std::string said;
    if (error == EMFILE) add_descriptors(&said);
    if (error == ENFILE) said = ": the host has no descriptor left (/proc/sys/fs/file-max)";
    if (error == ENOMEM) add_memory(&said);
    if (error == EAGAIN) add_tasks(&said);
    return said;
} catch (const std::exception&) {  // there is no memory for more words
    return {};
}

}  // namespace

void note_task_limit() {
    noted = task_limit();
}

std::string with_limits(const std::exception& error) {
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
        return "malloc: Cannot allocate memory" + limits_behind(ENOMEM);
    }
    const auto* lack = dynamic_cast<const std::system_error*>(&error);
    return error.what() + (lack != nullptr ? limits_behind(lack->code().value()) : std::string());
}

}  // namespace dibs
