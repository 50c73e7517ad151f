// benchmarks/broker_process.cpp -- a real dibsd in a folder of its own.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/broker_process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <system_error>

#include "benchmarks/placement.hpp"

namespace dibs::bench {

namespace {

std::filesystem::path own_folder() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

// Up to a newline, or to the end.
std::string read_line(int fd) {
    std::string line;
    char letter = 0;
    while (read(fd, &letter, 1) == 1 && letter != '\n')
        line += letter;
    return line;
}

}  // namespace

std::string BrokerProcess::program() {
    const char* given = std::getenv("DIBS_DIBSD");
    if (given != nullptr && *given != 0) return given;
    return own_folder().parent_path() / "broker" / "dibsd";
}

bool BrokerProcess::may_be(int nice) {
    if (nice >= 0) return true;
    const pid_t child = fork();
    if (child == 0) _exit(setpriority(PRIO_PROCESS, 0, nice) == 0 ? 0 : 1);
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

BrokerProcess::BrokerProcess(const BrokerSetup& setup) : socket_(folder_.file("dibs.sock")) {
    write_files(setup);
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
        throw std::system_error(errno, std::generic_category(), "pipe2");
    }
    pid_ = fork();
    if (pid_ == 0) become(setup, pipe_ends[1]);
    close(pipe_ends[1]);
    const std::string line = pid_ < 0 ? "" : read_line(pipe_ends[0]);
    close(pipe_ends[0]);
    if (line.rfind("dibsd: ready", 0) != 0) {
        pass_on();
        throw std::runtime_error("the broker " + program() + " does not start");
    }
}

// What it has said is passed on but for deaths that are measured, each of which the keeper says.
void BrokerProcess::pass_on() const {
    std::ifstream said(folder_.file("said"));
    for (std::string line; std::getline(said, line);) {
        if (line.find("the broker died of signal 9: ") == std::string::npos)
            std::cerr << line << "\n";
    }
}

void BrokerProcess::write_files(const BrokerSetup& setup) {
    std::ofstream(folder_.file("dibsd.toml"))
        << "log_level = \"warning\"\ndrain_timeout = \"1ms\"\n"
        << setup.config;
    std::ofstream(folder_.file("allocations")) << std::string(sizeof(uint64_t), '\0');
}

void BrokerProcess::become(const BrokerSetup& setup, int ready_fd) const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(setup.cpu, setup.second_cpu);
    if (setup.nice != 0 && setpriority(PRIO_PROCESS, 0, setup.nice) != 0) {
        std::perror("setpriority");
        _exit(127);
    }
    if (setup.count_allocations) {
        const std::string counter = own_folder() / "libdibs-allocations.so";
        setenv("LD_PRELOAD", counter.c_str(), 1);
        setenv("DIBS_ALLOCATIONS", folder_.file("allocations").c_str(), 1);
    }
    const std::string said = folder_.file("said");
    const int to = open(said.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (to >= 0) (void)dup2(to, STDERR_FILENO);
    const std::string file = folder_.file("dibsd.toml");
    const std::string ready = std::to_string(dup(ready_fd));
    execl(program().c_str(),
          "dibsd",
          "--config",
          file.c_str(),
          "--socket",
          socket_.c_str(),
          "--ready-fd",
          ready.c_str(),
          setup.keeper ? nullptr : "--no-keeper",
          nullptr);
    std::perror(program().c_str());
    _exit(127);
}

BrokerProcess::~BrokerProcess() {
    if (pid_ > 0) {
        (void)kill(pid_, SIGTERM);
        while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    pass_on();
}

pid_t BrokerProcess::kept_pid(pid_t other) const {
    const std::string pid = std::to_string(pid_);
    for (;;) {
        std::ifstream file("/proc/" + pid + "/task/" + pid + "/children");
        for (pid_t child = 0; file >> child;) {
            if (child != other) return child;
        }
        sched_yield();
    }
}

void BrokerProcess::await_standby() const {
    const std::string pid = std::to_string(pid_);
    for (;; sched_yield()) {
        std::ifstream file("/proc/" + pid + "/task/" + pid + "/children");
        for (pid_t child = 0; file >> child;) {
            std::string name;
            std::ifstream("/proc/" + std::to_string(child) + "/comm") >> name;
            if (name == "dibsd-standby") return;
        }
    }
}

uint64_t BrokerProcess::allocations() const {
    uint64_t count = 0;
    std::ifstream(folder_.file("allocations"), std::ios::binary)
        .read(reinterpret_cast<char*>(&count), sizeof count);
    return count;
}

}  // namespace dibs::bench
