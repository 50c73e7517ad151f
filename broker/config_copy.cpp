// broker/config_copy.cpp -- the text of the configuration that was read last and was good.
// SPDX-License-Identifier: Apache-2.0
#include "broker/config_copy.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "shm/memfd.hpp"

namespace dibs {

namespace {

[[noreturn]] void no_copy(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

shm::Descriptor copy_config(std::string_view text) {
    shm::Descriptor copy(memfd_create("dibs-config", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!copy.valid()) no_copy("memfd_create");
    while (!text.empty()) {
        const ssize_t written = write(copy.get(), text.data(), text.size());
        if (written < 0 && errno != EINTR) no_copy("writing a copy of the configuration");
        if (written > 0) text.remove_prefix(static_cast<size_t>(written));
    }
    constexpr int kSealed = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_SEAL;
    if (fcntl(copy.get(), F_ADD_SEALS, kSealed) != 0) no_copy("sealing a memfd");
    return copy;
}

std::string text_of_copy(int memfd) {
    std::string text(shm::size_of(memfd), '\0');
    for (size_t read = 0; read < text.size();) {
        const ssize_t some =
            pread(memfd, &text[read], text.size() - read, static_cast<off_t>(read));
        if (some == 0 || (some < 0 && errno != EINTR))
            no_copy("reading a copy of the configuration");
        if (some > 0) read += static_cast<size_t>(some);
    }
    return text;
}

}  // namespace dibs
