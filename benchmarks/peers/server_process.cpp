// benchmarks/peers/server_process.cpp -- starts another project's server, and ends it.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/peers/server_process.hpp"

#include <fcntl.h>
#include <glob.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace dibs::bench {

namespace {

void drop_privileges(const char* user) {
    if (user == nullptr || geteuid() != 0) return;
    const passwd* entry = getpwnam(user);
    if (entry == nullptr || setgid(entry->pw_gid) != 0 || setuid(entry->pw_uid) != 0) {
        std::perror(user);
        _exit(127);
    }
}

[[noreturn]] void become(const ProgramSetup& setup) {
    const int nowhere = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int log = open(setup.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    (void)dup2(nowhere, STDIN_FILENO);
    (void)dup2(log, STDOUT_FILENO);
    (void)dup2(log, STDERR_FILENO);
    pin(setup.cpus.first, setup.cpus.second);
    drop_privileges(setup.user);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_DFL);  // a shell's background command ignores it
    std::vector<char*> words;
    for (const std::string& word : setup.command)
        words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execv(words[0], words.data());
    std::perror(words[0]);
    _exit(127);
}

pid_t start(const ProgramSetup& setup) {
    const pid_t child = fork();
    if (child == 0) become(setup);
    if (child < 0) throw std::runtime_error("fork failed");
    return child;
}

int await_end(pid_t child) {
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

[[noreturn]] void fail(const ProgramSetup& setup) {
    std::ifstream log(setup.log);
    const std::string printed{std::istreambuf_iterator<char>(log), {}};
    throw std::runtime_error(setup.command[0] + " failed: " + printed);
}

}  // namespace

std::string find_program(const std::string& name, const std::string& pattern) {
    const char* path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');) {
        std::string file = folder + "/" + name;
        if (access(file.c_str(), X_OK) == 0) return file;
    }
    glob_t found = {};
    std::string last;
    if (!pattern.empty() && glob((pattern + "/" + name).c_str(), 0, nullptr, &found) == 0) {
        last = found.gl_pathv[found.gl_pathc - 1];
    }
    globfree(&found);
    return last;
}

void run_program(const ProgramSetup& setup) {
    if (await_end(start(setup)) != 0) fail(setup);
}

ServerProcess::ServerProcess(const ProgramSetup& setup, const std::function<bool()>& answers)
    : pid_(start(setup)) {
    while (!answers()) {
        if (waitpid(pid_, nullptr, WNOHANG) != 0) fail(setup);
        const struct timespec moment = {0, 1'000'000};
        nanosleep(&moment, nullptr);
    }
}

ServerProcess::~ServerProcess() {
    (void)kill(pid_, SIGINT);
    await_end(pid_);
}

}  // namespace dibs::bench
