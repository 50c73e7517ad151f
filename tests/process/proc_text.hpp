// tests/process/proc_text.hpp -- what /proc says of a process that may end meanwhile.
//
// A file there that was opened while its process ran cannot be read once that is gone, and an
// iterator over a stream's buffer throws then.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/types.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "shm/descriptor.hpp"

namespace dibs::test {

// A file of the process, "stat" say; empty if there is no such process (any more).
inline std::string proc_text(pid_t pid, const std::string& name) {
    const std::string path = "/proc/" + std::to_string(pid) + "/" + name;
    const shm::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::string text;
    char part[4096];
    for (ssize_t size = 0; (size = read(file.get(), part, sizeof(part))) > 0;)
        text.append(part, static_cast<size_t>(size));
    return text;
}

// Sent to the process, and not taken yet.
inline bool is_pending(pid_t pid, int signal) {
    const std::string text = proc_text(pid, "status");
    const size_t at = text.find("\nShdPnd:");
    if (at == std::string::npos) return false;
    return (std::stoull(text.substr(at + 8), nullptr, 16) >> (signal - 1) & 1) != 0;
}

// The letter of its state, 'T' for stopped; 0: there is nobody.
inline char proc_state(pid_t pid) {
    const std::string text = proc_text(pid, "stat");
    const size_t name_end = text.rfind(')');
    return name_end == std::string::npos ? '\0' : text[name_end + 2];
}

// As ps(1) calls it; empty: there is nobody.
inline std::string proc_name(pid_t pid) {
    std::string name = proc_text(pid, "comm");
    if (!name.empty()) name.pop_back();
    return name;
}

// All its threads sleep. Looked at one after the other: good where nothing wakes them meanwhile.
inline bool is_asleep(pid_t pid) {
    std::error_code gone;
    std::filesystem::directory_iterator task("/proc/" + std::to_string(pid) + "/task", gone);
    for (; !gone && task != std::filesystem::directory_iterator(); task.increment(gone)) {
        if (proc_state(std::stoi(task->path().filename())) != 'S') return false;
    }
    return !gone;
}

// Waits until it is stopped. False: it has been killed.
inline bool is_stopped(pid_t pid) {
    for (;; sched_yield()) {
        const char state = proc_state(pid);
        if (state == 'T') return true;
        if (state == '\0' || state == 'Z') return false;
    }
}

}  // namespace dibs::test
