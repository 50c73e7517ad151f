// benchmarks/redis_slots.cpp -- a Redis server, and a client of the two commands.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/redis_slots.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

namespace dibs::bench {

namespace {

constexpr std::string_view kTake = "*3\r\n$5\r\nBRPOP\r\n$5\r\nslots\r\n$1\r\n0\r\n";
constexpr std::string_view kGive = "*3\r\n$5\r\nLPUSH\r\n$5\r\nslots\r\n$1\r\ns\r\n";
constexpr int kTakenLines = 5;  // an array of two, and each with its length before it
constexpr int kGivenLines = 1;  // a number

void let_it_start() {
    const struct timespec moment = {0, 1'000'000};
    nanosleep(&moment, nullptr);
}

}  // namespace

std::string RedisSlots::program() {
    const char* path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');) {
        std::string file = folder + "/redis-server";
        if (access(file.c_str(), X_OK) == 0) return file;
    }
    return "";
}

RedisSlots::RedisSlots(uint32_t slots, const Placement& placement)
    : socket_path_(folder_.file("redis.sock")) {
    const std::string server = program();
    pid_ = fork();
    if (pid_ == 0) become(server, placement);
    while (!connect_once()) {
        if (pid_ < 0 || waitpid(pid_, nullptr, WNOHANG) != 0) {
            throw std::runtime_error("the server " + server + " does not start");
        }
        let_it_start();
    }
    for (uint32_t i = 0; i < slots; ++i)
        release();
    socket_.reset();
}

RedisSlots::~RedisSlots() {
    (void)kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

void RedisSlots::become(const std::string& server, const Placement& placement) const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(placement.far_side, placement.near_side);
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)dup2(nowhere, STDIN_FILENO);
    (void)dup2(nowhere, STDOUT_FILENO);
    execl(server.c_str(),
          "redis-server",
          "--port",
          "0",
          "--unixsocket",
          socket_path_.c_str(),
          "--save",
          "",
          "--appendonly",
          "no",
          "--loglevel",
          "warning",
          nullptr);
    std::perror(server.c_str());
    _exit(127);
}

bool RedisSlots::connect_once() {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    socket_path_.copy(address.sun_path, sizeof address.sun_path - 1);
    socket_ = shm::Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

void RedisSlots::attach(uint32_t /*worker*/) {
    if (!connect_once()) throw std::runtime_error("no connection to " + socket_path_);
}

void RedisSlots::ask(std::string_view command, int lines) {
    if (write(socket_.get(), command.data(), command.size()) !=
        static_cast<ssize_t>(command.size())) {
        throw std::runtime_error("Redis takes no command");
    }
    char answer[256];
    for (int seen = 0; seen < lines;) {
        const ssize_t count = read(socket_.get(), answer, sizeof answer);
        if (count <= 0) throw std::runtime_error("Redis has closed its connection");
        if (answer[0] == '-') {
            throw std::runtime_error("Redis: " + std::string(answer, static_cast<size_t>(count)));
        }
        seen += static_cast<int>(std::count(answer, answer + count, '\n'));
    }
}

void RedisSlots::claim() {
    ask(kTake, kTakenLines);
}

void RedisSlots::release() {
    ask(kGive, kGivenLines);
}

}  // namespace dibs::bench
