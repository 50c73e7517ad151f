// broker/text/line_writer.cpp -- writes lines for people without waiting for their reader.
// SPDX-License-Identifier: Apache-2.0
#include "broker/text/line_writer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace dibs {

LineWriter::LineWriter(int fd, Opened opened, std::string speaker)
    : fd_(fd), speaker_(std::move(speaker)), way_(Way::kWaits) {
    struct stat about = {};
    if (fstat(fd, &about) != 0) return;
    if (S_ISSOCK(about.st_mode)) way_ = Way::kSocket;
    if (!S_ISFIFO(about.st_mode) && !S_ISCHR(about.st_mode)) return;
    way_ = Way::kRefuses;
    if ((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0) return;
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    shm::Descriptor own(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!own.valid()) {
        way_ = Way::kAsked;
    } else if (opened == Opened::kBeside) {
        fd_ = own.get();
        beside_ = std::move(own);
    } else if (dup2(own.get(), fd) != fd) {
        way_ = Way::kAsked;
    }
}

ssize_t LineWriter::offer(std::string_view text) {
    for (;;) {
        ssize_t size = 0;
        if (way_ == Way::kSocket) {
            size = send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        } else if (way_ == Way::kAsked) {
            struct pollfd room = {fd_, POLLOUT, 0};
            if (poll(&room, 1, 0) <= 0) return 0;
            size = ::write(fd_, text.data(), std::min(text.size(), kLineMax));
        } else {
            size = ::write(fd_, text.data(), text.size());
        }
        if (size >= 0) return size;
        if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
        if (errno != EINTR) return -1;
    }
}

bool LineWriter::put(std::string_view line) {
    while (!line.empty()) {
        const ssize_t size = offer(line);
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
        const std::string count = (torn_ ? "\n" : "") + speaker_ + ": " + std::to_string(dropped_) +
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
