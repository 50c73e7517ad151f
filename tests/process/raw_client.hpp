// tests/process/raw_client.hpp -- a client that speaks the protocol by hand: rings, doorbells and
// the handshake straight from shm/, so that it can also break every rule.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "shm/board.hpp"
#include "shm/descriptor.hpp"
#include "shm/handshake.hpp"
#include "shm/layout.hpp"
#include "shm/ring.hpp"

namespace dibs::test {

// A connected SEQPACKET socket; invalid if nobody listens.
shm::Descriptor connect_to(const std::string& path);

struct Answer {
    std::optional<shm::Welcome> welcome;
    std::optional<shm::Farewell> farewell;
    shm::Descriptor descriptors[5];
};
// Waits for a Welcome or a Farewell; neither when the broker hangs up.
Answer receive_answer(int socket);

class RawClient {
  public:
    // Connects and attaches; attached() says whether it was welcome.
    explicit RawClient(const std::string& path, const shm::Hello& hello = {});
    // On segments that another thread of this process has mapped. `bell` stays the caller's.
    struct Mapped {
        std::byte* up;
        const std::byte* down;
        const std::byte* board;
        int bell;
    };
    RawClient(const Mapped& mapped, const shm::Welcome& welcome);
    ~RawClient();
    RawClient(const RawClient&) = delete;
    RawClient& operator=(const RawClient&) = delete;

    [[nodiscard]] bool attached() const { return welcome_.magic == shm::kWelcomeMagic; }
    [[nodiscard]] const shm::Welcome& welcome() const { return welcome_; }
    [[nodiscard]] const shm::Farewell& farewell() const { return farewell_; }
    [[nodiscard]] shm::UpHead& up() { return *reinterpret_cast<shm::UpHead*>(up_); }
    [[nodiscard]] const shm::DownHead& down() const {
        return *reinterpret_cast<const shm::DownHead*>(down_);
    }
    [[nodiscard]] shm::SubmissionEntry* lines();
    [[nodiscard]] const std::byte* room(uint32_t data) const;
    [[nodiscard]] std::byte* payload();
    [[nodiscard]] uint64_t event(uint32_t tag) const;
    [[nodiscard]] int socket() const { return socket_.get(); }
    [[nodiscard]] int up_fd() const { return up_fd_.get(); }
    [[nodiscard]] int bell() const { return bell_.get(); }
    [[nodiscard]] int events() const { return events_.get(); }
    [[nodiscard]] int down_fd() const { return down_fd_.get(); }
    [[nodiscard]] int board_fd() const { return board_fd_.get(); }

    // Stores an entry and rings if the broker asks for it.
    void submit(shm::Submission entry);
    void submit_silently(const shm::Submission& entry);  // neither tail nor bell
    void ring();
    // The next completion; sleeps as the library does. Nothing if the session has ended first.
    std::optional<shm::Completion> wait();
    // Sleeps until the session is ended by the broker; returns the reason.
    shm::Reason wait_end();
    // Sleeps until the tag's event word is no longer 0.
    uint64_t wait_event(uint32_t tag);
    shm::PoolPicture pool(uint32_t row) const;
    // Looks at the BOARD until it shows that: it is published after the answers of a turn.
    template <typename Shows>
    void await_pool(uint32_t row, Shows shows) const {
        while (!shows(pool(row)))
            sched_yield();
    }
    [[nodiscard]] const shm::BoardHead& board() const {
        return *reinterpret_cast<const shm::BoardHead*>(board_);
    }

    // --- shorthands; each tag and user_data as given
    void claim(uint16_t tag,
               uint16_t pool = 0,
               uint16_t units = 1,
               uint64_t timeout_ns = shm::kNever);
    void release(const shm::Completion& granted);
    std::optional<shm::Completion> announce(uint16_t pool, bool ready);
    void worker_word(shm::Op op, uint64_t slot, uint64_t round, uint8_t flags = 0);

  private:
    [[nodiscard]] bool ended() const;
    template <typename Ready>
    void await(Ready ready);
    void begin();

    bool own_mappings_ = false;

    shm::Descriptor socket_;
    shm::Descriptor up_fd_;
    shm::Descriptor down_fd_;
    shm::Descriptor board_fd_;
    shm::Descriptor bell_;
    shm::Descriptor events_;
    shm::Welcome welcome_{.magic = 0};
    shm::Farewell farewell_{.magic = 0};
    shm::SessionSizes sizes_;
    std::byte* up_ = nullptr;
    const std::byte* down_ = nullptr;
    const std::byte* board_ = nullptr;
    shm::SubmissionProducer submissions_;
    shm::CompletionConsumer completions_;
};

inline std::string text_of(const shm::Farewell& farewell) {
    return {farewell.text, farewell.text_size};
}

// Until a broker of this epoch serves.
void await_epoch(const RawClient& client, uint64_t epoch);

// The broker has ended its session.
bool ended(const RawClient& client);

}  // namespace dibs::test
