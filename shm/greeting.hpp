// shm/greeting.hpp -- the messages that begin a session or an admin conversation.
//
//   client ── Hello ──────────────────────────────────────────────► broker
//   client ◄── Welcome + {UP, DOWN, BOARD, bell, event socket} ──── broker      or Farewell
//
// or, for a conversation of requests and answers (schemas/admin.fbs) without a session:
//
//   tool ── AdminHello ──────────────────────────────────────────────► broker
//   tool ◄── AdminWelcome ──────────────────────────────────────────── broker      or Farewell
//
// One SOCK_SEQPACKET packet each, told apart by their magic. In a Hello magic and layout version
// come first in every version. docs/shm-layout.md has the same as tables; tests/abi compares.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shm/layout.hpp"

namespace dibs::shm {

inline constexpr uint64_t kHelloMagic = 0x4f4c4c4548424944ULL;         // "DIBHELLO"
inline constexpr uint64_t kWelcomeMagic = 0x4d4f434c45574944ULL;       // "DIWELCOM"
inline constexpr uint64_t kFarewellMagic = 0x4557455241464944ULL;      // "DIFAREWE"
inline constexpr uint64_t kAdminHelloMagic = 0x4f4c48444d444944ULL;    // "DIDMDHLO"
inline constexpr uint64_t kAdminWelcomeMagic = 0x4d434c574d444944ULL;  // "DIDMWLCM"

namespace HelloFlag {
inline constexpr uint32_t kTree = 1;  // the client's control group is its session's alone
}  // namespace HelloFlag

// client → broker. Writer: the client.
struct Hello {
    uint64_t magic = kHelloMagic;
    uint32_t layout_version = kLayoutVersion;
    uint32_t flags = 0;               // HelloFlag
    uint32_t submission_entries = 0;  // 0 = the default, here and below
    uint32_t completion_entries = 0;
    uint32_t up_payload = 0;
    uint32_t down_payload = 0;
    uint32_t tags = 0;
    uint32_t reserved0 = 0;
};
static_assert(sizeof(Hello) == 40);

// broker → client, with five descriptors in this order. Writer: the broker.
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

// broker → client: refused. `text` says what and where. Writer: the broker.
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

// tool → broker. Writer: the tool.
struct AdminHello {
    uint64_t magic = kAdminHelloMagic;
    uint32_t admin_version = kAdminVersion;
    uint32_t layout_version = kLayoutVersion;
    char version[kVersionTextMax] = {};  // of the tool
    uint64_t reserved0 = 0;
};
static_assert(sizeof(AdminHello) == 48);

// broker → tool. Writer: the broker.
struct AdminWelcome {
    uint64_t magic = kAdminWelcomeMagic;
    uint32_t admin_version = kAdminVersion;
    uint32_t layout_version = kLayoutVersion;
    char version[kVersionTextMax] = {};  // of the broker
    uint64_t epoch = 0;
    uint32_t is_admin = 0;     // 1: the client may steer other users' claims and leases
    uint32_t admin_group = 0;  // number, plus 1, of the group whose members may; 0: no group
};
static_assert(sizeof(AdminWelcome) == 56);

}  // namespace dibs::shm
