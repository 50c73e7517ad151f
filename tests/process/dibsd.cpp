// tests/process/dibsd.cpp -- a real dibsd in a folder of its own, started and ended by a test.
// SPDX-License-Identifier: Apache-2.0
#include "tests/process/dibsd.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace dibs::test {

namespace {

std::string program() {
    const char* given = std::getenv("DIBS_DIBSD");
    return given != nullptr ? given : "dibsd";
}

// Up to a newline, or to the end.
std::string read_line(int fd) {
    std::string line;
    char letter = 0;
    while (read(fd, &letter, 1) == 1 && letter != '\n')
        line += letter;
    return line;
}

[[noreturn]] void become(const std::vector<std::string>& arguments) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<char*> pointers;
    const std::string name = program();
    pointers.push_back(const_cast<char*>(name.c_str()));
    for (const std::string& argument : arguments)
        pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    execv(name.c_str(), pointers.data());
    std::perror(name.c_str());
    _exit(127);
}

int exit_code(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Folder::Folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "dibs-test-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
}

Folder::~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string Folder::write(const std::string& name, const std::string& text) const {
    const std::string path = path_ + "/" + name;
    std::ofstream(path) << text;
    return path;
}

std::string strict_unless_said(const std::string& config) {
    return config.find("hardening") == std::string::npos ? "hardening = \"strict\"\n" : "";
}

Dibsd::Dibsd(const Folder& folder, const std::string& config, int state_fd)
    : socket_(folder.path() + "/dibs.sock") {
    const std::string file = folder.write(
        "dibsd.toml", "log_level = \"warning\"\n" + strict_unless_said(config) + config);
    std::vector<std::string> arguments = {"--no-keeper", "--config", file, "--socket", socket_};
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
        const int ready = dup(pipe_ends[1]);
        arguments.insert(arguments.end(), {"--ready-fd", std::to_string(ready)});
        if (state_fd >= 0) {
            arguments.insert(arguments.end(), {"--state-fd", std::to_string(dup(state_fd))});
        }
        become(arguments);
    }
    close(pipe_ends[1]);
    ready_line_ = read_line(pipe_ends[0]);
    close(pipe_ends[0]);
}

Dibsd::~Dibsd() {
    if (pid_ < 0) return;
    signal(SIGKILL);
    (void)wait();
}

void Dibsd::signal(int number) const {
    (void)kill(pid_, number);
}

int Dibsd::wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return exit_code(status);
}

uint64_t Dibsd::voluntary_switches() const {
    uint64_t sum = 0;
    const std::string tasks = "/proc/" + std::to_string(pid_) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
        std::ifstream status(task.path() / "status");
        std::string line;
        while (std::getline(status, line)) {
            const std::string key = "voluntary_ctxt_switches:";
            if (line.rfind(key, 0) == 0) sum += std::stoull(line.substr(key.size()));
        }
    }
    return sum;
}

uint64_t Dibsd::page_faults() const {
    std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
    std::string text;
    std::getline(stat, text);
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::string field;
    for (int number = 3; number <= 10; ++number)  // the tenth counts them
        fields >> field;
    return std::stoull(field);
}

Ended run_dibsd(const std::vector<std::string>& arguments) {
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0) std::abort();
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(pipe_ends[1], STDERR_FILENO);
        become(arguments);
    }
    close(pipe_ends[1]);
    Ended run;
    for (std::string line = read_line(pipe_ends[0]); !line.empty(); line = read_line(pipe_ends[0]))
        run.error += line + "\n";
    close(pipe_ends[0]);
    int status = 0;
    (void)waitpid(pid, &status, 0);
    run.exit_code = exit_code(status);
    return run;
}

}  // namespace dibs::test
