// broker/control/control_keeper.cpp -- exchanges messages with the keeper on the control thread.
// SPDX-License-Identifier: Apache-2.0
#include <sys/epoll.h>

#include <algorithm>
#include <string>
#include <system_error>

#include "broker/control/control.hpp"
#include "broker/text/log.hpp"
#include "broker/turn/clock.hpp"

namespace dibs {

namespace {

constexpr uint64_t kPauseNs = 100'000'000;    // before another keeper is started
constexpr uint64_t kLivesNs = 1'000'000'000;  // at least, or the next one comes later and later
constexpr uint32_t kAtOnce = 3;
constexpr uint32_t kDoublings = 7;
constexpr uint64_t kTryAgainNs = uint64_t{KeeperSocket::kTryAgainMs} * 1'000'000;

}  // namespace

void Control::watch_keeper() {
    keeper_writing_ = false;
    watch(keeper_->fd(), Event::kKeeper);
    watch(keeper_->keeper_pidfd(), Event::kKeeperDeath);
}

void Control::hear_keeper() {
    keeper_->flush();
    while (Session* session = keeper_->next_acknowledged()) {
        if (session->client_event_socket.valid()) welcome(session);
    }
    // A keeper that no longer reads keeps nothing new.
    if (keeper_->fd() < 0) keeper_->refuse();
}

// What did not fit its socket leaves when there is room again, or after a while.
void Control::watch_for_writing() {
    if (keeper_ == nullptr || keeper_->fd() < 0) {
        keeper_flush_ns_ = 0;  // the next one begins with nothing waiting
        return;
    }
    if (keeper_flush_ns_ != 0 && keeper_flush_ns_ <= Clock::monotonic()) {
        keeper_->flush();
        keeper_flush_ns_ = 0;
    }
    if (!keeper_->waits_for_time()) {
        keeper_flush_ns_ = 0;
    } else if (keeper_flush_ns_ == 0) {
        keeper_flush_ns_ = Clock::monotonic() + kTryAgainNs;
    }
    if (keeper_->waits_for_room() == keeper_writing_) return;
    keeper_writing_ = keeper_->waits_for_room();
    struct epoll_event event = {};
    event.events = keeper_writing_ ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.u64 = uint64_t{static_cast<uint32_t>(keeper_->fd())} << 32 |
                     static_cast<uint32_t>(Event::kKeeper);
    (void)epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, keeper_->fd(), &event);
}

// Its pidfd is the proof; its socket may have been closed a moment before. One that cannot live is
// not started again at once: its program may be in the middle of an upgrade.
void Control::lose_keeper() {
    // Closed it would not be watched any more, but for a child of the keeper that has not called
    // exec yet: that has the same pidfd, and the death would be told again and again.
    (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, keeper_->keeper_pidfd(), nullptr);
    const uint64_t now = Clock::monotonic();
    if (now - keeper_began_ns_ >= kLivesNs) keepers_in_vain_ = 0;
    if (keepers_in_vain_ < kAtOnce) return renew_keeper();
    keeper_->part();
    keeper_again_ns_ = now + (kPauseNs << std::min(keepers_in_vain_ - kAtOnce, kDoublings));
    log::warning("the keeper died: starting another in " +
                 std::to_string((keeper_again_ns_ - now) / 1'000'000) + " ms");
}

void Control::renew_keeper() {
    const uint64_t now = Clock::monotonic();
    if (keeper_again_ns_ == 0) log::warning("the keeper died: starting another");
    keeper_again_ns_ = 0;
    keeper_began_ns_ = now;
    ++keepers_in_vain_;
    try {
        if (keeper_->renew()) return watch_keeper();
    } catch (const std::exception& error) {
        log::error(std::string("there is no next keeper yet: ") + error.what());
        keeper_->refuse();
    }
    keeper_again_ns_ = now + kPauseNs;
}

// The turn has stopped for it. The successor goes on from what the keeper holds when this process
// ends, and from the time in it: the time between counts for no deadline.
void Control::hand_over(const LoadedState& loaded) {
    log::info("a snapshot was loaded: the next broker goes on from it");
    keeper_->hold(Kept::kState, loaded.state.get());
    keeper_->serving(loaded.time_ns - Clock::monotonic(), socket_path_);
    keeper_->settle();
}

}  // namespace dibs
