// broker/control/control.hpp -- runs the control thread: connections, signals, shutdown.
//
// A handshake costs a few hundred microseconds of memory and descriptors, so none of it happens in
// the turn. All connections wait here at once until they have said Hello; each has one second, and
// none waits for another. This thread never writes STATE.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "broker/admin/conversations.hpp"
#include "broker/admission/admission.hpp"
#include "broker/admission/callers.hpp"
#include "broker/admission/descriptors.hpp"
#include "broker/admission/handshake.hpp"
#include "broker/admission/listener.hpp"
#include "broker/config/config.hpp"
#include "broker/control/exchange.hpp"
#include "broker/segments/segments.hpp"
#include "broker/session/leftovers.hpp"
#include "broker/takeover/inheritance.hpp"
#include "broker/takeover/keeper_link.hpp"

namespace dibs {

class Control {
  public:
    // Listens on the socket that was inherited, else on the configuration's.
    // `rows`: of sessions. `keeper` may be null. With `signals`, SIGTERM, SIGINT, SIGHUP, SIGUSR1
    // and SIGUSR2 are taken from a signalfd; they must be blocked.
    Control(const Config& config,
            BoardSegment& board,
            Exchange& exchange,
            uint32_t rows,
            shm::Descriptor listener,
            uint64_t listener_inode,
            KeeperLink* keeper,
            bool signals);

    // Before serve(): sessions that are there already, and whether a drain goes on.
    void prepare(const std::vector<Session*>& adopted, bool draining);
    // And what sessions of an earlier broker that were not adopted have left, or will leave.
    void take_leftovers(Inheritance& inheritance);
    void serve(uint64_t epoch);  // until the turn has finished
    void set_hardening(std::string text) { conversations_.set_hardening(std::move(text)); }
    void set_state(std::span<std::byte> state) { conversations_.set_state(state); }
    void stop();  // from any thread: as SIGTERM
    // The service has ended in order: no process goes on with the socket.
    void give_up_name() { listener_->leave_name(false); }
    [[nodiscard]] const std::string& socket_path() const { return socket_path_; }
    [[nodiscard]] bool shared() const;  // its mode lets other users connect

  private:
    enum class Event : uint32_t {
        kConnection,
        kPending,
        kRequest,
        kReport,
        kSignal,
        kStop,
        kKeeper,
        kKeeperDeath
    };

    // The sender of an order to stop. An order that comes both ways is one: pkill signals both
    // processes.
    enum class Asker : uint8_t { kKeeper, kOther, kAdministrator };

    [[nodiscard]] int wait_ms() const;
    [[nodiscard]] int listener_fd() const { return listener_->fd(); }
    void watch(int fd, Event what) const;
    void dispatch(Event what, int fd);
    void accept_all();
    void receive(ClientSocket socket);
    void turn_away(ClientSocket socket);
    void pause_accepting();
    void resume_accepting();
    void hear(int fd);
    void drop_late();
    void begin_session(Caller caller, const HelloResult& hello);
    void free_session(Session* session);
    [[nodiscard]] std::optional<Refusal> admit(const Credentials& peer, uint64_t memory);
    void retire(Session* session);
    void keep_if_held(Leftover leftover);
    void released(const Leftover& leftover);
    void take_reports();
    void opened(Session* session);
    void hear_keeper();
    void lose_keeper();
    void renew_keeper();
    void watch_keeper();
    void watch_for_writing();
    void hand_over(const LoadedState& loaded);
    void welcome(Session* session);
    void take_signal();
    void drain(Asker asker, uint64_t within_ns = 0);
    [[nodiscard]] Asker asker_of(uint32_t pid) const;
    void ask_to_drain();
    void begin_to_stop(uint64_t within_ns);
    [[nodiscard]] admin::AnswerT obey(const admin::Request& order);
    void see_off(Caller caller);
    void yield();
    [[nodiscard]] PoolsThere pools_there() const;
    // Whether it was taken over, and what of it was not, or why.
    bool reload(std::vector<std::string>* said);

    const Config& config_;               // as it was at the start
    std::set<std::string> named_pools_;  // by the file that was read last
    std::string file_;
    std::string socket_path_;
    bool peer_pidfd_;
    BoardSegment& board_;
    Exchange& exchange_;
    std::optional<Listener> listener_;  // always: made in the constructor
    KeeperLink* keeper_;
    shm::Descriptor epoll_;
    shm::Descriptor signals_;
    ThreadWake stop_;
    Callers callers_;
    Admission admission_;
    Leftovers leftovers_;
    Conversations conversations_;
    std::vector<const Session*> untouched_;  // taken over; their pages are not all there yet
    uint64_t epoch_ = 0;
    uint64_t keeper_again_ns_ = 0;       // not 0: none could be started, or live
    uint64_t keeper_began_ns_ = 0;       // the last one
    uint32_t keepers_in_vain_ = 0;       // each of which lived for less than a second
    bool keeper_writing_ = false;        // its socket is watched for room
    uint64_t keeper_flush_ns_ = 0;       // not 0: what waits for it is tried again
    uint64_t accept_again_ns_ = 0;       // not 0: there were no descriptors left
    uint64_t said_full_ns_ = 0;          // when the log last said that there is no room
    std::vector<ClientSocket> waiting_;  // for the next broker: our end wakes them
    bool draining_ = false;
    bool drain_asked_ = false;            // the turn knows
    uint64_t drain_within_ns_ = 0;        // what the turn is to be told
    std::array<bool, 3> asked_to_end_{};  // by Asker
    bool finished_ = false;
};

}  // namespace dibs
