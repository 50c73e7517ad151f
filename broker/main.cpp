// broker/main.cpp -- dibsd: read the configuration, become the broker, say so.
//
// Exit codes: 0 stopped in order, or a good configuration; 1 cannot serve; 2 a mistake in the
// command line or the configuration.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include "broker/arguments.hpp"
#include "broker/broker.hpp"
#include "broker/config.hpp"
#include "broker/descriptors.hpp"
#include "broker/log.hpp"

namespace {

bool read(const std::string& file, dibs::Config* config) {
    dibs::ConfigResult result = dibs::read_config(file);
    for (const std::string& mistake : result.mistakes)
        std::fprintf(stderr, "%s\n", mistake.c_str());
    *config = std::move(result.config);
    return result.mistakes.empty();
}

// Signals are taken by the control thread from a descriptor; all threads inherit the mask.
void block_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP})
        sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    signal(SIGPIPE, SIG_IGN);
}

void say_ready(int fd, const std::string& path) {
    const std::string line = "dibsd: ready on " + path + "\n";
    (void)!write(fd < 0 ? STDOUT_FILENO : fd, line.data(), line.size());
}

int serve(const dibs::Arguments& arguments) {
    dibs::Config config;
    if (!arguments.config.empty() && !read(arguments.config, &config)) return 2;
    if (!arguments.socket.empty()) config.socket = arguments.socket;
    dibs::log::open(config.log_level);
    block_signals();
    dibs::raise_descriptor_limit();
    if (arguments.state_fd >= 0 && fcntl(arguments.state_fd, F_SETFD, FD_CLOEXEC) != 0) {
        throw std::runtime_error("--state-fd: not an open descriptor");
    }
    dibs::Broker broker(std::move(config), dibs::shm::Descriptor(arguments.state_fd), true);
    dibs::log::info("serving on " + broker.socket_path() + ", epoch " +
                    std::to_string(broker.epoch()));
    say_ready(arguments.ready_fd, broker.socket_path());
    broker.run();
    dibs::log::info("stopped");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    int exit_code = 0;
    const auto arguments = dibs::parse_arguments(argc, argv, &exit_code);
    if (!arguments) return exit_code;
    try {
        if (!arguments->check_config.empty()) {
            dibs::Config config;
            return read(arguments->check_config, &config) ? 0 : 2;
        }
        return serve(*arguments);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "dibsd: %s\n", error.what());
        return 1;
    }
}
