// broker/control.cpp -- the control thread: whoever comes in, signals, and what ends.
// SPDX-License-Identifier: Apache-2.0
#include "broker/control.hpp"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include "broker/log.hpp"
#include "broker/peer.hpp"

namespace dibs {

namespace {

constexpr uint64_t kHandshakeNs = 1'000'000'000;
constexpr uint64_t kAcceptPauseNs = 100'000'000;
constexpr int kAcceptsAtOnce = 64;
constexpr size_t kPendingMax = 512;  // the oldest one makes room for another

uint64_t monotonic() {
    struct timespec time = {};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Control::Control(const Config& config, BoardSegment& board, Exchange& exchange, bool signals)
    : config_(config),
      file_(config.file),
      peer_pidfd_(config.peer_pidfd),
      board_(board),
      exchange_(exchange),
      listener_(config.socket.empty() ? default_socket() : config.socket, config.socket_mode),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    if (!epoll_.valid()) fail("epoll_create1");
    watch(listener_.fd(), Event::kConnection);
    watch(exchange_.control().fd(), Event::kReport);
    watch(stop_.fd(), Event::kStop);
    if (!signals) return;
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP})
        sigaddset(&set, signal);
    signals_ = shm::Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_.valid()) fail("signalfd");
    watch(signals_.get(), Event::kSignal);
}

void Control::watch(int fd, Event what) const {
    struct epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = uint64_t{static_cast<uint32_t>(fd)} << 32 | static_cast<uint32_t>(what);
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
}

void Control::serve(uint64_t epoch) {
    epoch_ = epoch;
    while (!finished_) {
        std::array<struct epoll_event, 32> events;
        const int count =
            epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_ms());
        for (int i = 0; i < count; ++i) {
            const uint64_t data = events[static_cast<size_t>(i)].data.u64;
            dispatch(static_cast<Event>(static_cast<uint32_t>(data)), static_cast<int>(data >> 32));
        }
        drop_late();
    }
}

void Control::stop() {
    stop_.call();
}

int Control::wait_ms() const {
    uint64_t until = shm::kNever;
    if (!pending_.empty()) until = pending_.front().until_ns;
    if (accept_again_ns_ != 0) until = std::min(until, accept_again_ns_);
    if (until == shm::kNever) return -1;
    const uint64_t now = monotonic();
    return until <= now ? 0 : static_cast<int>((until - now) / 1'000'000 + 1);
}

void Control::dispatch(Event what, int fd) {
    switch (what) {
        case Event::kConnection:
            return accept_all();
        case Event::kPending:
            return hear(fd);
        case Event::kReport:
            return take_reports();
        case Event::kSignal:
            return take_signal();
        case Event::kStop:
            stop_.answer();
            return drain();
    }
}

void Control::accept_all() {
    // What is left is there again at the next look: who has said Hello must not wait for all those
    // who only connect.
    for (int accepted = 0; accepted < kAcceptsAtOnce && listener_.fd() >= 0; ++accepted) {
        shm::Descriptor socket(
            accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket.valid()) {
            if (errno == EINTR || errno == ECONNABORTED) continue;
            if (errno != EAGAIN) pause_accepting();
            return;
        }
        if (pending_.size() >= kPendingMax) drop(pending_.front().socket.get());
        const int fd = socket.get();
        try {
            watch(fd, Event::kPending);
        } catch (const std::system_error&) {
            pause_accepting();  // this connection closes; the others are served
            return;
        }
        pending_.push_back({std::move(socket), monotonic() + kHandshakeNs});
        pending_by_fd_[fd] = std::prev(pending_.end());
    }
}

// No descriptors or memory for another connection: those that wait must not spin this thread.
void Control::pause_accepting() {
    log::warning("no connection can be accepted: " + std::string(std::strerror(errno)));
    if (accept_again_ns_ == 0) {
        (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.fd(), nullptr);
    }
    accept_again_ns_ = monotonic() + kAcceptPauseNs;
}

void Control::resume_accepting() {
    accept_again_ns_ = 0;
    if (listener_.fd() < 0) return;
    try {
        watch(listener_.fd(), Event::kConnection);
    } catch (const std::system_error&) {
        accept_again_ns_ = monotonic() + kAcceptPauseNs;
    }
}

void Control::drop(int fd) {
    const auto found = pending_by_fd_.find(fd);
    if (found == pending_by_fd_.end()) return;
    pending_.erase(found->second);
    pending_by_fd_.erase(found);
}

void Control::drop_late() {
    const uint64_t now = monotonic();
    while (!pending_.empty() && pending_.front().until_ns <= now) {
        const int fd = pending_.front().socket.get();
        send_farewell(fd, {shm::FarewellCode::kMalformed, 0, "no Hello within one second"});
        drop(fd);
    }
    if (accept_again_ns_ != 0 && accept_again_ns_ <= now) resume_accepting();
}

void Control::hear(int fd) {
    const auto found = pending_by_fd_.find(fd);
    if (found == pending_by_fd_.end()) return;  // dropped while its event was on its way
    const HelloResult hello = receive_hello(fd);
    if (hello.heard == Heard::kNothingYet) return;
    if (hello.heard == Heard::kRefused) {
        log::info("a connection was refused: " + hello.refusal.text);
        send_farewell(fd, hello.refusal);
    }
    if (hello.heard != Heard::kHello) return drop(fd);
    shm::Descriptor socket = std::move(found->second->socket);
    pending_.erase(found->second);
    pending_by_fd_.erase(found);
    (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    begin_session(std::move(socket), hello.sizes);
}

void Control::begin_session(shm::Descriptor socket, const shm::SessionSizes& sizes) {
    std::string why;
    std::optional<Peer> peer = identify_peer(socket.get(), peer_pidfd_, &why);
    if (!peer) {
        log::info("a connection was refused: " + why);
        return send_farewell(socket.get(), {shm::FarewellCode::kNotAllowed, 0, why});
    }
    try {
        auto session = std::make_unique<Session>(std::move(*peer), sizes);
        session->socket = std::move(socket);
        Request request;
        request.kind = Request::Kind::kSession;
        request.session = session.get();
        if (exchange_.ask(request)) {
            (void)session.release();
            return;
        }
        why = "too many sessions are being opened";
        socket = std::move(session->socket);
    } catch (const std::exception& error) {
        why = error.what();
    }
    log::warning("no session for a client: " + why);
    if (socket.valid()) send_farewell(socket.get(), {shm::FarewellCode::kFull, 0, why});
}

void Control::take_reports() {
    exchange_.control().answer();
    Report report;
    while (exchange_.next(report)) {
        switch (report.kind) {
            case Report::Kind::kOpened:
                welcome(report.session);
                break;
            case Report::Kind::kFull: {
                const std::unique_ptr<Session> session(report.session);
                send_farewell(session->socket.get(),
                              {shm::FarewellCode::kFull, 0, "all session rows are in use"});
                break;
            }
            case Report::Kind::kRetired:
                delete report.session;
                break;
            case Report::Kind::kFinished:
                finished_ = true;
                break;
        }
    }
}

// The session is the turn's; the descriptors for the Welcome are only looked at here.
void Control::welcome(Session* session) {
    bool sent = false;
    try {
        sent = send_welcome(*session, board_, epoch_);
    } catch (const std::exception& error) {
        log::warning(std::string("no Welcome for a client: ") + error.what());
    }
    // Nothing more is taken from the client on this way: what it sends now fails at its end.
    (void)shutdown(session->socket.get(), SHUT_RD);
    session->up_fd.reset();
    session->down_fd.reset();
    session->client_event_socket.reset();
    if (sent) return;
    Request request;
    request.kind = Request::Kind::kEnd;
    request.row = session->row;
    request.generation = session->generation;
    (void)exchange_.ask(request);
}

void Control::take_signal() {
    struct signalfd_siginfo signal = {};
    while (read(signals_.get(), &signal, sizeof(signal)) == sizeof(signal)) {
        if (signal.ssi_signo == SIGHUP) {
            reload();
        } else {
            drain();
        }
    }
}

// The first time waits for leases, the second time does not.
void Control::drain() {
    Request request;
    request.kind = draining_ ? Request::Kind::kStop : Request::Kind::kDrain;
    if (!draining_) {
        log::info("draining: no more connections, waiting claims are rejected");
        listener_.close();
        for (const Pending& pending : pending_) {
            send_farewell(pending.socket.get(),
                          {shm::FarewellCode::kDraining, 0, "this broker is about to stop"});
        }
        pending_.clear();
        pending_by_fd_.clear();
    }
    draining_ = true;
    (void)exchange_.ask(request);
}

void Control::reload() {
    if (file_.empty()) return log::warning("no configuration file was given: nothing to read");
    ConfigResult read = read_config(file_);
    if (!read.mistakes.empty()) {
        for (const std::string& mistake : read.mistakes)
            log::error(mistake);
        return log::error("the configuration stays as it was");
    }
    for (const std::string& fixed : fixed_differences(config_, read.config))
        log::warning(fixed);
    log::open(read.config.log_level);
    auto config = std::make_unique<Config>(std::move(read.config));
    Request request;
    request.kind = Request::Kind::kConfig;
    request.config = config.get();
    if (exchange_.ask(request)) (void)config.release();
    log::info("the configuration has been read again");
}

}  // namespace dibs
