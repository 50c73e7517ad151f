// broker/admission/admission.cpp -- counts and bounds each uid's connections, sessions and memory.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admission/admission.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace dibs {

namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr size_t kVisitorsKept = 1024;  // beyond them the idle ones are forgotten

Refusal limit(std::string text) {
    return {shm::FarewellCode::kLimit, 0, std::move(text)};
}

std::string user(uint32_t uid) {
    return "user " + std::to_string(uid);
}

}  // namespace

Admission::Admission(std::shared_ptr<const Policy> policy, const Room& room)
    : policy_(std::move(policy)), room_(room) {}

std::optional<Refusal> Admission::connect(const Credentials& peer, uint64_t now_ns) {
    if (visitors_.size() > kVisitorsKept && now_ns - swept_ns_ > kSecond) forget_idle(now_ns);
    const uint64_t rate = policy_->of(peer).handshakes;
    Visitor& visitor = visitors_[peer.uid];
    // In one second `rate` whole handshakes come back, in one nanosecond `rate` billionths.
    const uint64_t passed =
        visitor.known ? std::min(now_ns - visitor.counted_ns, kSecond) : kSecond;
    visitor.known = true;
    visitor.counted_ns = now_ns;
    visitor.handshakes = std::min(visitor.handshakes + passed * rate, rate * kSecond);
    if (visitor.handshakes < kSecond) {
        return limit(user(peer.uid) + " connects more than " + std::to_string(rate) +
                     " times a second");
    }
    visitor.handshakes -= kSecond;
    return std::nullopt;
}

std::optional<Refusal> Admission::begin(const Credentials& peer, uint64_t memory) {
    if (room_.administers_only == peer.uid) {
        return Refusal{shm::FarewellCode::kNotAllowed,
                       0,
                       "this broker serves several users: its own, " + std::to_string(peer.uid) +
                           ", may administer it and gets no session"};
    }
    if (room_.nameless == peer.uid) {
        return Refusal{shm::FarewellCode::kNotAllowed,
                       0,
                       "this broker serves several users, and its namespace does not tell who "
                       "yours is"};
    }
    const Allowance& allowance = policy_->of(peer);
    Visitor& visitor = visitors_[peer.uid];
    if (visitor.sessions >= allowance.sessions) {
        return limit(user(peer.uid) + " has " + std::to_string(visitor.sessions) + " sessions" +
                     outlasted_of(visitor) + ", as many as its policy allows");
    }
    if (memory > allowance.memory || visitor.memory > allowance.memory - memory) {
        return limit(user(peer.uid) + " has " + std::to_string(visitor.memory) +
                     " bytes of rings and payload" + outlasted_of(visitor) + "; with " +
                     std::to_string(memory) + " more it would pass the " +
                     std::to_string(allowance.memory) + " that its policy allows");
    }
    if (sessions_ >= room_.sessions) {
        return Refusal{shm::FarewellCode::kFull,
                       0,
                       "all " + std::to_string(room_.sessions) + " sessions are in use"};
    }
    const uint32_t few = std::max(1U, room_.sessions / 64);
    if (room_.newcomers && room_.sessions - sessions_ <= room_.sessions / 4 &&
        visitor.sessions >= few) {
        return limit("the last quarter of the sessions is for users with fewer than " +
                     std::to_string(few) + "; " + user(peer.uid) + " has " +
                     std::to_string(visitor.sessions));
    }
    ++sessions_;
    ++visitor.sessions;
    visitor.memory += memory;
    return std::nullopt;
}

void Admission::adopt(uint32_t uid, uint64_t memory) {
    Visitor& visitor = visitors_[uid];
    ++sessions_;
    ++visitor.sessions;
    visitor.memory += memory;
}

void Admission::end(uint32_t uid, uint64_t memory) {
    Visitor& visitor = visitors_[uid];
    --sessions_;
    --visitor.sessions;
    visitor.memory -= memory;
}

void Admission::released(uint32_t uid, uint64_t memory) {
    --visitors_[uid].outlasted;
    end(uid, memory);
}

std::string Admission::outlasted_of(const Visitor& visitor) {
    if (visitor.outlasted == 0) return "";
    return " (of " + std::to_string(visitor.outlasted) +
           " that ended somebody still has the memory)";
}

// A uid without a session that has been away for a second is like one that never came.
void Admission::forget_idle(uint64_t now_ns) {
    swept_ns_ = now_ns;
    std::erase_if(visitors_, [&](const auto& entry) {
        return entry.second.sessions == 0 && now_ns - entry.second.counted_ns > kSecond;
    });
}

}  // namespace dibs
