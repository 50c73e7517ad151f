// broker/conversations.hpp -- the control thread's side of administration: who asks, one request
// at a time.
//
//   quiet ── a request comes ──► busy (the turn has it) ── its answer leaves ──► quiet
//     └── 10 s of silence, hang-up, nonsense ──► gone        └── hang-up ──► gone
//
// There are only so many conversations, and of one user even fewer; who is silent for long is let
// go. While a conversation is busy nothing is read from it, so what it sends on waits in its own
// socket; an answer that its asker does not take ends it. A request that is no table, or has more
// than it may, is told so and ends it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "broker/admin.hpp"
#include "broker/callers.hpp"
#include "broker/exchange.hpp"
#include "shm/descriptor.hpp"

namespace dibs {

class Conversations {
  public:
    static constexpr size_t kMost = 64;
    static constexpr size_t kMostOfOneUser = 16;  // administrators: all
    static constexpr uint64_t kSilenceNs = 10'000'000'000;
    static constexpr size_t kRequestSize = 1024;  // bytes of one request, at most

    Conversations(Exchange& exchange, uint64_t now_ns);

    // Readable when there is something to hear.
    [[nodiscard]] int fd() const { return epoll_.get(); }
    void begin(Caller caller, bool is_admin, uint64_t epoch, uint64_t now_ns);
    void hear(uint64_t now_ns);
    void answer(std::unique_ptr<AdminJob> job, uint64_t now_ns);
    void drop_silent(uint64_t now_ns);
    [[nodiscard]] uint64_t next_due() const;  // monotonic; kNever = none
    // What a status says of the broker's own restrictions. Before anybody is heard.
    void set_hardening(std::string text) { hardening_ = std::move(text); }
    [[nodiscard]] size_t size() const { return all_.size(); }

  private:
    struct Conversation {
        shm::Descriptor socket;
        uint32_t uid = 0;
        bool is_admin = false;
        bool busy = false;
        uint64_t silent_until_ns = 0;
    };

    [[nodiscard]] bool make_room(uint32_t uid, bool is_admin);
    void hear_one(uint64_t number, uint64_t now_ns);
    [[nodiscard]] bool take(uint64_t number,
                            Conversation& conversation,
                            std::span<const uint8_t> packet);
    void listen(uint64_t number, const Conversation& conversation, bool on) const;

    Exchange& exchange_;
    shm::Descriptor epoll_;
    std::map<uint64_t, Conversation> all_;  // by number: in the order in which they came
    uint64_t next_number_ = 1;
    uint64_t started_ns_;
    std::string hardening_ = "none";
};

}  // namespace dibs
