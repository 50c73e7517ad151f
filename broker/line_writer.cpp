// broker/line_writer.cpp -- lines for people, to a descriptor that perhaps nobody reads.
// SPDX-License-Identifier: Apache-2.0
#include "broker/line_writer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "shm/descriptor.hpp"

namespace dibs {

LineWriter::LineWriter(int fd) : fd_(fd), way_(Way::kWaits) {
    struct stat about = {};
    if (fstat(fd, &about) != 0) return;
    if (S_ISSOCK(about.st_mode)) way_ = Way::kSocket;
    if (!S_ISFIFO(about.st_mode) && !S_ISCHR(about.st_mode)) return;
    way_ = Way::kRefuses;
    if ((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0) return;
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    const shm::Descriptor own(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!own.valid() || dup2(own.get(), fd) != fd) way_ = Way::kAsked;
}

bool LineWriter::put(std::string_view line) {
    const auto written = [&](std::string_view text) {
        if (way_ == Way::kSocket) {
            return send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        if (way_ == Way::kAsked) {
            struct pollfd room = {fd_, POLLOUT, 0};
            if (poll(&room, 1, 0) <= 0) return ssize_t{-1};
        }
        return ::write(fd_, text.data(), text.size());
    };
    while (!line.empty()) {
        const ssize_t size = written(line);
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return false;
        torn_ = static_cast<size_t>(size) != line.size();
        line.remove_prefix(static_cast<size_t>(size));
    }
    return true;
}

void LineWriter::write(std::string_view line) {
    std::string cut;
    if (line.size() > kLineMax) {
        cut = line.substr(0, kLineMax - 1);
        cut += '\n';
        line = cut;
    }
    if (dropped_ != 0) {
        const std::string count = (torn_ ? "\ndibsd: " : "dibsd: ") + std::to_string(dropped_) +
                                  (dropped_ == 1 ? " line was" : " lines were") +
                                  " dropped before this one: there was no room\n";
        if (!put(count)) {
            ++dropped_;
            return;
        }
        dropped_ = 0;
    }
    if (!put(line)) ++dropped_;
}

}  // namespace dibs
