// broker/ctl/admin/events.cpp -- `dibs events`: prints the broker's decisions as it makes them.
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <time.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "broker/ctl/admin/event_text.hpp"
#include "broker/ctl/arguments.hpp"
#include "broker/ctl/attachment.hpp"
#include "broker/ctl/clock.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

namespace {

struct Closed {
    void operator()(dibs_events* events) const { dibs_events_close(events); }
};
using Subscription = std::unique_ptr<dibs_events, Closed>;

Subscription subscribe(const std::string& socket) {
    const std::string path = socket_path(socket);
    dibs_connect_options options = {};
    options.size = sizeof(options);
    options.socket_path = path.c_str();
    dibs_events* events = nullptr;
    const int code = dibs_events_open(&options, &events);
    if (code == DIBS_ENOBROKER || code == DIBS_ESYSTEM) throw unreachable(path, errno);
    if (code != DIBS_OK) {
        throw Failure(exit_code_of(code), path + ": no events: " + dibs_strerror(code));
    }
    return Subscription(events);
}

// False: the output has no reader any more.
bool print(const std::string& line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
    if (std::fflush(stdout) == 0) return true;
    if (errno == EPIPE) return false;
    const int error = errno;
    clearerr(stdout);  // it is said here, with its reason
    throw Failure(kExitFailed, unwritten(error));
}

}  // namespace

int run_events(int argc, char** argv) {
    Arguments arguments("events",
                        "Prints what the broker decides, one line an event: of your own claims, "
                        "leases and slots everything; of another user's what and when, unless you "
                        "administer. The broker waits for nobody: what was missed is counted.");
    std::string socket;
    bool follow = false;
    bool json = false;
    uint64_t count = 0;
    int64_t duration_ns = -1;
    arguments.flag("-f,--follow", &follow, "until something ends it; else for a second at most");
    arguments.flag("--jsonl", &json, "a line of JSON for each event");
    arguments.number("--count", &count, {1}, "end after so many events", false);
    arguments.duration("--for", &duration_ns, "end after this time");
    arguments.text(
        "--socket", &socket, "the broker's socket; else DIBS_SOCKET, then its place", "PATH");
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    require_output();
    signal(SIGPIPE, SIG_IGN);
    const Subscription events = subscribe(socket);
    if (duration_ns < 0 && !follow) duration_ns = DIBS_SECOND;
    const int64_t until = duration_ns < 0 ? DIBS_FOREVER : after(monotonic_ns(), duration_ns);
    for (uint64_t printed = 0; count == 0 || printed < count; ++printed) {
        const int64_t left = until == DIBS_FOREVER ? DIBS_FOREVER : until - monotonic_ns();
        if (left <= 0) return kExitOk;  // however much there is to tell
        dibs_event event = {};
        event.size = sizeof(event);
        const int code = dibs_events_next(events.get(), left, &event);
        if (code == DIBS_ETIMEDOUT) return kExitOk;
        if (code == DIBS_EBROKERLOST) throw Failure(kExitUnreachable, "the broker is gone");
        if (code != DIBS_OK) throw Failure(exit_code_of(code), dibs_strerror(code));
        if (!print(json ? event_json(event) : event_text(event))) return kExitOk;
    }
    return kExitOk;
}

}  // namespace dibs::ctl
