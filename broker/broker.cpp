// broker/broker.cpp -- a broker, put together.
// SPDX-License-Identifier: Apache-2.0
#include "broker/broker.hpp"

#include <sys/random.h>

#include <stdexcept>
#include <thread>
#include <utility>

#include "broker/admin.hpp"
#include "broker/log.hpp"

namespace dibs {

namespace {

void check(const core::Core& core) {
    const std::vector<std::string> violations = core.check_all();
    if (violations.empty()) return;
    for (const std::string& violation : violations)
        log::error("STATE: " + violation);
    throw std::runtime_error(
        "STATE fails " + std::to_string(violations.size()) +
        " of its checks and is not served from; the first: " + violations.front());
}

uint64_t secret() {
    uint64_t bytes = 0;
    if (getrandom(&bytes, sizeof(bytes), 0) != static_cast<ssize_t>(sizeof(bytes))) {
        throw std::runtime_error("no random bytes");
    }
    return bytes;
}

}  // namespace

Broker::Broker(Config config, shm::Descriptor state, bool signals)
    : config_(std::move(config)),
      state_(std::move(state), config_.limits),
      core_(state_.bytes(), secret()),
      board_(core_.head().table[static_cast<size_t>(shm::Table::kPools)].rows),
      exchange_(core_.sessions_max()),
      turn_(core_, board_, exchange_),
      control_(config_, board_, exchange_, core_.sessions_max(), signals) {
    if (core_.head().epoch != 0) check(core_);  // not one that was made just now
    core_.set_epoch(core_.head().epoch + 1);
    state_.set_clean(false);
    turn_.prepare(config_);
}

void Broker::run() {
    std::thread control([this] { control_.serve(core_.head().epoch); });
    turn_.serve();
    control.join();
    state_.set_clean(true);
    // What control had asked for when the turn ended; both threads are gone.
    Request request;
    while (exchange_.next(request)) {
        delete request.session;
        delete request.config;
        delete request.job;
    }
}

void Broker::stop() {
    control_.stop();
}

}  // namespace dibs
