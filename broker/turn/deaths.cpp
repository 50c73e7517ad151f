// broker/turn/deaths.cpp -- how a session ends, whoever ended it.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/deaths.hpp"

namespace dibs {

namespace {

// Told to the core in one turn, which may kill, log and close for each of them: the others' claims
// come between.
constexpr size_t kReapedAtOnce = 16;

}  // namespace

Deaths::Deaths(core::Core& core, Sessions& sessions, Ingest& ingest, Kills& kills)
    : core_(core), sessions_(sessions), ingest_(ingest), kills_(kills) {
    gone_.reserve(core.sessions_max());
}

// A dead process writes no more, and what it has left is at most one ring: a child of it that goes
// on writing must not keep it alive.
bool Deaths::drained(Session& session) {
    if (!session.draining || session.ending) return true;
    const uint64_t before = session.up.head();
    const auto left = static_cast<uint32_t>(session.drain_until - before);
    const Ingest::Read read = ingest_.read(session, left);
    if (session.up.head() != before) sessions_.in_turn(&session);
    return read != Ingest::Read::kMore || session.up.head() == session.drain_until;
}

void Deaths::reap() {
    std::vector<Session*>& ending = sessions_.ending();
    size_t kept = 0;
    size_t looked_at = 0;
    for (Session* session : ending) {
        const bool enough =
            looked_at == kReapedAtOnce || ingest_.turn_full() || sessions_.turn_full();
        if (!enough) ++looked_at;
        if (enough || !drained(*session)) {
            ending[kept++] = session;
            continue;
        }
        session->ending = true;
        if (kills_.condemn(*session)) continue;  // back when it is dead
        core_.session_died(session->row);
        gone_.push_back(session);
    }
    ending.resize(kept);
}

}  // namespace dibs
