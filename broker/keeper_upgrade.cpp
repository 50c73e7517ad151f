// broker/keeper_upgrade.cpp -- which program the next broker is: what lies at the path, or the
// keeper's. SPDX-License-Identifier: Apache-2.0
#include <string>
#include <system_error>
#include <utility>

#include "broker/clock.hpp"
#include "broker/keeper.hpp"
#include "broker/log.hpp"

namespace dibs {

namespace {

constexpr uint64_t kBeginsWithinNs = 1'000'000'000;  // of its word, if it was started ahead
constexpr uint32_t kBeginLooks = 5;

}  // namespace

// What lies at the path is an upgrade. What cannot be started, or begin, is none: what served until
// now goes on. A keeper that is restricted may not even start it.
void Keeper::start_program() {
    runs_other_ = !only_own_ && program_.replaced();
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

void Keeper::go_back(const std::string& why) {
    only_own_ = true;
    runs_other_ = false;
    log::error("the program at " + program_.path + " cannot go on (" + why +
               "): the one that this keeper is does, until SIGUSR2 or a new start of the service");
}

std::string Keeper::failed_how(const std::optional<Process::Ending>& ending) const {
    if (!hung_) return (ending && ending->by_signal ? "it died" : "it ended") + shown(ending);
    const uint64_t lasted_ns = Clock::monotonic() - started_ns_;
    return "it did not serve within " + std::to_string(lasted_ns / 1'000'000'000) +
           " s, and was killed";
}

}  // namespace dibs
