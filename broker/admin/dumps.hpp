// broker/admin/dumps.hpp -- writes dumps for the control thread: one at a time, without waiting.
//
//   begin ──► the turn copies STATE, part by part ──► copied ──► a thread of its own writes the
//                                                     snapshot ──► fd() is readable: take
//
// Writing a snapshot takes milliseconds at a million rows a second; neither the turn nor the
// control thread has that time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "broker/admin/copying.hpp"
#include "broker/control/exchange.hpp"

namespace dibs {

class Dumps {
  public:
    struct Written {
        uint64_t conversation = 0;
        std::vector<uint8_t> bytes;
        std::string fault;  // why there are none
    };

    explicit Dumps(Exchange& exchange) : exchange_(exchange) {}
    ~Dumps();
    Dumps(const Dumps&) = delete;
    Dumps& operator=(const Dumps&) = delete;

    void set_state(std::span<std::byte> state) { state_ = state; }
    [[nodiscard]] int fd() const { return done_.fd(); }
    // Empty, or why not. `records`: the turn goes on with a recording from the copy on.
    [[nodiscard]] std::string begin(uint64_t conversation, bool records);
    void copied(std::unique_ptr<Copying> copying);
    // Once fd() is readable.
    [[nodiscard]] std::optional<Written> take();

  private:
    Exchange& exchange_;
    std::span<std::byte> state_;
    bool busy_ = false;
    std::thread writer_;
    Written written_;  // the writer's until it calls, then control's
    ThreadWake done_;
};

}  // namespace dibs
