// broker/control/control_leftovers.cpp -- ends sessions and keeps memory that clients still hold.
// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "broker/admission/peer.hpp"
#include "broker/control/control.hpp"
#include "broker/turn/clock.hpp"
#include "shm/memfd.hpp"

namespace dibs {

namespace {

constexpr int kLooks = 4;  // for one refused session

}  // namespace

// A refused client is let in all the same if memory that kept it out has been released.
std::optional<Refusal> Control::admit(const Credentials& peer, uint64_t memory) {
    std::optional<Refusal> refusal = admission_.begin(peer, memory);
    const uint64_t now = Clock::monotonic();
    for (int looks = 0; refusal && looks < kLooks; ++looks) {
        if (refusal->code == shm::FarewellCode::kNotAllowed) break;
        if (!leftovers_.look(peer.uid, now) &&
            !(admission_.is_crowded() && leftovers_.look(std::nullopt, now)))
            break;
        refusal = admission_.begin(peer, memory);
    }
    return refusal;
}

// The keeper has one of the two at any time. A draining broker lets no session in: there is nothing
// to count.
void Control::retire(Session* session) {
    Leftover leftover{
        .uid = session->peer.uid,
        .memory = session->up_mapping.bytes().size() + session->down_mapping.bytes().size(),
        .up = std::move(session->up_fd),
        .down = std::move(session->down_fd),
        .process = std::move(session->peer.pidfd)};
    const uint32_t row = session->row;
    const uint32_t generation = session->generation;
    if (draining_) {
        admission_.end(leftover.uid, leftover.memory);
    } else {
        keep_if_held(std::move(leftover));
    }
    if (keeper_ != nullptr) keeper_->drop(row, generation);
    delete session;  // what the keeper's link knows of it has ended with it
}

void Control::keep_if_held(Leftover leftover) {
    if (leftovers_.is_gone(leftover)) return admission_.end(leftover.uid, leftover.memory);
    admission_.outlasted(leftover.uid);
    leftover.number = leftovers_.new_number();
    if (keeper_ != nullptr) keeper_->hold(leftover);
    leftovers_.keep(std::move(leftover), Clock::monotonic());
}

void Control::released(const Leftover& leftover) {
    admission_.released(leftover.uid, leftover.memory);
    if (keeper_ != nullptr) keeper_->drop(leftover);
}

void Control::take_leftovers(Inheritance& inheritance) {
    const auto size_of = [](const Leftover& leftover) {
        return shm::size_of(leftover.up.get()) + shm::size_of(leftover.down.get());
    };
    for (InheritedRemnant& inherited : inheritance.leftovers) {
        Leftover leftover{.number = inherited.number,
                          .uid = inherited.uid,
                          .up = std::move(inherited.up),
                          .down = std::move(inherited.down),
                          .process = std::move(inherited.process)};
        leftover.memory = size_of(leftover);
        admission_.adopt(leftover.uid, leftover.memory);
        admission_.outlasted(leftover.uid);
        if (keeper_ != nullptr) keeper_->holds(leftover);
        leftovers_.keep(std::move(leftover), Clock::monotonic());
    }
    for (InheritedSession& inherited : inheritance.sessions) {
        if (inherited.row == shm::kNoRow) continue;  // it goes on
        std::string why;
        const auto who = peer_credentials(inherited.at(SessionDescriptor::kSocket).get(), &why);
        Leftover leftover{.up = std::move(inherited.at(SessionDescriptor::kUp)),
                          .down = std::move(inherited.at(SessionDescriptor::kDown)),
                          .process = std::move(inherited.at(SessionDescriptor::kProcess))};
        if (who && leftover.up.valid() && leftover.down.valid()) {
            leftover.uid = who->uid;
            leftover.memory = size_of(leftover);
            admission_.adopt(leftover.uid, leftover.memory);
            keep_if_held(std::move(leftover));
        }
        if (keeper_ != nullptr) keeper_->drop(inherited.row, inherited.generation);
    }
}

}  // namespace dibs
