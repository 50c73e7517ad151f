// shm/handshake.hpp -- the sizes of a session, and the places in its two segments.
//
// The messages are in shm/greeting.hpp. After the Welcome the socket carries nothing; it stays open
// for the life of the session. Both sides compute the places by plan_up and plan_down from the
// sizes of the Welcome; neither uses an offset that it reads in a segment which the other can
// write.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "shm/greeting.hpp"
#include "shm/layout.hpp"

namespace dibs::shm {

// The sizes of a session's segments. Powers of two all of them.
struct SessionSizes {
    uint32_t submission_entries = 128;
    uint32_t completion_entries = 256;
    uint32_t up_payload = 65536;    // bytes
    uint32_t down_payload = 65536;  // bytes
    uint32_t tags = 256;            // claims and leases at once
};

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

inline constexpr uint32_t kPageSize = 4096;

constexpr uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

// UP: head, submission ring, lease words and touch words (one per tag), histogram, payload area.
struct UpPlan {
    uint32_t submission;
    uint32_t lease_word;
    uint32_t touch_word;
    uint32_t histogram;
    uint32_t payload;
    uint64_t size;  // whole pages
};

constexpr UpPlan plan_up(const SessionSizes& sizes) {
    UpPlan plan = {};
    uint64_t at = sizeof(UpHead);
    plan.submission = static_cast<uint32_t>(at);
    at += uint64_t{sizes.submission_entries} * sizeof(SubmissionEntry);
    plan.lease_word = static_cast<uint32_t>(at);
    at = round_up(at + uint64_t{sizes.tags} * sizeof(LeaseWord), kLineSize);
    plan.touch_word = static_cast<uint32_t>(at);
    at = round_up(at + uint64_t{sizes.tags} * sizeof(TouchWord), kLineSize);
    plan.histogram = static_cast<uint32_t>(at);
    at = round_up(at + sizeof(UpHistogram), kLineSize);
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

// Broker, before the client has the segments: the heads of zeroed UP and DOWN. The version goes in
// last of each, though no client looks yet.
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
    up.submission_offset = plan.submission;
    up.payload_offset = plan.payload;
    up.lease_word_offset = plan.lease_word;
    up.touch_word_offset = plan.touch_word;
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
