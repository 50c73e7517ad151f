// tests/process/tool.hpp -- `dibs` as a user runs it: started with arguments, fed, listened to,
// signalled, waited for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "shm/descriptor.hpp"

namespace dibs::test {

using Words = std::vector<std::string>;

inline Words operator+(Words left, const Words& right) {
    left.insert(left.end(), right.begin(), right.end());
    return left;
}

struct ToolStart {
    std::string socket;                    // DIBS_SOCKET, unless empty
    std::vector<std::string> environment;  // "NAME=value", beside what is inherited
    std::string folder;                    // to start in, unless empty
    bool closed_output = false;            // start with standard output closed
};

// The program is named by $DIBS_TOOL. It leads a process group of its own, so that all that it
// leaves behind goes with this object.
class Tool {
  public:
    Tool(const std::vector<std::string>& arguments, const ToolStart& start);
    Tool(const std::string& socket, const std::vector<std::string>& arguments)
        : Tool(arguments, ToolStart{socket, {}, "", false}) {}
    ~Tool();
    Tool(const Tool&) = delete;
    Tool& operator=(const Tool&) = delete;

    // The next line on standard output or standard error; empty at its end.
    std::string line();
    std::string error_line();
    // Lines of standard error up to one that holds `text`, and that one; empty if it never came.
    std::string error_line_with(const std::string& text);
    void write(const std::string& text) const;
    void close_input() { input_ = shm::Descriptor(); }

    void signal(int number) const;
    // Waits for its end: the exit code, or 128 + the signal.
    int wait();
    // What it wrote that has not been read yet, to the end.
    std::string rest();
    std::string error_rest();
    [[nodiscard]] pid_t pid() const { return pid_; }

  private:
    struct Stream {
        shm::Descriptor fd;
        std::string buffer;
    };
    static std::string next_line(Stream* stream);
    static std::string to_end(Stream* stream);

    shm::Descriptor input_;
    Stream output_;
    Stream error_;
    pid_t pid_ = -1;
    int exit_code_ = -1;
};

// Waits until the process has ended, whoever its parent is.
void await_end_of(pid_t pid);

}  // namespace dibs::test
