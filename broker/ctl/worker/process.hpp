// broker/ctl/worker/process.hpp -- a process of the worker's command, in a group of its own.
// It is killed with this program; its standard streams are set as requested.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "broker/ctl/worker/guard.hpp"
#include "broker/ctl/worker/options.hpp"
#include "shm/descriptor.hpp"

namespace dibs::ctl::worker {

struct ProcessStart {
    std::string program;
    std::vector<std::string> command;
    std::vector<std::string> variables;  // "NAME=value", beside what is inherited
    bool fed = false;                    // its input is a pipe, else empty
    bool piped = false;                  // its output is a pipe, else standard error if quiet
    bool quiet = false;                  // not piped: not even on this program's standard output
    int log = -1;                        // a pipe: its standard error, if not this program's
    std::string folder = {};             // where it starts; empty: here
    const OtherUser* user = nullptr;     // as whom; variables that begin with LD_ are not inherited
    const Guard* guard = nullptr;        // ends its group when this program is killed
    shm::Descriptor entrance = {};       // of a control group, which it is in from the beginning
};

class Process {
  public:
    explicit Process(const ProcessStart& start);  // Failure: 126, 127 if it cannot be executed
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;
    ~Process();  // kills its group and reaps it

    [[nodiscard]] int input() const { return input_.get(); }
    [[nodiscard]] int output() const { return output_.get(); }
    [[nodiscard]] int pidfd() const { return pidfd_.get(); }
    [[nodiscard]] pid_t pid() const { return pid_; }
    void close_input() { input_.reset(); }
    void close_output() { output_.reset(); }
    void signal(int number) const;  // to its group
    // The exit status as waitpid gives it, once it has ended; what is left of its group is killed.
    std::optional<int> ended();

  private:
    void reap();

    shm::Descriptor input_;
    shm::Descriptor output_;
    shm::Descriptor pidfd_;
    pid_t pid_ = -1;
    std::optional<int> status_;
    const Guard* guard_ = nullptr;
};

// "ended with exit code 3", "was killed by signal 9"
std::string shown_end(int status);

}  // namespace dibs::ctl::worker
