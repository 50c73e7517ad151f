// clientlib/admin_connection.hpp -- connects to the broker for an admin conversation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clientlib/session.hpp"
#include "clientlib/timed_call.hpp"
#include "dibs/dibs.h"
#include "shm/handshake.hpp"
#include "shm/packet.hpp"

namespace dibs::client {

// handshake.cpp: where the options say that the broker is. DIBS_OK, DIBS_ENAME.
int broker_address(const dibs_connect_options& options, sockaddr_un* address);
// The same: puts "PATH: what", and ": why" unless that is null, where the options want it.
void tell_failure(const dibs_connect_options& options,
                  const sockaddr_un& address,
                  int code,
                  const char* what,
                  const char* why);

class AdminConnection {
  public:
    AdminConnection() : fd_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {}
    ~AdminConnection() {
        if (fd_ >= 0) ::close(fd_);
    }
    AdminConnection(const AdminConnection&) = delete;
    AdminConnection& operator=(const AdminConnection&) = delete;

    int reach(const sockaddr_un& address) const {
        if (fd_ < 0) return DIBS_ESYSTEM;
        const auto* to = reinterpret_cast<const sockaddr*>(&address);
        const auto connect = [&] { return ::connect(fd_, to, sizeof address); };
        if (timed_call(fd_, SO_SNDTIMEO, until_ns_, connect) == 0) return DIBS_OK;
        const bool gone = errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN;
        return gone ? DIBS_ENOBROKER : DIBS_ESYSTEM;
    }

    // Sends a request and receives the answer; returns its size, or a code.
    int ask(const void* said, size_t size, void* answer, size_t room) const {
        // A broker that has hung up may have said why before.
        const auto send = [&] { return ::send(fd_, said, size, MSG_NOSIGNAL); };
        if (timed_call(fd_, SO_SNDTIMEO, until_ns_, send) < 0 && !shm::peer_has_hung_up()) {
            return DIBS_ENOBROKER;
        }
        const auto receive = [&] { return shm::receive_packet(fd_, answer, room); };
        const ssize_t heard = timed_call(fd_, SO_RCVTIMEO, until_ns_, receive);
        return heard <= 0 ? DIBS_ENOBROKER : static_cast<int>(heard);
    }

    [[nodiscard]] int fd() const { return fd_; }
    // How long all that follows may take, from now on; at first kAnswerTimeoutNs.
    void wait_for(int64_t answer_timeout_ns) {
        wait_until(monotonic_ns() + static_cast<uint64_t>(answer_timeout_ns));
    }
    void wait_until(uint64_t until_ns) { until_ns_ = until_ns; }

  private:
    int fd_;
    uint64_t until_ns_ = monotonic_ns() + kAnswerTimeoutNs;
};

// admin_connection.cpp
int greet(const AdminConnection& connection);
// Where the caller's options say: reached and greeted. What it has given goes into `known`.
int open_conversation(const AdminConnection& connection,
                      const dibs_connect_options* given,
                      dibs_connect_options* known);
// The code that a caller gets for a refused session or conversation.
int code_of_farewell(shm::FarewellCode code);
// What a code of schemas/admin.fbs is to a caller.
int code_of_answer(uint8_t code);

}  // namespace dibs::client
