// tests/clientlib/fake_broker.cpp -- one loop: accept, read, run what the test asks for, sleep.
// SPDX-License-Identifier: Apache-2.0
#include "tests/clientlib/fake_broker.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace dibs::test {

using shm::Completion;
using shm::CompletionKind;
using shm::Submission;

namespace {
constexpr uint32_t kPools = 8;
}

// ---- a session

FakeSession::FakeSession(const shm::SessionSizes& wanted, uint32_t row)
    : sizes(wanted),
      up_memory(shm::plan_up(wanted).size),
      down_memory(shm::plan_down(wanted).size),
      bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      up_(up_memory),
      down_(down_memory) {
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, events) != 0) {
        throw std::runtime_error("socketpair");
    }
    shm::write_up_head(up(), sizes, row, 1);
    shm::write_down_head(down(), sizes, row, 1, 1);
    submissions = {
        up_.as<shm::SubmissionEntry>(shm::plan_up(sizes).submission), sizes.submission_entries, 0};
    completions = {down_.as<shm::CompletionEntry>(shm::plan_down(sizes).completion),
                   sizes.completion_entries,
                   0};
}

FakeSession::~FakeSession() {
    for (const int descriptor : {bell, events[0], events[1], socket}) {
        if (descriptor >= 0) close(descriptor);
    }
}

void FakeSession::tell() {
    const uint32_t sleeping = shm::publish_completions(down(), up(), completions.tail());
    if (sleeping == shm::ClientSleep::kFutex) shm::wake_client(down());
    if (sleeping == shm::ClientSleep::kPoll) send(events[0], "!", 1, MSG_DONTWAIT);
}

void FakeSession::complete(const Completion& completion) {
    if (!completions.release_to(shm::read_completions(up())) || completions.room() == 0) {
        throw std::runtime_error("the client does not keep to its credit");
    }
    completions.push(completion);
    tell();
}

void FakeSession::grant(const Submission& claim,
                        uint64_t lease,
                        uint64_t fence,
                        uint64_t interval_ns,
                        uint32_t room,
                        uint64_t number) {
    auto* words = down_.as<std::atomic<uint64_t>>(shm::plan_down(sizes).event);
    shm::store_event(words, claim.tag, 0);
    Completion completion;
    completion.user_data = claim.user_data;
    completion.kind = CompletionKind::kClaim;
    completion.outcome = shm::Outcome::kGranted;
    completion.units = claim.units;
    completion.tag = claim.tag;
    completion.id = lease;
    completion.fence = fence;
    completion.value = interval_ns;
    completion.claim = number != 0 ? number : fence;
    completion.data = room;
    complete(completion);
}

void FakeSession::refuse(const Submission& claim, shm::Outcome outcome, shm::Reason reason) {
    Completion completion;
    completion.user_data = claim.user_data;
    completion.kind = CompletionKind::kClaim;
    completion.outcome = outcome;
    completion.reason = reason;
    completion.tag = claim.tag;
    completion.claim = 7;
    complete(completion);
}

void FakeSession::result(const Submission& entry, shm::Reason reason) {
    if ((entry.flags & shm::OpFlag::kQuiet) != 0 && reason == shm::Reason::kOk) return;
    Completion completion;
    completion.user_data = entry.user_data;
    completion.kind =
        entry.op == shm::Op::kAnnounce ? CompletionKind::kSlot : CompletionKind::kResult;
    completion.reason = reason;
    completion.id = entry.op == shm::Op::kAnnounce ? 0x100000005ULL : entry.id;
    if (entry.op == shm::Op::kKeepalive) completion.value = shm::key_word(entry);
    complete(completion);
}

void FakeSession::assign(uint64_t slot,
                         uint64_t round,
                         uint64_t worker_tag,
                         const std::string& payload) {
    Completion completion;
    completion.user_data = worker_tag;
    completion.kind = CompletionKind::kAssign;
    completion.id = slot;
    completion.fence = round;
    completion.value = 3;
    completion.claim = 21;
    completion.data = 0;
    completion.holder = static_cast<uint32_t>(payload.size());
    std::memcpy(down_bytes() + shm::plan_down(sizes).payload, payload.data(), payload.size());
    complete(completion);
}

void FakeSession::revoke(uint64_t slot, uint64_t round, uint64_t worker_tag) {
    Completion completion;
    completion.user_data = worker_tag;
    completion.kind = CompletionKind::kRevoke;
    completion.id = slot;
    completion.fence = round;
    complete(completion);
}

void FakeSession::event(uint16_t tag, uint64_t word) {
    auto* words = down_.as<std::atomic<uint64_t>>(shm::plan_down(sizes).event);
    shm::store_event(words, tag, word);
    shm::count_event(down());
    tell();
}

void FakeSession::end(shm::Reason reason) {
    down().end_reason.store(static_cast<int32_t>(reason));
    down().session_state.store(static_cast<uint32_t>(shm::SessionState::kDying));
    tell();
}

uint32_t FakeSession::write_room(const std::vector<std::pair<std::string, std::string>>& units) {
    constexpr uint32_t kAttributesMax = 64;
    constexpr uint32_t kAnswerMax = 32;
    shm::GrantHead head = {};
    head.units = static_cast<uint16_t>(units.size());
    head.answer_place = sizeof(shm::GrantSlot) + kAttributesMax;
    head.stride = head.answer_place + 2 * kAnswerMax;
    const uint32_t offset = room_next;
    std::byte* at = down_bytes() + shm::plan_down(sizes).payload + offset;
    std::memcpy(at, &head, sizeof head);
    at += sizeof head;
    for (uint32_t i = 0; i < units.size(); ++i, at += head.stride) {
        shm::GrantSlot slot = {};
        slot.number = 40 + i;
        slot.attributes_size = static_cast<uint32_t>(units[i].first.size());
        slot.answer_size = static_cast<uint32_t>(units[i].second.size());
        std::memcpy(at, &slot, sizeof slot);
        std::memcpy(at + sizeof slot, units[i].first.data(), units[i].first.size());
        std::memcpy(at + head.answer_place, units[i].second.data(), units[i].second.size());
    }
    room_next += static_cast<uint32_t>(sizeof head + units.size() * head.stride + 63) & ~63U;
    return offset;
}

void FakeSession::write_last_answer(uint32_t room, const std::string& answer) {
    std::byte* at = down_bytes() + shm::plan_down(sizes).payload + room;
    const auto* head = reinterpret_cast<const shm::GrantHead*>(at);
    auto* slot = reinterpret_cast<shm::GrantSlot*>(at + sizeof *head);
    std::memcpy(reinterpret_cast<std::byte*>(slot) + head->answer_place +
                    shm::grant_answer_room(head->stride, head->answer_place),
                answer.data(),
                answer.size());
    slot->done_size = static_cast<uint32_t>(answer.size());
}

std::string FakeSession::payload(const Submission& entry) const {
    const char* area = up_.as<char>(shm::plan_up(sizes).payload);
    return {area + entry.payload_offset, entry.payload_size};
}

// ---- the broker

FakeBroker::FakeBroker(Script script)
    : script_(std::move(script)),
      nudge_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      board_memory_(shm::plan_board(kPools, kAccounts).size),
      board_(board_memory_) {
    if (script_ == nullptr) {
        script_ = [next = uint64_t{0}](FakeSession& session, const Submission& entry) mutable {
            if (entry.op == shm::Op::kClaim) {
                ++next;
                session.grant(entry, uint64_t{1} << 32 | next, next, entry.fence);
            } else {
                session.result(entry);
            }
        };
    }
    auto* head = board_.as<shm::BoardHead>();
    head->magic = shm::kBoardMagic;
    head->pools_max = kPools;
    head->size = board_memory_.size();
    head->version.store(shm::kLayoutVersion);
    shm::PoolPicture picture;
    picture.slots = 8;
    picture.idle = 8;
    publish_pool(0, "gpu", picture);

    char folder[] = "/tmp/dibs-fake-XXXXXX";
    if (mkdtemp(folder) == nullptr) throw std::runtime_error("mkdtemp");
    folder_ = folder;
    path_ = folder_ + "/dibs.sock";
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    listener_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_, 8) != 0) {
        throw std::runtime_error("listen");
    }
    thread_ = std::thread([this] { run(); });
}

FakeBroker::~FakeBroker() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake();
    thread_.join();
    if (listener_ >= 0) close(listener_);
    close(nudge_);
    unlink(path_.c_str());
    rmdir(folder_.c_str());
}

void FakeBroker::publish_pool(uint32_t pool,
                              const std::string& name,
                              const shm::PoolPicture& picture) {
    const shm::BoardPlan plan = shm::plan_board(kPools);
    shm::PoolNamePicture text;
    text.units_max = 4;
    text.payload_max = shm::kPayloadMax / 64;
    text.kind = static_cast<uint8_t>(shm::PoolKind::kWorker);
    text.state = static_cast<uint8_t>(shm::PoolState::kOpen);
    text.answer_max = 32;
    text.attributes_max = 64;
    text.name_size = static_cast<uint8_t>(name.size());
    std::memcpy(text.name, name.data(), name.size());
    shm::board_write(board_.as<shm::BoardPoolName>(plan.names)[pool], text);
    shm::board_write(board_.as<shm::BoardPool>(plan.pools)[pool], picture);
    auto* head = board_.as<shm::BoardHead>();
    if (head->pools.load() <= pool) head->pools.store(pool + 1, std::memory_order_release);
}

void FakeBroker::wake() {
    const uint64_t one = 1;
    if (write(nudge_, &one, sizeof one) < 0) throw std::runtime_error("nudge");
}

void FakeBroker::call(const std::function<void(FakeSession&)>& work) {
    std::unique_lock lock(mutex_);
    work_ = work;
    wake();
    ran_.wait(lock, [this] { return work_ == nullptr; });
}

void FakeBroker::hold() {
    call([this](FakeSession&) { held_ = true; });
}

void FakeBroker::go_on() {
    call([this](FakeSession&) { held_ = false; });
}

void FakeBroker::die() {
    std::unique_lock lock(mutex_);
    dead_ = true;
    wake();
    ran_.wait(lock, [this] { return sessions_.empty(); });
}

void FakeBroker::answer_with(std::string bytes) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(bytes);
    answer_given_ = true;
}

std::vector<Submission> FakeBroker::seen() {
    std::vector<Submission> copy;
    call([&copy](FakeSession& session) { copy = session.seen; });
    return copy;
}

void FakeBroker::wait_for(size_t entries) {
    std::unique_lock lock(mutex_);
    const auto read = [this] { return sessions_.empty() ? 0 : sessions_.back()->seen.size(); };
    if (ran_.wait_for(lock, kAnswerTimeout, [&] { return read() >= entries; })) return;
    throw std::runtime_error(std::to_string(read()) + " entries have been submitted, not " +
                             std::to_string(entries));
}

void FakeBroker::run() {
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            if (stop_) return;
            if (dead_) {
                sessions_.clear();
                if (listener_ >= 0) close(listener_);
                listener_ = -1;
                ran_.notify_all();
            }
            open();
            if (work_ != nullptr && !sessions_.empty()) {
                work_(*sessions_.back());
                work_ = nullptr;
                ran_.notify_all();
            }
            if (read_submissions()) {
                ran_.notify_all();
                continue;
            }
        }
        rest();
    }
}

bool FakeBroker::read_submissions() {
    bool any = false;
    for (const auto& session : sessions_) {
        shm::disarm_submissions(session->down());
        Submission entry;
        while (!held_ && session->submissions.pop(entry) == shm::Poll::kEntry) {
            any = true;
            session->seen.push_back(entry);
            script_(*session, entry);
            shm::commit_submissions(session->down(), session->submissions.head());
        }
    }
    return any;
}

void FakeBroker::rest() {
    std::vector<pollfd> watched = {{nudge_, POLLIN, 0}};
    bool work_waits = false;
    {
        const std::lock_guard lock(mutex_);
        if (stop_) return;
        if (listener_ >= 0) watched.push_back({listener_, POLLIN, 0});
        for (const auto& session : sessions_) {
            shm::arm_submissions(session->down());
            const uint64_t tail = shm::published_submissions(session->up());
            if (!held_ && tail != session->submissions.head()) work_waits = true;
            if (!held_) watched.push_back({session->bell, POLLIN, 0});
        }
    }
    if (work_waits) return;
    poll(watched.data(), watched.size(), -1);
    for (const pollfd& one : watched) {
        uint64_t count = 0;
        if (one.fd != listener_ && (one.revents & POLLIN) != 0) {
            [[maybe_unused]] const ssize_t size = read(one.fd, &count, sizeof count);
        }
    }
}

void FakeBroker::open() {
    if (listener_ < 0) return;
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    shm::Hello hello;
    if (recv(socket, &hello, sizeof hello, 0) != sizeof hello) {
        close(socket);
        return;
    }
    auto session = std::make_unique<FakeSession>(shm::wanted_sizes(hello),
                                                 static_cast<uint32_t>(sessions_.size()));
    session->socket = socket;
    shm::Welcome welcome;
    welcome.epoch = 1;
    welcome.session = static_cast<uint32_t>(sessions_.size());
    welcome.generation = 1;
    welcome.submission_entries = session->sizes.submission_entries;
    welcome.completion_entries = session->sizes.completion_entries;
    welcome.up_payload = session->sizes.up_payload;
    welcome.down_payload = session->sizes.down_payload;
    welcome.tags = session->sizes.tags;
    welcome.pools_max = kPools;
    welcome.up_size = session->up_memory.size();
    welcome.down_size = session->down_memory.size();
    welcome.board_size = board_memory_.size();
    std::string bytes(reinterpret_cast<const char*>(&welcome), sizeof welcome);
    if (answer_given_) bytes = answer_;

    const std::string down = "/proc/self/fd/" + std::to_string(session->down_memory.descriptor());
    const int down_read_only = ::open(down.c_str(), O_RDONLY | O_CLOEXEC);
    const int descriptors[] = {session->up_memory.descriptor(),
                               down_read_only,
                               board_memory_.descriptor(),
                               session->bell,
                               session->events[1]};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors)] = {};
    iovec part = {bytes.data(), bytes.size()};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptors);
    std::memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
    if (!bytes.empty()) sendmsg(socket, &message, MSG_NOSIGNAL);
    close(down_read_only);
    sessions_.push_back(std::move(session));
}

}  // namespace dibs::test
