// broker/conversations.cpp -- requests come in, answers go out, nobody is waited for.
// SPDX-License-Identifier: Apache-2.0
#include "broker/conversations.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "broker/handshake.hpp"
#include "broker/log.hpp"

namespace dibs {

namespace {

constexpr uint32_t kDepthMax = 4;
constexpr uint32_t kTablesMax = 4;

bool verified(std::span<const uint8_t> packet) {
    flatbuffers::Verifier verifier(packet.data(), packet.size(), kDepthMax, kTablesMax);
    return verifier.VerifyBuffer<admin::Request>(nullptr);
}

bool send_answer(int socket, const admin::AnswerT& answer) {
    flatbuffers::FlatBufferBuilder builder(4096);
    builder.Finish(admin::Answer::Pack(builder, &answer));
    return send(socket,
                builder.GetBufferPointer(),
                builder.GetSize(),
                MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(builder.GetSize());
}

bool send_welcome(int socket, bool is_admin, uint64_t epoch) {
    shm::AdminWelcome welcome;
    std::strncpy(welcome.version, DIBS_VERSION, sizeof(welcome.version) - 1);
    welcome.epoch = epoch;
    welcome.is_admin = is_admin ? 1 : 0;
    return send(socket, &welcome, sizeof(welcome), MSG_DONTWAIT | MSG_NOSIGNAL) ==
           static_cast<ssize_t>(sizeof(welcome));
}

}  // namespace

Conversations::Conversations(Exchange& exchange, uint64_t now_ns)
    : exchange_(exchange), epoll_(epoll_create1(EPOLL_CLOEXEC)), started_ns_(now_ns) {
    if (!epoll_.valid()) {
        throw std::system_error(errno, std::generic_category(), "epoll_create1");
    }
}

bool Conversations::make_room(uint32_t uid, bool is_admin) {
    const auto own = std::count_if(
        all_.begin(), all_.end(), [&](const auto& one) { return one.second.uid == uid; });
    if (!is_admin && static_cast<size_t>(own) >= kMostOfOneUser) return false;
    if (all_.size() < kMost) return true;
    // An administrator must get in whatever the others do.
    const auto other = std::find_if(
        all_.begin(), all_.end(), [](const auto& one) { return !one.second.is_admin; });
    if (!is_admin || other == all_.end()) return false;
    all_.erase(other);
    return true;
}

void Conversations::begin(Caller caller, bool is_admin, uint64_t epoch, uint64_t now_ns) {
    const int socket = caller.socket.get();
    const uint32_t uid = caller.credentials.uid;
    if (!make_room(uid, is_admin)) {
        return send_farewell(
            socket,
            {shm::FarewellCode::kFull, 0, "too many administer already: try again in 10 seconds"});
    }
    struct epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = next_number_;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket, &event) != 0) {
        return send_farewell(
            socket,
            {shm::FarewellCode::kFull, 0, std::string("epoll_ctl: ") + std::strerror(errno)});
    }
    if (!send_welcome(socket, is_admin, epoch)) return;
    all_[next_number_++] = {std::move(caller.socket), uid, is_admin, false, now_ns + kSilenceNs};
}

void Conversations::hear(uint64_t now_ns) {
    std::array<struct epoll_event, 16> events;
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i)
        hear_one(events[static_cast<size_t>(i)].data.u64, now_ns);
}

void Conversations::hear_one(uint64_t number, uint64_t now_ns) {
    const auto found = all_.find(number);
    if (found == all_.end()) return;
    Conversation& conversation = found->second;
    // Nothing is listened for while the turn has its request, so this is a hang-up.
    if (conversation.busy) {
        all_.erase(found);
        return;
    }
    alignas(8) std::array<uint8_t, kRequestSize> packet;
    const ssize_t size =
        recv(conversation.socket.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size <= 0) {
        all_.erase(found);
        return;
    }
    const size_t read = std::min(static_cast<size_t>(size), packet.size());
    if (static_cast<size_t>(size) <= packet.size() && verified({packet.data(), read})) {
        conversation.silent_until_ns = now_ns + kSilenceNs;
        if (take(number, conversation, {packet.data(), read})) return;
    } else {
        admin::AnswerT answer;
        answer.code = admin::Code::malformed;
        (void)send_answer(conversation.socket.get(), answer);
        log::debug("an admin conversation was ended: its request is no table");
    }
    all_.erase(found);
}

bool Conversations::take(uint64_t number,
                         Conversation& conversation,
                         std::span<const uint8_t> packet) {
    auto job = std::make_unique<AdminJob>();
    job->conversation = number;
    job->uid = conversation.uid;
    job->is_admin = conversation.is_admin;
    flatbuffers::GetRoot<admin::Request>(packet.data())->UnPackTo(&job->request);
    Request request;
    request.kind = Request::Kind::kAdmin;
    request.job = job.get();
    if (!exchange_.ask(request)) return false;
    (void)job.release();
    conversation.busy = true;
    listen(number, conversation, false);
    return true;
}

void Conversations::listen(uint64_t number, const Conversation& conversation, bool on) const {
    struct epoll_event event = {};
    event.events = on ? uint32_t{EPOLLIN} : 0;
    event.data.u64 = number;
    (void)epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, conversation.socket.get(), &event);
}

void Conversations::answer(std::unique_ptr<AdminJob> job, uint64_t now_ns) {
    const auto found = all_.find(job->conversation);
    if (found == all_.end()) return;
    Conversation& conversation = found->second;
    if (job->answer.status != nullptr) {
        admin::StatusT& status = *job->answer.status;
        status.version = DIBS_VERSION;
        status.hardening = hardening_;
        status.pid = static_cast<uint32_t>(getpid());
        status.uptime_ns = now_ns - started_ns_;
    }
    if (!send_answer(conversation.socket.get(), job->answer)) {
        all_.erase(found);
        return;
    }
    conversation.busy = false;
    conversation.silent_until_ns = now_ns + kSilenceNs;
    listen(found->first, conversation, true);
}

void Conversations::drop_silent(uint64_t now_ns) {
    std::erase_if(all_, [&](const auto& one) {
        return !one.second.busy && one.second.silent_until_ns <= now_ns;
    });
}

uint64_t Conversations::next_due() const {
    uint64_t due = shm::kNever;
    for (const auto& [number, conversation] : all_) {
        if (!conversation.busy) due = std::min(due, conversation.silent_until_ns);
    }
    return due;
}

}  // namespace dibs
