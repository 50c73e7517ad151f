// shm/operation.hpp -- says which fields of a ring entry an operation or answer uses.
//
// Submissions. Fields that are not named are 0. `tag` < tags; payload: a place in UP's payload
// area.
//
//   op         pool units tag  payload          id          fence        key
//   kNop                   x                    1 (+)
//   kClaim    x (#)  x     x   ClaimPayload     timeout_ns  interval_ns  idempotency key
//   kCancel                x
//   kRelease               x                    lease       fence        its claim's number (*)
//   kFail                  x                    lease       fence        its claim's number (*)
//   kKeepalive                                  lease       fence        interval_ns (*)
//   kAnnounce   x              AnnouncePayload  worker_tag  order (=)    the order's token
//   kReady                                      slot        round
//   kConfirm                   answer           slot        round
//   kRefuse                                     slot        round        code (*)
//   kDone                      answer           slot        round
//   kWithdraw                                   slot
//   kProtect                                    slot
//   kProvide    x          x   type's name
//   kProvisioned     answer scope quota group    order
//   kApplication  x            ApplicationPayload
//
// (*) in word 0 of the key.
// (=) 0 and no token: its worker was not made for one.
// (+) the client reads no more of the lease that has ended under this tag: its room is free. 0, and
//     no tag: nothing.
// (#) with OpFlag::kOfSet a pool set, by set_of_claim(). Its grant's head says which pool it has.
//
// The tag and the claim number of a lease that is given back say which claim ends with it, if it
// waits again or has been granted again meanwhile (LeaseEvent::kRequeued); number 0: no claim.
//
// Completions. `user_data` is the operation's; in words to workers it is the slot's worker_tag,
// in those to provisioners the tag of the kProvide that took the type's role.
//
//   kind, outcome     id            fence  value              claim        data    holder
//   kClaim granted    lease         fence  interval_ns        its number   room    preferred labels
//                                                                                that are there
//   kClaim ended      holder's      holder retry_after_ns,    its number   holder  holder
//                     claim; first  age ns or the worker's                 pid     uid
//                     claim         code (kRefused)
//   kResult           lease, slot   holder interval_ns        holder's     holder  holder
//                                   age ns (kKeepalive)       claim        pid     uid
//   kSlot             slot          round  slot's number
//   kAssign           slot          round  slot's number,     its number   payload payload size
//                                          labels to provision
//   kRevoke           slot          round  slot's number
//   kNotice           slot          round  ns that are left   its number   slot's
//                                                                          number
//   kCreate           order         token  slot's number,     token      sizes   size of sizes
//                                          width
//   kStop             order                slot's number
//   kApplication      number        state now     state before  tasks
//
// kApplication: `tasks` without a claim have failed; its result's value: number, or tasks alive.
// holder = kNoRow: there is none to name. "first claim": of a duplicate, whose holder it names.
// Labels: a bit each, in the order of ClaimPayload.preferred; those to provision are the upper half
// of value.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "shm/layout.hpp"
#include "shm/ring.hpp"

namespace dibs::shm {

// Completions that one slot's worker can have unread: notice and revoke of a round whose assignment
// it has read, and assignment and revoke of the next. For the round after that it must have read
// them. Both sides keep this many entries of the ring for each announced slot.
inline constexpr uint32_t kCompletionsPerSlot = 4;
// All that an application's manager is ever told of it: its states, each once, and a warning.
inline constexpr uint32_t kCompletionsPerApplication = 8;

// Word 0 of the key: kKeepalive's interval, kRefuse's code.
inline void set_key_word(Submission& entry, uint64_t word) {
    std::memcpy(entry.key, &word, sizeof word);
}
[[nodiscard]] inline uint64_t key_word(const Submission& entry) {
    uint64_t word = 0;
    std::memcpy(&word, entry.key, sizeof word);
    return word;
}

// A set as its claims name it: its row, and how often that had become another set's, as far as
// there is room for it.
inline constexpr uint32_t kSetRowBits = 4;
static_assert(kSetsMax == 1U << kSetRowBits);
[[nodiscard]] constexpr uint16_t set_of_claim(uint32_t row, uint32_t use) {
    return static_cast<uint16_t>(use << kSetRowBits | row);
}

// The holder of what was wanted. uid kNoRow: none. Of another user's lease only account and age are
// shown: no pid, no number, and no uid but where that is the account.
inline constexpr uint32_t kHiddenUid = 0xfffffffeU;
inline constexpr uint64_t kHiddenClaim = kNever;

struct Holder {
    uint32_t uid = kNoRow;
    uint32_t pid = 0;
    uint64_t age_ns = 0;
    uint64_t claim = 0;  // its number
};

// Of kResult and of a kClaim that was not granted. A duplicate's id is the first claim's number.
inline void set_holder(Completion& completion, const Holder& holder) {
    completion.holder = holder.uid;
    completion.data = holder.pid;
    completion.fence = holder.age_ns;
    if (completion.kind == CompletionKind::kClaim) {
        completion.id = holder.claim;
    } else {
        completion.claim = holder.claim;
    }
}
[[nodiscard]] inline Holder holder_of(const Completion& completion) {
    if (completion.holder == kNoRow) return {};
    const bool of_claim = completion.kind == CompletionKind::kClaim;
    return {completion.holder,
            completion.data,
            completion.fence,
            of_claim ? completion.id : completion.claim};
}

// A lease's event word (LeaseEvent): the state, why it ended, and the lease id's generation. A
// tag's word outlives its lease: before the completion of a grant the broker stores 0 into it, so
// that what the client finds there concerns the lease that it knows.
[[nodiscard]] constexpr uint64_t event_word(uint8_t state, Reason reason, uint32_t generation) {
    const auto minus = static_cast<uint16_t>(-static_cast<int16_t>(reason));
    return state | uint64_t{minus} << 8 | uint64_t{generation} << 32;
}
[[nodiscard]] constexpr uint8_t event_state(uint64_t word) {
    return static_cast<uint8_t>(word);
}
[[nodiscard]] constexpr Reason event_reason(uint64_t word) {
    return static_cast<Reason>(-static_cast<int16_t>(static_cast<uint16_t>(word >> 8)));
}
[[nodiscard]] constexpr uint32_t event_generation(uint64_t word) {
    return static_cast<uint32_t>(word >> 32);
}

}  // namespace dibs::shm
