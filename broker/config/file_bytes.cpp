// broker/config/file_bytes.cpp -- reads a file to its end.
// SPDX-License-Identifier: Apache-2.0
#include "broker/config/file_bytes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "broker/config/quantity.hpp"
#include "broker/text/terminal_text.hpp"
#include "shm/descriptor.hpp"

namespace dibs {

namespace {

constexpr int kPromptMs = 5'000;
constexpr int kSilentMs = 1'000;
// Of what has no size: as much as a person types or pastes, and as the largest state is.
constexpr size_t kDeviceMost = size_t{64} << 20U;
constexpr size_t kPipeMost = size_t{1} << 30U;

[[noreturn]] void fail(const std::string& name, int error) {
    const std::string why = error == EISDIR ? "is a directory" : std::strerror(error);
    throw std::runtime_error(name + ": " + why);
}

}  // namespace

std::string file_bytes(int fd, const std::string& name, size_t files_most) {
    struct stat about = {};
    if (fstat(fd, &about) != 0) fail(name, errno);
    if (S_ISREG(about.st_mode) && static_cast<uint64_t>(about.st_size) > files_most) {
        throw std::runtime_error(name + ": is larger than " + show_size(files_most));
    }
    const size_t most = S_ISCHR(about.st_mode)   ? kDeviceMost
                        : S_ISREG(about.st_mode) ? files_most
                                                 : kPipeMost;
    std::string bytes;
    std::array<char, 65536> part;
    for (;;) {
        const ssize_t size = read(fd, part.data(), part.size());
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) fail(name, errno);
        if (size == 0) return bytes;
        bytes.append(part.data(), static_cast<size_t>(size));
        if (bytes.size() > most) {
            throw std::runtime_error(name + ": does not end within " + show_size(most));
        }
    }
}

std::string file_bytes(const std::string& path, size_t files_most) {
    // Without blocking: opening a pipe would wait for its writer before a message could be printed.
    const shm::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!file.valid()) fail(path, errno);
    struct stat about = {};
    struct pollfd comes = {file.get(), POLLIN, 0};
    if (fstat(file.get(), &about) == 0 && S_ISFIFO(about.st_mode) &&
        poll(&comes, 1, kSilentMs) == 0) {
        std::fprintf(
            stderr, "%s: is a pipe: waiting for who writes to it\n", harmless(path).c_str());
        while (poll(&comes, 1, -1) < 0 && errno == EINTR) {
        }
    }
    if (fcntl(file.get(), F_SETFL, 0) != 0) fail(path, errno);
    return file_bytes(file.get(), path, files_most);
}

std::string prompt_file_bytes(const std::string& path, size_t most) {
    const shm::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!file.valid()) fail(path, errno);
    struct stat about = {};
    if (fstat(file.get(), &about) != 0) fail(path, errno);
    if (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode)) return file_bytes(file.get(), path, most);
    if (S_ISCHR(about.st_mode)) most = std::min(most, kDeviceMost);
    std::string bytes;
    std::array<char, 65536> part;
    for (;;) {
        // Not by reading first: a pipe without a writer looks like one at its end.
        struct pollfd comes = {file.get(), POLLIN, 0};
        const int ready = poll(&comes, 1, kPromptMs);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) throw std::runtime_error(path + ": is no file, and nothing comes from it");
        const ssize_t size = read(file.get(), part.data(), part.size());
        if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (size < 0) fail(path, errno);
        if (size == 0) return bytes;
        bytes.append(part.data(), static_cast<size_t>(size));
        if (bytes.size() > most) {
            throw std::runtime_error(path + ": does not end within " + show_size(most));
        }
    }
}

}  // namespace dibs
