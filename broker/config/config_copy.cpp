// broker/config/config_copy.cpp -- the text of the configuration that was read last and was good.
// SPDX-License-Identifier: Apache-2.0
#include "broker/config/config_copy.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "broker/text/log.hpp"
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

Config config_as_read_before(const std::string& file, const shm::Descriptor& copy) {
    ConfigResult before;
    try {
        if (copy.valid()) {
            std::string text = text_of_copy(copy.get());
            before = parse_config(text, file + " as it was read last");
            before.config.text = std::move(text);
        }
    } catch (const std::system_error& error) {
        log::error(std::string("what was read last is lost: ") + error.what());
    }
    for (const std::string& mistake : before.mistakes)
        log::error(mistake);
    if (before.config.text) {
        log::warning("going on with " + file + " as it was read last" +
                     (before.mistakes.empty() ? "" : ", but for these mistakes"));
    } else {
        log::error("no copy of " + file + " is held: going on with policy and limits as built in");
    }
    before.config.file = file;
    return std::move(before.config);
}

}  // namespace dibs
