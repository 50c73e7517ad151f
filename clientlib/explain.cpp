// clientlib/explain.cpp -- why a claim waits, asked of the broker in an admin conversation.
//
// The tables are those of schemas/admin.fbs, of which this knows two shapes: a request that asks
// about a tag, written as the bytes that it always has, and the struct of facts in the answer. A
// test holds both against the generated code.
// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "clientlib/admin_tables.hpp"
#include "clientlib/session.hpp"

namespace dibs::client {
namespace {

constexpr size_t kAnswerSize = 4096;

class Connection {
  public:
    Connection() : fd_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {}
    ~Connection() {
        if (fd_ >= 0) ::close(fd_);
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    int reach(const sockaddr_un& address) const {
        if (fd_ < 0) return DIBS_ESYSTEM;
        const timeval limit = {1, 0};
        setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        const auto* to = reinterpret_cast<const sockaddr*>(&address);
        if (::connect(fd_, to, sizeof address) == 0) return DIBS_OK;
        const bool gone = errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN;
        return gone ? DIBS_ENOBROKER : DIBS_ESYSTEM;
    }

    // Says something and hears the answer; its size, or a code.
    int ask(const void* said, size_t size, void* answer, size_t room) const {
        // A broker that has hung up may have said why before.
        if (::send(fd_, said, size, MSG_NOSIGNAL) < 0 && errno != EPIPE) return DIBS_ENOBROKER;
        const ssize_t heard = ::recv(fd_, answer, room, 0);
        return heard <= 0 ? DIBS_ENOBROKER : static_cast<int>(heard);
    }

  private:
    int fd_;
};

int greet(const Connection& connection) {
    shm::AdminHello hello;
    snprintf(hello.version,
             sizeof hello.version,
             "%d.%d.%d",
             DIBS_VERSION_MAJOR,
             DIBS_VERSION_MINOR,
             DIBS_VERSION_PATCH);
    union {
        uint64_t magic;
        shm::AdminWelcome welcome;
        shm::Farewell farewell;
    } reply = {};
    const int size = connection.ask(&hello, sizeof hello, &reply, sizeof reply);
    if (size < 0) return size;
    if (size == sizeof reply.welcome && reply.magic == shm::kAdminWelcomeMagic) {
        return reply.welcome.admin_version == shm::kAdminVersion ? DIBS_OK : DIBS_EVERSION;
    }
    if (size != sizeof reply.farewell || reply.magic != shm::kFarewellMagic) {
        return DIBS_EHANDSHAKE;
    }
    switch (reply.farewell.code) {
        case shm::FarewellCode::kVersion:
            return DIBS_EVERSION;
        case shm::FarewellCode::kFull:
            return DIBS_ELIMIT;
        default:
            return DIBS_EHANDSHAKE;
    }
}

int64_t duration(uint64_t ns) {
    return ns > static_cast<uint64_t>(INT64_MAX) ? DIBS_FOREVER : static_cast<int64_t>(ns);
}

void tell(const WaitFacts& facts, dibs_explanation* why) {
    why->reason = facts.reason;
    why->obstacle = facts.obstacle;
    why->position = facts.position;
    why->waiting = facts.waiting;
    why->units = facts.units;
    why->confirmed = facts.confirmed;
    why->idle = facts.idle;
    why->slots = facts.slots;
    why->waited_ns = duration(facts.waited_ns);
    why->left_ns = duration(facts.left_ns);
    why->claim = facts.number;
    why->holder = {};
    if (facts.holder_uid == shm::kNoRow) return;
    const bool hidden = facts.holder_uid == shm::kHiddenUid;
    why->holder.uid = hidden ? DIBS_HIDDEN_UID : facts.holder_uid;
    why->holder.pid = facts.holder_pid;
    why->holder.age_ns = duration(facts.holder_age_ns);
    why->holder.claim = facts.holder_number != 0 ? facts.holder_number : DIBS_HIDDEN_CLAIM;
}

// The broker knows of the claim once it has read it.
int wait_until_read(Session& session) {
    const uint64_t until = monotonic_ns() + DIBS_SECOND;
    session.publish();
    while (shm::committed_submissions(*session.down) < session.submissions.tail()) {
        session.look_whether_ended();
        if (session.end_code != 0) return session.end_code;
        if (monotonic_ns() > until) return DIBS_ENOBROKER;
        sched_yield();
    }
    return DIBS_OK;
}

int explain(Session& session, uint16_t tag, dibs_explanation* why) {
    int code = wait_until_read(session);
    if (code != DIBS_OK) return code;
    const Connection connection;
    code = connection.reach(session.address);
    if (code == DIBS_OK) code = greet(connection);
    if (code != DIBS_OK) return code;
    ExplainRequest request;
    request.session = session.name;
    request.tag = tag;
    alignas(8) uint8_t answer[kAnswerSize];
    const int size = connection.ask(&request, sizeof request, answer, sizeof answer);
    if (size < 0) return size;
    if (size > static_cast<int>(sizeof answer)) return DIBS_EHANDSHAKE;
    WaitFacts facts;
    switch (read_explanation(answer, static_cast<size_t>(size), &facts)) {
        case ExplanationFound::kFacts:
            tell(facts, why);
            return DIBS_OK;
        case ExplanationFound::kNotFound:
            return DIBS_ENOTFOUND;
        case ExplanationFound::kNonsense:
            break;
    }
    return DIBS_EHANDSHAKE;
}

}  // namespace
}  // namespace dibs::client

int dibs_explain(dibs_session* session, uint64_t ticket, dibs_explanation* why) {
    const int code = dibs::client::check_open(session);
    if (code != DIBS_OK) return code;
    if (why == nullptr) return DIBS_EARGUMENT;
    if (why->size < sizeof *why) return DIBS_ESIZE;
    const auto tag = static_cast<uint32_t>(ticket);
    if (tag >= session->sizes.tags || session->tags[tag].use != ticket >> 32) return DIBS_ENOTFOUND;
    if (session->tags[tag].state != dibs::client::TagState::kClaiming) return DIBS_ENOTFOUND;
    return dibs::client::explain(*session, static_cast<uint16_t>(tag), why);
}
