// broker/takeover/keeper_store.cpp -- exchanges the keeper's descriptors with a service manager.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "broker/session/control_group.hpp"
#include "broker/takeover/keeper.hpp"
#include "broker/takeover/socket_activation.hpp"
#include "broker/text/log.hpp"
#include "broker/turn/clock.hpp"

namespace dibs {

namespace {

constexpr int kDeathMs = 10'000;  // of a killed broker, until its pidfd says so
// A manager that takes nothing for longer is not waited for: a takeover is.
constexpr uint32_t kStoreBrokerMs = 1'000;

}  // namespace

DescriptorName Keeper::name_of(const KeeperMessage& message) {
    switch (message.what) {
        case Kept::kState:
            return {DescriptorName::What::kState};
        case Kept::kBoard:
            return {DescriptorName::What::kBoard};
        case Kept::kListener:
            return {DescriptorName::What::kListener};
        case Kept::kConfig:
            return {DescriptorName::What::kConfig};
        case Kept::kSession:
        case Kept::kRemnant:  // never stored
            break;
    }
    return {DescriptorName::What::kSession, message.row, message.generation};
}

// A broker's death is proved before another one serves in its place. The time of its death is not
// known: its successor goes on from the last instant that STATE saw.
void Keeper::take_stored(StoredDescriptors& stored) {
    if (!stored.aside.empty() && !stored.ended) {
        log::warning("the service manager has stored " + std::to_string(stored.aside.size()) +
                     " things that nobody can use, as \"" + stored.aside.front() + "\"");
    }
    for (const std::string& name : stored.aside)
        notices_.say("FDSTOREREMOVE=1\nFDNAME=" + name);
    for (auto& [name, pidfds] : stored.brokers) {
        store_.found(name, pidfds);
        for (shm::Descriptor& pidfd : pidfds) {
            const Process broker(std::move(pidfd));
            broker.signal(SIGKILL);
            if (!broker.await_death(kDeathMs))
                throw std::runtime_error("the last broker does not die");
        }
        stored_brokers_.emplace(name, shm::Descriptor());
    }
    if (stored.listener.valid()) hold(Kept::kListener, std::move(stored.listener));
    if (stored.board.valid()) hold(Kept::kBoard, std::move(stored.board));
    if (stored.config.valid()) hold(Kept::kConfig, std::move(stored.config));
    if (stored.state.valid()) {
        hold(Kept::kState, std::move(stored.state));
        log::info("going on from what the service manager has stored of the last broker");
        death_ns_ = 1;
        restarted_ = state_served_ = ever_served_ = true;
    }
    for (auto& [name, descriptors] : stored.sessions) {
        KeeperMessage message;
        message.row = name.row;
        message.generation = name.generation;
        Held& held = held_[key_of(message)];
        held.message = message;
        for (shm::Descriptor& descriptor : descriptors) {
            if (descriptor.valid()) held.descriptors.push_back(std::move(descriptor));
        }
    }
    for (const auto& [key, held] : held_)
        store_.found(name_of(held.message), held.descriptors);
}

// The proof of its death, for a service that begins after it and us. Its predecessors are dead.
void Keeper::store_broker() {
    if (!notices_.connected()) return;
    const DescriptorName name{DescriptorName::What::kBroker,
                              static_cast<uint32_t>(pid_of(broker_.pidfd()).value_or(0))};
    shm::Descriptor& pidfd = stored_brokers_[name];
    pidfd = shm::Descriptor(fcntl(broker_.pidfd(), F_DUPFD_CLOEXEC, 0));
    store_.keep(name, std::span(&pidfd, 1), Clock::monotonic());
    tell_manager(kStoreBrokerMs);
    std::erase_if(stored_brokers_, [&](const auto& stored) {
        if (stored.first != name) store_.drop(stored.first, Clock::monotonic());
        return stored.first != name;
    });
}

// Waits until it has had room for all that is urgent, for so long at most in all.
void Keeper::tell_manager(uint32_t ms) {
    const uint64_t deadline_ns = Clock::monotonic() + uint64_t{ms} * 1'000'000;
    do {
        notices_.flush();
        store_.flush(Clock::monotonic());
    } while (must_tell() && notices_.await_room(deadline_ns));
}

// The last one of another has been its client's, a socket.
bool Keeper::is_welcomed(const Held& session) {
    return session.descriptors.size() <= kKeptLeast ||
           is_of_groups(session.descriptors.back().get());
}

// A session only once its client knows of it, and all of it is here.
void Keeper::store(const Held& held) {
    // A service that begins anew has its memory back with the last descriptor of them.
    if (held.message.what == Kept::kRemnant) return;
    const bool session = held.message.what == Kept::kSession;
    if (session && !is_welcomed(held)) return;
    if (held.message.what == Kept::kListener && is_socket_activated()) return;  // the manager's own
    store_.keep(name_of(held.message), held.descriptors, Clock::monotonic());
}

}  // namespace dibs
