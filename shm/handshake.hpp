// shm/handshake.hpp -- the messages by which a session begins, and where things lie in its
// two segments.
//
//   client ── Hello ──────────────────────────────────────────────► broker
//   client ◄── Welcome + {UP, DOWN, BOARD, bell, event socket} ──── broker      or Farewell
//
// or, for a conversation of requests and answers (schemas/admin.fbs) without a session:
//
//   tool ── AdminHello ──────────────────────────────────────────────► broker
//   tool ◄── AdminWelcome ──────────────────────────────────────────── broker      or Farewell
//
// One SOCK_SEQPACKET packet each, told apart by their magic. After the Welcome the socket carries
// nothing; it stays open for the life of the session. Both sides compute the places by plan_up and
// plan_down from the sizes of the Welcome; neither believes an offset that it reads in a segment
// which the other can write.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "shm/layout.hpp"

namespace dibs::shm {

inline constexpr uint64_t kHelloMagic = 0x4f4c4c4548424944ULL;         // "DIBHELLO"
inline constexpr uint64_t kWelcomeMagic = 0x4d4f434c45574944ULL;       // "DIWELCOM"
inline constexpr uint64_t kFarewellMagic = 0x4557455241464944ULL;      // "DIFAREWE"
inline constexpr uint64_t kAdminHelloMagic = 0x4f4c48444d444944ULL;    // "DIDMDHLO"
inline constexpr uint64_t kAdminWelcomeMagic = 0x4d434c574d444944ULL;  // "DIDMWLCM"

// The sizes of a session's segments. Powers of two all of them.
struct SessionSizes {
    uint32_t submission_entries = 128;
    uint32_t completion_entries = 256;
    uint32_t up_payload = 65536;    // bytes
    uint32_t down_payload = 65536;  // bytes
    uint32_t tags = 256;            // claims and leases at once
};

// client → broker
struct Hello {
    uint64_t magic = kHelloMagic;
    uint32_t layout_version = kLayoutVersion;
    uint32_t flags = 0;
    uint32_t submission_entries = 0;  // 0 = the default, here and below
    uint32_t completion_entries = 0;
    uint32_t up_payload = 0;
    uint32_t down_payload = 0;
    uint32_t tags = 0;
    uint32_t reserved0 = 0;
};
static_assert(sizeof(Hello) == 40);

// broker → client, with five descriptors in this order.
enum class WelcomeDescriptor : uint32_t { kUp, kDown, kBoard, kBell, kEvents, kCount };

struct Welcome {
    uint64_t magic = kWelcomeMagic;
    uint32_t layout_version = kLayoutVersion;
    uint32_t flags = 0;
    uint64_t epoch = 0;
    uint32_t session = 0;  // row
    uint32_t generation = 0;
    uint32_t submission_entries = 0;
    uint32_t completion_entries = 0;
    uint32_t up_payload = 0;
    uint32_t down_payload = 0;
    uint32_t tags = 0;
    uint32_t pools_max = 0;  // of the BOARD
    uint64_t up_size = 0;
    uint64_t down_size = 0;
    uint64_t board_size = 0;
};
static_assert(sizeof(Welcome) == 80);

enum class FarewellCode : uint32_t {
    kVersion = 1,     // the two versions differ
    kMalformed = 2,   // not a Hello
    kSizes = 3,       // not powers of two, or out of their limits
    kNotAllowed = 4,  // by policy
    kFull = 5,        // no row or memory for another session
    kDraining = 6,    // the broker is about to stop
    kLimit = 7,       // as many sessions, as much memory, as often as this user may
};

// broker → client: refused. `text` says what and where.
struct Farewell {
    uint64_t magic = kFarewellMagic;
    FarewellCode code = FarewellCode::kMalformed;
    uint32_t broker_layout = kLayoutVersion;
    uint32_t client_layout = 0;
    uint32_t text_size = 0;
    char text[200] = {};
};
static_assert(sizeof(Farewell) == 224);

// The vocabulary of requests and answers. It grows by fields that older readers pass over; what
// they could not pass over raises this number.
inline constexpr uint32_t kAdminVersion = 1;
inline constexpr uint32_t kVersionTextMax = 24;  // bytes of "0.1.0", zero padded

// tool → broker
struct AdminHello {
    uint64_t magic = kAdminHelloMagic;
    uint32_t admin_version = kAdminVersion;
    uint32_t layout_version = kLayoutVersion;
    char version[kVersionTextMax] = {};  // of the tool
    uint64_t reserved0 = 0;
};
static_assert(sizeof(AdminHello) == 48);

// broker → tool
struct AdminWelcome {
    uint64_t magic = kAdminWelcomeMagic;
    uint32_t admin_version = kAdminVersion;
    uint32_t layout_version = kLayoutVersion;
    char version[kVersionTextMax] = {};  // of the broker
    uint64_t epoch = 0;
    uint32_t is_admin = 0;  // 1: whoever said AdminHello may steer what is not his own
    uint32_t reserved0 = 0;
};
static_assert(sizeof(AdminWelcome) == 56);

inline constexpr SessionSizes kDefaultSizes = {};
inline constexpr uint32_t kSubmissionEntriesMin = 8;
inline constexpr uint32_t kSubmissionEntriesMax = 4096;
inline constexpr uint32_t kCompletionEntriesMax = 16384;
inline constexpr uint32_t kSessionPayloadMin = 4096;
inline constexpr uint32_t kSessionPayloadMax = 4U << 20;
inline constexpr uint32_t kTagsMin = 8;

constexpr bool power_of_two(uint32_t value) {
    return value != 0 && (value & (value - 1)) == 0;
}

constexpr bool within(uint32_t value, uint32_t least, uint32_t most) {
    return power_of_two(value) && value >= least && value <= most;
}

// What was asked for, with the defaults filled in.
constexpr SessionSizes wanted_sizes(const Hello& hello) {
    SessionSizes sizes = kDefaultSizes;
    if (hello.submission_entries != 0) sizes.submission_entries = hello.submission_entries;
    if (hello.completion_entries != 0) sizes.completion_entries = hello.completion_entries;
    if (hello.up_payload != 0) sizes.up_payload = hello.up_payload;
    if (hello.down_payload != 0) sizes.down_payload = hello.down_payload;
    if (hello.tags != 0) sizes.tags = hello.tags;
    return sizes;
}

// The completion ring is at least twice the submission ring: what is submitted must have room to
// be answered beside what is not yet read.
constexpr bool valid_sizes(const SessionSizes& sizes) {
    return within(sizes.submission_entries, kSubmissionEntriesMin, kSubmissionEntriesMax) &&
           within(sizes.completion_entries, 2 * kSubmissionEntriesMin, kCompletionEntriesMax) &&
           sizes.completion_entries >= 2 * sizes.submission_entries &&
           within(sizes.up_payload, kSessionPayloadMin, kSessionPayloadMax) &&
           within(sizes.down_payload, kSessionPayloadMin, kSessionPayloadMax) &&
           within(sizes.tags, kTagsMin, kTagsMax);
}

inline constexpr uint32_t kParkedWords = 64;
inline constexpr uint32_t kPageSize = 4096;

constexpr uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

// UP: head, submission ring, histogram, keepalive words (one per tag), parked words, payload area.
struct UpPlan {
    uint32_t submission;
    uint32_t histogram;
    uint32_t keepalive;
    uint32_t parked;
    uint32_t payload;
    uint64_t size;  // whole pages
};

constexpr UpPlan plan_up(const SessionSizes& sizes) {
    UpPlan plan = {};
    uint64_t at = sizeof(UpHead);
    plan.submission = static_cast<uint32_t>(at);
    at += uint64_t{sizes.submission_entries} * sizeof(SubmissionEntry);
    plan.histogram = static_cast<uint32_t>(at);
    at = round_up(at + sizeof(UpHistogram), kLineSize);
    plan.keepalive = static_cast<uint32_t>(at);
    at = round_up(at + uint64_t{sizes.tags} * sizeof(uint64_t), kLineSize);
    plan.parked = static_cast<uint32_t>(at);
    at = round_up(at + uint64_t{kParkedWords} * sizeof(ParkedWord), kLineSize);
    plan.payload = static_cast<uint32_t>(at);
    plan.size = round_up(at + sizes.up_payload, kPageSize);
    return plan;
}

// DOWN: head, completion ring, event words (one per tag), payload area.
struct DownPlan {
    uint32_t completion;
    uint32_t event;
    uint32_t payload;
    uint64_t size;  // whole pages
};

constexpr DownPlan plan_down(const SessionSizes& sizes) {
    DownPlan plan = {};
    uint64_t at = sizeof(DownHead);
    plan.completion = static_cast<uint32_t>(at);
    at += uint64_t{sizes.completion_entries} * sizeof(CompletionEntry);
    plan.event = static_cast<uint32_t>(at);
    at = round_up(at + uint64_t{sizes.tags} * sizeof(uint64_t), kLineSize);
    plan.payload = static_cast<uint32_t>(at);
    plan.size = round_up(at + sizes.down_payload, kPageSize);
    return plan;
}

static_assert(plan_up(kDefaultSizes).size + plan_down(kDefaultSizes).size <= 192 * 1024);

// Broker, before the client has the segments: the heads of zeroed UP and DOWN. The version goes
// in last of each, though nobody looks yet.
inline void write_up_head(UpHead& up,
                          const SessionSizes& sizes,
                          uint32_t session,
                          uint32_t generation) {
    const UpPlan plan = plan_up(sizes);
    up.magic = kUpMagic;
    up.session = session;
    up.generation = generation;
    up.submission_entries = sizes.submission_entries;
    up.payload_size = sizes.up_payload;
    up.tags = sizes.tags;
    up.parked_words = kParkedWords;
    up.submission_offset = plan.submission;
    up.payload_offset = plan.payload;
    up.keepalive_offset = plan.keepalive;
    up.parked_offset = plan.parked;
    up.histogram_offset = plan.histogram;
    up.size = plan.size;
    up.version = kLayoutVersion;
}

inline void write_down_head(DownHead& down,
                            const SessionSizes& sizes,
                            uint32_t session,
                            uint32_t generation,
                            uint64_t epoch) {
    const DownPlan plan = plan_down(sizes);
    down.magic = kDownMagic;
    down.session = session;
    down.generation = generation;
    down.completion_entries = sizes.completion_entries;
    down.payload_size = sizes.down_payload;
    down.tags = sizes.tags;
    down.completion_offset = plan.completion;
    down.payload_offset = plan.payload;
    down.event_offset = plan.event;
    down.epoch = epoch;
    down.size = plan.size;
    down.session_state.store(static_cast<uint32_t>(SessionState::kOpen), std::memory_order_relaxed);
    down.version = kLayoutVersion;
}

}  // namespace dibs::shm
