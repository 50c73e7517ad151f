// broker/ctl/admin/state_check.cpp -- checks through the core a STATE that no broker serves from.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/admin/state_check.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <span>

#include "broker/core/core.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/file_kind.hpp"
#include "broker/ctl/subcommand.hpp"
#include "shm/descriptor.hpp"

namespace dibs::ctl {

namespace {

[[noreturn]] void fail(const std::string& path) {
    throw Failure(kExitFailed, path + ": " + std::strerror(errno));
}

// The child's part: a line for each thing that is wrong.
void look(std::span<std::byte> bytes, int out) {
    const auto say = [&](const std::string& line) {
        (void)!write(out, (line + '\n').data(), line.size() + 1);
    };
    try {
        if (const std::string why = core::rows_refusal(bytes); !why.empty()) return say(why);
        const core::Core core(bytes);
        for (const std::string& violation : core.check_all())
            say(violation);
    } catch (const std::exception& error) {
        say(error.what());
    }
}

std::string read_to_end(int fd) {
    std::string text;
    std::array<char, 4096> part;
    for (;;) {
        const ssize_t size = read(fd, part.data(), part.size());
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return text;
        text.append(part.data(), static_cast<size_t>(size));
    }
}

std::vector<std::string> looked_at(std::span<std::byte> bytes) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
    const shm::Descriptor in(ends[0]);
    shm::Descriptor out(ends[1]);
    const pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
        const struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);  // what it dies of is known
        const int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(quiet, STDERR_FILENO);
        look(bytes, out.get());
        _exit(0);
    }
    out.reset();
    const std::string text = read_to_end(in.get());
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
        lines.push_back(text.substr(at, text.find('\n', at) - at));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
        lines.push_back("its rows name what is not there: the look at them ended with exit code " +
                        std::to_string(WEXITSTATUS(status)));
    }
    if (WIFSIGNALED(status)) {
        lines.push_back("its rows name what is not there: the look at them ended with signal " +
                        std::to_string(WTERMSIG(status)));
    }
    return lines;
}

}  // namespace

StateCopyOfFile::StateCopyOfFile(const std::string& path) {
    const shm::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat about = {};
    if (!file.valid() || fstat(file.get(), &about) != 0) fail(path);
    if (!S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) {
        throw Failure(kExitFailed, path + ": is no file, as a state is");
    }
    std::array<char, 4096> head;
    const ssize_t read = pread(file.get(), head.data(), head.size(), 0);
    if (read < 0) fail(path);
    const FileKind kind = file_kind({head.data(), static_cast<size_t>(read)});
    if (kind != FileKind::kState) throw Failure(kExitFailed, path + ": " + is_no("state", kind));
    size_ = static_cast<size_t>(about.st_size);
    if (size_ < sizeof(shm::StateHead)) {
        throw Failure(kExitFailed, path + ": too small to be a state");
    }
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.get(), 0);
    if (memory_ == MAP_FAILED) fail(path);
}

StateCopyOfFile::~StateCopyOfFile() {
    munmap(memory_, size_);
}

StateReport check_state(const std::string& path) {
    const StateCopyOfFile copy(path);
    StateReport report;
    if (const std::string why = core::state_refusal(copy.bytes()); !why.empty()) {
        report.wrong.push_back(why);
        return report;
    }
    const auto* head = reinterpret_cast<const shm::StateHead*>(copy.bytes().data());
    report.epoch = head->epoch;
    report.clean = head->clean != 0;
    const uint64_t counters = head->table[static_cast<size_t>(shm::Table::kCounters)].offset;
    report.turns = reinterpret_cast<const shm::CountersRow*>(copy.bytes().data() + counters)->turns;
    report.wrong = looked_at(copy.bytes());
    return report;
}

}  // namespace dibs::ctl
