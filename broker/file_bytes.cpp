// broker/file_bytes.cpp -- read(2) to the end.
// SPDX-License-Identifier: Apache-2.0
#include "broker/file_bytes.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "shm/descriptor.hpp"

namespace dibs {

namespace {

[[noreturn]] void fail(const std::string& name, int error) {
    const std::string why = error == EISDIR ? "is a directory" : std::strerror(error);
    throw std::runtime_error(name + ": " + why);
}

}  // namespace

std::string file_bytes(int fd, const std::string& name) {
    std::string bytes;
    std::array<char, 65536> part;
    for (;;) {
        const ssize_t size = read(fd, part.data(), part.size());
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) fail(name, errno);
        if (size == 0) return bytes;
        bytes.append(part.data(), static_cast<size_t>(size));
    }
}

std::string file_bytes(const std::string& path) {
    const shm::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) fail(path, errno);
    return file_bytes(file.get(), path);
}

}  // namespace dibs
