// broker/takeover/service_notice.hpp -- what a service manager is told: datagrams to
// $NOTIFY_SOCKET.
//
// The protocol is a line "NAME=value" each, with descriptors where a line speaks of them; no
// library is needed for it. A manager that is busy has a full socket: what does not fit stays in a
// queue until there is room, so that no notice is lost and nobody waits for it. Without the
// variable nothing happens.
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

    // Somebody is told. False for ever where there is no manager, or it is gone.
    [[nodiscard]] bool heard() const { return socket_.valid(); }
    // Before everything that is said later.
    void say(std::string lines);
    // At once, if nothing waits and there is room for it; the descriptors stay the caller's.
    [[nodiscard]] bool try_say(const std::string& lines, std::span<const int> descriptors = {});

    // For poll(): writable once there is room.
    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] bool waiting() const { return !waiting_.empty(); }
    void flush();
    // Waits for room until then (monotonic). Where there is some already, for a moment: what was
    // refused was refused for want of something else. False: there is none, and it is then.
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
