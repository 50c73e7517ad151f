// broker/admin/subscriber.hpp -- sends events to one conversation, within its rights and a bound.
//
// The broker does not wait for a subscriber: packets that its socket does not take wait here, up to
// a bound; later ones are counted, and the count is sent as soon as it reads again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "shm/event.hpp"

namespace dibs {

class Subscriber {
  public:
    Subscriber(uint32_t uid, bool is_admin) : uid_(uid), is_admin_(is_admin) {}

    // `lost`: before the first of these.
    void tell(std::span<const shm::Event> events, uint64_t lost);
    // Sends what the socket takes. False: it is gone.
    [[nodiscard]] bool flush(int socket);
    // Something waits for room in the socket.
    [[nodiscard]] bool waiting() const { return !packets_.empty() || lost_ != 0; }

    static constexpr size_t kPackets = 128;

  private:
    using Packet = std::vector<uint8_t>;
    void add(std::span<const shm::Event> events);
    [[nodiscard]] shm::Event seen(const shm::Event& event) const;
    [[nodiscard]] Packet packet(std::span<const shm::Event> events);

    uint32_t uid_;
    bool is_admin_;
    std::deque<Packet> packets_;
    uint64_t lost_ = 0;  // that no packet tells yet
};

}  // namespace dibs
