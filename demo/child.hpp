// demo/child.hpp -- one child process: started by fork and exec, watched by its pidfd.
// It is never left behind.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace dibs::ctl::demo {

struct ChildConfig {
    std::vector<std::string> command;      // command[0] is a path
    std::vector<std::string> environment;  // "NAME=value", beside what is inherited
    int output = -1;                       // descriptor for stdout and stderr, -1 = inherited
    int kept = -1;                         // a descriptor that survives exec, -1 = none
};

class Child {
  public:
    // Throws std::system_error. The child dies with its parent.
    Child(std::string name, const ChildConfig& config);
    Child(Child&& other) noexcept;
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    Child& operator=(Child&&) = delete;
    ~Child();  // kills and reaps it if it still runs

    void signal(int number) const;
    // Waits at most that long. The exit status as waitpid gives it; none if it still runs.
    std::optional<int> wait(int timeout_ms);

    [[nodiscard]] bool running() const { return pid_ > 0 && !status_; }
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] int pidfd() const { return pidfd_; }  // readable when it has ended

  private:
    std::string name_;
    pid_t pid_ = -1;
    int pidfd_ = -1;
    std::optional<int> status_;
};

// "exit code 3", "killed by signal 9"
std::string shown_status(int status);
// Makes this process the parent of its children's orphans, so that nothing can be left behind
// unseen.
void adopt_orphans();
// Children of this process that still exist or have not been reaped; reaps the dead ones.
size_t children_left();

}  // namespace dibs::ctl::demo
