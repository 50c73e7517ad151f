// tests/process/tool.cpp -- fork, pipes, exec, wait.
// SPDX-License-Identifier: Apache-2.0
#include "tests/process/tool.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace dibs::test {

namespace {

struct Pipe {
    shm::Descriptor reading;
    shm::Descriptor writing;
};

Pipe make_pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    return {shm::Descriptor(ends[0]), shm::Descriptor(ends[1])};
}

[[noreturn]] void become(const std::vector<std::string>& arguments, const ToolStart& start) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Whoever runs the tests may ignore some, as a shell does for what it puts into the background.
    for (int number = 1; number < NSIG; ++number)
        (void)::signal(number, SIG_DFL);
    if (!start.folder.empty() && chdir(start.folder.c_str()) != 0) _exit(99);
    if (!start.socket.empty()) setenv("DIBS_SOCKET", start.socket.c_str(), 1);
    for (const std::string& entry : start.environment) {
        const size_t sign = entry.find('=');
        setenv(entry.substr(0, sign).c_str(), entry.substr(sign + 1).c_str(), 1);
    }
    if (start.closed_output) close(STDOUT_FILENO);
    const char* named = std::getenv("DIBS_TOOL");
    const std::string program = named != nullptr ? named : "dibs";
    std::vector<char*> pointers = {const_cast<char*>(program.c_str())};
    for (const std::string& argument : arguments)
        pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    execvp(program.c_str(), pointers.data());
    std::perror(program.c_str());
    _exit(98);
}

}  // namespace

Tool::Tool(const std::vector<std::string>& arguments, const ToolStart& start) {
    Pipe input = make_pipe();
    Pipe output = make_pipe();
    Pipe error = make_pipe();
    pid_ = fork();
    if (pid_ == 0) {
        setpgid(0, 0);
        dup2(input.reading.get(), STDIN_FILENO);
        dup2(output.writing.get(), STDOUT_FILENO);
        dup2(error.writing.get(), STDERR_FILENO);
        become(arguments, start);
    }
    setpgid(pid_, pid_);
    input_ = std::move(input.writing);
    output_.fd = std::move(output.reading);
    error_.fd = std::move(error.reading);
}

Tool::~Tool() {
    if (pid_ <= 0) return;
    kill(-pid_, SIGKILL);
    (void)wait();
}

std::string Tool::next_line(Stream* stream) {
    for (;;) {
        const size_t end = stream->buffer.find('\n');
        if (end != std::string::npos) {
            std::string line = stream->buffer.substr(0, end);
            stream->buffer.erase(0, end + 1);
            return line;
        }
        std::array<char, 4096> block{};
        const ssize_t size = read(stream->fd.get(), block.data(), block.size());
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return std::exchange(stream->buffer, "");
        stream->buffer.append(block.data(), static_cast<size_t>(size));
    }
}

std::string Tool::to_end(Stream* stream) {
    std::string all = std::exchange(stream->buffer, "");
    std::array<char, 4096> block{};
    for (;;) {
        const ssize_t size = read(stream->fd.get(), block.data(), block.size());
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return all;
        all.append(block.data(), static_cast<size_t>(size));
    }
}

std::string Tool::line() {
    return next_line(&output_);
}

std::string Tool::error_line() {
    return next_line(&error_);
}

std::string Tool::error_line_with(const std::string& text) {
    for (;;) {
        std::string next = error_line();
        if (next.empty() || next.find(text) != std::string::npos) return next;
    }
}

std::string Tool::rest() {
    return to_end(&output_);
}

std::string Tool::error_rest() {
    return to_end(&error_);
}

void Tool::write(const std::string& text) const {
    (void)!::write(input_.get(), text.data(), text.size());
}

void Tool::signal(int number) const {
    (void)kill(pid_, number);
}

int Tool::wait() {
    if (pid_ <= 0) return exit_code_;
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return exit_code_;
}

void await_end_of(pid_t pid) {
    const shm::Descriptor watched(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (watched.get() < 0) return;
    pollfd ended = {watched.get(), POLLIN, 0};
    while (poll(&ended, 1, -1) < 0 && errno == EINTR) {
    }
}

}  // namespace dibs::test
