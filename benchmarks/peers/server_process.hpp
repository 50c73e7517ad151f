// benchmarks/peers/server_process.hpp -- starts another project's server, and ends it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "benchmarks/placement.hpp"

namespace dibs::bench {

// The path of a program in $PATH or in folders that match `pattern`; empty = there is none.
std::string find_program(const std::string& name, const std::string& pattern = "");

struct ProgramSetup {
    std::vector<std::string> command;  // the first word is the program's path
    Cpus cpus;
    std::string log;             // the file that gets what the program prints
    const char* user = nullptr;  // whom root becomes first
};

// Runs a program to its end; throws unless it succeeds.
void run_program(const ProgramSetup& setup);

class ServerProcess {
  public:
    // Returns as soon as `answers` returns true; throws if the server ends before.
    ServerProcess(const ProgramSetup& setup, const std::function<bool()>& answers);
    ~ServerProcess();
    ServerProcess(const ServerProcess&) = delete;
    ServerProcess& operator=(const ServerProcess&) = delete;
    [[nodiscard]] pid_t pid() const { return pid_; }

  private:
    pid_t pid_;
};

}  // namespace dibs::bench
