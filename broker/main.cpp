// broker/main.cpp -- dibsd: starts as the keeper, or as the broker that it starts.
//
// The called program is the keeper; it starts the same program as the broker, and the broker starts
// another keeper if that one dies. The broker reads the configuration, serves, and says so.
//
// Exit codes: 0 stopped in order, or a good configuration; 1 cannot serve; 2 a mistake in the
// command line or the configuration; of a broker to its keeper: 3, the next one is to take over; 4,
// it lacks what the next one may find.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "broker/admission/descriptors.hpp"
#include "broker/admission/peer.hpp"
#include "broker/admission/socket_lock.hpp"
#include "broker/arguments.hpp"
#include "broker/broker.hpp"
#include "broker/config/config.hpp"
#include "broker/sandbox/multi_user.hpp"
#include "broker/segments/failed_state.hpp"
#include "broker/segments/loaded_state.hpp"
#include "broker/takeover/descriptor_store.hpp"
#include "broker/takeover/hang_watch.hpp"
#include "broker/takeover/head_start.hpp"
#include "broker/takeover/keeper.hpp"
#include "broker/takeover/keeper_child.hpp"
#include "broker/takeover/keeper_link.hpp"
#include "broker/takeover/service_notice.hpp"
#include "broker/takeover/socket_activation.hpp"
#include "broker/text/log.hpp"
#include "broker/text/shortage.hpp"
#include "broker/turn/time_slice.hpp"

namespace {

constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

void print(const std::string& line) {
    std::fprintf(stderr, "%s\n", line.c_str());
}

// Each mistake is said in a line.
bool read(const std::string& file,
          dibs::Config* config,
          void (*say)(const std::string&),
          const dibs::PoolsThere& there = {}) {
    dibs::ConfigResult result = dibs::read_config(file, there);
    for (const std::string& mistake : result.mistakes)
        say(mistake);
    *config = std::move(result.config);
    return result.mistakes.empty();
}

void say_doubts(const dibs::Config& config, bool multi_user) {
    for (const std::string& doubt : dibs::doubts_about(config))
        print(doubt);
    if (!multi_user || dibs::may_kill_anybody()) return;
    for (const std::string& warning : dibs::pools_that_kill(config))
        print(warning);
}

// Signals are taken from descriptors; all threads, and what is started, inherit the mask.
void block_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2})
        sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTTOU, SIG_IGN);  // of a terminal that lets only what stands before it write
    signal(SIGIO, SIG_IGN);    // of a file lease that another process breaks
                               // (broker/session/leftovers.cpp)
}

// Says what stands against serving several users.
bool may_serve_many(const dibs::Config& config, int lent) {
    const auto obstacles = dibs::multi_user_obstacles(config, dibs::make_place(config, lent));
    for (const std::string& obstacle : obstacles)
        std::fprintf(stderr, "dibsd: --multi-user: %s\n", obstacle.c_str());
    return obstacles.empty();
}

// No other process than this could wait for a busy manager.
void say_ready(int fd, const std::string& path) {
    constexpr uint32_t kMs = 10'000;
    const std::string line = "dibsd: ready on " + path + "\n";
    (void)!write(fd < 0 ? STDOUT_FILENO : fd, line.data(), line.size());
    dibs::ServiceNotices notices;
    notices.say("READY=1");
    notices.settle(kMs);
}

dibs::shm::Descriptor take(int fd, const char* option) {
    if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        throw std::runtime_error(std::string(option) + ": not an open descriptor");
    }
    return dibs::shm::Descriptor(fd);
}

// From keeper to broker, or the other way.
dibs::shm::Descriptor take_link(int fd, const char* option) {
    int type = 0;
    socklen_t size = sizeof(type);
    struct sockaddr_un address = {};
    socklen_t address_size = sizeof(address);
    auto* const generic = reinterpret_cast<struct sockaddr*>(&address);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET ||
        getpeername(fd, generic, &address_size) != 0 || address.sun_family != AF_UNIX) {
        throw std::runtime_error(std::string(option) + ": descriptor " + std::to_string(fd) +
                                 " is no socket between keeper and broker, who alone say this");
    }
    return take(fd, option);
}

dibs::shm::Descriptor state_to_begin_with(const dibs::Arguments& arguments,
                                          const dibs::core::Limits& limits) {
    if (!arguments.load.empty()) return dibs::load_state_file(arguments.load, limits).state;
    auto state = take(arguments.state_fd, "--state-fd");
    // Before anything is done to it: a path given by mistake may be /dev/null, or any user's file.
    // A file of a tmpfs has this seal and no other.
    const int seals = state.valid() ? fcntl(state.get(), F_GET_SEALS) : 0;
    if (seals < 0 || seals == F_SEAL_SEAL) {
        throw std::runtime_error("--state-fd: descriptor " + std::to_string(arguments.state_fd) +
                                 " is no memfd, which STATE is");
    }
    return state;
}

// A broker that takes over goes on, whatever has become of the file.
bool configure(const dibs::Arguments& arguments,
               const dibs::Inheritance& inheritance,
               dibs::Config* config) {
    const bool takeover = inheritance.takeover();
    if (!arguments.config.empty() && !read(arguments.config,
                                           config,
                                           takeover ? dibs::log::plain : print,
                                           {.created = {}, .all = {}, .unknown = takeover})) {
        if (!takeover) return false;
        *config = dibs::config_as_read_before(arguments.config, inheritance.config);
    }
    if (!takeover) say_doubts(*config, arguments.multi_user);
    if (!arguments.socket.empty()) config->socket = arguments.socket;
    dibs::log::open(config->log_level);
    config->multi_user = arguments.multi_user;
    return takeover || !config->multi_user || may_serve_many(*config, inheritance.listener.get());
}

int run(dibs::Broker& broker, const std::function<void()>& ready) {
    broker.run([&] {
        dibs::log::info("serving on " + broker.socket_path() + ", epoch " +
                        std::to_string(broker.epoch()));
        if (ready) ready();
    });
    if (broker.yielded())
        _exit(dibs::kExitYielded);  // whatever goes out of scope is the successor's
    dibs::log::info("stopped");
    return kExitOk;
}

int serve_alone(const dibs::Arguments& arguments) {
    dibs::Config config;
    dibs::Inheritance inheritance;
    inheritance.listener = dibs::passed_descriptors().listener;
    if (!configure(arguments, inheritance, &config)) return kExitUsage;
    inheritance.state = state_to_begin_with(arguments, config.limits);
    dibs::Broker broker(std::move(config), inheritance, nullptr, true);
    broker.harden();
    return run(broker, [&] { say_ready(arguments.ready_fd, broker.socket_path()); });
}

// Under a keeper. A STATE that cannot be served from is put aside, and an empty one begun.
int serve_kept(const dibs::Arguments& arguments) {
    dibs::KeeperLink keeper(take_link(arguments.link_fd, "--link"),
                            dibs::OwnProgram::called_with(arguments.options()));
    std::optional<dibs::SystemCalls> system_calls;
    std::optional<dibs::TouchedMemory> memory;
    if (arguments.ahead_kib) {
        dibs::end_with_keeper(true);
        system_calls = dibs::write_down_system_calls(false);
        memory.emplace(*arguments.ahead_kib);
        dibs::name_process("dibsd-standby");
        if (!dibs::await_begin(keeper.fd())) _exit(kExitOk);  // this process holds nothing yet
        dibs::end_with_keeper(false);
        keeper.begun();
    }
    dibs::name_process("dibsd-broker");
    dibs::Inheritance inheritance = keeper.receive();
    keeper.set_watch(inheritance.watch.get());
    dibs::HangWatch::set(inheritance.watch.get(), dibs::HangWatch::kServesWithinNs);  // it runs
    dibs::Config config;
    if (!configure(arguments, inheritance, &config)) return kExitUsage;
    if (config.text) keeper.keep_config(*config.text);
    if (inheritance.put_aside) {
        dibs::put_aside(inheritance, keeper, config, "brokers died of it before they could serve");
    }
    std::optional<dibs::Broker> broker;
    try {
        broker.emplace(config, inheritance, &keeper, true);
    } catch (const dibs::StateFailure& failure) {
        if (inheritance.replaceable) throw;  // it may be sound to the program that made it
        dibs::put_aside(inheritance, keeper, config, failure.what());
        broker.emplace(config, inheritance, &keeper, true);
    }
    inheritance = {};  // what has not been taken is released
    memory.reset();
    broker->harden(system_calls ? &*system_calls : nullptr);
    return run(*broker, nullptr);
}

// If one of descriptors 0-2 is closed, the next open() takes it and log lines land in that file.
void fill_standard_descriptors() {
    int fd = 0;
    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR);
    if (fd >= 0) close(fd);
}

int serve(const dibs::Arguments& arguments) {
    fill_standard_descriptors();
    dibs::log::open("info");
    block_signals();
    dibs::raise_descriptor_limit();
    dibs::note_task_limit();
    (void)dibs::shorten_time_slice();  // a waiting client waits for the time slices of other
                                       // processes, too
    if (arguments.link_fd >= 0) return serve_kept(arguments);
    if (arguments.keep_fd < 0) dibs::expect_descriptors_for_one();
    if (arguments.no_keeper) return serve_alone(arguments);
    const auto ready = take(arguments.ready_fd, "--ready-fd");
    dibs::Keeper keeper(
        dibs::OwnProgram::called_with(arguments.options()), ready.get(), !arguments.no_standby);
    if (arguments.keep_fd >= 0) dibs::name_process("dibsd");  // or it would be called "exe"
    if (arguments.keep_fd >= 0) return keeper.keep_for(take_link(arguments.keep_fd, "--keep"));
    dibs::PassedDescriptors passed = dibs::passed_descriptors();
    dibs::StoredDescriptors stored(std::move(passed.stored));
    dibs::shm::Descriptor state;
    if (!stored.state.valid()) {
        dibs::Config config;  // the broker reads it again: here it bounds what is loaded
        const bool bounds = !arguments.load.empty() && !arguments.config.empty();
        if (bounds && !read(arguments.config, &config, print)) return kExitUsage;
        state = state_to_begin_with(arguments, config.limits);
    }
    return keeper.keep(std::move(state), std::move(passed.listener), std::move(stored));
}

// A broker says to its keeper whether another one may do better.
int failed(const dibs::Arguments& arguments, const std::exception& error, int of_broker) {
    const bool kept = arguments.link_fd >= 0;
    const std::string line = "dibsd: " + dibs::with_limits(error);
    if (kept) {
        dibs::log::plain(line);
    } else {
        print(line);
    }
    return kept ? of_broker : kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
    int exit_code = 0;
    const auto arguments = dibs::parse_arguments(argc, argv, &exit_code);
    if (!arguments) return exit_code;
    try {
        if (!arguments->check_config.empty()) {
            dibs::Config config;
            if (!read(arguments->check_config, &config, print)) return kExitUsage;
            say_doubts(config, arguments->multi_user);
            return kExitOk;
        }
        return serve(*arguments);
    } catch (const dibs::StartEnds& signal) {
        dibs::log::info(signal.what());
        return kExitOk;
    } catch (const std::system_error& error) {
        const bool lacks = dibs::is_shortage(error.code());
        return failed(*arguments, error, lacks ? dibs::kExitUnable : kExitFailed);
    } catch (const std::bad_alloc& error) {
        return failed(*arguments, error, dibs::kExitUnable);
    } catch (const std::exception& error) {
        return failed(*arguments, error, kExitFailed);
    }
}
