// broker/admission/callers.hpp -- keeps the connections that have not yet said Hello.
//
// Their number is bounded. When one more comes, the oldest connection of the uid that has most is
// closed: a uid that only connects drives out itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>

#include "broker/admission/client_socket.hpp"
#include "broker/admission/peer.hpp"

namespace dibs {

struct Caller {
    ClientSocket socket;
    Credentials credentials;
    uint64_t until_ns = 0;  // monotonic: then it is late
};

class Callers {
  public:
    explicit Callers(size_t most) : most_(most) {}

    [[nodiscard]] bool full() const { return list_.size() >= most_; }
    [[nodiscard]] bool empty() const { return list_.empty(); }
    // In the order in which they came, which is that of their time.
    [[nodiscard]] const Caller& oldest() const { return list_.front(); }
    [[nodiscard]] const std::list<Caller>& all() const { return list_; }
    // The oldest one of the uid that has most.
    [[nodiscard]] int least_wanted() const;

    void add(Caller caller);
    [[nodiscard]] const Caller* find(int fd) const;
    Caller take(int fd);  // that is there
    void clear();

  private:
    size_t most_;
    std::list<Caller> list_;
    std::unordered_map<int, std::list<Caller>::iterator> by_fd_;
    std::unordered_map<uint32_t, size_t> by_uid_;  // how many
};

}  // namespace dibs
