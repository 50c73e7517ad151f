// broker/control/control_remains.cpp -- the end of sessions, and what their clients keep of them.
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

constexpr int kLooks = 4;  // for one who is refused

}  // namespace

// Who is refused is let in all the same if somebody has let go of what kept it out.
std::optional<Refusal> Control::admit(const Credentials& peer, uint64_t memory) {
    std::optional<Refusal> refusal = admission_.begin(peer, memory);
    const uint64_t now = Clock::monotonic();
    for (int looks = 0; refusal && looks < kLooks; ++looks) {
        if (refusal->code == shm::FarewellCode::kNotAllowed) break;
        if (!remains_.look(peer.uid, now) &&
            !(admission_.is_crowded() && remains_.look(std::nullopt, now)))
            break;
        refusal = admission_.begin(peer, memory);
    }
    return refusal;
}

// The keeper has one of the two at any time. Who drains lets nobody in: there is nothing to count.
void Control::retire(Session* session) {
    Remnant remnant{
        .uid = session->peer.uid,
        .memory = session->up_mapping.bytes().size() + session->down_mapping.bytes().size(),
        .up = std::move(session->up_fd),
        .down = std::move(session->down_fd),
        .process = std::move(session->peer.pidfd)};
    const uint32_t row = session->row;
    const uint32_t generation = session->generation;
    if (draining_) {
        admission_.end(remnant.uid, remnant.memory);
    } else {
        keep_if_held(std::move(remnant));
    }
    if (keeper_ != nullptr) keeper_->drop(row, generation);
    delete session;  // what the keeper's link knows of it has ended with it
}

void Control::keep_if_held(Remnant remnant) {
    if (remains_.is_gone(remnant)) return admission_.end(remnant.uid, remnant.memory);
    admission_.outlasted(remnant.uid);
    remnant.number = remains_.new_number();
    if (keeper_ != nullptr) keeper_->hold(remnant);
    remains_.keep(std::move(remnant), Clock::monotonic());
}

void Control::released(const Remnant& remnant) {
    admission_.released(remnant.uid, remnant.memory);
    if (keeper_ != nullptr) keeper_->drop(remnant);
}

void Control::take_remains(Inheritance& inheritance) {
    const auto size_of = [](const Remnant& remnant) {
        return shm::size_of(remnant.up.get()) + shm::size_of(remnant.down.get());
    };
    for (InheritedRemnant& inherited : inheritance.remnants) {
        Remnant remnant{.number = inherited.number,
                        .uid = inherited.uid,
                        .up = std::move(inherited.up),
                        .down = std::move(inherited.down),
                        .process = std::move(inherited.process)};
        remnant.memory = size_of(remnant);
        admission_.adopt(remnant.uid, remnant.memory);
        admission_.outlasted(remnant.uid);
        if (keeper_ != nullptr) keeper_->holds(remnant);
        remains_.keep(std::move(remnant), Clock::monotonic());
    }
    for (InheritedSession& inherited : inheritance.sessions) {
        if (inherited.row == shm::kNoRow) continue;  // it goes on
        std::string why;
        const auto who = peer_credentials(inherited.at(SessionDescriptor::kSocket).get(), &why);
        Remnant remnant{.up = std::move(inherited.at(SessionDescriptor::kUp)),
                        .down = std::move(inherited.at(SessionDescriptor::kDown)),
                        .process = std::move(inherited.at(SessionDescriptor::kProcess))};
        if (who && remnant.up.valid() && remnant.down.valid()) {
            remnant.uid = who->uid;
            remnant.memory = size_of(remnant);
            admission_.adopt(remnant.uid, remnant.memory);
            keep_if_held(std::move(remnant));
        }
        if (keeper_ != nullptr) keeper_->drop(inherited.row, inherited.generation);
    }
}

}  // namespace dibs
