// broker/broker.hpp -- assembles a broker: STATE, core, BOARD, turn and control thread.
//
// It can also run inside another process: run() in a thread of its own, clients through the socket.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "broker/config/config.hpp"
#include "broker/control/control.hpp"
#include "broker/control/exchange.hpp"
#include "broker/core/core.hpp"
#include "broker/segments/segments.hpp"
#include "broker/takeover/inheritance.hpp"
#include "broker/takeover/keeper_link.hpp"
#include "broker/turn/turn.hpp"
#include "shm/descriptor.hpp"

namespace dibs {

class Broker {
  public:
    // Takes over `state` if it holds one, else makes it; recovers, checks, listens. Throws
    // std::exception with what is wrong; then no client has been served. With `signals`, run()
    // obeys SIGTERM, SIGINT and SIGHUP.
    Broker(Config config, shm::Descriptor state, bool signals);
    // The same, from what an earlier broker has left; with a keeper, all that must outlive this one
    // is handed to it. `keeper` may be null, else it outlives the broker. Throws StateFailure; the
    // inheritance is then as it was.
    Broker(Config config, Inheritance& inheritance, KeeperLink* keeper, bool signals);

    // Gives up what serving does not need. Before run(), while there is one thread. `written`: as
    // for harden() of broker/sandbox/hardening.hpp.
    void harden(const SystemCalls* written = nullptr);
    [[nodiscard]] const Hardening& hardening() const { return hardening_; }

    // Serves until it is stopped and drained. `ready` is called once nothing is lacking for it.
    void run(const std::function<void()>& ready = nullptr);
    void stop();  // from any thread; the second time at once

    [[nodiscard]] const std::string& socket_path() const { return control_.socket_path(); }
    [[nodiscard]] uint64_t epoch() const { return core_.head().epoch; }
    // run() has left everything to a successor: this process must end without another word.
    [[nodiscard]] bool yielded() const { return turn_.yielded(); }

  private:
    Config config_;
    StateSegment state_;
    const std::unique_ptr<core::Core> attached_;
    core::Core& core_;
    BoardSegment board_;
    Exchange exchange_;
    Turn turn_;
    Control control_;
    KeeperLink* keeper_;
    Hardening hardening_;
};

}  // namespace dibs
