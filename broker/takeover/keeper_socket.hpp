// broker/takeover/keeper_socket.hpp -- sends and receives messages between keeper and broker.
//
//   keeper ── begin {own pidfd, timer} · hold {…} … · go ─────► broker that it has started
//   keeper ── not upgraded, between the two ─────────────────► the same, in another one's place
//   broker ── begun ─────────────────────────────────────────► keeper that had started it ahead
//   broker ── adopt {own pidfd, timer} · hold {…} … ──────────► keeper that it has started
//   broker ── hold {descriptors} ─────────────────────────────► keeper
//   broker ◄─ held ──────────────────────────────────────────── keeper
//   broker ── welcomed, drop, serving, stopping, stopped, yielded ─► keeper
//
// A SOCK_SEQPACKET socketpair, one struct a packet, both ends from the same build: a process that
// reads another version's message hangs up. Neither side ever waits for the other here: what does
// not fit stays in a queue until the socket is writable. Where the kernel lacks memory, or any
// process has too many descriptors of this user in flight already, a socket is writable all the
// same: then sending is tried again after a while.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>

#include "shm/descriptor.hpp"
#include "shm/layout.hpp"

namespace dibs {

enum class KeeperWord : uint32_t {
    kBegin,     // keeper: who I am, when the last broker died; what it held follows
    kGo,        // keeper: that was all
    kHeld,      // keeper: I have the descriptors of this session
    kAdopt,     // broker: who I am; be my keeper
    kHold,      // either: descriptors, named by `what`, row and generation
    kWelcomed,  // broker: the client's own descriptor need not be kept any longer
    kDrop,      // broker: close these again
    kServing,   // broker: recovered; the clock's offset, the socket's path
    kStopping,  // broker: was asked to stop, and so is every successor
    kStopped,   // broker: stopped in order, do not start another
    kBegun,     // broker: was started ahead, and has seen that it is to begin
    kYielded,   // broker: makes way; its exit code says so too, but only to whom it is a child of
    kCalled,    // keeper, to a serving broker: a client connects; are you there?
    kHere,      // broker: I am
    kBusy,      // broker: I may not be able to say so for a while; kHere when that is over
    kNotUpgraded,  // keeper: why the program at the path does not serve: the next piece of a text
};

enum class Kept : uint32_t { kState, kBoard, kListener, kSession, kConfig, kRemnant };

// Of a session, in this order. That of its tree if it has one; the last one only until its client
// has been welcomed. Which of the two is there its kind tells.
enum class SessionDescriptor : uint32_t {
    kUp,
    kDown,
    kBell,
    kEvents,
    kProcess,
    kSocket,
    kTree,
    kClientEvents,
    kCount
};

// Of a session that has ended and whose memory a process still has: its row is a number of the
// broker's, its generation the uid that it counts against.
enum class RemnantDescriptor : uint32_t { kUp, kDown, kProcess, kCount };

inline constexpr uint64_t kKeeperMagic = 0x36305052504b4944ULL;  // "DIKPRP06"
// The time of an order to stop that must not wait any more, however short a time this host is up.
inline constexpr uint64_t kLongAgoNs = 1;
inline constexpr uint32_t kAnswers = 1;  // kCalled; a broker of before this word does not
inline constexpr size_t kKeptMax = static_cast<size_t>(SessionDescriptor::kCount);
inline constexpr size_t kKeptLeast = static_cast<size_t>(SessionDescriptor::kTree);

struct KeeperMessage {
    uint64_t magic = kKeeperMagic;
    KeeperWord word = KeeperWord::kHold;
    Kept what = Kept::kSession;
    uint32_t row = 0;  // kServing, kAdopt: kAnswers if it does
    uint32_t generation = 0;
    uint64_t death_ns = 0;      // kBegin: monotonic; 0 = there was no broker before
    uint64_t clock_offset = 0;  // kBegin, kAdopt, kServing: broker time − monotonic, modulo 2^64;
                                // kHold, the listener: its name's inode, if that is known
    uint64_t asked_ns = 0;      // kBegin, kStopping: monotonic, of the order to stop; 0 = none
    uint32_t put_aside = 0;     // kBegin: brokers died of this STATE, do not look into it
    uint32_t restarted = 0;     // kBegin: keeper and broker have died, a manager began us anew
    uint32_t unserved = 0;      // kBegin: no broker has served from this STATE
    uint32_t replaceable = 0;   // kBegin: another program can go on if this one cannot
    uint32_t text_size = 0;
    char text[108] = {};  // kServing: the socket's path; kNotUpgraded
};
static_assert(sizeof(KeeperMessage) == 176);

struct KeeperPacket {
    KeeperMessage message;
    std::array<shm::Descriptor, kKeptMax> descriptors;
    uint32_t count = 0;  // of the descriptors
};

class KeeperSocket {
  public:
    enum class Received { kPacket, kNothing, kClosed, kCut };

    KeeperSocket() = default;
    explicit KeeperSocket(shm::Descriptor socket) : socket_(std::move(socket)) {}
    // Two connected ends, close-on-exec. Throws std::system_error.
    static std::array<shm::Descriptor, 2> make_pair();

    [[nodiscard]] int fd() const { return socket_.get(); }
    void reset() { *this = KeeperSocket(); }

    // The descriptors stay the caller's, and open until they have left or forget() is called.
    void send(const KeeperMessage& message, std::span<const int> descriptors = {});
    // Before all that waits: a word on which nothing else depends.
    void send_ahead(const KeeperMessage& message);
    void flush();
    [[nodiscard]] bool waiting() const { return !waiting_.empty(); }
    // If so, for what.
    [[nodiscard]] bool waits_for_room() const { return waiting() && !lacked_; }
    [[nodiscard]] bool waits_for_time() const { return waiting() && lacked_; }
    static constexpr int kTryAgainMs = 5;
    // Takes what has not left of it out of the queue.
    void forget(Kept what, uint32_t row, uint32_t generation);
    void forget(Kept what);
    // Never waits. A packet that is not of this build counts as closed; one is cut for whose
    // descriptors there was no place.
    Received receive(KeeperPacket& packet) const;

  private:
    struct Waiting {
        KeeperMessage message;
        std::array<int, kKeptMax> descriptors;
        size_t count;
    };
    [[nodiscard]] bool push(const KeeperMessage& message, std::span<const int> descriptors);

    shm::Descriptor socket_;
    std::deque<Waiting> waiting_;
    bool lacked_ = false;  // the kernel something, when it was last tried
};

}  // namespace dibs
