// broker/takeover/keeper_upgrade.cpp -- chooses the next broker's program: installed or own.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "broker/takeover/keeper.hpp"
#include "broker/text/log.hpp"
#include "broker/turn/clock.hpp"

namespace dibs {

namespace {

constexpr uint64_t kBeginsWithinNs = 1'000'000'000;  // of its word, if it was started ahead
constexpr uint32_t kBeginLooks = 5;

}  // namespace

// A different program at the path is an upgrade. A program that cannot be started, or begin, is not
// used: the program that served until now goes on. A restricted keeper may not even start it.
void Keeper::start_program() {
    runs_other_ = !only_own_ && program_.replaced();
    if (runs_other_) not_upgraded_.clear();
    if (auto ahead = standby_.take(program_, runs_other_)) {
        broker_ = std::move(ahead->process);
        socket_ = std::move(ahead->socket);
        begins_by_ns_ = Clock::monotonic() + kBeginsWithinNs;
        begin_looks_ = kBeginLooks;
        begun_ = false;
        return;
    }
    auto [own, others] = KeeperSocket::make_pair();
    launch(others.get());
    socket_ = KeeperSocket(std::move(own));
}

void Keeper::launch(int socket) {
    if (runs_other_) {
        try {
            broker_ = Process::start(program_, "--link", socket);
            return;
        } catch (const std::system_error& error) {
            go_back(error.what());
        }
    }
    broker_ = Process::start_own(program_, "--link", socket);
}

// What lies at the path, once more; where nothing does that could be started, it may later.
void Keeper::try_program() {
    only_own_ = false;
    not_upgraded_.clear();
    if (access(program_.path.c_str(), X_OK) == 0) return;
    not_upgraded_ = "the program at " + program_.path + " cannot be started (" +
                    std::generic_category().message(errno) + ")";
    log::error(not_upgraded_ + ": the one that this keeper is goes on");
}

void Keeper::go_back(const std::string& why) {
    only_own_ = true;
    runs_other_ = false;
    not_upgraded_ = "the program at " + program_.path + " cannot go on (" + why + ")";
    log::error(not_upgraded_ +
               ": the one that this keeper is does, until SIGUSR2 or a new start of the service");
}

// For the user who has ordered it, and asks the broker that serves now.
void Keeper::tell_why_not_upgraded() {
    KeeperMessage message;
    message.word = KeeperWord::kNotUpgraded;
    for (size_t at = 0; at < not_upgraded_.size(); at += message.text_size) {
        const std::string piece = not_upgraded_.substr(at, sizeof(message.text));
        message.text_size = static_cast<uint32_t>(piece.size());
        std::memcpy(message.text, piece.data(), piece.size());
        socket_.send(message);
    }
}

std::string Keeper::failed_how(const std::optional<Process::Ending>& ending) const {
    if (!hung_) return (ending && ending->by_signal ? "it died" : "it ended") + shown(ending);
    const uint64_t lasted_ns = Clock::monotonic() - started_ns_;
    return "it did not serve within " + std::to_string(lasted_ns / 1'000'000'000) +
           " s, and was killed";
}

}  // namespace dibs
