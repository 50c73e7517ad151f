// broker/broker.cpp -- assembles a broker from its parts, runs and stops it.
// SPDX-License-Identifier: Apache-2.0
#include "broker/broker.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "broker/admin/admin.hpp"
#include "broker/admin/copying.hpp"
#include "broker/takeover/head_start.hpp"
#include "broker/text/log.hpp"

namespace dibs {

namespace {

uint64_t secret() {
    uint64_t bytes = 0;
    if (getrandom(&bytes, sizeof(bytes), 0) != static_cast<ssize_t>(sizeof(bytes))) {
        throw std::runtime_error("no random bytes");
    }
    return bytes;
}

shm::Descriptor copy_of(const shm::Descriptor& descriptor) {
    if (!descriptor.valid()) return {};
    shm::Descriptor copy(fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 0));
    if (!copy.valid()) throw std::system_error(errno, std::generic_category(), "F_DUPFD_CLOEXEC");
    return copy;
}

std::unique_ptr<Inheritance> nobody_left(shm::Descriptor state) {
    auto inheritance = std::make_unique<Inheritance>();
    inheritance->state = std::move(state);
    return inheritance;
}

// A fence beyond all that were given out under STATEs of these epochs: no broker lives to see so
// many grants and takes of one pool. A CPU that does nothing but take a parked lease and release it
// needs months for 2^48. How far each pool had come is not known any more.
uint64_t fence_base_behind(uint64_t epoch) {
    constexpr uint32_t kTakes = 48;
    return std::min(epoch, uint64_t{1} << (61U - kTakes)) << kTakes;
}

// The keeper starts the successor, and must know everything by then: a keeper that was renewed a
// moment ago may not have received most sessions yet. One that died a moment ago cannot, and only
// this process knows.
void find_keeper(KeeperLink& keeper) {
    constexpr int kPauseMs = 100;  // before another is started
    for (int pause_ms = 0;; pause_ms = kPauseMs) {
        if (keeper.lives() && keeper.fd() >= 0) {
            keeper.yielded();
            if (keeper.lives()) return;
        }
        (void)poll(nullptr, 0, pause_ms);
        log::warning("the keeper died: starting another");
        (void)keeper.renew();
    }
}

// The library says EAGAIN as well where there is no memory for the thread's stack: to map, or to
// write to, which counts as data.
std::error_code why_no_thread(const std::error_code& said) {
    pthread_attr_t attributes;
    size_t size = 0;
    if (pthread_getattr_default_np(&attributes) != 0) return said;
    (void)pthread_attr_getstacksize(&attributes, &size);
    (void)pthread_attr_destroy(&attributes);
    void* const stack =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) return {ENOMEM, std::generic_category()};
    (void)munmap(stack, size);
    return said;
}

std::thread started_thread(const std::function<void()>& body) {
    try {
        return std::thread(body);
    } catch (const std::system_error& error) {
        throw std::system_error(why_no_thread(error.code()), "pthread_create");
    }
}

}  // namespace

Broker::Broker(Config config, Inheritance& inheritance, KeeperLink* keeper, bool signals)
    : config_(std::move(config)),
      state_(copy_of(inheritance.state), config_.limits),
      attached_(state_.attach(secret())),
      core_(*attached_),
      board_(core_.head().table[static_cast<size_t>(shm::Table::kPools)].rows,
             core_.accounts_max(),
             std::move(inheritance.board)),
      exchange_(core_.sessions_max()),
      turn_(core_, board_, exchange_, HangWatch(std::move(inheritance.watch))),
      control_(config_,
               board_,
               exchange_,
               core_.sessions_max(),
               std::move(inheritance.listener),
               inheritance.listener_inode,
               keeper,
               signals),
      keeper_(keeper) {
    control_.set_state(state_.bytes());
    core_.set_epoch(std::max(core_.head().epoch, inheritance.epoch) + 1);
    if (inheritance.epoch != 0) core_.set_fence_base(fence_base_behind(inheritance.epoch));
    state_.set_clean(false);
    if (keeper_ != nullptr) {  // before anything is decided that should not be lost
        keeper_->hold(Kept::kState, state_.fd());
        keeper_->hold(Kept::kBoard, board_.fd());
    }
    turn_.set_shared(control_.shared());
    turn_.prepare(config_, inheritance);
    control_.prepare(turn_.adopted(), turn_.draining());
    control_.take_leftovers(inheritance);
}

Broker::Broker(Config config, shm::Descriptor state, bool signals)
    : Broker(std::move(config), *nobody_left(std::move(state)), nullptr, signals) {}

void Broker::harden(const SystemCalls* written) {
    hardening_ = dibs::harden(
        hardening_plan(config_.hardening,
                       config_.file,
                       socket_path(),
                       config_.state_dir.empty() ? default_state_dir() : config_.state_dir),
        written);
    control_.set_hardening(hardening_.text());
    log::info("hardened: " + hardening_.text());
}

// The broker does not report that it serves before both threads exist, of which one may be refused.
// The link to the keeper is control's alone from then on.
void Broker::run(const std::function<void()>& ready) {
    std::binary_semaphore decided(0);
    bool serves = false;
    std::thread control = started_thread([&] {
        give_back_memory();  // of the start: a standby would touch as much
        decided.acquire();
        if (serves) control_.serve(core_.head().epoch);
    });
    try {
        if (keeper_ != nullptr) keeper_->serving(turn_.clock_offset(), socket_path());
        if (ready) ready();
        serves = true;
    } catch (...) {  // no memory for the words
        decided.release();
        control.join();
        throw;
    }
    decided.release();
    turn_.serve();
    control.join();
    if (turn_.yielded()) {
        if (keeper_ != nullptr) find_keeper(*keeper_);
        return;
    }
    state_.set_clean(true);
    control_.give_up_name();
    if (keeper_ != nullptr) keeper_->stopped();
    // What control had asked for when the turn ended; both threads are gone.
    Request request;
    while (exchange_.next(request)) {
        delete request.session;
        delete request.config;
        delete request.job;
        delete request.copying;
    }
}

void Broker::stop() {
    control_.stop();
}

}  // namespace dibs
