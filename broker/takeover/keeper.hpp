// broker/takeover/keeper.hpp -- keeps descriptors across broker deaths and starts the next broker.
//
//        ┌───────────────── descriptors, "held" ────────────────┐
//        ▼                                                      │
//     keeper ── starts; timer, pidfds both ways ──────────────► broker
//        │                                                      │
//        │ broker dies: proof by pidfd, then waitid; the next   │ keeper dies: proof by pidfd; the
//        │ one gets all descriptors and the time of death       │ broker starts a new one, hands
//        ▼                                                      ▼ everything over, goes on serving
//     broker, next generation                                 keeper, next generation
//
// As a rule the next broker is already running and waits (broker/takeover/standby.hpp).
//
// The keeper is the program that was called. It does next to nothing, so that there is little it
// can die of: it maps no segment and reads no client's byte. If both die together, a service
// manager may have their descriptors (broker/takeover/descriptor_store.hpp) and starts a keeper
// that goes on from them; without a manager STATE is lost, and with it every lease: all holders see
// their socket hang up.
//
// After its start a broker under a keeper still needs these calls, and any sandbox around it must
// allow them:
//   posix_spawn of its own program (clone3 or clone with CLONE_VM | CLONE_VFORK, execve of
//   /proc/self/exe or of the path that it was started from, access, dup2, fcntl, setpgid,
//   rt_sigprocmask, wait4 of a failed start), socketpair, pidfd_open of itself and of the child,
//   waitid with P_PIDFD, poll, sendmsg with SCM_RIGHTS, recvmsg, timerfd_settime, epoll_ctl.
// A keeper that a restricted broker has started inherits the restriction, and hands it on to the
// brokers that it starts. So the restriction must also allow the start of a broker (open of the
// configuration, memfd_create, fchmod, ftruncate, fallocate, mmap, munmap, madvise, fcntl,
// eventfd2, signalfd4, epoll_create1, getsockname, prlimit64) and the keeper itself (signalfd4,
// read, pidfd_send_signal, timerfd_create, connect and sendmsg to $NOTIFY_SOCKET).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "broker/takeover/call_watch.hpp"
#include "broker/takeover/descriptor_store.hpp"
#include "broker/takeover/hang_watch.hpp"
#include "broker/takeover/keeper_child.hpp"
#include "broker/takeover/keeper_socket.hpp"
#include "broker/takeover/service_notice.hpp"
#include "broker/takeover/standby.hpp"

namespace dibs {

class Keeper {
  public:
    // The ready line goes to `ready_fd`; -1 = standard output. SIGTERM, SIGINT, SIGHUP, SIGUSR1
    // and SIGUSR2 must be blocked: they are taken from a descriptor; all but SIGUSR1 are passed on
    // to the broker.
    // `standby`: the next broker is started ahead of its time.
    Keeper(OwnProgram program, int ready_fd, bool standby);

    // Keeps a broker going, the first one on `state` and `listener` if those are valid, or on what
    // a service manager has `stored`, once every broker in it is proved dead. Returns the exit
    // code, when a broker has stopped in order or none can be started. Throws std::runtime_error if
    // a stored broker does not die.
    int keep(shm::Descriptor state, shm::Descriptor listener, StoredDescriptors stored);
    // The same for a broker that is already there and has lost its keeper.
    int keep_for(shm::Descriptor socket);

  private:
    struct Held {
        KeeperMessage message;
        std::vector<shm::Descriptor> descriptors;
    };

    static uint64_t key_of(const KeeperMessage& message);
    static DescriptorName name_of(const KeeperMessage& message);
    static bool is_welcomed(const Held& session);

    int serve();
    void recover_from(const char* shortage);
    void wait();
    [[nodiscard]] bool must_tell() const;
    [[nodiscard]] int wait_ms(uint64_t now) const;
    void hold(Kept what, shm::Descriptor descriptor);
    void take_stored(StoredDescriptors& stored);
    void store_broker();
    void store(const Held& held);
    void tell_manager(uint32_t ms);
    void leave();
    void leave_to_manager();
    void start_broker();
    void start_program();
    void launch(int socket);
    void start_standby();
    void try_program();
    void go_back(const std::string& why);
    void tell_why_not_upgraded();
    [[nodiscard]] std::string failed_how(const std::optional<Process::Ending>& ending) const;
    void hand_over(const Held& held);
    void hear();
    void take(KeeperPacket& packet);
    void take_descriptors(KeeperPacket& packet);
    void drop(const KeeperMessage& message);
    void adopt(KeeperPacket& packet);
    void broker_serves(const KeeperMessage& message);
    void broker_died();
    [[nodiscard]] bool worth_another(const std::optional<Process::Ending>& ending, bool begun);
    void suspect();
    void look_again();
    void broker_hangs();
    void kill_hanging();
    void watch_calls();
    void hear_calls(uint64_t now);
    void look_for_answer(uint64_t now);
    void look_whether_it_begins(uint64_t now);
    void take_signals();
    void asked_to_stop(uint64_t asked_ns);
    void finish(int exit_code);

    OwnProgram program_;
    const shm::Descriptor self_ = Process::own_pidfd();  // for each broker: none is left without
    int ready_fd_;
    shm::Descriptor signals_;
    HangWatch watch_;
    CallWatch calls_;
    ServiceNotices notices_;
    DescriptorStore store_{notices_};
    std::map<DescriptorName, shm::Descriptor> stored_brokers_;  // one of them may live
    Process broker_;
    KeeperSocket socket_;
    const bool has_standby_;
    Standby standby_;
    std::map<uint64_t, Held> held_;  // by what and row: STATE first
    uint64_t clock_offset_ = 0;
    uint64_t death_ns_ = 0;
    uint64_t asked_ns_ = 0;                // to stop; monotonic: no broker's death takes that back
    uint32_t failed_starts_ = 0;           // running
    uint32_t unserved_ = 0;                // deaths running before they served, of whatever
    uint64_t start_due_ns_ = 0;            // not before
    uint64_t started_ns_ = 0;              // this broker; monotonic
    uint64_t begins_by_ns_ = shm::kNever;  // one that was started ahead, until it says a word
    uint32_t begin_looks_ = 0;             // left behind that time
    bool begun_ = true;                    // unless it was started ahead and has said nothing yet
    uint32_t looks_left_ = 0;  // at the watch that has rung, before the broker is killed
    uint64_t look_due_ns_ = 0;
    uint64_t tell_again_ns_ = 0;  // not before; there was no room, for whatever reason
    bool state_served_ = false;   // a broker has, from the STATE that is held
    bool restarted_ = false;      // no broker has served since the manager began this keeper
    bool said_ready_ = false;
    bool told_to_stop_ = false;  // by a signal to this process
    bool serving_ = false;       // this broker has begun to serve
    bool answers_ = false;       // and says whether it is there, if asked
    uint32_t call_looks_ = 0;    // behind the time of that answer, before the broker is killed
    bool ever_served_ = false;   // some broker has
    bool stopped_ = false;       // in order: by its own word
    bool hung_ = false;          // was killed for it
    bool yielded_ = false;       // makes way: by its own word
    bool runs_other_ = false;    // this broker is another program than the keeper
    bool only_own_ = false;      // such a one could not go on
    std::string not_upgraded_;   // why
    bool start_again_ = false;   // there is no broker that has been told everything
    bool leaving_ = false;       // the service is restarted: the manager holds what goes on
    bool finished_ = false;
    int exit_code_ = 0;
};

}  // namespace dibs
