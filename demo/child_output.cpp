// demo/child_output.cpp -- reads a pipe without blocking, line by line.
// SPDX-License-Identifier: Apache-2.0
#include "demo/child_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace dibs::ctl::demo {

namespace {

constexpr size_t kLinesKept = 20;
constexpr size_t kLineMax = 4096;

}  // namespace

ChildOutput::ChildOutput(std::string ready_text) : ready_text_(std::move(ready_text)) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        throw std::system_error(errno, std::generic_category(), "pipe");
    }
    read_end_ = ends[0];
    write_end_ = ends[1];
    fcntl(read_end_, F_SETFL, O_NONBLOCK);
}

ChildOutput::~ChildOutput() {
    close_write_end();
    close(read_end_);
}

void ChildOutput::close_write_end() {
    if (write_end_ >= 0) close(write_end_);
    write_end_ = -1;
}

bool ChildOutput::read() {
    std::array<char, 4096> buffer{};
    for (;;) {
        const ssize_t size = ::read(read_end_, buffer.data(), buffer.size());
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return errno == EAGAIN;
        if (size == 0) {
            closed_ = true;
            return false;
        }
        partial_.append(buffer.data(), static_cast<size_t>(size));
        take_lines();
    }
}

void ChildOutput::take_lines() {
    for (size_t end = partial_.find('\n'); end != std::string::npos; end = partial_.find('\n')) {
        const std::string line = partial_.substr(0, end);
        partial_.erase(0, end + 1);
        if (line.find(ready_text_) != std::string::npos) ++ready_;
        lines_.push_back(line);
        if (lines_.size() > kLinesKept) lines_.pop_front();
    }
    if (partial_.size() > kLineMax) partial_.clear();
}

bool ChildOutput::await_ready(size_t count, std::chrono::milliseconds within) {
    const auto end = std::chrono::steady_clock::now() + within;
    while (ready_ < count) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            end - std::chrono::steady_clock::now());
        if (left.count() <= 0) return false;
        pollfd waiting = {read_end_, POLLIN, 0};
        if (poll(&waiting, 1, static_cast<int>(left.count())) > 0 && !read()) break;
    }
    return ready_ >= count;
}

std::string ChildOutput::last_words() const {
    std::string text;
    for (const std::string& line : lines_)
        text += "  | " + line + "\n";
    if (!partial_.empty()) text += "  | " + partial_ + "\n";
    return text.empty() ? "  (nothing)\n" : text;
}

}  // namespace dibs::ctl::demo
