// broker/ctl/demo/private_broker.cpp -- starts dibsd in a temporary folder and listens to it.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/demo/private_broker.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace dibs::ctl::demo {

namespace {

constexpr auto kReadyWithin = std::chrono::seconds(10);
constexpr size_t kLinesKept = 20;
constexpr size_t kLineMax = 4096;

// A claim's payload and a slot's attributes fit one block of the broker's arena each.
constexpr uint32_t kArenaBlock = 512;

// What the tool's own program file is called.
std::filesystem::path own_program() {
    return std::filesystem::read_symlink("/proc/self/exe");
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
    const char* place = std::getenv("TMPDIR");
    std::string pattern = place != nullptr && *place != '\0' ? place : "/tmp";
    pattern += "/dibs-demo-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) {
        throw std::system_error(errno, std::generic_category(), "temporary folder " + pattern);
    }
    path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
    remove();
}

bool TemporaryFolder::remove() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
    return !std::filesystem::exists(path_, ignored);
}

std::string broker_configuration(const BrokerSizes& sizes, const std::string& socket) {
    const bool counted = sizes.shape == PoolShape::kCounted;
    const std::string claims = std::to_string(sizes.claims);
    std::string text = "socket = \"" + socket + "\"\nlog_level = \"info\"\n";
    text += "[limits]\npools = 1\nsessions = " + std::to_string(sizes.sessions) +
            "\nslots = " + std::to_string(sizes.slots + 1) + "\nclaims = " + claims +
            "\nleases = " + claims + "\narena = \"" +
            std::to_string(uint64_t{kArenaBlock} * (sizes.claims + sizes.slots + 64)) + "B\"\n";
    text += "[[pool]]\nname = \"" + std::string(kPoolName) + "\"\nbacklog_max = " + claims + "\n";
    if (counted) {
        text += "kind = \"counted\"\nslots = " + std::to_string(sizes.slots) + "\n";
    } else {
        text += "kind = \"worker\"\nattributes_max = 64\npayload_max = 256\nunconfirmed_max = " +
                std::to_string(sizes.slots) + "\n";
    }
    return text;
}

std::string broker_program() {
    const char* given = std::getenv("DIBS_DIBSD");
    if (given != nullptr && *given != '\0') return given;
    return (own_program().parent_path().parent_path() / "dibsd").string();
}

PrivateBroker::PrivateBroker(const std::string& folder, const BrokerSizes& sizes)
    : socket_(folder + "/dibs.sock") {
    const std::string program = broker_program();
    if (access(program.c_str(), X_OK) != 0) {
        throw std::runtime_error("there is no broker program " + program +
                                 " (DIBS_DIBSD names another one)");
    }
    const std::string file = folder + "/dibsd.toml";
    std::ofstream out(file);
    out << broker_configuration(sizes, socket_);
    out.close();
    if (!out) throw std::runtime_error("cannot write " + file);
    std::array<int, 2> pipe{};
    if (pipe2(pipe.data(), O_CLOEXEC) != 0) {
        throw std::system_error(errno, std::generic_category(), "pipe");
    }
    output_ = pipe[0];
    fcntl(output_, F_SETFL, O_NONBLOCK);
    ChildConfig config;
    config.command = {program, "--config", file};
    config.output = pipe[1];
    process_ = std::make_unique<Child>("broker", config);
    close(pipe[1]);
    await_ready();
}

PrivateBroker::~PrivateBroker() {
    process_.reset();
    if (output_ >= 0) close(output_);
}

void PrivateBroker::await_ready() {
    const auto end = std::chrono::steady_clock::now() + kReadyWithin;
    while (!ready_) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            end - std::chrono::steady_clock::now());
        pollfd waiting = {output_, POLLIN, 0};
        const bool in_time =
            left.count() > 0 &&
            (poll(&waiting, 1, static_cast<int>(left.count())) > 0 || errno == EINTR);
        if (in_time && read_output()) continue;
        if (ready_) break;
        std::string why = in_time ? "ended before it was ready" : "was not ready within 10 s";
        if (const auto status = process_->wait(in_time ? 1000 : 0)) {
            why += " (" + shown_status(*status) + ")";
        }
        throw std::runtime_error("the broker " + why + "; it said:\n" + last_words());
    }
}

bool PrivateBroker::read_output() {
    std::array<char, 4096> buffer{};
    for (;;) {
        const ssize_t size = read(output_, buffer.data(), buffer.size());
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return errno == EAGAIN;
        if (size == 0) return false;
        partial_.append(buffer.data(), static_cast<size_t>(size));
        take_lines();
    }
}

void PrivateBroker::take_lines() {
    for (size_t end = partial_.find('\n'); end != std::string::npos; end = partial_.find('\n')) {
        const std::string line = partial_.substr(0, end);
        partial_.erase(0, end + 1);
        ready_ = ready_ || line.find("ready") != std::string::npos;
        lines_.push_back(line);
        if (lines_.size() > kLinesKept) lines_.pop_front();
    }
    if (partial_.size() > kLineMax) partial_.clear();
}

std::string PrivateBroker::last_words() const {
    std::string text;
    for (const std::string& line : lines_)
        text += "  | " + line + "\n";
    if (!partial_.empty()) text += "  | " + partial_ + "\n";
    return text.empty() ? "  (nothing)\n" : text;
}

}  // namespace dibs::ctl::demo
