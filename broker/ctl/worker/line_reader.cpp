// broker/ctl/worker/line_reader.cpp -- reads a block at a time and splits it into lines.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/worker/line_reader.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>

namespace dibs::ctl::worker {

LineReader::Got LineReader::read(int fd) {
    std::array<char, 16'384> block{};
    ssize_t size = 0;
    do {
        size = ::read(fd, block.data(), block.size());
    } while (size < 0 && errno == EINTR);
    if (size < 0 && errno == EAGAIN) return Got::kNothing;
    if (size <= 0) {
        ended_ = true;
        return Got::kEnd;
    }
    buffer_.erase(0, start_);
    start_ = 0;
    buffer_.append(block.data(), static_cast<size_t>(size));
    return Got::kSomething;
}

std::optional<std::string> LineReader::next() {
    const size_t end = buffer_.find('\n', start_);
    if (end != std::string::npos && end - start_ <= line_max_) {
        std::string line = buffer_.substr(start_, end - start_);
        start_ = end + 1;
        return line;
    }
    const size_t left = (end == std::string::npos ? buffer_.size() : end) - start_;
    if (left > line_max_) {
        overlong_ = true;
        buffer_.clear();
        start_ = 0;
        return std::nullopt;
    }
    if (!ended_ || left == 0) return std::nullopt;
    std::string line = buffer_.substr(start_);
    start_ = buffer_.size();
    return line;
}

void LineReader::clear() {
    buffer_.clear();
    start_ = 0;
    ended_ = false;
    overlong_ = false;
}

}  // namespace dibs::ctl::worker
