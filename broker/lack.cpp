// broker/lack.cpp -- the limits behind what a process lacks, in words.
// SPDX-License-Identifier: Apache-2.0
#include "broker/lack.hpp"

#include <sys/resource.h>

#include <cstdint>
#include <fstream>
#include <new>
#include <optional>

namespace dibs {

namespace {

struct TaskLimit {
    std::string group;
    uint64_t tasks = 0;
};
std::optional<TaskLimit> noted;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

// The least of those of the control group and the groups around it (of the second version, or of
// the first where it is mounted beside).
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
            std::ifstream file(root + group + "/pids.max");
            uint64_t tasks = 0;
            if (file >> tasks && (!least || tasks < least->tasks)) least = {root + group, tasks};
        }
    }
    return least;
}

using Resource = decltype(RLIMIT_AS);

// Appended to what is said of others.
void add(std::string* said, const std::string& what, const std::string& is, const char* remedy) {
    *said += (said->empty() ? ": the limit of " : "; or the limit of ") + what + " is " + is +
             ", which is too little: raise it (" + remedy + ")";
}

// Nothing where there is no limit.
void add(std::string* said, Resource resource, const char* what, const char* remedy) {
    struct rlimit limit = {};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    const bool bytes = resource == RLIMIT_AS || resource == RLIMIT_DATA;
    add(said, what, std::to_string(limit.rlim_cur) + (bytes ? " bytes" : ""), remedy);
}

void add_memory(std::string* said) {
    add(said, RLIMIT_AS, "address space (RLIMIT_AS)", "ulimit -v, or LimitAS= of the service");
    add(said, RLIMIT_DATA, "data (RLIMIT_DATA)", "ulimit -d, or LimitDATA= of the service");
}

void add_tasks(std::string* said) {
    add(said,
        RLIMIT_NPROC,
        "the user's processes and threads (RLIMIT_NPROC)",
        "ulimit -u, or LimitNPROC= of the service");
    const auto now = task_limit();
    const auto& tasks = now ? now : noted;
    if (!tasks) return;
    add(said,
        "processes and threads (pids.max) of " + tasks->group,
        std::to_string(tasks->tasks),
        "TasksMax= of the service, or the container's option");
}

std::string limits_behind(int error) {
    std::string said;
    switch (error) {
        case EMFILE:
            add(&said,
                RLIMIT_NOFILE,
                "descriptors (RLIMIT_NOFILE)",
                "ulimit -n, or LimitNOFILE= of the service");
            return said;
        case ENFILE:
            return ": the host has no descriptor left (/proc/sys/fs/file-max)";
        case ENOMEM:
            add_memory(&said);
            return said.empty() ? ": this process has no limit: the host has no memory left" : said;
        case EAGAIN:
            add_tasks(&said);
            return said.empty() ? ": this process has no limit: look at those of the host "
                                  "(/proc/sys/kernel/threads-max and pid_max)"
                                : said;
        default:
            return said;
    }
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
