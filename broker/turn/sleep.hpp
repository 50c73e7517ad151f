// broker/turn/sleep.hpp -- decides when the broker may sleep, and sleeps.
//
// After its last work the broker spins for a while, but only while some client that it polls runs
// on another CPU: on the client's own CPU a spinning broker only delays the client that it waits
// for, so it yields a few times and sleeps. Before it sleeps it arms the wake-up words of the
// polled sessions and looks at their rings once more. Its only timer is the core's next due
// instant: idle means no wake-up at all.
//
// Bells are registered edge-triggered and never read: the client holds them too, could clear
// O_NONBLOCK and drain or fill them, and a broker that read or wrote one would then block for ever.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdint>

#include "broker/control/epoll.hpp"
#include "broker/control/exchange.hpp"
#include "broker/session/sessions.hpp"
#include "broker/takeover/hang_watch.hpp"
#include "broker/turn/clock.hpp"
#include "broker/turn/publish.hpp"
#include "shm/spin_gauge.hpp"

namespace dibs {

class Sleep {
  public:
    // `hang_watch` rings if the turn hangs: armed while the broker is awake.
    Sleep(Sessions& sessions,
          Exchange& exchange,
          Publisher& publisher,
          const Clock& clock,
          HangWatch hang_watch);

    // Bell and death notice of a session. False if the kernel has no room for them.
    [[nodiscard]] bool add(const Session& session);
    void remove(const Session& session);

    // Before the first turn.
    void begin() { hang_watch_.arm(clock_.now()); }
    // How long it spins after its last work; 0: it neither spins nor yields.
    void set_spin(core::TimeNs spin_ns) { spin_ns_ = spin_ns; }
    // There was work at `now`: rest() begins with spinning again.
    void worked(core::TimeNs now);
    // Something is due at `now`: events come first, if they were last looked at long ago.
    void look(core::TimeNs now);
    // Nothing to do at `now`, nothing due before `until`: one step of rest, the next one deeper.
    // True if it has spun and something came; `now` is then the instant before it was seen.
    [[nodiscard]] bool rest(core::TimeNs& now, core::TimeNs until);

  private:
    enum class Event : uint32_t { kRequest, kBell, kDeath, kTree };

    [[nodiscard]] bool watch(int fd, uint32_t events, Event what, uint32_t row) const;
    [[nodiscard]] bool may_spin(core::TimeNs now);
    [[nodiscard]] bool peer_elsewhere() const;
    void publish_cpu();
    [[nodiscard]] bool spin(core::TimeNs& now) const;
    void block(core::TimeNs now, core::TimeNs until);
    void leave_silent(core::TimeNs now);
    [[nodiscard]] bool arm(core::TimeNs now);
    void disarm();
    // Takes pending events; waits for them at most `wait_ns`.
    void events(uint64_t wait_ns, bool slept);
    [[nodiscard]] bool take_events(uint64_t wait_ns, bool slept);
    void bell(Session& session, bool slept);

    Sessions& sessions_;
    Exchange& exchange_;
    Publisher& publisher_;
    const Clock& clock_;
    HangWatch hang_watch_;
    Epoll epoll_;
    core::TimeNs spin_ns_ = 0;
    shm::SpinGauge spin_gauge_;
    bool asked_ = false;  // since the last work: whether spinning pays
    bool spins_ = false;
    core::TimeNs worked_ns_ = 0;
    core::TimeNs looked_ns_ = 0;  // last look at the events
    const uid_t own_uid_ = geteuid();
    uint32_t yields_ = 0;
    uint32_t cpu_ = 0xffffffffU;
};

}  // namespace dibs
