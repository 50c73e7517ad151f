// benchmarks/broker_process.hpp -- a real dibsd in a folder of its own, on a CPU of our choice.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "benchmarks/scratch_folder.hpp"

namespace dibs::bench {

struct BrokerSetup {
    std::string config;   // but for socket, log level and drain
    int cpu = 0;          // all its threads
    int second_cpu = -1;  // on this one, too; −1: no
    bool count_allocations = false;
    bool keeper = false;  // then the process is a keeper, and the broker its child
    int nice = 0;         // below 0 it does not start where that is not allowed: may_be()
};

class BrokerProcess {
  public:
    // Returns when it serves. $DIBS_DIBSD names another program than the one built beside this.
    explicit BrokerProcess(const BrokerSetup& setup);
    ~BrokerProcess();
    BrokerProcess(const BrokerProcess&) = delete;
    BrokerProcess& operator=(const BrokerProcess&) = delete;

    [[nodiscard]] const std::string& socket() const { return socket_; }
    [[nodiscard]] pid_t pid() const { return pid_; }
    // Of the keeper's child; waits until there is one, which is not `other`.
    [[nodiscard]] pid_t kept_pid(pid_t other = -1) const;
    // Waits until the next broker waits as well.
    void await_standby() const;
    [[nodiscard]] static std::string program();
    // Whether this process may start one of that priority.
    [[nodiscard]] static bool may_be(int nice);
    [[nodiscard]] uint64_t allocations() const;  // if they are counted

  private:
    void write_files(const BrokerSetup& setup);
    void pass_on() const;
    [[noreturn]] void become(const BrokerSetup& setup, int ready_fd) const;

    ScratchFolder folder_;
    std::string socket_;
    pid_t pid_ = -1;
};

}  // namespace dibs::bench
