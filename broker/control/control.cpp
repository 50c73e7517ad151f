// broker/control/control.cpp -- runs the control thread: connections, signals, shutdown.
// SPDX-License-Identifier: Apache-2.0
#include "broker/control/control.hpp"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "broker/admission/peer.hpp"
#include "broker/admission/socket_path.hpp"
#include "broker/sandbox/multi_user.hpp"
#include "broker/text/log.hpp"
#include "broker/turn/clock.hpp"

namespace dibs {

namespace {

constexpr uint64_t kHandshakeNs = 1'000'000'000;
constexpr uint64_t kAcceptPauseNs = 100'000'000;
constexpr int kAcceptsAtOnce = 64;
constexpr uint64_t kSayFullEvery = 1'000'000'000;

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

uint64_t memory_of(const shm::SessionSizes& sizes) {
    return shm::plan_up(sizes).size + shm::plan_down(sizes).size;
}

Admission::Room room_for_sessions(const Config& config,
                                  uint32_t rows,
                                  const DescriptorBudget& budget) {
    if (budget.sessions < rows) {
        log::warning("the limit of " + std::to_string(budget.descriptors) +
                     " descriptors has room for " + std::to_string(budget.sessions) +
                     " sessions, not for " + std::to_string(rows));
    }
    Admission::Room room;
    room.sessions = std::min(rows, budget.sessions);
    if (config.multi_user) {
        room.administers_only = geteuid();
        room.nameless = overflow_uid();
    }
    return room;
}

}  // namespace

Control::Control(const Config& config,
                 BoardSegment& board,
                 Exchange& exchange,
                 uint32_t rows,
                 shm::Descriptor listener,
                 uint64_t listener_inode,
                 KeeperLink* keeper,
                 bool signals)
    : config_(config),
      file_(config.file),
      peer_pidfd_(config.peer_pidfd && gives_peer_pidfd()),
      board_(board),
      exchange_(exchange),
      keeper_(keeper),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      callers_(descriptor_budget().callers),
      admission_(config.policy, room_for_sessions(config, rows, descriptor_budget())),
      leftovers_(way_to_take_back(), [this](const Leftover& leftover) { released(leftover); }),
      conversations_(exchange, Clock::monotonic()) {
    if (!epoll_.valid()) fail("epoll_create1");
    for (const PoolSettings& pool : config.pools)
        named_pools_.insert(pool.name);
    if (listener.valid()) {
        listener_.emplace(std::move(listener), listener_inode);
    } else {
        listener_.emplace(config.socket.empty() ? default_socket() : config.socket,
                          config.socket_mode);
    }
    listener_->let_descriptors_in(config.hardening == HardeningMode::kOff);
    socket_path_ = listener_->path();
    admission_.set_newcomers(shared());
    watch(listener_fd(), Event::kConnection);
    watch(exchange_.control().fd(), Event::kReport);
    watch(conversations_.fd(), Event::kRequest);
    watch(stop_.fd(), Event::kStop);
    if (!signals) return;
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2})
        sigaddset(&set, signal);
    signals_ = shm::Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_.valid()) fail("signalfd");
    watch(signals_.get(), Event::kSignal);
}

// By the mode of the socket as it lies there: a service manager may have lent it.
bool Control::shared() const {
    struct stat about = {};
    return stat(socket_path_.c_str(), &about) != 0 || (about.st_mode & 0066) != 0;
}

void Control::watch(int fd, Event what) const {
    struct epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = uint64_t{static_cast<uint32_t>(fd)} << 32 | static_cast<uint32_t>(what);
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
}

void Control::prepare(const std::vector<Session*>& adopted, bool draining) {
    if (keeper_ != nullptr) {
        keeper_->hold_listener(listener_fd(), listener_->inode());
        listener_->leave_name(true);
        watch_keeper();
        conversations_.set_not_upgraded(keeper_->not_upgraded());
    }
    for (Session* session : adopted) {
        admission_.adopt(session->peer.uid, memory_of(session->sizes));
        if (keeper_ != nullptr) keeper_->holds(*session);
        untouched_.push_back(session);
    }
    draining_ = draining;
    drain_asked_ = draining_;
    asked_to_end_.fill(draining_);
    if (draining_) begin_to_stop(shm::kNever);  // what its keeper knows counts
    conversations_.set_names_max(config_.limits.entries);
    conversations_.set_orders([this](const admin::Request& order) { return obey(order); });
    if (keeper_ != nullptr) {
        conversations_.set_loader(
            [this](std::span<const uint8_t> snapshot, uint64_t epoch) {
                const KeeperLink::Busy busy(keeper_);  // all rows are read, however many
                return load_state(snapshot, config_.limits, epoch);
            },
            [this](const LoadedState& loaded) { hand_over(loaded); });
    }
}

void Control::serve(uint64_t epoch) {
    epoch_ = epoch;
    // None of them can be gone: it is this thread that frees them.
    for (const Session* session : untouched_) {
        session->up_mapping.touch();
        session->down_mapping.touch();
    }
    untouched_.clear();
    while (!finished_) {
        std::array<struct epoll_event, 32> events;
        const int count =
            epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_ms());
        for (int i = 0; i < count; ++i) {
            const uint64_t data = events[static_cast<size_t>(i)].data.u64;
            dispatch(static_cast<Event>(static_cast<uint32_t>(data)), static_cast<int>(data >> 32));
        }
        drop_late();
        watch_for_writing();
    }
}

void Control::stop() {
    stop_.call();
}

int Control::wait_ms() const {
    uint64_t until = shm::kNever;
    if (!callers_.empty()) until = callers_.oldest().until_ns;
    if (accept_again_ns_ != 0) until = std::min(until, accept_again_ns_);
    until = std::min({until, conversations_.next_due(), leftovers_.next_due()});
    if (keeper_again_ns_ != 0) until = std::min(until, keeper_again_ns_);
    if (keeper_flush_ns_ != 0) until = std::min(until, keeper_flush_ns_);
    if (until == shm::kNever) return -1;
    const uint64_t now = Clock::monotonic();
    return until <= now ? 0 : static_cast<int>((until - now) / 1'000'000 + 1);
}

void Control::dispatch(Event what, int fd) {
    switch (what) {
        case Event::kConnection:
            return accept_all();
        case Event::kPending:
            return hear(fd);
        case Event::kRequest:
            return conversations_.hear(Clock::monotonic());
        case Event::kReport:
            return take_reports();
        case Event::kSignal:
            return take_signal();
        case Event::kStop:
            stop_.answer();
            return drain(Asker::kOther);
        case Event::kKeeper:
            return hear_keeper();
        case Event::kKeeperDeath:
            return lose_keeper();
    }
}

void Control::accept_all() {
    // The rest is readable again at the next look: clients that have said Hello must not wait for
    // all those that only connect.
    for (int accepted = 0; accepted < kAcceptsAtOnce; ++accepted) {
        Listener::Accepted caller = listener_->accept();
        if (caller.error == EINTR || caller.error == ECONNABORTED) continue;
        if (caller.error != 0) {
            errno = caller.error;
            return pause_accepting();
        }
        if (!caller.socket.valid()) return;
        if (caller.no_room) {
            turn_away(ClientSocket(std::move(caller.socket)));
        } else {
            receive(ClientSocket(std::move(caller.socket)));
        }
    }
}

void Control::receive(ClientSocket socket) {
    std::string why;
    auto credentials = peer_credentials(socket.get(), &why);
    if (!credentials) {
        return send_farewell(socket.get(), {shm::FarewellCode::kNotAllowed, 0, why});
    }
    credentials->start_time = process_start_time(credentials->pid);
    const uint64_t now = Clock::monotonic();
    if (const auto refusal = admission_.connect(*credentials, now)) {
        return send_farewell(socket.get(), *refusal);
    }
    if (callers_.full()) {
        const Caller dropped = callers_.take(callers_.least_wanted());
        send_farewell(
            dropped.socket.get(),
            {shm::FarewellCode::kLimit, 0, "too many connections of your user say no Hello"});
    }
    try {
        watch(socket.get(), Event::kPending);
        socket.watched_in(epoll_.get());
    } catch (const std::system_error& error) {
        return send_farewell(socket.get(), {shm::FarewellCode::kFull, 0, error.what()});
    }
    callers_.add({std::move(socket), std::move(*credentials), now + kHandshakeNs});
}

// The descriptor table is full: the caller has the spare descriptor and is refused.
void Control::turn_away(ClientSocket socket) {
    send_farewell(socket.get(),
                  {shm::FarewellCode::kFull, 0, "the broker's descriptor table is full"});
    socket.reset();
    listener_->refused();
    const uint64_t now = Clock::monotonic();
    if (said_full_ns_ != 0 && now - said_full_ns_ < kSayFullEvery) return;
    said_full_ns_ = now;
    log::warning("the descriptor table is full: callers are turned away");
}

// No descriptors or memory for another connection: those that wait must not spin this thread.
void Control::pause_accepting() {
    log::warning("no connection can be accepted: " + std::string(std::strerror(errno)));
    if (accept_again_ns_ == 0) {
        (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_fd(), nullptr);
    }
    accept_again_ns_ = Clock::monotonic() + kAcceptPauseNs;
}

void Control::resume_accepting() {
    accept_again_ns_ = 0;
    try {
        watch(listener_fd(), Event::kConnection);
    } catch (const std::system_error&) {
        accept_again_ns_ = Clock::monotonic() + kAcceptPauseNs;
    }
}

void Control::drop_late() {
    const uint64_t now = Clock::monotonic();
    while (!callers_.empty() && callers_.oldest().until_ns <= now) {
        // Its Hello may have been in time, and this thread late.
        const int fd = callers_.oldest().socket.get();
        hear(fd);
        if (callers_.find(fd) == nullptr) continue;
        const Caller late = callers_.take(fd);
        send_farewell(late.socket.get(),
                      {shm::FarewellCode::kMalformed, 0, "no Hello within one second"});
    }
    conversations_.drop_silent(now);
    leftovers_.look_due(now);
    if (draining_ && !drain_asked_) ask_to_drain();
    if (accept_again_ns_ != 0 && accept_again_ns_ <= now) resume_accepting();
    if (keeper_again_ns_ != 0 && keeper_again_ns_ <= now) renew_keeper();
}

void Control::hear(int fd) {
    if (callers_.find(fd) == nullptr) return;  // dropped while its event was on its way
    const HelloResult hello = receive_hello(fd);
    if (hello.first == FirstPacket::kNothingYet) return;
    Caller caller = callers_.take(fd);
    if (hello.first == FirstPacket::kRefused) {
        log::debug("a connection was refused: " + hello.refusal.text);
        return send_farewell(fd, hello.refusal);
    }
    if (hello.first == FirstPacket::kGone) return;
    (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    if (hello.first == FirstPacket::kAdmin) {
        const bool is_admin = admission_.policy().is_admin(caller.credentials);
        return conversations_.begin(std::move(caller),
                                    is_admin,
                                    admission_.policy().admin_group,
                                    epoch_,
                                    Clock::monotonic());
    }
    if (draining_) return see_off(std::move(caller));
    begin_session(std::move(caller), hello);
}

void Control::begin_session(Caller caller, const HelloResult& hello) {
    const uint32_t uid = caller.credentials.uid;
    const uint64_t memory = memory_of(hello.sizes);
    if (const auto refusal = admit(caller.credentials, memory)) {
        log::debug("no session for a client: " + refusal->text);
        return send_farewell(caller.socket.get(), *refusal);
    }
    Refusal refusal{shm::FarewellCode::kNotAllowed, 0, ""};
    std::optional<Peer> peer =
        identify_peer(caller.socket.get(), caller.credentials, peer_pidfd_, &refusal.text);
    std::optional<ProcessTree> tree = ProcessTree{};
    if (peer && hello.has_tree) tree = tree_of(peer->pid, uid, &refusal.text);
    if (!tree) peer.reset();
    // From here on the socket is the session's, which other processes hold, too: nothing may lie in
    // it. Not before: a check whether the client has hung up would find that direction shut.
    if (peer && !end_reading(caller.socket.get())) {
        refusal = {shm::FarewellCode::kMalformed, 0, "a client passes no descriptors"};
        peer.reset();
    }
    try {
        if (peer) {
            auto session = std::make_unique<Session>(std::move(*peer), hello.sizes);
            session->tree = std::move(*tree);
            refusal = {shm::FarewellCode::kFull, 0, "too many sessions are being opened"};
            session->socket = caller.socket.release();
            Request request;
            request.kind = Request::Kind::kSession;
            request.session = session.get();
            if (exchange_.ask(request)) {
                (void)session.release();
                return;
            }
            caller.socket = ClientSocket(std::move(session->socket));
        }
    } catch (const std::exception& error) {
        refusal = {shm::FarewellCode::kFull, 0, error.what()};
    }
    admission_.end(uid, memory);
    log::client_info(uid, "no session", "no session for a client: " + refusal.text);
    send_farewell(caller.socket.get(), refusal);
}

void Control::free_session(Session* session) {
    admission_.end(session->peer.uid, memory_of(session->sizes));
    delete session;
}

void Control::take_reports() {
    exchange_.control().answer();
    Report report;
    while (exchange_.next(report)) {
        switch (report.kind) {
            case Report::Kind::kOpened:
                opened(report.session);
                break;
            case Report::Kind::kFull:
                send_farewell(report.session->socket.get(),
                              {shm::FarewellCode::kFull, 0, report.why});
                free_session(report.session);
                break;
            case Report::Kind::kRetired:
                retire(report.session);
                break;
            case Report::Kind::kAdmin:
                if (report.job->stops) drain(Asker::kAdministrator);
                conversations_.answer(std::unique_ptr<AdminJob>(report.job), Clock::monotonic());
                break;
            case Report::Kind::kCopied:
                conversations_.copied(std::unique_ptr<Copying>(report.copying));
                break;
            case Report::Kind::kReplaced:
                conversations_.replaced(report.why, Clock::monotonic());
                break;
            case Report::Kind::kFinished:
                finished_ = true;
                if (report.in_order) conversations_.stopped();
                break;
        }
    }
}

// Its client may only learn of it once the session would survive this broker.
void Control::opened(Session* session) {
    if (keeper_ == nullptr) return welcome(session);
    keeper_->hold(*session);
}

// The session is the turn's; the descriptors for the Welcome are only looked at here.
void Control::welcome(Session* session) {
    bool sent = false;
    const bool connected = is_connected(session->socket.get());
    try {
        sent = send_welcome(*session, board_, epoch_);
    } catch (const std::exception& error) {
        log::client_warning(session->peer.uid,
                            "no welcome",
                            std::string("no Welcome for a client: ") + error.what());
    }
    // Nothing more is taken from the client on this way: what it sends now fails at its end.
    (void)shutdown(session->socket.get(), SHUT_RD);
    session->client_event_socket.reset();
    if (keeper_ != nullptr) keeper_->welcomed(*session);
    if (sent || (session->taken_over && connected)) return;
    // One that an earlier broker has opened may have had its Welcome from that one: its client may
    // have closed the socket since, or be another program by now. If it has ever said anything its
    // pidfd tells of its end.
    Request request;
    request.kind = Request::Kind::kEnd;
    request.unless_used = session->taken_over;
    request.row = session->row;
    request.generation = session->generation;
    (void)exchange_.ask(request);
}

}  // namespace dibs
