// tests/process/raw_client.cpp -- a client that speaks the protocol by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/process/raw_client.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "shm/doorbell.hpp"

namespace dibs::test {

shm::Descriptor connect_to(const std::string& path) {
    shm::Descriptor made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    struct sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    if (connect(made.get(), reinterpret_cast<const struct sockaddr*>(&address), sizeof(address)) !=
        0) {
        made.reset();
    }
    return made;
}

Answer receive_answer(int socket) {
    Answer answer;
    alignas(8) std::array<std::byte, 512> packet = {};
    alignas(struct cmsghdr) std::array<char, CMSG_SPACE(5 * sizeof(int))> control = {};
    struct iovec part = {packet.data(), packet.size()};
    struct msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    // Said once, before the last word, where descriptors were passed.
    if (size < 0 && errno == ECONNRESET) size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
        std::array<int, 5> fds = {-1, -1, -1, -1, -1};
        std::memcpy(fds.data(), CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
        for (size_t i = 0; i < fds.size(); ++i)
            answer.descriptors[i] = shm::Descriptor(fds[i]);
    }
    if (size == static_cast<ssize_t>(sizeof(shm::Welcome))) {
        std::memcpy(&answer.welcome.emplace(), packet.data(), sizeof(shm::Welcome));
    } else if (size == static_cast<ssize_t>(sizeof(shm::Farewell))) {
        std::memcpy(&answer.farewell.emplace(), packet.data(), sizeof(shm::Farewell));
    }
    return answer;
}

RawClient::RawClient(const std::string& path, const shm::Hello& hello) : socket_(connect_to(path)) {
    if (!socket_.valid()) return;
    (void)send(socket_.get(), &hello, sizeof(hello), MSG_NOSIGNAL);
    Answer answer = receive_answer(socket_.get());
    if (answer.farewell) farewell_ = *answer.farewell;
    if (!answer.welcome) return;
    welcome_ = *answer.welcome;
    up_fd_ = std::move(answer.descriptors[0]);
    down_fd_ = std::move(answer.descriptors[1]);
    board_fd_ = std::move(answer.descriptors[2]);
    bell_ = std::move(answer.descriptors[3]);
    events_ = std::move(answer.descriptors[4]);
    const auto map = [](int fd, uint64_t size, int protection) {
        return static_cast<std::byte*>(mmap(nullptr, size, protection, MAP_SHARED, fd, 0));
    };
    up_ = map(up_fd_.get(), welcome_.up_size, PROT_READ | PROT_WRITE);
    down_ = map(down_fd_.get(), welcome_.down_size, PROT_READ);
    board_ = map(board_fd_.get(), welcome_.board_size, PROT_READ);
    own_mappings_ = true;
    begin();
}

RawClient::RawClient(const Mapped& mapped, const shm::Welcome& welcome)
    : bell_(dup(mapped.bell)),
      welcome_(welcome),
      up_(mapped.up),
      down_(mapped.down),
      board_(mapped.board) {
    begin();
}

void RawClient::begin() {
    sizes_ = {welcome_.submission_entries,
              welcome_.completion_entries,
              welcome_.up_payload,
              welcome_.down_payload,
              welcome_.tags};
    submissions_ = shm::SubmissionProducer(lines(), sizes_.submission_entries, 0);
    completions_ = shm::CompletionConsumer(
        reinterpret_cast<const shm::CompletionEntry*>(down_ + shm::plan_down(sizes_).completion),
        sizes_.completion_entries,
        0);
}

RawClient::~RawClient() {
    if (!own_mappings_) return;
    if (up_ != nullptr) munmap(up_, welcome_.up_size);
    if (down_ != nullptr) munmap(const_cast<std::byte*>(down_), welcome_.down_size);
    if (board_ != nullptr) munmap(const_cast<std::byte*>(board_), welcome_.board_size);
}

shm::SubmissionEntry* RawClient::lines() {
    return reinterpret_cast<shm::SubmissionEntry*>(up_ + shm::plan_up(sizes_).submission);
}

const std::byte* RawClient::room(uint32_t data) const {
    return down_ + shm::plan_down(sizes_).payload + data;
}

std::byte* RawClient::payload() {
    return up_ + shm::plan_up(sizes_).payload;
}

uint64_t RawClient::event(uint32_t tag) const {
    return reinterpret_cast<const std::atomic<uint64_t>*>(down_ + shm::plan_down(sizes_).event)[tag]
        .load(std::memory_order_acquire);
}

void RawClient::submit_silently(const shm::Submission& entry) {
    submissions_.push(entry);
}

void RawClient::ring() {
    const uint64_t one = 1;
    (void)!write(bell_.get(), &one, sizeof(one));
}

void RawClient::submit(shm::Submission entry) {
    submissions_.push(entry);
    if (shm::publish_submissions(up(), down(), submissions_.tail())) ring();
}

bool RawClient::ended() const {
    return down().session_state.load(std::memory_order_acquire) !=
           static_cast<uint32_t>(shm::SessionState::kOpen);
}

template <typename Ready>
void RawClient::await(Ready ready) {
    while (!ready()) {
        const uint32_t seen = shm::arm_completions(up(), down(), shm::ClientSleep::kFutex);
        (void)shm::published_completions(down());
        if (!ready()) (void)shm::sleep_on_completions(down(), seen, shm::kNever >> 1);
        shm::disarm_completions(up());
    }
}

std::optional<shm::Completion> RawClient::wait() {
    shm::Completion entry;
    bool got = false;
    await([&] {
        got = got || completions_.pop(entry) == shm::Poll::kEntry;
        return got || ended();
    });
    if (!got) return std::nullopt;
    shm::release_completions(up(), completions_.head());
    if (entry.reason == shm::Reason::kMayPark) entry.reason = shm::Reason::kOk;  // it never parks
    return entry;
}

shm::Reason RawClient::wait_end() {
    await([&] { return ended(); });
    return static_cast<shm::Reason>(down().end_reason.load(std::memory_order_relaxed));
}

uint64_t RawClient::wait_event(uint32_t tag) {
    await([&] { return event(tag) != 0 || ended(); });
    return event(tag);
}

shm::PoolPicture RawClient::pool(uint32_t row) const {
    shm::PoolPicture picture;
    const auto* pools =
        reinterpret_cast<const shm::BoardPool*>(board_ + shm::plan_board(welcome_.pools_max).pools);
    (void)shm::board_read(pools[row], picture);
    return picture;
}

void RawClient::claim(uint16_t tag, uint16_t pool, uint16_t units, uint64_t timeout_ns) {
    shm::Submission entry;
    entry.op = shm::Op::kClaim;
    entry.tag = tag;
    entry.pool = pool;
    entry.units = units;
    entry.user_data = tag;
    entry.id = timeout_ns;
    submit(entry);
}

void RawClient::release(const shm::Completion& granted) {
    shm::Submission entry;
    entry.op = shm::Op::kRelease;
    entry.id = granted.id;
    entry.fence = granted.fence;
    entry.user_data = granted.user_data;
    submit(entry);
}

std::optional<shm::Completion> RawClient::announce(uint16_t pool, bool ready) {
    shm::Submission entry;
    entry.op = shm::Op::kAnnounce;
    entry.pool = pool;
    entry.flags = ready ? shm::OpFlag::kThenReady : uint8_t{0};
    entry.id = 77;  // the worker's own name for it
    submit(entry);
    return wait();
}

void RawClient::worker_word(shm::Op op, uint64_t slot, uint64_t round, uint8_t flags) {
    shm::Submission entry;
    entry.op = op;
    entry.id = slot;
    entry.fence = round;
    entry.flags = flags;
    submit(entry);
}

void await_epoch(const RawClient& client, uint64_t epoch) {
    while (client.board().epoch.load(std::memory_order_acquire) < epoch)
        sched_yield();
}

bool ended(const RawClient& client) {
    return client.down().session_state.load() != static_cast<uint32_t>(shm::SessionState::kOpen);
}

}  // namespace dibs::test
