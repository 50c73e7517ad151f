// broker/session/leftovers.cpp -- reclaims the memory of ended sessions once no process holds it.
// SPDX-License-Identifier: Apache-2.0
#include "broker/session/leftovers.hpp"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "broker/text/log.hpp"
#include "shm/handshake.hpp"
#include "shm/layout.hpp"
#include "shm/memfd.hpp"

namespace dibs {

namespace {

constexpr uint64_t kFirstPauseNs = 50'000'000;
constexpr uint64_t kLastPauseNs = 60'000'000'000;
constexpr int kLooksForOne = 16;    // when one is refused: as long as a session takes to make
constexpr uint32_t kFreeLooks = 8;  // at each, then pauses begin
constexpr uint64_t kAskedPauseNs = 1'000'000;
constexpr uint32_t kAskedDoublings = 8;
constexpr int kLooksAtOnce = 64;  // of those that are due

bool is_dead(const shm::Descriptor& process) {
    struct pollfd poll_fd = {process.get(), POLLIN, 0};
    return poll(&poll_fd, 1, 0) > 0;
}

// A look that may have found no descriptor or no memory, which looks to it as if a process held the
// file.
Holders look(int memfd) {
    bool looked = false;
    const Holders holders = take_back(memfd, &looked);
    if (!looked) throw std::runtime_error("nothing to find out with");
    return holders;
}

bool is_known_to_work() {
    const shm::Descriptor memfd = shm::make_memfd("dibs-look", shm::kPageSize);
    if (look(memfd.get()) != Holders::kNone) return false;
    {
        const shm::Descriptor reader = shm::reopen_read_only(memfd.get());
        if (look(memfd.get()) != Holders::kSome) return false;
    }
    {
        const shm::Descriptor writer = shm::reopen_for_writing(memfd.get());
        if (look(memfd.get()) != Holders::kSome) return false;
    }
    return look(memfd.get()) == Holders::kNone;
}

// Nothing if there was no descriptor or memory to find out with.
std::optional<bool> find_out() {
    try {
        const bool works = is_known_to_work();
        if (!works) {
            log::info(
                "this kernel does not say who has a segment: what an ended session had stays "
                "counted until its process is dead");
        }
        return works;
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

}  // namespace

// A process that opens the file while the lease is held waits until it is given back, and this
// process gets SIGIO, which it ignores (main.cpp): by default that signal kills. Only the broker's
// own user and root can open it. A lease ends with its descriptor at the latest.
Holders take_back(int memfd, bool* looked) {
    if (looked != nullptr) *looked = false;
    shm::Descriptor own;
    uint64_t size = 0;
    try {
        own = shm::reopen_read_only(memfd);
        size = shm::size_of(memfd);
    } catch (const std::exception&) {
        return Holders::kSome;  // no descriptor is left, say
    }
    if (fcntl(own.get(), F_SETLEASE, F_WRLCK) != 0) {
        const int why = errno;
        if (looked != nullptr) *looked = why != ENOMEM;
        const bool passes = why == EAGAIN || why == EBUSY || why == ENOMEM;
        return passes ? Holders::kSome : Holders::kUnknown;
    }
    if (looked != nullptr) *looked = true;
    const bool taken =
        fallocate(memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size)) ==
        0;
    (void)fcntl(own.get(), F_SETLEASE, F_UNLCK);
    return taken ? Holders::kNone : Holders::kSome;
}

TakeBack way_to_take_back() {
    return [works = find_out()](int memfd) mutable {
        if (!works) works = find_out();
        if (!works) return Holders::kSome;
        return *works ? take_back(memfd) : Holders::kUnknown;
    };
}

bool Leftovers::is_gone(Leftover& leftover) const {
    const auto nobody_has = [&](const shm::Descriptor& segment) {
        const Holders holders = take_back_(segment.get());
        return holders == Holders::kNone ||
               (holders == Holders::kUnknown && is_dead(leftover.process));
    };
    leftover.up_is_gone = leftover.up_is_gone || nobody_has(leftover.up);
    return leftover.up_is_gone && nobody_has(leftover.down);
}

void Leftovers::keep(Leftover leftover, uint64_t now_ns) {
    const uint64_t due_ns = now_ns + kFirstPauseNs;
    last_number_ = std::max(last_number_, leftover.number);
    ++of_user_[leftover.uid];
    kept_.push_back({std::move(leftover), due_ns, kFirstPauseNs});
    next_due_ns_ = std::min(next_due_ns_, due_ns);
}

bool Leftovers::drop_if_gone(Place place) {
    kept_.splice(kept_.end(), kept_, place);
    if (!is_gone(place->leftover)) return false;
    gone_(place->leftover);
    const auto user = of_user_.find(place->leftover.uid);
    if (--user->second == 0) of_user_.erase(user);
    kept_.erase(place);
    return true;
}

bool Leftovers::look(std::optional<uint32_t> uid, uint64_t now_ns) {
    if (uid && of_user_.count(*uid) == 0) return false;
    bool any = false;
    int left = kLooksForOne;
    size_t unseen = kept_.size();
    for (Place next = kept_.begin(); unseen != 0 && left != 0; --unseen) {
        const Place place = next++;
        if (now_ns < place->asked_ns || (uid && place->leftover.uid != *uid)) continue;
        --left;
        if (++place->asked >= kFreeLooks) {
            const uint32_t doublings = std::min(place->asked - kFreeLooks, kAskedDoublings);
            place->asked_ns = now_ns + (kAskedPauseNs << doublings);
        }
        any = drop_if_gone(place) || any;
    }
    return any;
}

void Leftovers::look_due(uint64_t now_ns) {
    if (now_ns < next_due_ns_) return;
    int left = kLooksAtOnce;
    size_t unseen = kept_.size();
    next_due_ns_ = shm::kNever;
    for (Place next = kept_.begin(); unseen != 0; --unseen) {
        const Place place = next++;
        if (place->due_ns <= now_ns && left != 0) {
            --left;
            place->pause_ns = std::min(2 * place->pause_ns, kLastPauseNs);
            place->due_ns = now_ns + place->pause_ns;
            const uint64_t due_ns = place->due_ns;
            if (drop_if_gone(place)) continue;
            next_due_ns_ = std::min(next_due_ns_, due_ns);
        } else {
            next_due_ns_ = std::min(next_due_ns_, place->due_ns);
        }
    }
}

uint32_t Leftovers::new_number() {
    const auto taken = [&] {
        return std::any_of(kept_.begin(), kept_.end(), [&](const Kept& kept) {
            return kept.leftover.number == last_number_;
        });
    };
    do {
        ++last_number_;
    } while (taken());
    return last_number_;
}

}  // namespace dibs
