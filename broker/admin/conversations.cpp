// broker/admin/conversations.cpp -- reads admin requests and sends their answers without waiting.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admin/conversations.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "broker/admin/packet.hpp"
#include "broker/admission/handshake.hpp"
#include "broker/text/log.hpp"

namespace dibs {

namespace {

constexpr uint64_t kDumps = 0;  // no conversations' numbers
constexpr uint64_t kEvents = shm::kNever;
constexpr uint64_t kRecording = shm::kNever - 1;
// Of a verified request: what alone may come in slices.
bool is_load(const uint8_t* packet, bool is_admin) {
    const auto* request = flatbuffers::GetRoot<admin::Request>(packet);
    const bool is_queue =
        request->ask() == admin::Ask::report && request->report() == admin::ReportKind::queue;
    return is_admin && (is_queue || request->ask() == admin::Ask::load);
}

// How many bytes a verified request may have.
size_t most_of(const uint8_t* packet, bool is_admin) {
    if (is_load(packet, is_admin)) return Conversations::kLoadRequestSize;
    const bool adds =
        flatbuffers::GetRoot<admin::Request>(packet)->ask() == admin::Ask::application;
    return adds ? Conversations::kAppRequestSize : Conversations::kRequestSize;
}

bool send_answer(int socket, const admin::AnswerT& answer) {
    flatbuffers::FlatBufferBuilder builder(4096);
    builder.Finish(admin::Answer::Pack(builder, &answer));
    return send(socket,
                builder.GetBufferPointer(),
                builder.GetSize(),
                MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(builder.GetSize());
}

bool send_welcome(int socket, bool is_admin, std::optional<uint32_t> admin_group, uint64_t epoch) {
    shm::AdminWelcome welcome;
    std::strncpy(welcome.version, DIBS_VERSION, sizeof(welcome.version) - 1);
    welcome.epoch = epoch;
    welcome.is_admin = is_admin ? 1 : 0;
    if (admin_group) welcome.admin_group = *admin_group + 1;
    return send(socket, &welcome, sizeof(welcome), MSG_DONTWAIT | MSG_NOSIGNAL) ==
           static_cast<ssize_t>(sizeof(welcome));
}

}  // namespace

Conversations::Conversations(Exchange& exchange, uint64_t now_ns)
    : exchange_(exchange),
      dumps_(exchange),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      started_ns_(now_ns) {
    struct epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = kDumps;
    struct epoll_event events = {};
    events.events = EPOLLIN;
    events.data.u64 = kEvents;
    struct epoll_event recording = {};
    recording.events = EPOLLIN;
    recording.data.u64 = kRecording;
    if (!epoll_.valid() || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, dumps_.fd(), &event) != 0 ||
        epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, exchange.events().fd(), &events) != 0 ||
        epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, exchange.recording().fd(), &recording) != 0) {
        throw std::system_error(errno, std::generic_category(), "epoll_create1");
    }
}

bool Conversations::make_room(uint32_t uid, bool is_admin) {
    const auto own = std::count_if(
        all_.begin(), all_.end(), [&](const auto& one) { return one.second.uid == uid; });
    if (!is_admin && static_cast<size_t>(own) >= kMostOfOneUser) return false;
    // A listener asks nothing any more. The last quarter of either kind is for users that have
    // none.
    const auto asking = static_cast<size_t>(std::count_if(
        all_.begin(), all_.end(), [](const auto& one) { return !one.second.subscriber; }));
    const bool crowded = asking >= kMost - kMost / 4 || all_.size() >= kMostOfAll - kMostOfAll / 4;
    if (!is_admin && own != 0 && crowded) return false;
    if (asking < kMost && all_.size() < kMostOfAll) return true;
    // An administrator must get in whatever other users do.
    const auto other = std::find_if(
        all_.begin(), all_.end(), [](const auto& one) { return !one.second.is_admin; });
    if (!is_admin || other == all_.end()) return false;
    forget(other);
    return true;
}

void Conversations::begin(Caller caller,
                          bool is_admin,
                          std::optional<uint32_t> admin_group,
                          uint64_t epoch,
                          uint64_t now_ns) {
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
    caller.socket.watched_in(epoll_.get());
    if (!send_welcome(socket, is_admin, admin_group, epoch)) return;
    epoch_ = epoch;
    Conversation& begun = all_[next_number_++];
    begun = {std::move(caller.socket), uid, is_admin, false, false, now_ns + kSilenceNs};
    begun.peer = std::move(caller.credentials);
}

void Conversations::hear(uint64_t now_ns) {
    std::array<struct epoll_event, 16> events;
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i)
        hear_one(events[static_cast<size_t>(i)].data.u64,
                 (events[static_cast<size_t>(i)].events & (EPOLLHUP | EPOLLERR)) == 0,
                 now_ns);
}

// `room`: its socket is there, and what was waited for has come.
void Conversations::hear_one(uint64_t number, bool room, uint64_t now_ns) {
    if (number == kDumps) return finish_dump(now_ns);
    if (number == kEvents) return tell_events();
    if (number == kRecording) {
        exchange_.recording().acknowledge();
        return tell_recorder();
    }
    const auto found = all_.find(number);
    if (found == all_.end()) return;
    Conversation& conversation = found->second;
    if (conversation.subscriber && room) {
        if (!conversation.subscriber->flush(conversation.socket.get())) return forget(found);
        return look_for_room(number, conversation);
    }
    if (conversation.recorder && room) return hear_recorder(number, conversation);
    // Nothing is listened for while the turn has its request, so this is a hang-up.
    if (conversation.busy) {
        forget(found);
        return;
    }
    const Packet next = next_packet(conversation.socket.get());
    if (next == Packet::kDescriptors || next == Packet::kGone) {
        forget(found);
        return;
    }
    alignas(8) std::array<uint8_t, kLoadRequestSize> packet;
    const ssize_t size =
        recv(conversation.socket.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size <= 0) {
        forget(found);
        return;
    }
    const size_t read = std::min(static_cast<size_t>(size), packet.size());
    if (static_cast<size_t>(size) <= packet.size() && verified({packet.data(), read}) &&
        read <= most_of(packet.data(), conversation.is_admin)) {
        conversation.silent_until_ns = now_ns + kSilenceNs;
        if (take(number, conversation, {packet.data(), read})) return;
    } else {
        admin::AnswerT answer;
        answer.code = admin::Code::malformed;
        (void)send_answer(conversation.socket.get(), answer);
        log::debug("an admin conversation was ended: its request is no table");
    }
    forget(found);
}

bool Conversations::take(uint64_t number,
                         Conversation& conversation,
                         std::span<const uint8_t> packet) {
    const auto* asked = flatbuffers::GetRoot<admin::Request>(packet.data());
    if (asked->ask() == admin::Ask::dump) return dump(number, conversation, asked->cursor());
    if (asked->ask() == admin::Ask::record) return record(number, conversation, asked->cursor());
    if (asked->ask() == admin::Ask::load) return load(number, conversation, *asked);
    if (asked->more() && is_load(packet.data(), conversation.is_admin)) {
        if (asked->names() != nullptr) {
            for (const auto* name : *asked->names())
                conversation.names.push_back(name->str());
        }
        if (conversation.names.size() > names_max_) {
            (void)refuse(conversation, "a queue of more names than the broker's limits.entries");
            return false;  // what came after it would be taken for a whole queue
        }
        return send_answer(conversation.socket.get(), admin::AnswerT());
    }
    if (asked->ask() == admin::Ask::events) return subscribe(number, conversation);
    if (asked->ask() >= admin::Ask::stop && asked->ask() <= admin::Ask::upgrade) {
        return order(number, conversation, *asked);
    }
    return ask_turn(number, conversation, *asked, {});
}

bool Conversations::ask_turn(uint64_t number,
                             Conversation& conversation,
                             const admin::Request& asked,
                             admin::AnswerT answer) {
    auto job = std::make_unique<AdminJob>();
    job->conversation = number;
    job->uid = conversation.uid;
    job->is_admin = conversation.is_admin;
    job->peer = conversation.peer;
    job->answer = std::move(answer);
    asked.UnPackTo(&job->request);
    std::vector<std::string>& names = job->request.names;
    names.insert(names.begin(), conversation.names.begin(), conversation.names.end());
    conversation.names.clear();
    Request request;
    request.kind = Request::Kind::kAdmin;
    request.job = job.get();
    if (!exchange_.ask(request)) return false;
    conversation.job = job.release();
    conversation.busy = true;
    listen(number, conversation, false);
    return true;
}

// The first slice is requested before there is a dump, the later ones of it; after the last it is
// gone.
bool Conversations::dump(uint64_t number, Conversation& conversation, uint64_t from) {
    if (from != 0 && from < conversation.dump.size()) return send_slice(conversation, from);
    admin::AnswerT answer;
    answer.code = admin::Code::denied;
    if (conversation.is_admin && from != 0) answer.code = admin::Code::not_found;
    if (conversation.is_admin && from == 0) {
        const std::string why = dumps_.begin(number, false);
        conversation.busy = why.empty();
        if (conversation.busy) {
            listen(number, conversation, false);
            return true;
        }
        return refuse(conversation, why);
    }
    return send_answer(conversation.socket.get(), answer);
}

bool Conversations::refuse(const Conversation& conversation, const std::string& why) {
    admin::AnswerT answer;
    answer.code = admin::Code::refused;
    answer.names.push_back(why);
    return send_answer(conversation.socket.get(), answer);
}

bool Conversations::deny(const Conversation& conversation) {
    admin::AnswerT answer;
    answer.code = admin::Code::denied;
    return send_answer(conversation.socket.get(), answer);
}

bool Conversations::send_slice(Conversation& conversation, uint64_t from) {
    const uint64_t end = std::min<uint64_t>(from + kSliceSize, conversation.dump.size());
    admin::AnswerT answer;
    answer.cursor = end;
    answer.more = end < conversation.dump.size();
    answer.bytes.assign(conversation.dump.begin() + static_cast<ptrdiff_t>(from),
                        conversation.dump.begin() + static_cast<ptrdiff_t>(end));
    if (!answer.more) conversation.dump = {};
    return send_answer(conversation.socket.get(), answer);
}

void Conversations::finish_dump(uint64_t now_ns) {
    std::optional<Dumps::Written> written = dumps_.take();
    if (!written) return;
    const auto found = all_.find(written->conversation);
    if (found == all_.end()) return;
    Conversation& conversation = found->second;
    conversation.busy = false;
    conversation.silent_until_ns = now_ns + kSilenceNs;
    conversation.dump = std::move(written->bytes);
    bool sent = false;
    if (written->fault.empty()) {
        sent = send_slice(conversation, 0);
    } else {  // the recorder has no snapshot to go on from
        sent = refuse(conversation, written->fault) && found->first != recorder_;
    }
    if (!sent) {
        forget(found);
        return;
    }
    listen(found->first, conversation, true);
    if (found->first == recorder_) begin_telling(recorder_, conversation);
}

bool Conversations::order(uint64_t number,
                          Conversation& conversation,
                          const admin::Request& request) {
    if (!conversation.is_admin) return deny(conversation);
    admin::AnswerT answer = obey_(request);
    // What of it cannot be as the file says is for the turn to say, which takes it over.
    if (request.ask() == admin::Ask::reload && answer.code == admin::Code::ok) {
        return ask_turn(number, conversation, request, std::move(answer));
    }
    if (request.ask() != admin::Ask::stop) return send_answer(conversation.socket.get(), answer);
    conversation.busy = conversation.awaits_end = true;
    listen(number, conversation, false);
    return true;
}

void Conversations::stopped() {
    for (const auto& [number, conversation] : all_) {
        if (conversation.awaits_end) {
            (void)send_answer(conversation.socket.get(), admin::AnswerT());
        }
    }
}

// Slices are put together; the last one makes them a STATE, which the turn must agree to.
bool Conversations::load(uint64_t number,
                         Conversation& conversation,
                         const admin::Request& request) {
    admin::AnswerT answer;
    answer.code = admin::Code::denied;
    if (!conversation.is_admin) return send_answer(conversation.socket.get(), answer);
    if (!take_loaded_) {
        return refuse(conversation,
                      "this broker has no keeper to start its successor: stop it, and start "
                      "dibsd with --load FILE");
    }
    const auto* bytes = request.bytes();
    if (bytes != nullptr) {
        conversation.load.insert(conversation.load.end(), bytes->begin(), bytes->end());
    }
    answer.code = admin::Code::ok;
    if (request.more()) return send_answer(conversation.socket.get(), answer);
    const std::vector<uint8_t> snapshot = std::exchange(conversation.load, {});
    try {
        if (!begin_load(number, snapshot)) return refuse(conversation, "another load goes on");
    } catch (const std::exception& error) {
        return refuse(conversation, error.what());
    }
    conversation.busy = true;
    listen(number, conversation, false);
    return true;
}

bool Conversations::begin_load(uint64_t number, std::span<const uint8_t> snapshot) {
    if (loader_ != 0 || loaded_.state.valid()) return false;
    LoadedState loaded = load_(snapshot, epoch_);
    Request request;
    request.kind = Request::Kind::kReplace;
    if (!exchange_.ask(request)) return false;
    loaded_ = std::move(loaded);
    loader_ = number;
    return true;
}

void Conversations::replaced(const char* why, uint64_t now_ns) {
    const std::string refusal(why);
    const auto found = all_.find(std::exchange(loader_, 0));
    if (refusal.empty()) {
        take_loaded_(loaded_);
    } else {
        loaded_ = LoadedState();
    }
    if (found == all_.end()) return;
    Conversation& conversation = found->second;
    conversation.busy = false;
    conversation.silent_until_ns = now_ns + kSilenceNs;
    const bool sent = refusal.empty() ? send_answer(conversation.socket.get(), admin::AnswerT())
                                      : refuse(conversation, refusal);
    if (!sent) {
        forget(found);
        return;
    }
    listen(found->first, conversation, true);
}

// From here on it gets events, and nothing more is read from it.
bool Conversations::subscribe(uint64_t number, Conversation& conversation) {
    // Before the answer: its events begin here. Forgetting it takes that back.
    conversation.subscriber.emplace(conversation.uid, conversation.is_admin);
    conversation.busy = true;
    exchange_.events().subscribe(true);
    if (!send_answer(conversation.socket.get(), admin::AnswerT())) return false;
    look_for_room(number, conversation);
    return true;
}

void Conversations::tell_events() {
    exchange_.events().acknowledge();
    while (const std::unique_ptr<EventBatch> batch = exchange_.events().next()) {
        for (auto& [number, conversation] : all_) {
            if (conversation.subscriber) conversation.subscriber->tell(batch->events, batch->lost);
        }
    }
    for (auto one = all_.begin(); one != all_.end();) {
        const auto next = std::next(one);
        Conversation& conversation = one->second;
        if (conversation.subscriber) {
            if (conversation.subscriber->flush(conversation.socket.get())) {
                look_for_room(one->first, conversation);
            } else {
                forget(one);
            }
        }
        one = next;
    }
}

// A subscriber's socket is watched for room only while something waits for it.
void Conversations::look_for_room(uint64_t number, const Conversation& conversation) const {
    struct epoll_event event = {};
    event.events = conversation.subscriber->waiting() ? uint32_t{EPOLLOUT} : 0;
    event.data.u64 = number;
    (void)epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, conversation.socket.get(), &event);
}

void Conversations::forget(std::map<uint64_t, Conversation>::iterator gone) {
    if (gone->second.subscriber) exchange_.events().subscribe(false);
    if (gone->second.job != nullptr)
        std::atomic_ref(gone->second.job->is_abandoned).store(true, std::memory_order_relaxed);
    const bool recorded = gone->first == recorder_;
    all_.erase(gone);
    if (recorded) recorder_gone();
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
    conversation.job = nullptr;
    conversation.awaits_end = job->stops;
    if (job->stops) return;
    if (job->answer.status != nullptr) {
        admin::StatusT& status = *job->answer.status;
        status.version = DIBS_VERSION;
        status.hardening = hardening_;
        status.not_upgraded = not_upgraded_;
        status.pid = static_cast<uint32_t>(getpid());
        status.uptime_ns = now_ns - started_ns_;
    }
    if (!send_answer(conversation.socket.get(), job->answer)) {
        forget(found);
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
    if (recorder_ != 0 && all_.count(recorder_) == 0) recorder_gone();
}

uint64_t Conversations::next_due() const {
    uint64_t due = shm::kNever;
    for (const auto& [number, conversation] : all_) {
        if (!conversation.busy) due = std::min(due, conversation.silent_until_ns);
    }
    return due;
}

}  // namespace dibs
