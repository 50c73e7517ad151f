// clientlib/handshake.cpp -- connects to the broker, sends Hello and receives Welcome.
// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clientlib/admin_connection.hpp"
#include "clientlib/opening.hpp"
#include "clientlib/session.hpp"
#include "clientlib/timed_call.hpp"
#include "shm/packet.hpp"
#include "shm/ring.hpp"

namespace dibs::client {
namespace {

constexpr int kHangUpsMax = 8;

// A caller's own socket, connected by the process that the session is to be of.
int take_connected(Opening& opening) {
    opening.socket = *opening.options.connected;
    return opening.socket >= 0 ? DIBS_OK : opening.fail(DIBS_EARGUMENT, "no connected socket");
}

// Null, too, if it is set to nothing.
const char* variable(const char* name) {
    const char* value = secure_getenv(name);
    return value != nullptr && value[0] != 0 ? value : nullptr;
}

// broker/admission/socket_path.cpp says the same for dibsd.
int socket_path(const dibs_connect_options& options, char (&path)[sizeof(sockaddr_un::sun_path)]) {
    const char* given =
        options.socket_path != nullptr ? options.socket_path : variable("DIBS_SOCKET");
    const char* runtime = given == nullptr ? variable("XDG_RUNTIME_DIR") : nullptr;
    int size = 0;
    if (given != nullptr) {
        size = snprintf(path, sizeof path, "%s", given);
    } else if (runtime != nullptr) {
        size = snprintf(path, sizeof path, "%s/dibs/dibs.sock", runtime);
    } else {
        size = snprintf(path, sizeof path, "/run/dibs/dibs.sock");
    }
    return size > 0 && static_cast<size_t>(size) < sizeof path ? DIBS_OK : DIBS_ENAME;
}

int reach(Opening& opening) {
    sockaddr_un& address = opening.address;
    address.sun_family = AF_UNIX;
    if (socket_path(opening.options, address.sun_path) != DIBS_OK) {
        return opening.fail(DIBS_ENAME, "the socket's path is empty or too long");
    }
    if (opening.options.connected != nullptr) {
        const int code = take_connected(opening);
        if (code != DIBS_OK) return code;
    } else {
        opening.socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (opening.socket < 0) return opening.fail(DIBS_ESYSTEM, "socket");
    }
    if (opening.options.connected != nullptr) return DIBS_OK;
    const auto connect = [&] {
        return ::connect(opening.socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
    };
    if (timed_call(opening.socket, SO_SNDTIMEO, opening.until_ns, connect) == 0) return DIBS_OK;
    if (errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN) {
        return opening.fail(DIBS_ENOBROKER, "no broker listens there");
    }
    return opening.fail(DIBS_ESYSTEM, "cannot connect");
}

int refused(const Opening& opening, const shm::Farewell& farewell) {
    char text[sizeof farewell.text + 1] = {};
    memcpy(text, farewell.text, sizeof farewell.text);
    return opening.fail(code_of_farewell(farewell.code), text);
}

int greet(Opening& opening) {
    shm::Hello hello;
    hello.submission_entries = opening.options.submission_entries;
    hello.completion_entries = opening.options.completion_entries;
    hello.up_payload = opening.options.up_payload;
    hello.down_payload = opening.options.down_payload;
    hello.tags = opening.options.leases_max;
    hello.flags = opening.options.tree != 0 ? shm::HelloFlag::kTree : 0;
    const auto send = [&] { return ::send(opening.socket, &hello, sizeof hello, MSG_NOSIGNAL); };
    if (timed_call(opening.socket, SO_SNDTIMEO, opening.until_ns, send) == sizeof hello) {
        return DIBS_OK;
    }
    // A broker that lets no other user in has said so before it hung up.
    if (shm::peer_has_hung_up()) return DIBS_OK;
    return opening.fail(DIBS_ENOBROKER, "the broker does not take the greeting");
}

// The Welcome's descriptors, and the epoll descriptor behind it, are sure to find a place: a
// process with no place left learns of that before the broker opens a session that it could not
// use.
int reserve(Opening& opening) {
    for (int& place : opening.reserved) {
        place = fcntl(opening.socket, F_DUPFD_CLOEXEC, 0);
        if (place < 0) return opening.fail(DIBS_ESYSTEM, "the session's descriptors");
    }
    return DIBS_OK;
}

void free_reserved(Opening& opening) {
    for (int& place : opening.reserved) {
        if (place >= 0) ::close(place);
        place = -1;
    }
}

void take_descriptors(Opening& opening, msghdr& message, uint32_t& count) {
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        const size_t sent = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < sent; ++i) {
            int descriptor = -1;
            memcpy(&descriptor, CMSG_DATA(header) + i * sizeof descriptor, sizeof descriptor);
            if (count < kDescriptors) {
                opening.descriptors[count] = descriptor;
            } else {
                ::close(descriptor);
            }
            ++count;
        }
    }
}

void drop_descriptors(Opening& opening) {
    for (int& descriptor : opening.descriptors) {
        if (descriptor >= 0) ::close(descriptor);
        descriptor = -1;
    }
}

// The broker's session has no other end: by this it ends, and not only with this process. The one
// line is written without the mapping, which may be what there was no memory for.
void close_unused(const Opening& opening) {
    const shm::Welcome& welcome = opening.welcome;
    const shm::SessionSizes sizes = {welcome.submission_entries,
                                     welcome.completion_entries,
                                     welcome.up_payload,
                                     welcome.down_payload,
                                     welcome.tags};
    const int up = opening.descriptor(shm::WelcomeDescriptor::kUp);
    if (!opening.welcomed || up < 0 || !shm::valid_sizes(sizes)) return;
    shm::Submission entry;
    entry.user_data = kDiscard;
    entry.op = shm::Op::kClose;
    entry.flags = shm::OpFlag::kQuiet;
    const uint64_t first = 1;  // the sequence of the ring's first line, and the tail behind it
    const auto line = static_cast<off_t>(shm::plan_up(sizes).submission);
    // A limit on the size of files holds for this one, and a write behind it kills.
    rlimit written = {};
    if (getrlimit(RLIMIT_FSIZE, &written) != 0 ||
        written.rlim_cur < static_cast<rlim_t>(line) + sizeof(shm::Submission)) {
        return;
    }
    constexpr size_t kSequence = sizeof entry.sequence;
    const auto* body = reinterpret_cast<const char*>(&entry) + kSequence;
    const auto write_at = [&](const void* bytes, size_t size, off_t place) {
        return pwrite(up, bytes, size, place) == static_cast<ssize_t>(size);
    };
    // The line before its sequence, that before the tail: as RingProducer::push.
    if (write_at(body, sizeof entry - kSequence, line + off_t{kSequence}) &&
        write_at(&first, kSequence, line)) {
        (void)write_at(&first, sizeof first, offsetof(shm::UpHead, submission_tail));
    }
    const uint64_t one = 1;
    (void)!write(opening.descriptor(shm::WelcomeDescriptor::kBell), &one, sizeof one);
}

int listen_for_welcome(Opening& opening) {
    union {
        uint64_t magic;
        shm::Welcome welcome;
        shm::Farewell farewell;
    } reply = {};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 8)] = {};
    iovec part = {&reply, sizeof reply};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const auto receive = [&] {
        return shm::receive_packet(opening.socket, &message, MSG_CMSG_CLOEXEC);
    };
    free_reserved(opening);  // their places are what comes with the packet
    ssize_t size = timed_call(opening.socket, SO_RCVTIMEO, opening.until_ns, receive);
    // From here on nothing can arrive: the broker learns that when it sends. A session that has
    // arrived since must not stay open.
    const bool late = size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (late) {
        (void)shutdown(opening.socket, SHUT_RD);
        message.msg_controllen = sizeof control;
        size = shm::receive_packet(opening.socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    }
    uint32_t count = 0;
    if (size >= 0)
        take_descriptors(opening, message, count);  // an empty packet may bring some, too
    if (size <= 0) {
        opening.hung_up = !late && (size == 0 || errno == ECONNRESET);
        return opening.fail(DIBS_ENOBROKER, "the broker does not answer");
    }
    if (size == sizeof(shm::Farewell) && reply.magic == shm::kFarewellMagic) {
        return refused(opening, reply.farewell);
    }
    const bool cut = (message.msg_flags & MSG_CTRUNC) != 0;
    if (size != sizeof(shm::Welcome) || reply.magic != shm::kWelcomeMagic ||
        (count != kDescriptors && !cut)) {
        return opening.fail(DIBS_EHANDSHAKE, "the broker's answer is not a welcome");
    }
    opening.welcome = reply.welcome;
    opening.welcomed = true;
    if (count != kDescriptors) {  // another thread has taken what was reserved
        errno = EMFILE;
        return opening.fail(DIBS_ESYSTEM, "the session's descriptors");
    }
    if (late) return opening.fail(DIBS_ENOBROKER, "the broker does not answer in time");
    if (opening.welcome.layout_version != shm::kLayoutVersion) {
        return opening.fail(DIBS_EVERSION, "library and broker have different memory layouts");
    }
    return DIBS_OK;
}

}  // namespace

int Opening::fail(int code, const char* what) const {
    const int error = errno;
    tell_failure(options, address, code, what, code == DIBS_ESYSTEM ? strerror(error) : nullptr);
    errno = error;
    return code;
}

void give_up(Opening& opening) {
    close_unused(opening);
    free_reserved(opening);
    drop_descriptors(opening);
    if (opening.socket >= 0 && opening.options.connected == nullptr) ::close(opening.socket);
    opening.socket = -1;
}

// A client that was about to be let in when the broker died asks its successor; a socket that was
// connected elsewhere has no second connection.
int shake_hands(Opening& opening) {
    for (int hang_ups = 1;; ++hang_ups) {
        opening.hung_up = false;
        int code = reach(opening);
        if (code == DIBS_OK) code = reserve(opening);
        if (code == DIBS_OK) code = greet(opening);
        if (code == DIBS_OK) code = listen_for_welcome(opening);
        const bool again = opening.hung_up && opening.options.connected == nullptr &&
                           hang_ups < kHangUpsMax && monotonic_ns() < opening.until_ns;
        if (code == DIBS_OK || !again) return code;
        give_up(opening);
    }
}

void tell_failure(const dibs_connect_options& options,
                  const sockaddr_un& address,
                  int code,
                  const char* what,
                  const char* why) {
    if (options.error_text == nullptr || options.error_text_size == 0) return;
    // Nothing happened at the path where the caller has connected, or where it is cut short.
    const bool tells = options.connected == nullptr && code != DIBS_ENAME;
    const char* path = tells ? address.sun_path : "";
    snprintf(options.error_text,
             options.error_text_size,
             "%s%s%s%s%s",
             path,
             path[0] != 0 ? ": " : "",
             what,
             why != nullptr ? ": " : "",
             why != nullptr ? why : "");
}

int broker_address(const dibs_connect_options& options, sockaddr_un* address) {
    address->sun_family = AF_UNIX;
    return socket_path(options, address->sun_path);
}

}  // namespace dibs::client
