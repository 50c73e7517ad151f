// clientlib/connect.cpp -- a session's beginning and end: the handshake, the mappings, the tables.
//
// The segments are mapped with MADV_DONTFORK, so a child cannot write into its parent's rings, and
// one private page with MADV_WIPEONFORK tells every function that it is in a child, without a
// system call.
// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <new>

#include "clientlib/admin_connection.hpp"
#include "clientlib/patience.hpp"
#include "clientlib/session.hpp"
#include "shm/board.hpp"
#include "shm/last_words.hpp"

namespace dibs::client {
namespace {

constexpr int kHangUpsMax = 8;
constexpr uint32_t kDescriptors = static_cast<uint32_t>(shm::WelcomeDescriptor::kCount);

struct Opening {
    const dibs_connect_options& options;
    uint64_t until_ns = 0;  // monotonic
    int socket = -1;
    bool hung_up = false;  // by the broker, which may have died: its successor answers
    int descriptors[kDescriptors] = {-1, -1, -1, -1, -1};
    shm::Welcome welcome = {};
    sockaddr_un address = {};

    // The sentence begins with the socket's path, where there is one.
    int fail(int code, const char* what) const {
        const int error = errno;
        tell_failure(
            options, address, code, what, code == DIBS_ESYSTEM ? strerror(error) : nullptr);
        errno = error;
        return code;
    }
};

// A caller's own socket, connected by whoever the session is to be of.
int take_connected(Opening& opening) {
    opening.socket = *opening.options.connected;
    return opening.socket >= 0 ? DIBS_OK : opening.fail(DIBS_EARGUMENT, "no connected socket");
}

// Null, too, if it is set to nothing.
const char* variable(const char* name) {
    const char* value = secure_getenv(name);
    return value != nullptr && value[0] != 0 ? value : nullptr;
}

// broker/socket_path.cpp says the same for dibsd.
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
    if (patiently(opening.socket, SO_SNDTIMEO, opening.until_ns, connect) == 0) return DIBS_OK;
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
    const auto send = [&] { return ::send(opening.socket, &hello, sizeof hello, MSG_NOSIGNAL); };
    if (patiently(opening.socket, SO_SNDTIMEO, opening.until_ns, send) == sizeof hello) {
        return DIBS_OK;
    }
    // A broker that lets nobody else in has said so before it hung up.
    if (shm::peer_has_hung_up()) return DIBS_OK;
    return opening.fail(DIBS_ENOBROKER, "the broker does not take the greeting");
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
    const ssize_t size = patiently(opening.socket, SO_RCVTIMEO, opening.until_ns, receive);
    uint32_t count = 0;
    if (size >= 0)
        take_descriptors(opening, message, count);  // an empty packet may bring some, too
    if (size <= 0) {
        opening.hung_up = size == 0 || errno == ECONNRESET;
        return opening.fail(DIBS_ENOBROKER, "the broker does not answer");
    }
    if (size == sizeof(shm::Farewell) && reply.magic == shm::kFarewellMagic) {
        return refused(opening, reply.farewell);
    }
    if (size != sizeof(shm::Welcome) || reply.magic != shm::kWelcomeMagic ||
        count != kDescriptors) {
        return opening.fail(DIBS_EHANDSHAKE, "the broker's answer is not a welcome");
    }
    opening.welcome = reply.welcome;
    if (opening.welcome.layout_version != shm::kLayoutVersion) {
        return opening.fail(DIBS_EVERSION, "library and broker have different memory layouts");
    }
    return DIBS_OK;
}

// Maps a segment; the child of a fork does not get it.
void* map(int descriptor, uint64_t size, int protection, int flags) {
    struct stat status = {};
    if (fstat(descriptor, &status) != 0 || static_cast<uint64_t>(status.st_size) < size) {
        return nullptr;
    }
    void* address = mmap(nullptr, size, protection, MAP_SHARED | flags, descriptor, 0);
    if (address == MAP_FAILED) return nullptr;
    madvise(address, size, MADV_DONTFORK);
    return address;
}

int map_segments(const Opening& opening, Session& session) {
    const shm::Welcome& welcome = opening.welcome;
    session.sizes = {welcome.submission_entries,
                     welcome.completion_entries,
                     welcome.up_payload,
                     welcome.down_payload,
                     welcome.tags};
    if (!shm::valid_sizes(session.sizes) || welcome.up_size != shm::plan_up(session.sizes).size ||
        welcome.down_size != shm::plan_down(session.sizes).size ||
        welcome.pools_max > shm::kPoolsMax ||
        welcome.board_size < shm::plan_board(welcome.pools_max).size) {
        return opening.fail(DIBS_EHANDSHAKE, "the welcome's sizes do not fit together");
    }
    const auto descriptor = [&](shm::WelcomeDescriptor which) {
        return opening.descriptors[static_cast<uint32_t>(which)];
    };
    session.board_size = welcome.board_size;
    session.pools_max = welcome.pools_max;
    session.up = static_cast<shm::UpHead*>(map(descriptor(shm::WelcomeDescriptor::kUp),
                                               welcome.up_size,
                                               PROT_READ | PROT_WRITE,
                                               MAP_POPULATE));
    session.down = static_cast<const shm::DownHead*>(
        map(descriptor(shm::WelcomeDescriptor::kDown), welcome.down_size, PROT_READ, MAP_POPULATE));
    session.board = static_cast<const std::byte*>(
        map(descriptor(shm::WelcomeDescriptor::kBoard), welcome.board_size, PROT_READ, 0));
    if (session.up == nullptr || session.down == nullptr || session.board == nullptr) {
        return opening.fail(DIBS_ESYSTEM, "mapping the session");
    }
    // All but the histograms, which only tools read.
    madvise(const_cast<std::byte*>(session.board),
            shm::plan_board(welcome.pools_max).histograms,
            MADV_POPULATE_READ);
    const auto* board = reinterpret_cast<const shm::BoardHead*>(session.board);
    if (session.up->magic != shm::kUpMagic || session.down->magic != shm::kDownMagic ||
        board->magic != shm::kBoardMagic) {
        return opening.fail(DIBS_EHANDSHAKE, "the segments are not a session's");
    }
    return DIBS_OK;
}

void place_views(const Opening& opening, Session& session) {
    const shm::UpPlan up = shm::plan_up(session.sizes);
    const shm::DownPlan down = shm::plan_down(session.sizes);
    auto* up_bytes = reinterpret_cast<uint8_t*>(session.up);
    const auto* down_bytes = reinterpret_cast<const uint8_t*>(session.down);
    session.submissions = {reinterpret_cast<shm::SubmissionEntry*>(up_bytes + up.submission),
                           session.sizes.submission_entries,
                           0};
    session.completions = {
        reinterpret_cast<const shm::CompletionEntry*>(down_bytes + down.completion),
        session.sizes.completion_entries,
        0};
    session.histogram = reinterpret_cast<shm::UpHistogram*>(up_bytes + up.histogram);
    session.up_payload = up_bytes + up.payload;
    session.event_words = reinterpret_cast<const std::atomic<uint64_t>*>(down_bytes + down.event);
    session.down_payload = down_bytes + down.payload;
    session.name = uint64_t{opening.welcome.generation} << 32 | opening.welcome.session;
    session.credit = session.sizes.completion_entries - session.sizes.submission_entries;
}

// Hands out pieces of the private memory; run first without memory, to learn its size.
struct Pieces {
    uint8_t* base = nullptr;
    size_t used = 0;

    template <typename T>
    T* take(size_t count) {
        used = (used + 63) & ~size_t{63};
        T* items = base == nullptr ? nullptr : reinterpret_cast<T*>(base + used);
        used += count * sizeof(T);
        for (size_t i = 0; items != nullptr && i < count; ++i)
            new (&items[i]) T();
        return items;
    }
};

void take_tables(Session& session, Pieces& pieces) {
    const shm::SessionSizes& sizes = session.sizes;
    session.answers_max = session.credit;
    session.slots_max = session.credit / 2;
    session.tags = pieces.take<Tag>(sizes.tags);
    session.answers = pieces.take<Answer>(session.answers_max);
    session.stash.items = pieces.take<dibs_completion>(session.credit);
    session.stash.capacity = session.credit;
    session.assignments.items = pieces.take<shm::Completion>(sizes.completion_entries);
    session.assignments.capacity = sizes.completion_entries;
    session.payload_ends = pieces.take<uint64_t>(sizes.submission_entries);
    session.slots = pieces.take<uint64_t>(session.slots_max);
    session.slot_names = pieces.take<uint64_t>(session.slots_max);
}

void chain_tables(Session& session) {
    for (uint32_t tag = session.sizes.tags; tag-- != 0;) {
        session.tags[tag].next_free = session.free_tag;
        session.free_tag = tag;
    }
    for (uint32_t index = session.answers_max; index-- != 0;) {
        session.answers[index].next_free = session.free_answer;
        session.free_answer = index;
    }
}

// The page that a child finds wiped, and behind it the session and its tables.
dibs_session* make_session(Session& draft) {
    Pieces measure;
    take_tables(draft, measure);
    const size_t size = shm::kPageSize + sizeof(dibs_session) + 64 + measure.used;
    void* memory = take_marked(size);
    if (memory == nullptr) return nullptr;
    Pieces pieces;
    pieces.base = static_cast<uint8_t*>(memory) + shm::kPageSize;
    auto* session = pieces.take<dibs_session>(1);
    static_cast<Session&>(*session) = draft;
    session->mark = static_cast<uint64_t*>(memory);
    session->private_memory = memory;
    session->private_size = size;
    take_tables(*session, pieces);
    chain_tables(*session);
    return session;
}

int watch(const Opening& opening, Session& session) {
    session.socket = opening.socket;
    session.address = opening.address;
    session.bell = opening.descriptors[static_cast<uint32_t>(shm::WelcomeDescriptor::kBell)];
    session.events = opening.descriptors[static_cast<uint32_t>(shm::WelcomeDescriptor::kEvents)];
    session.poll = epoll_create1(EPOLL_CLOEXEC);
    epoll_event readable = {};
    readable.events = EPOLLIN;
    epoll_event gone = {};
    gone.events = EPOLLRDHUP;
    if (session.poll < 0 ||
        epoll_ctl(session.poll, EPOLL_CTL_ADD, session.events, &readable) != 0 ||
        epoll_ctl(session.poll, EPOLL_CTL_ADD, session.socket, &gone) != 0) {
        return opening.fail(DIBS_ESYSTEM, "epoll");
    }
    return DIBS_OK;
}

void unmap(const Session& session) {
    if (session.up != nullptr) munmap(session.up, shm::plan_up(session.sizes).size);
    if (session.down != nullptr) {
        munmap(const_cast<shm::DownHead*>(session.down), shm::plan_down(session.sizes).size);
    }
    if (session.board != nullptr) {
        munmap(const_cast<std::byte*>(session.board), session.board_size);
    }
}

int64_t spin_of(const dibs_connect_options& options) {
    if (options.spin_us == 0) return kSpinNs;
    return options.spin_us < 0 ? 0 : int64_t{options.spin_us} * 1000;
}

// Whoever was about to be let in when the broker died asks its successor; of a socket that was
// connected elsewhere there is no second one.
int shake_hands(Opening& opening) {
    for (int hang_ups = 1;; ++hang_ups) {
        opening.hung_up = false;
        int code = reach(opening);
        if (code == DIBS_OK) code = greet(opening);
        if (code == DIBS_OK) code = listen_for_welcome(opening);
        const bool again = opening.hung_up && opening.options.connected == nullptr &&
                           hang_ups < kHangUpsMax && monotonic_ns() < opening.until_ns;
        if (code == DIBS_OK || !again) return code;
        drop_descriptors(opening);
        ::close(opening.socket);
        opening.socket = -1;
    }
}

int open(Opening& opening, dibs_session** out) {
    const uint64_t first_ns = monotonic_ns();
    const uint64_t first_ticks = ticks();
    const int64_t timeout_ns =
        opening.options.timeout_ns == 0 ? kPatienceNs : opening.options.timeout_ns;
    opening.until_ns = first_ns + static_cast<uint64_t>(timeout_ns);
    int code = shake_hands(opening);
    if (code != DIBS_OK) return code;
    Session draft;
    code = map_segments(opening, draft);
    if (code == DIBS_OK) {
        place_views(opening, draft);
        code = watch(opening, draft);
    }
    if (code == DIBS_OK) {
        draft.spin_ns = spin_of(opening.options);
        draft.tick = TickLength(ticks() - first_ticks, monotonic_ns() - first_ns);
        *out = make_session(draft);
        if (*out == nullptr) code = opening.fail(DIBS_ESYSTEM, "memory for the session");
    }
    if (code != DIBS_OK) {
        if (draft.poll >= 0) ::close(draft.poll);
        unmap(draft);
    }
    return code;
}

}  // namespace

void* take_marked(size_t size) {
    void* memory = mmap(
        nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    if (madvise(memory, shm::kPageSize, MADV_WIPEONFORK) != 0) {
        munmap(memory, size);
        return nullptr;
    }
    *static_cast<uint64_t*>(memory) = kForkMark;
    return memory;
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

using dibs::client::Opening;

int dibs_connect(const dibs_connect_options* options, dibs_session** session) {
    if (session == nullptr) return DIBS_EARGUMENT;
    *session = nullptr;
    dibs_connect_options known;
    const int size_code = dibs::client::read_options(
        options, &known, sizeof known, dibs::client::kFirstConnectOptions);
    if (size_code != DIBS_OK) return size_code;
    if (known.timeout_ns < 0) return DIBS_ENEGATIVE;
    Opening opening = {known};
    const int code = dibs::client::open(opening, session);
    if (code == DIBS_OK) {
        using Which = dibs::shm::WelcomeDescriptor;
        constexpr Which kMapped[] = {Which::kUp, Which::kDown, Which::kBoard};
        for (const Which kept : kMapped) {
            close(opening.descriptors[static_cast<uint32_t>(kept)]);
        }
        return code;
    }
    dibs::client::drop_descriptors(opening);
    if (opening.socket >= 0 && known.connected == nullptr) close(opening.socket);
    return code;
}

int dibs_close(dibs_session* session) {
    if (session == nullptr) return DIBS_OK;
    const int code = dibs::client::check(session);
    if (code == DIBS_OK) {
        if (session->end_code == 0) {  // there is a line: kCloseLines
            dibs::shm::Submission entry;
            entry.user_data = dibs::client::kDiscard;
            entry.op = dibs::shm::Op::kClose;
            entry.flags = dibs::shm::OpFlag::kQuiet;
            session->push(entry);
            session->publish();
        }
        dibs::client::unmap(*session);
    }
    // A child has the descriptors and the private memory, but not the segments.
    const int descriptors[] = {session->poll, session->socket, session->bell, session->events};
    for (const int descriptor : descriptors) {
        close(descriptor);
    }
    munmap(session->private_memory, session->private_size);
    return code;
}

int dibs_end_code(dibs_session* session) {
    const int code = dibs::client::check(session);
    if (code != DIBS_OK) return code;
    session->look_whether_ended();
    session->net_if_due(dibs::client::monotonic_ns());
    return session->end_reason;
}
