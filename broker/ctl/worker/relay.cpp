// broker/ctl/worker/relay.cpp -- splits what comes into lines of bounded length.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/worker/relay.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/system_failure.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl::worker {

namespace {

constexpr size_t kLineMost = 3072;  // longer ones go on in the next; with the name it is a log line
constexpr int kBlocksMost = 16;
constexpr int kPipeSize = 1 << 20;  // what a process may write while this one is at something else

void tell(const std::string& name, std::string_view line) {
    talk(harmless(name) + ": " + harmless(line));
}

}  // namespace

Relay::Relay() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw system_failure("pipe");
    reading_ = shm::Descriptor(ends[0]);
    writing_ = shm::Descriptor(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(ends[0], F_SETPIPE_SZ, kPipeSize);
}

void Relay::pass_on(const std::string& name) {
    std::array<char, 16'384> block{};
    for (int blocks = 0; blocks < kBlocksMost; ++blocks) {
        const ssize_t size = read(reading_.get(), block.data(), block.size());
        if (size <= 0) return;
        rest_.append(block.data(), static_cast<size_t>(size));
        size_t start = 0;
        while (start < rest_.size()) {
            const size_t end = rest_.find('\n', start);
            const size_t most = start + kLineMost;
            if (end == std::string::npos && rest_.size() <= most) break;
            const bool whole = end <= most;
            const size_t cut = whole ? end : most;
            tell(name, std::string_view(rest_).substr(start, cut - start));
            start = cut + (whole ? 1 : 0);
        }
        rest_.erase(0, start);
    }
}

void Relay::finish(const std::string& name) {
    pass_on(name);
    if (!rest_.empty()) tell(name, rest_);
    rest_.clear();
}

}  // namespace dibs::ctl::worker
