// broker/control/exchange.hpp -- passes notices between the control thread and the turn.
//
// Two single-producer queues of small notices. The thread that holds a session's pointer owns the
// session: control makes it and hands it over, the turn opens it, reports that, and in the end
// hands it back to be freed. Each side has an eventfd that no other process holds, written after
// the push: a side that looks into its queue and then sleeps on its eventfd misses nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/lockfree/spsc_queue.hpp>
#include <cassert>
#include <cstdint>

#include "broker/admin/events.hpp"
#include "broker/admin/recording.hpp"
#include "broker/control/thread_wake.hpp"

namespace dibs {

struct AdminJob;
struct Config;
struct Copying;
struct Session;

// control → turn
struct Request {
    enum class Kind : uint8_t {
        kSession,   // a session to open; owned by the turn from here on
        kEnd,       // end the session of this row and generation: its client did not wait for it
        kConfig,    // a configuration to take over; owned by the turn from here on
        kAdmin,     // a request to serve; owned by the turn until it is reported
        kCopy,      // a copy of STATE to make; owned by the turn until it is reported
        kUnrecord,  // stop recording, or do not begin it
        kReplace,   // yield to a successor that goes on from another STATE, if no client is
                    // attached
        kDrain,     // stop in order
        kStop,      // stop at once
        kYield,     // leave everything as it is to a successor
    };
    Kind kind = Kind::kStop;
    Session* session = nullptr;
    Config* config = nullptr;
    AdminJob* job = nullptr;
    Copying* copying = nullptr;
    uint32_t row = 0;
    uint32_t generation = 0;
    uint64_t within_ns = 0;  // kDrain: leases end by then; 0: as configured; kNever: they may go on
    bool unless_used = false;  // kEnd: not if its client has ever said anything
};

// turn → control
struct Report {
    enum class Kind : uint8_t {
        kOpened,    // say Welcome; the turn still owns it
        kFull,      // say Farewell; owned by control again
        kRetired,   // free it; owned by control again
        kAdmin,     // a request has its answer; owned by control again
        kCopied,    // a copy is whole; owned by control again
        kReplaced,  // whether the turn has yielded for it: `why` says no
        kFinished,  // the turn has ended
    };
    Kind kind = Kind::kFinished;
    Session* session = nullptr;
    const char* why = "";   // kFull, kReplaced
    bool in_order = false;  // kFinished: no broker goes on
    AdminJob* job = nullptr;
    Copying* copying = nullptr;
};

class Exchange {
  public:
    explicit Exchange(uint32_t sessions_max)
        : requests_(sessions_max + 1024), reports_(2 * sessions_max + 2048) {}

    // --- control's side
    bool ask(const Request& request) {
        if (!requests_.push(request)) return false;
        turn_.call();
        return true;
    }
    bool next(Report& report) { return reports_.pop(report); }
    [[nodiscard]] const ThreadWake& control() const { return control_; }

    // --- the turn's side
    [[nodiscard]] bool asked() const { return requests_.read_available() != 0; }
    bool next(Request& request) { return requests_.pop(request); }
    void report(const Report& report) {
        // Each session is reported at most twice before control has looked: there is room.
        const bool pushed = reports_.push(report);
        assert(pushed);
        (void)pushed;
        control_.call();
    }
    [[nodiscard]] const ThreadWake& turn() const { return turn_; }

    // --- what subscribers are told: each side has its part of it
    [[nodiscard]] Events& events() { return events_; }
    // --- and the recorder
    [[nodiscard]] Recording& recording() { return recording_; }

  private:
    boost::lockfree::spsc_queue<Request> requests_;
    boost::lockfree::spsc_queue<Report> reports_;
    ThreadWake turn_;
    ThreadWake control_;
    Events events_;
    Recording recording_;
};

}  // namespace dibs
