// clientlib/connect.cpp -- opens and closes a session: its mappings and tables.
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

#include "clientlib/opening.hpp"
#include "clientlib/session.hpp"
#include "shm/board.hpp"

namespace dibs::client {
namespace {

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
    session.board_size = welcome.board_size;
    session.pools_max = welcome.pools_max;
    session.up = static_cast<shm::UpHead*>(map(opening.descriptor(shm::WelcomeDescriptor::kUp),
                                               welcome.up_size,
                                               PROT_READ | PROT_WRITE,
                                               MAP_POPULATE));
    session.down =
        static_cast<const shm::DownHead*>(map(opening.descriptor(shm::WelcomeDescriptor::kDown),
                                              welcome.down_size,
                                              PROT_READ,
                                              MAP_POPULATE));
    session.board = static_cast<const std::byte*>(
        map(opening.descriptor(shm::WelcomeDescriptor::kBoard), welcome.board_size, PROT_READ, 0));
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
    session.lease_words = reinterpret_cast<shm::LeaseWord*>(up_bytes + up.lease_word);
    session.touch_words = reinterpret_cast<shm::TouchWord*>(up_bytes + up.touch_word);
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
    session.app_events.items = pieces.take<shm::Completion>(session.credit);
    session.app_events.capacity = session.credit;
    session.apps_max = session.credit / shm::kCompletionsPerApplication;
    session.apps = pieces.take<ManagedApp>(session.apps_max);
    session.payload_ends = pieces.take<uint64_t>(sizes.submission_entries);
    session.slots = pieces.take<Offered>(session.slots_max);
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
    session.bell = opening.descriptor(shm::WelcomeDescriptor::kBell);
    session.events = opening.descriptor(shm::WelcomeDescriptor::kEvents);
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

int open(Opening& opening, dibs_session** out) {
    const uint64_t first_ns = monotonic_ns();
    const uint64_t first_ticks = ticks();
    const int64_t timeout_ns =
        opening.options.timeout_ns == 0 ? kAnswerTimeoutNs : opening.options.timeout_ns;
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
        draft.spin_window = draft.tick.of_ns(kSpinWindowNs);
        draft.net_window = draft.tick.of_ns(kNetNs);
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
    const int error = errno;
    dibs::client::give_up(opening);
    errno = error;
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
    while (session->assignments.count != 0) {
        const dibs::shm::Completion left = session->assignments.pop();
        const bool is_order = left.kind == dibs::shm::CompletionKind::kCreate;
        if (is_order) free(reinterpret_cast<void*>(left.user_data));
    }
    free(session->last_order.sizes);
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
