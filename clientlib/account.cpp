// clientlib/account.cpp -- reads accounts and their shares from the BOARD.
// It touches neither the rings nor the session's tables, so any thread may call it.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "clientlib/session.hpp"
#include "shm/board.hpp"

namespace dibs::client {
namespace {

uint32_t places(const Session& session) {
    return shm::board_accounts(session.board_size, session.pools_max);
}

// DIBS_ENOTFOUND: no such account.
int read_account(const Session& session, uint32_t place, shm::AccountPicture& out) {
    const uint64_t array = shm::plan_board(session.pools_max).accounts;
    const auto* blocks =
        shm::board_array<const std::byte, const shm::BoardAccount>(session.board, array);
    if (!shm::board_read(blocks[place], out)) return DIBS_ETORN;
    out.name[sizeof out.name - 1] = 0;
    return out.state == shm::BoardAccountState::kNone ? DIBS_ENOTFOUND : DIBS_OK;
}

}  // namespace
}  // namespace dibs::client

using namespace dibs::client;

int dibs_account(dibs_session* session, const char* name, uint32_t* place) {
    const int code = check(session);
    if (code != DIBS_OK) return code;
    if (name == nullptr || place == nullptr) return DIBS_EARGUMENT;
    const size_t size = strnlen(name, DIBS_NAME_MAX + 1);
    if (size == 0 || size > DIBS_NAME_MAX) return DIBS_ENAME;
    const uint32_t count = places(*session);
    for (uint32_t at = 0; at < count; ++at) {
        dibs::shm::AccountPicture picture;
        const int read = read_account(*session, at, picture);
        if (read == DIBS_ETORN) return read;
        if (read == DIBS_OK && strcmp(picture.name, name) == 0) {
            *place = at;
            return DIBS_OK;
        }
    }
    return DIBS_ENOTFOUND;
}

int dibs_account_share(dibs_session* session, uint32_t place, dibs_share* share) {
    const int code = check(session);
    if (code != DIBS_OK) return code;
    if (share == nullptr) return DIBS_EARGUMENT;
    if (share->size < sizeof *share) return DIBS_ESIZE;
    if (place >= places(*session)) return DIBS_EARGUMENT;
    dibs::shm::AccountPicture picture;
    const int read = read_account(*session, place, picture);
    if (read != DIBS_OK) return read;
    const auto* head = reinterpret_cast<const dibs::shm::BoardHead*>(session->board);
    // The head's time may be of an earlier turn than the block: never before it.
    const uint64_t seen = head->time_ns.load(std::memory_order_relaxed);
    const uint64_t now = seen > picture.time_ns ? seen : picture.time_ns;
    memcpy(share->name, picture.name, sizeof share->name);
    share->configured = picture.state == dibs::shm::BoardAccountState::kConfigured;
    share->held = picture.held;
    share->waiting = picture.waiting;
    share->rate = picture.rate;
    share->used_ns = picture.used_us * 1000 + picture.held * (now - picture.time_ns);
    share->counted_ns = now - picture.counted_since_ns;
    return DIBS_OK;
}
