// broker/takeover/service_notice.hpp -- sends notices to the service manager ($NOTIFY_SOCKET).
//
// Each notice is a datagram of lines "NAME=value", with descriptors where a line speaks of them; no
// library is needed. A busy manager has a full socket: what does not fit stays in a queue until
// there is room, so that no notice is lost and no thread waits. Without the variable nothing is
// sent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>

#include "shm/descriptor.hpp"

namespace dibs {

class ServiceNotices {
  public:
    static constexpr size_t kDescriptorsMax = 8;  // of one notice

    ServiceNotices();

    // A manager is connected. False for ever where there is no manager, or it is gone.
    [[nodiscard]] bool connected() const { return socket_.valid(); }
    // Before everything that is said later.
    void say(std::string lines);
    // At once, if nothing waits and there is room for it; the descriptors stay the caller's.
    [[nodiscard]] bool try_say(const std::string& lines, std::span<const int> descriptors = {});

    // For poll(): writable once there is room.
    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] bool waiting() const { return !waiting_.empty(); }
    void flush();
    // Waits for room until then (monotonic). Where there is some already, for a moment: the message
    // was refused for another shortage. False: there is no room, and the time is over.
    [[nodiscard]] bool await_room(uint64_t deadline_ns) const;
    // Waits until all is said, for so long at most in all.
    void settle(uint32_t ms);

  private:
    enum class Sent { kYes, kNoRoom, kNobody };
    [[nodiscard]] bool push(const std::string& lines, std::span<const int> descriptors);
    [[nodiscard]] Sent send(const std::string& lines, std::span<const int> descriptors) const;
    [[nodiscard]] bool connect();

    shm::Descriptor socket_;
    std::deque<std::string> waiting_;
};

}  // namespace dibs
