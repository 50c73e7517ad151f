// tests/process/kept_dibsd.cpp -- dibsd as it is called: a keeper and its broker.
// SPDX-License-Identifier: Apache-2.0
#include "tests/process/kept_dibsd.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "tests/process/proc_text.hpp"

namespace dibs::test {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> words_of(pid_t pid) {
    const std::string text = proc_text(pid, "cmdline");
    std::vector<std::string> words;
    for (size_t at = 0; at < text.size(); at = text.find('\0', at) + 1)
        words.emplace_back(text.c_str() + at);
    return words;
}

bool has(const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

// In a zombie's status, and when there is nobody, nothing runs.
bool runs(pid_t pid) {
    const char state = proc_state(pid);
    return state != '\0' && state != 'Z';
}

}  // namespace

KeptDibsd::KeptDibsd(const Folder& folder,
                     const std::string& config,
                     const std::vector<std::string>& environment,
                     const std::vector<std::string>& options)
    : socket_(folder.path() + "/dibs.sock") {
    start(folder, config, environment, options, false);
    await_ready();
}

KeptDibsd::KeptDibsd(const Folder& folder, const std::string& config, Traced /*traced*/)
    : socket_(folder.path() + "/dibs.sock") {
    start(folder, config, {}, {}, true);
}

void KeptDibsd::start(const Folder& folder,
                      const std::string& config,
                      const std::vector<std::string>& environment,
                      const std::vector<std::string>& options,
                      bool traced) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    // A system call that neither may make ends it here, so that no test overlooks it.
    file_ = folder.write("dibsd.toml",
                         "log_level = \"warning\"\n" + strict_unless_said(config) + config);
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0) std::abort();
    called_ = fork();
    if (called_ == 0) {
        setenv("DIBS_STATE_DIR", folder.path().c_str(), 1);
        for (const std::string& setting : environment)
            putenv(const_cast<char*>(setting.c_str()));
        const std::string ready = std::to_string(dup(pipe_ends[1]));
        const char* program = std::getenv("DIBS_DIBSD");
        if (traced && ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(126);
        std::vector<std::string> words = {
            "dibsd", "--config", file_, "--socket", socket_, "--ready-fd", ready};
        words.insert(words.end(), options.begin(), options.end());
        std::vector<char*> arguments;
        for (std::string& word : words)
            arguments.push_back(word.data());
        arguments.push_back(nullptr);
        execv(program, arguments.data());
        std::perror(program);
        _exit(127);
    }
    close(pipe_ends[1]);
    ready_ = shm::Descriptor(pipe_ends[0]);
}

void KeptDibsd::await_ready() {
    char letter = 0;
    while (read(ready_.get(), &letter, 1) == 1 && letter != '\n')
        ready_line_ += letter;
    ready_.reset();
}

KeptDibsd::~KeptDibsd() {
    // Each may start the other until both are gone. One that executes the program just now has no
    // words to know it by: nobody is left when nobody was seen before such a look and behind it.
    for (;;) {
        std::vector<pid_t> left = all();
        if (left.empty() && !somebody_starts()) left = all();
        if (left.empty() && !somebody_starts()) return;
        for (const pid_t pid : left)
            ::kill(pid, SIGKILL);
        while (waitpid(-1, nullptr, WNOHANG) > 0) {
        }
    }
}

// Is there a process of dibsd's program that has no command line yet?
bool KeptDibsd::somebody_starts() {
    for (const auto& entry : fs::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        std::error_code none;  // of the kernel's own, and of those that are gone
        const std::string program = fs::read_symlink(entry.path() / "exe", none).filename();
        if (program.rfind("dibsd", 0) == 0 && words_of(std::stoi(name)).empty()) return true;
    }
    return false;
}

std::vector<pid_t> KeptDibsd::all() const {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        const pid_t pid = std::stoi(name);
        const std::vector<std::string> words = words_of(pid);
        if (!words.empty() && words[0] == "dibsd" && has(words, socket_)) found.push_back(pid);
    }
    return found;
}

pid_t KeptDibsd::find(const std::string& option, const std::string& name, pid_t other) const {
    for (;;) {
        for (const pid_t pid : all()) {
            if (pid != other && runs(pid) && has(words_of(pid), option) &&
                (name.empty() || proc_name(pid) == name)) {
                return pid;
            }
        }
        sched_yield();
    }
}

pid_t KeptDibsd::keeper(pid_t other) const {
    if (called_ > 0 && called_ != other && runs(called_)) return called_;
    return find("--keep", "", other);
}

void KeptDibsd::kill_broker() const {
    kill_and_await(broker(), SIGKILL);
}
void KeptDibsd::kill_keeper() const {
    kill_and_await(keeper(), SIGKILL);
}

int KeptDibsd::wait() {
    int status = 0;
    (void)waitpid(called_, &status, 0);
    called_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

shm::Descriptor pidfd_of(pid_t pid) {
    return shm::Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

bool await_death(const shm::Descriptor& pidfd, int ms) {
    struct pollfd death = {pidfd.get(), POLLIN, 0};
    int happened = 0;
    while (pidfd.valid() && (happened = poll(&death, 1, ms)) < 0 && errno == EINTR) {
    }
    return happened == 1;
}

void kill_and_await(pid_t pid, int signal) {
    const shm::Descriptor pidfd = pidfd_of(pid);
    (void)syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
    (void)await_death(pidfd);
}

size_t count_descriptors(pid_t pid) {
    std::error_code gone;
    fs::directory_iterator entry("/proc/" + std::to_string(pid) + "/fd", gone);
    size_t count = 0;
    for (; !gone && entry != fs::directory_iterator(); entry.increment(gone))
        ++count;
    return gone ? SIZE_MAX : count;
}

shm::Descriptor open_descriptor(pid_t pid, const std::string& name) {
    for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
        std::error_code gone;
        const std::string target = fs::read_symlink(entry.path(), gone).string();
        if (target.rfind(name, 0) != 0) continue;
        return shm::Descriptor(open(entry.path().c_str(), O_RDWR | O_CLOEXEC));
    }
    return {};
}

}  // namespace dibs::test
