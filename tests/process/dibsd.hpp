// tests/process/dibsd.hpp -- a real dibsd in a folder of its own, started and ended by a test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "shm/descriptor.hpp"

namespace dibs::test {

// The smallest configuration.
inline constexpr const char* kCounted =
    "[[pool]]\nname = \"tokens\"\nkind = \"counted\"\nslots = 2\n";

// A line of the configuration: a system call that the broker may not make ends it, so that no test
// overlooks it. Nothing where the configuration has a hardening of its own.
std::string strict_unless_said(const std::string& config);

class Folder {
  public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::string write(const std::string& name, const std::string& text) const;

  private:
    std::string path_;
};

// One process, without a keeper. The program is named by $DIBS_DIBSD.
class Dibsd {
  public:
    // Starts it with this configuration and waits for its ready line. `state_fd` is inherited.
    explicit Dibsd(const Folder& folder, const std::string& config, int state_fd = -1);
    ~Dibsd();
    Dibsd(const Dibsd&) = delete;
    Dibsd& operator=(const Dibsd&) = delete;

    [[nodiscard]] bool ready() const { return ready_line_ == "dibsd: ready on " + socket_; }
    [[nodiscard]] const std::string& ready_line() const { return ready_line_; }
    [[nodiscard]] const std::string& socket() const { return socket_; }
    [[nodiscard]] pid_t pid() const { return pid_; }
    void signal(int number) const;
    // Waits for its end: the exit code, or 128 + the signal.
    int wait();
    [[nodiscard]] uint64_t page_faults() const;         // that needed no disk
    [[nodiscard]] uint64_t voluntary_switches() const;  // of all its threads

  private:
    std::string socket_;
    std::string ready_line_;
    pid_t pid_ = -1;
};

// Runs dibsd with these arguments to its end; what it wrote on standard error.
struct Ended {
    int exit_code;
    std::string error;
};
Ended run_dibsd(const std::vector<std::string>& arguments);

}  // namespace dibs::test
