// broker/ctl/replay/record.cpp -- `dibs record`: records a live broker's commands as a journal.
// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/arguments.hpp"
#include "broker/ctl/clock.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/replay/recording_file.hpp"
#include "broker/ctl/stop_signals.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/line_wrap.hpp"
#include "broker/text/terminal_text.hpp"
#include "dibs/dibs.h"

namespace dibs::ctl {

namespace {

volatile sig_atomic_t stop_asked = 0;

// The signals that stop are let in while it waits, and only then.
class Stopping {
  public:
    Stopping() {
        const sigset_t stops = stop_signals();
        sigprocmask(SIG_BLOCK, &stops, &waiting_);
        struct sigaction action = {};
        action.sa_handler = [](int) { stop_asked = 1; };
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
            if (sigismember(&stops, signal) == 0) continue;
            sigdelset(&waiting_, signal);
            sigaction(signal, &action, nullptr);
        }
    }
    [[nodiscard]] const sigset_t& waiting() const { return waiting_; }

  private:
    sigset_t waiting_ = {};
};

// False: it is time to stop.
bool wait_for_answer(int fd, const Stopping& stopping, int64_t until) {
    for (;;) {
        struct timespec left = {};
        if (until != DIBS_FOREVER) {
            const int64_t rest = std::max<int64_t>(until - monotonic_ns(), 0);
            left.tv_sec = rest / DIBS_SECOND;
            left.tv_nsec = rest % DIBS_SECOND;
        }
        struct pollfd ready = {fd, POLLIN, 0};
        const struct timespec* limit = until == DIBS_FOREVER ? nullptr : &left;
        const int found = ppoll(&ready, 1, limit, &stopping.waiting());
        if (found < 0 && errno != EINTR) throw Failure(kExitFailed, std::strerror(errno));
        if (stop_asked != 0 || found == 0) return false;
        if (found > 0) return true;
    }
}

std::vector<uint8_t> snapshot_of(AdminClient& client) {
    admin::RequestT request;
    request.ask = admin::Ask::record;
    std::vector<uint8_t> bytes;
    client.pages(request, {}, [&](admin::AnswerT& answer) {
        bytes.insert(bytes.end(), answer.bytes.begin(), answer.bytes.end());
    });
    return bytes;
}

// Until the answer that ends it; nullptr, or why the end is not the one that was asked for.
class Session {
  public:
    Session(AdminClient& client, RecordingFile& file) : client_(client), file_(file) {}

    // False: that was the last one.
    bool hear() {
        const admin::AnswerT answer = client_.hear();
        file_.take(answer.bytes);
        if (!answer.names.empty()) lost_ = answer.names.front();
        return answer.more;
    }
    void follow(const Stopping& stopping, int64_t until) {
        while (wait_for_answer(client_.fd(), stopping, until)) {
            if (!hear()) return;
        }
        admin::RequestT request;
        request.ask = admin::Ask::record;
        client_.say(request);
        while (hear()) {
        }
    }
    [[nodiscard]] const std::string& lost() const { return lost_; }

  private:
    AdminClient& client_;
    RecordingFile& file_;
    std::string lost_;
};

// On standard output, unless the recording is there.
void tell(const std::string& path, const RecordingFile& file) {
    std::FILE* out = path == "-" ? stderr : stdout;
    const std::string line = harmless(file.path()) + ": " + counted(file.turns(), "turn") + ", " +
                             counted(file.commands(), "command") + ", " +
                             counted(file.decisions(), "decision") + "\n";
    std::fputs(line.c_str(), out);
    std::fflush(out);
}

}  // namespace

int run_record(int argc, char** argv) {
    Arguments arguments(
        "record",
        "Writes down everything that the running broker's scheduler is given from "
        "now on, behind a snapshot of its state, until it is interrupted: a journal "
        "that dibs replay plays to the same decisions. The broker waits for nobody: "
        "if this is too slow for it, the recording ends and says where. "
        "Administrators may.");
    std::vector<std::string> files;
    std::string socket;
    int64_t duration_ns = -1;
    arguments.operands("FILE", &files, "where to; what is there is replaced; - is standard output");
    arguments.duration("--for", &duration_ns, "end after this time");
    arguments.text(
        "--socket", &socket, "the broker's socket; else DIBS_SOCKET, then its place", "PATH");
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    if (files.size() > 1) throw Failure(kExitUsage, "one FILE is enough");
    const std::string& path = files.front();
    if (path == "-" && isatty(STDOUT_FILENO) != 0) {
        throw Failure(kExitUsage, "a recording is no text: name a FILE, or redirect the output");
    }
    if (path == "-") require_output();
    ignore_lost_readers();
    const Stopping stopping;
    AdminClient client(socket);
    if (client.welcome().is_admin == 0) throw client.denied({});
    // The file last: a recording that is refused leaves alone what is there.
    const auto snapshot = snapshot_of(client);
    RecordingFile file(path);
    file.write_snapshot(snapshot);
    talk("dibs record: recording to " + harmless(file.path()) + "; interrupt to end it");
    Session session(client, file);
    try {
        session.follow(stopping,
                       duration_ns < 0 ? DIBS_FOREVER : after(monotonic_ns(), duration_ns));
    } catch (const Failure& gone) {
        if (gone.exit_code() != kExitUnreachable) throw;
        file.finish();
        tell(path, file);
        throw Failure(kExitUnreachable, std::string(gone.what()) + ": the recording ends there");
    }
    file.finish();
    tell(path, file);
    if (!session.lost().empty()) throw Failure(kExitFailed, session.lost());
    return kExitOk;
}

}  // namespace dibs::ctl
