// benchmarks/process_figures.cpp -- what the kernel counts of a process.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/process_figures.hpp"

#include <sys/utsname.h>
#include <time.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace dibs::bench {

namespace {

std::string folder_of(pid_t pid) {
    return "/proc/" + std::to_string(pid);
}

// The number behind `key` in a file of "key: number" lines; 0 if there is none.
uint64_t number_in(const std::filesystem::path& file, const std::string& key) {
    std::ifstream lines(file);
    std::string line;
    while (std::getline(lines, line)) {
        if (line.rfind(key + ":", 0) == 0) return std::stoull(line.substr(key.size() + 1));
    }
    return 0;
}

uint64_t kib_of(pid_t pid, const std::string& key) {
    return number_in(folder_of(pid) + "/status", key) * 1024;
}

}  // namespace

uint64_t voluntary_switches(pid_t pid) {
    uint64_t sum = 0;
    for (const auto& task : std::filesystem::directory_iterator(folder_of(pid) + "/task"))
        sum += number_in(task.path() / "status", "voluntary_ctxt_switches");
    return sum;
}

uint64_t minor_faults(pid_t pid) {
    std::ifstream stat(folder_of(pid) + "/stat");
    std::string line;
    std::getline(stat, line);
    // Behind the command's closing parenthesis: state, six numbers, flags, minor faults.
    std::istringstream fields(line.substr(line.rfind(')') + 2));
    std::string field;
    for (int i = 0; i < 8; ++i)
        fields >> field;
    return std::stoull(field);
}

uint64_t cpu_ns(pid_t pid) {
    clockid_t clock = 0;
    struct timespec used = {};
    const int error = clock_getcpuclockid(pid, &clock);
    if (error != 0 || clock_gettime(clock, &used) != 0) {
        throw std::system_error(error != 0 ? error : errno, std::generic_category(), "a CPU clock");
    }
    return static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(used.tv_nsec);
}

uint64_t resident_bytes(pid_t pid) {
    return kib_of(pid, "VmRSS");
}

uint64_t private_bytes(pid_t pid) {
    return kib_of(pid, "RssAnon");
}

uint64_t mapped_bytes(const std::string& name) {
    std::ifstream maps("/proc/self/maps");
    std::string line;
    uint64_t sum = 0;
    while (std::getline(maps, line)) {
        if (line.find(name) == std::string::npos) continue;
        char* end = nullptr;
        const uint64_t first = std::strtoull(line.c_str(), &end, 16);
        sum += std::strtoull(end + 1, nullptr, 16) - first;
    }
    return sum;
}

double load_average() {
    double load = 0;
    return getloadavg(&load, 1) == 1 ? load : -1;
}

std::string processor_name() {
    std::ifstream lines("/proc/cpuinfo");
    std::string line;
    while (std::getline(lines, line)) {
        if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
    }
    return "unknown";
}

std::string kernel_name() {
    struct utsname name = {};
    return uname(&name) == 0 ? std::string(name.sysname) + " " + name.release : "unknown";
}

}  // namespace dibs::bench
