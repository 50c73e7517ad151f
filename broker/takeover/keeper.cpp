// broker/takeover/keeper.cpp -- keeps descriptors across broker deaths and starts the next broker.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/keeper.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "broker/text/log.hpp"
#include "broker/text/shortage.hpp"
#include "broker/turn/clock.hpp"

namespace dibs {

namespace {

constexpr uint32_t kPutAsideAfter = 3;  // failed starts running
constexpr uint32_t kGiveUpAfter = 6;
constexpr uint64_t kPauseNs = 100'000'000;  // before what has failed is tried again
constexpr uint32_t kUnservedAtOnce = 3;     // deaths before a pause
constexpr uint32_t kUnservedSoon = 20;      // deaths before longer ones, up to 32 times as long
constexpr uint32_t kDoublings = 5;
constexpr uint32_t kKillsOfAnUpgrade = 3;     // by SIGKILL before it serves: of no memory, say
constexpr uint64_t kTellAgainNs = 5'000'000;  // where there was no room, though it seems there is

bool is_same_file(int one, int other) {
    struct stat first = {};
    struct stat second = {};
    return fstat(one, &first) == 0 && fstat(other, &second) == 0 && first.st_ino == second.st_ino &&
           first.st_dev == second.st_dev;
}

shm::Descriptor new_timer() {
    shm::Descriptor timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!timer.valid()) throw std::system_error(errno, std::generic_category(), "timerfd_create");
    return timer;
}

uint64_t pause_after(uint32_t deaths) {
    const uint32_t late = deaths - std::min(deaths, kUnservedSoon);
    return kPauseNs << std::min(late, kDoublings);
}

bool is_unable(const std::optional<Process::Ending>& ending) {
    return ending && !ending->by_signal && ending->number == kExitUnable;
}

// poll(2), for the valid ones. It refuses more than the limit of descriptors, which may have been
// lowered below what is open: then each is looked at by itself, again and again.
int wait_for(std::span<struct pollfd> on, int ms) {
    constexpr int kAgainMs = 50;
    std::array<struct pollfd, 8> there;
    assert(on.size() <= there.size());
    nfds_t count = 0;
    for (const struct pollfd& one : on) {
        if (one.fd >= 0) there[count++] = one;
    }
    int happened = poll(there.data(), count, ms);
    if (happened < 0 && errno == EINVAL) {
        (void)poll(nullptr, 0, ms < 0 ? kAgainMs : std::min(ms, kAgainMs));
        happened = 0;
        for (nfds_t i = 0; i < count; ++i)
            happened += std::max(poll(&there[i], 1, 0), 0);
    }
    nfds_t next = 0;
    for (struct pollfd& one : on)
        one.revents = one.fd >= 0 && happened > 0 ? there[next++].revents : short{0};
    return happened;
}

}  // namespace

uint64_t Keeper::key_of(const KeeperMessage& message) {
    return uint64_t{static_cast<uint32_t>(message.what)} << 32 | message.row;
}

Keeper::Keeper(OwnProgram program, int ready_fd, bool standby)
    : program_(std::move(program)), ready_fd_(ready_fd), has_standby_(standby) {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2})
        sigaddset(&set, signal);
    signals_ = shm::Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_.valid()) throw std::system_error(errno, std::generic_category(), "signalfd");
}

int Keeper::keep(shm::Descriptor state, shm::Descriptor listener, StoredDescriptors stored) {
    watch_ = HangWatch(new_timer());
    if (listener.valid() &&
        stored.listener.valid()) {  // the manager's is the one that clients find
        stored.listener.reset();
        stored.aside.push_back(DescriptorName{DescriptorName::What::kListener}.text());
    }
    take_stored(stored);
    if (state.valid()) hold(Kept::kState, std::move(state));
    if (listener.valid()) hold(Kept::kListener, std::move(listener));
    start_broker();
    return serve();
}

// What the first broker is to find, as if an earlier one had left it.
void Keeper::hold(Kept what, shm::Descriptor descriptor) {
    KeeperMessage message;
    message.what = what;
    Held& held = held_[key_of(message)];
    held.message = message;
    held.descriptors.push_back(std::move(descriptor));
}

int Keeper::keep_for(shm::Descriptor socket) {
    socket_ = KeeperSocket(std::move(socket));
    state_served_ = ever_served_ = said_ready_ = true;
    return serve();
}

int Keeper::serve() {
    while (!finished_) {
        try {
            if (start_again_ && Clock::monotonic() >= start_due_ns_) start_broker();
            start_standby();
            wait();
        } catch (const std::exception& error) {
            recover_from(with_limits(error).c_str());
        }
    }
    return exit_code_;
}

// A shortage in this process, of memory for example, is no reason to let go of what it holds. A
// broker that has not received everything is killed.
void Keeper::recover_from(const char* shortage) {
    if (start_again_) {
        start_due_ns_ = Clock::monotonic() + kPauseNs;
        begins_by_ns_ = shm::kNever;
        if (broker_.pidfd() >= 0) {
            broker_.signal(SIGKILL);
            (void)broker_.await_death(-1);
            (void)broker_.ending();
        }
        broker_ = Process();
        socket_.reset();
    }
    try {
        log::error(std::string("the keeper goes on though it lacks something: ") + shortage);
    } catch (const std::exception&) {  // that, too
    }
    (void)poll(nullptr, 0, static_cast<int>(kPauseNs / 1'000'000));
}

// What the broker has said comes before its death: the last descriptors count.
void Keeper::wait() {
    const short link = static_cast<short>(socket_.waits_for_room() ? POLLIN | POLLOUT : POLLIN);
    const uint64_t began = Clock::monotonic();
    const bool tells = began >= (must_tell() ? tell_again_ns_ : store_.next_due_ns());
    std::array<struct pollfd, 7> on = {{{socket_.fd(), link, 0},
                                        {broker_.pidfd(), POLLIN, 0},
                                        {looks_left_ == 0 ? watch_.fd() : -1, POLLIN, 0},
                                        {signals_.get(), POLLIN, 0},
                                        {tells ? notices_.fd() : -1, POLLOUT, 0},
                                        {standby_.pidfd(), POLLIN, 0},
                                        {calls_.fd(began), POLLIN, 0}}};
    const int happened = wait_for(on, wait_ms(began));
    if (looks_left_ > 0 && Clock::monotonic() >= look_due_ns_) look_again();
    if (on[4].revents != 0) notices_.flush();
    store_.flush(Clock::monotonic());
    if (on[4].revents != 0 && must_tell()) tell_again_ns_ = Clock::monotonic() + kTellAgainNs;
    if (socket_.waits_for_time()) socket_.flush();
    if (on[0].revents != 0) {
        socket_.flush();
        hear();
    }
    // By the time before its words were looked for: whatever has kept this process from running
    // since, a broker that has begun by now has been heard.
    if (began >= begins_by_ns_) look_whether_it_begins(began);
    look_for_answer(began);
    if (happened <= 0) return;
    if (on[1].revents != 0) return broker_died();
    if (on[5].revents != 0) {
        const std::string how = shown(standby_.ended(began));
        if (asked_ns_ != 0) {
            standby_.cancel();
        } else {
            log::warning("the broker that was started ahead ended" + how + ": another is in " +
                         std::to_string((standby_.due_ns() - began) / 1'000'000'000) + " s");
        }
    }
    if (on[2].revents != 0) suspect();
    if (on[6].revents != 0) hear_calls(Clock::monotonic());
    if (on[3].revents != 0) take_signals();
}

bool Keeper::must_tell() const {
    return notices_.waiting() || store_.urgent();
}

// By the same `now` as what is polled, or something would be due neither by time nor by room.
int Keeper::wait_ms(uint64_t now) const {
    uint64_t due = looks_left_ == 0 ? shm::kNever : look_due_ns_;
    if (start_again_) due = std::min(due, start_due_ns_);
    due = std::min({due, begins_by_ns_, standby_.due_ns(), calls_.next_due(now)});
    // What is due already waits for room, not for time.
    if (store_.next_due_ns() > now) due = std::min(due, store_.next_due_ns());
    if (must_tell() && tell_again_ns_ > now) due = std::min(due, tell_again_ns_);
    if (socket_.waits_for_time())
        due = std::min(due, now + uint64_t{KeeperSocket::kTryAgainMs} * 1'000'000);
    if (due == shm::kNever) return -1;
    return now >= due ? 0 : static_cast<int>((due - now) / 1'000'000 + 1);
}

void Keeper::start_broker() {
    looks_left_ = 0;
    start_again_ = true;  // until it has been told everything
    start_program();
    serving_ = answers_ = hung_ = yielded_ = false;
    store_broker();  // before it is given anything that it could write to
    started_ns_ = Clock::monotonic();
    watch_.set(runs_other_ ? HangWatch::kOtherBeginsWithinNs : HangWatch::kServesWithinNs);
    KeeperMessage begin;
    begin.word = KeeperWord::kBegin;
    begin.death_ns = death_ns_;
    begin.clock_offset = clock_offset_;
    begin.unserved = state_served_ ? 0 : 1;
    begin.restarted = restarted_ ? 1 : 0;
    begin.put_aside = failed_starts_ >= kPutAsideAfter ? 1 : 0;
    begin.asked_ns = asked_ns_;
    begin.replaceable = runs_other_ && ever_served_ ? 1 : 0;
    const std::array<int, 2> descriptors = {self_.get(), watch_.fd()};
    socket_.send(begin, descriptors);
    tell_why_not_upgraded();
    for (const auto& [key, held] : held_)
        hand_over(held);
    KeeperMessage go;
    go.word = KeeperWord::kGo;
    socket_.send(go);
    start_again_ = false;
}

void Keeper::start_standby() {
    const uint64_t now = Clock::monotonic();
    if (asked_ns_ == 0) standby_.look(broker_, now);
    if (now < standby_.due_ns()) return;
    standby_.start(program_, !only_own_ && program_.replaced(), broker_, now);
}

void Keeper::hand_over(const Held& held) {
    std::array<int, kKeptMax> descriptors;
    size_t count = 0;
    for (const shm::Descriptor& descriptor : held.descriptors)
        descriptors[count++] = descriptor.get();
    KeeperMessage message = held.message;
    message.word = KeeperWord::kHold;
    socket_.send(message, std::span(descriptors).first(count));
}

void Keeper::hear() {
    KeeperPacket packet;
    for (;;) {
        const KeeperSocket::Received received = socket_.receive(packet);
        if (received == KeeperSocket::Received::kPacket) {
            take(packet);
            continue;
        }
        // Its pidfd reports its death. There was never a broker to keep for yet.
        if (received != KeeperSocket::Received::kNothing) {
            socket_.reset();
            if (broker_.pidfd() < 0) finish(1);
        }
        return;
    }
}

void Keeper::take(KeeperPacket& packet) {
    begins_by_ns_ = shm::kNever;  // whatever it says: it has begun
    begun_ = true;
    switch (packet.message.word) {
        case KeeperWord::kAdopt:
            return adopt(packet);
        case KeeperWord::kHold:
            return take_descriptors(packet);
        case KeeperWord::kWelcomed: {
            const auto found = held_.find(key_of(packet.message));
            if (found == held_.end() || is_welcomed(found->second)) return;
            if (found->second.message.generation == packet.message.generation) {
                found->second.descriptors.pop_back();
                store(found->second);
            }
            return;
        }
        case KeeperWord::kDrop:
            return drop(packet.message);
        case KeeperWord::kServing:
            return broker_serves(packet.message);
        case KeeperWord::kStopping:
            asked_to_stop(packet.message.asked_ns);
            standby_.cancel();
            return;
        case KeeperWord::kStopped:
            stopped_ = true;
            return calls_.end();
        case KeeperWord::kYielded:
            yielded_ = true;
            return calls_.end();
        case KeeperWord::kBusy:
            return calls_.excuse(Clock::monotonic());
        case KeeperWord::kHere:
            return calls_.answered(Clock::monotonic());
        default:
            return;  // begun, or a keeper's own words
    }
}

void Keeper::take_descriptors(KeeperPacket& packet) {
    Held& held = held_[key_of(packet.message)];
    // Its descriptors are closed below. What else there is the store keeps open while it waits.
    if (held.message.what == Kept::kSession) {
        store_.drop(name_of(held.message), Clock::monotonic());
    }
    // A broker that is not serving yet has made it, or has only been given it.
    if (packet.message.what == Kept::kState && !serving_ &&
        (held.descriptors.empty() ||
         !is_same_file(held.descriptors[0].get(), packet.descriptors[0].get()))) {
        state_served_ = false;
    }
    held.message = packet.message;
    held.descriptors.clear();
    for (uint32_t i = 0; i < packet.count; ++i)
        held.descriptors.push_back(std::move(packet.descriptors[i]));
    if (serving_) store(held);
    if (packet.message.what == Kept::kListener) watch_calls();
    if (packet.message.what != Kept::kSession) return;
    KeeperMessage reply = packet.message;
    reply.word = KeeperWord::kHeld;
    socket_.send(reply);
}

void Keeper::drop(const KeeperMessage& message) {
    const auto found = held_.find(key_of(message));
    if (found == held_.end() || found->second.message.generation != message.generation) return;
    socket_.forget(message.what, message.row, message.generation);
    if (message.what != Kept::kRemnant) store_.drop(name_of(message), Clock::monotonic());
    held_.erase(found);
}

void Keeper::adopt(KeeperPacket& packet) {
    if (packet.count < 2) return;
    broker_ = Process(std::move(packet.descriptors[0]));
    watch_ = HangWatch(std::move(packet.descriptors[1]));
    looks_left_ = 0;
    clock_offset_ = packet.message.clock_offset;
    serving_ = true;
    answers_ = packet.message.row == kAnswers;
    if (has_standby_ && asked_ns_ == 0) standby_.plan(Clock::monotonic());
    // The service is this process from now on, and ready: it is not known what the earlier keeper
    // said.
    notices_.say("READY=1\nMAINPID=" + std::to_string(getpid()));
    store_broker();
    log::warning("the keeper died: this is the next one");
    // They came before the broker was known.
    if (asked_ns_ != 0) broker_.signal(SIGTERM);
    if (asked_ns_ == kLongAgoNs) broker_.signal(SIGINT);
}

void Keeper::broker_serves(const KeeperMessage& message) {
    clock_offset_ = message.clock_offset;
    serving_ = ever_served_ = state_served_ = true;
    answers_ = message.row == kAnswers;
    watch_calls();
    restarted_ = false;
    failed_starts_ = unserved_ = 0;
    if (has_standby_ && asked_ns_ == 0) standby_.plan(Clock::monotonic());
    for (const auto& [key, held] : held_)
        store(held);
    if (said_ready_) return;
    said_ready_ = true;
    const std::string line =
        "dibsd: ready on " + std::string(message.text, message.text_size) + "\n";
    (void)!write(ready_fd_ < 0 ? STDOUT_FILENO : ready_fd_, line.data(), line.size());
    notices_.say("READY=1\nMAINPID=" + std::to_string(getpid()));
}

void Keeper::broker_died() {
    const uint64_t now = Clock::monotonic();
    hear();
    // One that has not served is no gap's beginning: the time before it stands still as well, and
    // where none has served nothing is taken over, but begun once more.
    if (serving_) death_ns_ = now;
    socket_.reset();
    // Before anything is touched that it may still have held: it is waited for, if it is ours.
    if (runs_other_ && !serving_) broker_.kill_group();  // whatever the program was
    const std::optional<Process::Ending> ending = broker_.ending();
    broker_ = Process();
    start_again_ = true;  // whatever this process lacks below
    looks_left_ = 0;
    begins_by_ns_ = shm::kNever;
    const bool begun = std::exchange(begun_, true);
    watch_.disarm();
    calls_.end();
    standby_.cancel();
    if (stopped_ || (asked_ns_ != 0 && !ever_served_)) return finish(0);
    if (leaving_) return leave_to_manager();
    if (!worth_another(ending, begun)) return;
    // A broker with a shortage may have said that it serves before the shortage was found.
    if (unserved_ > kUnservedAtOnce || is_unable(ending)) {
        start_due_ns_ = now + pause_after(unserved_);
    }
    // By its word; by its exit code only if it is a broker for certain.
    if (yielded_ || (serving_ && ending && !ending->by_signal && ending->number == kExitYielded)) {
        log::info("the broker has made way: starting the next one");
        standby_.let_go();  // what it has loaded may be what is to be changed
        try_program();
    } else {
        log::warning("the broker died" + shown(ending) + (hung_ ? ", it hung" : "") +
                     ": starting the next one");
    }
}

// A broker that cannot begin to serve is not started for ever. One that was killed is, and one that
// lacks what the next one may find, a descriptor say: what is held is not at fault. One that had
// been started ahead and had not begun says nothing about the next, which is not started ahead.
bool Keeper::worth_another(const std::optional<Process::Ending>& ending, bool begun) {
    if (serving_) return true;
    const bool unable = is_unable(ending);
    if (!ever_served_ && ending && !ending->by_signal) {
        finish(unable ? 1 : ending->number);  // a mistake in the configuration, say: it said so
        return false;
    }
    const bool killed = ending && ending->by_signal && ending->number == SIGKILL && !hung_;
    if (asked_ns_ == kLongAgoNs) {
        finish(1);
        return false;
    }
    if (!begun) return true;
    ++unserved_;
    if (runs_other_ && ever_served_ && (!killed || unserved_ == kKillsOfAnUpgrade)) {
        go_back(failed_how(ending));
        return true;
    }
    // A service that is to stop does not wait for ever until a broker can obey, nor puts STATE
    // aside for that.
    const bool counts = !killed && (!unable || asked_ns_ != 0);
    if (counts && ++failed_starts_ >= (unable ? kPutAsideAfter : kGiveUpAfter)) {
        log::error("no broker can begin to serve: giving up");
        finish(1);
        return false;
    }
    return true;
}

}  // namespace dibs
