// broker/turn/answer_repeat.cpp -- repeats a dead broker's staged answers and wakes all clients.
// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <cassert>

#include "broker/takeover/second_thread.hpp"
#include "broker/turn/answer.hpp"
#include "shm/doorbell.hpp"

namespace dibs {

namespace {

// Fewer sessions are done sooner than a thread starts.
constexpr size_t kSessionsForTwo = 32;

}  // namespace

// Each store is idempotent: nothing has been told to these sessions since.
void Answers::repeat() {
    if (core_.stores_owed()) store_staged();
    const std::vector<Session*>& all = sessions_.all();
    in_two(all.size() >= kSessionsForTwo, [&](unsigned half) {
        for (size_t at = half; at < all.size(); at += 2) {
            Session* session = all[at];
            assert(session->up.head() == session->consumed);  // no session is settled yet
            shm::commit_submissions(*session->down, session->consumed);
            session->events_changed = true;  // the words may have been stored and not counted
            publish(*session);
            shm::wake_client(*session->down);
            (void)send(session->event_socket.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
    });
}

}  // namespace dibs
