// broker/takeover/keeper_link.cpp -- the broker's end of the keeper's socket; renews the keeper.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/keeper_link.hpp"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "broker/admission/peer.hpp"
#include "broker/config/config.hpp"
#include "broker/session/control_group.hpp"
#include "broker/text/log.hpp"

namespace dibs {

namespace {

void await(int fd, short events) {
    struct pollfd poll_fd = {fd, events, 0};
    while (poll(&poll_fd, 1, -1) < 0 && errno == EINTR) {
    }
}

void take(KeeperPacket& packet, Inheritance& inheritance) {
    if (packet.count == 0) return;
    switch (packet.message.what) {
        case Kept::kState:
            inheritance.state = std::move(packet.descriptors[0]);
            return;
        case Kept::kBoard:
            inheritance.board = std::move(packet.descriptors[0]);
            return;
        case Kept::kListener:
            inheritance.listener = std::move(packet.descriptors[0]);
            inheritance.listener_inode = packet.message.clock_offset;
            return;
        case Kept::kConfig:
            inheritance.config = std::move(packet.descriptors[0]);
            return;
        case Kept::kRemnant:
            if (packet.count < static_cast<uint32_t>(RemnantDescriptor::kCount)) return;
            inheritance.leftovers.push_back({packet.message.row,
                                             packet.message.generation,
                                             std::move(packet.descriptors[0]),
                                             std::move(packet.descriptors[1]),
                                             std::move(packet.descriptors[2])});
            return;
        case Kept::kSession:
            break;
    }
    if (packet.count < kKeptLeast) return;
    InheritedSession session{
        packet.message.row, packet.message.generation, std::nullopt, std::move(packet.descriptors)};
    shm::Descriptor& tree = session.at(SessionDescriptor::kTree);
    if (tree.valid() && !is_of_groups(tree.get())) {
        session.at(SessionDescriptor::kClientEvents) = std::move(tree);
    }
    session.uid = peer_uid(session.at(SessionDescriptor::kSocket).get());
    inheritance.sessions.push_back(std::move(session));
}

}  // namespace

KeeperLink::KeeperLink(shm::Descriptor socket, OwnProgram program)
    : program_(std::move(program)), socket_(std::move(socket)) {}

Inheritance KeeperLink::receive() {
    Inheritance inheritance;
    KeeperPacket packet;
    for (;;) {
        await(socket_.fd(), POLLIN);
        const KeeperSocket::Received received = socket_.receive(packet);
        if (received == KeeperSocket::Received::kNothing) continue;
        if (received == KeeperSocket::Received::kClosed) {
            throw std::runtime_error("the keeper is gone, or of another version");
        }
        if (received == KeeperSocket::Received::kCut) {
            throw std::system_error(EMFILE, std::generic_category(), "what the keeper holds");
        }
        if (packet.message.word == KeeperWord::kGo) return inheritance;
        if (packet.message.word == KeeperWord::kHold) take(packet, inheritance);
        if (packet.message.word == KeeperWord::kNotUpgraded) {
            not_upgraded_.append(packet.message.text, packet.message.text_size);
        }
        if (packet.message.word != KeeperWord::kBegin) continue;
        inheritance.death_ns = packet.message.death_ns;
        inheritance.clock_offset = packet.message.clock_offset;
        inheritance.put_aside = packet.message.put_aside != 0;
        inheritance.unserved = packet.message.unserved != 0;
        inheritance.restarted = packet.message.restarted != 0;
        inheritance.asked_ns = asked_ns_ = packet.message.asked_ns;
        inheritance.replaceable = packet.message.replaceable != 0;
        keeper_ = Process(std::move(packet.descriptors[0]));
        inheritance.watch = std::move(packet.descriptors[1]);
    }
}

void KeeperLink::begun() {
    KeeperMessage message;
    message.word = KeeperWord::kBegun;
    socket_.send(message);
}

void KeeperLink::hold(Kept what, int descriptor) {
    segments_[static_cast<size_t>(what)] = descriptor;
    say(what, descriptor);
}

void KeeperLink::hold_listener(int descriptor, uint64_t inode) {
    listener_inode_ = inode;
    hold(Kept::kListener, descriptor);
}

void KeeperLink::refuse() {
    if (keeper_.pidfd() < 0) return;
    keeper_.signal(SIGKILL);
    (void)keeper_.await_death(-1);
}

// What waits to be said of an earlier one would name a descriptor that is closed here.
void KeeperLink::keep_config(const std::string& text) {
    try {
        shm::Descriptor copy = copy_config(text);
        socket_.forget(Kept::kConfig);
        config_ = std::move(copy);
        hold(Kept::kConfig, config_.get());
    } catch (const std::system_error& error) {
        log::warning(std::string("no successor will know this configuration: ") + error.what());
    }
}

void KeeperLink::say(Kept what, int descriptor) {
    KeeperMessage message;
    message.word = KeeperWord::kHold;
    message.what = what;
    if (what == Kept::kListener) message.clock_offset = listener_inode_;
    socket_.send(message, std::span(&descriptor, 1));
}

void KeeperLink::hold(Session& session) {
    sessions_[session.row] = &session;
    say(session);
}

void KeeperLink::holds(Session& session) {
    sessions_[session.row] = &session;
    if (session.client_event_socket.valid()) say(session);
}

void KeeperLink::say(const Session& session) {
    KeeperMessage message;
    message.word = KeeperWord::kHold;
    message.row = session.row;
    message.generation = session.generation;
    std::array<int, kKeptMax> descriptors = {session.up_fd.get(),
                                             session.down_fd.get(),
                                             session.bell.get(),
                                             session.event_socket.get(),
                                             session.peer.pidfd.get(),
                                             session.socket.get()};
    size_t count = kKeptLeast;
    for (const auto* fd : {&session.tree.events, &session.client_event_socket}) {
        if (fd->valid()) descriptors[count++] = fd->get();
    }
    socket_.send(message, std::span(descriptors).first(count));
}

void KeeperLink::welcomed(const Session& session) {
    KeeperMessage message;
    message.word = KeeperWord::kWelcomed;
    message.row = session.row;
    message.generation = session.generation;
    socket_.send(message);
}

void KeeperLink::drop(Kept what) {
    segments_[static_cast<size_t>(what)] = -1;
    KeeperMessage message;
    message.word = KeeperWord::kDrop;
    message.what = what;
    socket_.send(message);
}

void KeeperLink::drop(uint32_t row, uint32_t generation) {
    const auto found = sessions_.find(row);
    if (found != sessions_.end() && found->second->generation == generation) sessions_.erase(found);
    drop(Kept::kSession, row, generation);
}

void KeeperLink::drop(Kept what, uint32_t row, uint32_t generation) {
    socket_.forget(what, row, generation);
    KeeperMessage message;
    message.word = KeeperWord::kDrop;
    message.what = what;
    message.row = row;
    message.generation = generation;
    socket_.send(message);
}

void KeeperLink::hold(const Leftover& leftover) {
    holds(leftover);
    say(remnants_.at(leftover.number));
}

void KeeperLink::holds(const Leftover& leftover) {
    remnants_[leftover.number] = {leftover.number,
                                  leftover.uid,
                                  {leftover.up.get(), leftover.down.get(), leftover.process.get()}};
}

void KeeperLink::drop(const Leftover& leftover) {
    remnants_.erase(leftover.number);
    drop(Kept::kRemnant, leftover.number, leftover.uid);
}

void KeeperLink::say(const Left& left) {
    KeeperMessage message;
    message.word = KeeperWord::kHold;
    message.what = Kept::kRemnant;
    message.row = left.number;
    message.generation = left.uid;
    socket_.send(message, left.descriptors);
}

void KeeperLink::serving(uint64_t clock_offset, const std::string& socket_path) {
    clock_offset_ = clock_offset;
    KeeperMessage message;
    message.word = KeeperWord::kServing;
    message.row = kAnswers;
    message.clock_offset = clock_offset;
    message.text_size = static_cast<uint32_t>(std::min(socket_path.size(), sizeof(message.text)));
    std::memcpy(message.text, socket_path.data(), message.text_size);
    socket_.send(message);
}

void KeeperLink::say(KeeperWord word) {
    KeeperMessage message;
    message.word = word;
    socket_.send_ahead(message);
}

void KeeperLink::stopping(uint64_t asked_ns) {
    if (asked_ns_ == 0 || asked_ns < asked_ns_) asked_ns_ = asked_ns;
    KeeperMessage message;
    message.word = KeeperWord::kStopping;
    message.asked_ns = asked_ns_;
    socket_.send(message);
}

void KeeperLink::yielded() {
    KeeperMessage message;
    message.word = KeeperWord::kYielded;
    socket_.send(message);
    settle();
}

void KeeperLink::stopped() {
    KeeperMessage message;
    message.word = KeeperWord::kStopped;
    socket_.send(message);
    settle();
}

void KeeperLink::settle() {
    while (socket_.waiting() && !keeper_.dead()) {
        if (socket_.waits_for_room()) {
            await(socket_.fd(), POLLOUT);
        } else {
            (void)keeper_.await_death(KeeperSocket::kTryAgainMs);
        }
        socket_.flush();
    }
}

Session* KeeperLink::next_acknowledged() {
    KeeperPacket packet;
    for (;;) {
        const KeeperSocket::Received received = socket_.receive(packet);
        if (received == KeeperSocket::Received::kNothing) return nullptr;
        if (received != KeeperSocket::Received::kPacket) {
            socket_.reset();
            return nullptr;
        }
        if (packet.message.word == KeeperWord::kCalled) {
            say(KeeperWord::kHere);
        }
        if (packet.message.word != KeeperWord::kHeld) continue;
        const auto found = sessions_.find(packet.message.row);
        if (found == sessions_.end()) continue;
        if (found->second->generation == packet.message.generation) return found->second;
    }
}

// One that cannot be reached may live: two keepers would start a broker each.
void KeeperLink::part() {
    refuse();
    (void)keeper_.ending();  // it may have been our child
    keeper_ = Process();
    socket_.reset();
}

bool KeeperLink::renew() {
    part();
    try {
        const shm::Descriptor self = Process::own_pidfd();
        auto [own, others] = KeeperSocket::make_pair();
        keeper_ = Process::start_own(program_, "--keep", others.get());  // it knows our words
        socket_ = KeeperSocket(std::move(own));
        KeeperMessage adopt;
        adopt.word = KeeperWord::kAdopt;
        adopt.row = kAnswers;
        adopt.clock_offset = clock_offset_;
        const std::array<int, 2> descriptors = {self.get(), watch_};
        socket_.send(adopt, descriptors);
        if (asked_ns_ != 0) stopping(asked_ns_);
        for (size_t what = 0; what < segments_.size(); ++what) {
            if (segments_[what] >= 0) say(static_cast<Kept>(what), segments_[what]);
        }
        for (const auto& [row, session] : sessions_)
            say(*session);
        for (const auto& [number, left] : remnants_)
            say(left);
        return true;
    } catch (const std::exception& error) {
        refuse();
        log::error(std::string("no keeper can be started: ") + error.what());
        return false;
    }
}

}  // namespace dibs
