// broker/turn/ingest.hpp -- reads client memory, rings and words alike; no other code does.
//
// Everything in UP may change between two looks and may be wrong on purpose. So each value is
// loaded once into a local, and only the local is checked and used. No offset is taken from the
// segment: the places follow from the sizes that the broker itself chose.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "broker/core/core.hpp"
#include "shm/doorbell.hpp"
#include "shm/handshake.hpp"
#include "shm/layout.hpp"
#include "shm/ring.hpp"

namespace dibs {

class Operations;
class Pledges;
struct Session;

// What the client has published, seen when its wake-up word is armed.
enum class Armed { kQuiet, kEntry, kViolation };

// What a lease's word says (shm::LeaseWord).
struct LeaseWordSeen {
    uint64_t fence = 0;  // of its holder's last take; 0: none is known
    bool parked = false;
    bool wanted = false;
    bool later = false;  // it names a later lease of the tag
};

class Upstream {
  public:
    Upstream() = default;
    // `head`: submissions that have been taken.
    Upstream(std::byte* up, const shm::SessionSizes& sizes, uint64_t head = 0);

    // The submission ring: one load, is there anything to look at; and the next entry, copied.
    [[nodiscard]] bool maybe() const { return ring_.maybe(); }
    [[nodiscard]] shm::Poll pop(shm::Submission& out) { return ring_.pop(out); }
    [[nodiscard]] shm::Poll peek(shm::Submission& out) const { return ring_.peek(out); }
    void skip() { ring_.skip(); }  // what was peeked
    [[nodiscard]] uint64_t head() const { return ring_.head(); }

    // Between arming the wake-up word and sleeping. A tail that announces a missing line is a
    // violation: lines are stored before their tail.
    [[nodiscard]] Armed look_again() const;

    // Copies a payload out. False, and nothing copied, if it does not lie in the payload area.
    [[nodiscard]] bool copy_payload(uint32_t offset, uint32_t size, std::byte* out) const;

    // Completions that the client says it has read.
    [[nodiscard]] uint64_t completions_read() const { return shm::read_completions(*head_); }
    // Announces completions up to `tail`; returns how the client says it sleeps.
    [[nodiscard]] uint32_t announce(shm::DownHead& down, uint64_t tail) const {
        return shm::publish_completions(down, *head_, tail);
    }
    // Where the client says it last ran: good for a guess about spinning only.
    [[nodiscard]] uint32_t cpu() const { return head_->cpu.load(std::memory_order_relaxed); }
    // Rings of the client's safety net that it says were needed.
    [[nodiscard]] uint64_t net_rings() const {
        return head_->net_rings.load(std::memory_order_relaxed);
    }
    // A bucket of the client's own histogram.
    [[nodiscard]] uint32_t bucket(uint32_t index) const {
        return histogram_->bucket[index].load(std::memory_order_relaxed);
    }

    // The tag's word about the lease of the claim with this number; the same once it has been made
    // wanted: if it was free until then, its client does not take it any more.
    [[nodiscard]] LeaseWordSeen lease_word(uint16_t tag, uint64_t number) const;
    [[nodiscard]] LeaseWordSeen want_lease(uint16_t tag, uint64_t number) const;

    // How often the client says that it has touched the tag's lease.
    [[nodiscard]] uint64_t touches(uint16_t tag) const {
        return touch_words_[tag].touches.load(std::memory_order_relaxed);
    }

  private:
    [[nodiscard]] static LeaseWordSeen seen(const shm::LeaseWord& at,
                                            uint64_t word,
                                            uint64_t number);

    shm::LeaseWord* lease_words_ = nullptr;
    const shm::TouchWord* touch_words_ = nullptr;
    const shm::UpHead* head_ = nullptr;
    const shm::UpHistogram* histogram_ = nullptr;
    const std::byte* payload_ = nullptr;
    uint32_t payload_size_ = 0;
    shm::SubmissionConsumer ring_;
};

// Reads entries of sessions into the turn. Payload bytes are copied into the turn's scratch and
// stay valid until the turn is over.
class Ingest {
  public:
    static constexpr uint32_t kSessionBudget = 64;  // entries of one session in one turn

    Ingest(core::Core& core, Operations& operations, Pledges& pledges);

    enum class Read {
        kOpen,       // nothing more, or enough for this turn
        kMore,       // enough for this turn, and there is more
        kClosed,     // the client said close
        kViolation,  // it corrupted the ring
    };
    // At least one entry, if there is one: only while the turn is not full.
    Read read(Session& session, uint32_t budget);
    // The claim that was peeked, and answered already. The line is not read again: its client may
    // have written something else by now.
    void read_answered(Session& session, const shm::Submission& claim);
    void begin_turn() { used_ = 0; }
    // The log or the scratch is nearly full: what is left is read in the next turn.
    [[nodiscard]] bool turn_full() const;

  private:
    Read take(Session& session, uint32_t budget);
    [[nodiscard]] std::span<const uint8_t> take_payload(const Session& session,
                                                        const shm::Submission& entry);

    core::Core& core_;
    Operations& operations_;
    Pledges& pledges_;
    std::vector<std::byte> scratch_;
    size_t used_ = 0;
};

}  // namespace dibs
