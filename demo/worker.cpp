// demo/worker.cpp -- one worker of the demo: a process with one slot that it offers.
//
// It confirms its assignment, holds for the time that the claim brings, says done and ready. A
// revocation ends the use at once. Before it touches the slot it takes the slot's cell of the
// witness's page, and gives it back before it tells the broker that the use is over.
// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "demo/client_session.hpp"
#include "demo/demo.hpp"
#include "demo/instant.hpp"
#include "demo/trace/decimal.hpp"
#include "demo/witness.hpp"
#include "dibs/dibs.h"

namespace dibs::ctl::demo {

namespace {

constexpr uint64_t kPollMax = 100'000'000;  // the library re-rings within that time

class Worker {
  public:
    Worker(const std::string& socket, const std::string& pool, Witness witness, size_t device)
        : witness_(std::move(witness)), device_(device), session_(socket, pool, {}) {
        announce();
    }

    // Serves until it is told to stop (0) or the broker ends the session (1).
    int serve(int stop_fd) {
        for (;;) {
            const int code = take_assignments();
            if (code != DIBS_ETIMEDOUT) return lost(code);
            end_hold_if_due();
            std::array<pollfd, 2> watched = {{{stop_fd, POLLIN, 0}, {session_.fd(), POLLIN, 0}}};
            const uint64_t timeout = session_.arm() ? time_to_wait() : 0;
            poll_for(watched.data(), watched.size(), timeout);
            if ((watched[0].revents & POLLIN) != 0) return 0;
            session_.dispatch();
        }
    }

  private:
    struct Use {
        uint64_t round;
        uint64_t claim;
        uint64_t until_ns;
    };

    void announce() {
        const std::string number = std::to_string(device_);
        const std::string name = "gpu-" + number;
        const dibs_option attribute = {"device", number.c_str()};
        dibs_announce_options options{};
        options.size = sizeof options;
        options.name = name.c_str();
        options.attributes = &attribute;
        options.attribute_count = 1;
        options.worker_tag = device_;
        options.ready = 1;
        const int code =
            dibs_announce(session_.handle(), session_.pool(), &options, 60 * DIBS_SECOND, &slot_);
        if (code != 0) throw std::runtime_error(call_failure("announcing " + name, code));
    }

    // Everything that has come; the code that ended it, DIBS_ETIMEDOUT if there is no more.
    int take_assignments() {
        for (;;) {
            dibs_assignment next;
            const int code = dibs_next_assignment(session_.handle(), DIBS_NOWAIT, &next);
            if (code != 0) return code;
            if (next.kind == DIBS_ASSIGN) {
                start(next);
            } else {
                stop(next.round);
                check(dibs_ready(session_.handle(), slot_, next.round, DIBS_NOWAIT), "ready");
            }
        }
    }

    void start(const dibs_assignment& next) {
        const std::optional<int64_t> hold = hold_of(next);
        if (!hold) {
            check(dibs_refuse(session_.handle(), slot_, next.round, 1, 0, DIBS_NOWAIT), "refuse");
            return;
        }
        // Still using the slot? Then it is held twice: start_use finds the cell taken and counts
        // it.
        witness_.start_use(device_, next.claim);
        use_ = Use{next.round, next.claim, monotonic_ns() + static_cast<uint64_t>(*hold)};
        check(dibs_confirm(session_.handle(), slot_, next.round, nullptr, 0, DIBS_NOWAIT),
              "confirm");
    }

    static std::optional<int64_t> hold_of(const dibs_assignment& next) {
        for (size_t i = 0; i < next.option_count; ++i) {
            if (std::strcmp(next.options[i].key, "hold_ns") != 0) continue;
            const auto hold = parse_decimal(next.options[i].value, 0);
            if (hold && *hold >= 0) return hold;
        }
        return std::nullopt;
    }

    void stop(uint64_t round) {
        if (!use_ || use_->round != round) return;
        witness_.end_use(device_, use_->claim);
        use_.reset();
    }

    void end_hold_if_due() {
        if (!use_ || monotonic_ns() < use_->until_ns) return;
        const uint64_t round = use_->round;
        stop(round);
        check(dibs_done(session_.handle(), slot_, round, nullptr, 0, 1, DIBS_NOWAIT), "done");
    }

    uint64_t time_to_wait() const {
        if (!use_) return kPollMax;
        const uint64_t now = monotonic_ns();
        return use_->until_ns <= now ? 0 : std::min(use_->until_ns - now, kPollMax);
    }

    // A word that cannot be said leaves the broker in the dark: better to be seen to fail.
    static void check(int code, const char* word) {
        if (code < 0) throw std::runtime_error(call_failure(std::string("saying ") + word, code));
    }

    static int lost(int code) {
        std::fprintf(stderr, "%s\n", call_failure("waiting for assignments", code).c_str());
        return 1;
    }

    Witness witness_;
    size_t device_;
    ClientSession session_;
    uint64_t slot_ = 0;
    std::optional<Use> use_;
};

// A descriptor that SIGTERM makes readable, in place of being killed by it.
int end_descriptor() {
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigprocmask(SIG_BLOCK, &stops, nullptr);
    const int fd = signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) throw std::runtime_error(std::string("signalfd: ") + std::strerror(errno));
    return fd;
}

}  // namespace

}  // namespace dibs::ctl::demo

int dibs::ctl::run_demo_worker(int argc, char** argv) {
    using namespace dibs::ctl::demo;
    if (argc != 6) {
        std::fprintf(stderr, "demo-worker is started by dibs demo\n");
        return 2;
    }
    const auto witness_fd = parse_whole(argv[3]);
    const auto slots = parse_whole(argv[4]);
    const auto device = parse_whole(argv[5]);
    if (!witness_fd || !slots || !device || *slots < 1 || *device < 0 || *device >= *slots) {
        std::fprintf(stderr, "demo-worker is started by dibs demo\n");
        return 2;
    }
    try {
        ask_for_exact_waits();
        const int stop_fd = end_descriptor();
        Witness witness =
            Witness::attach(static_cast<int>(*witness_fd), static_cast<size_t>(*slots));
        Worker worker(argv[1], argv[2], std::move(witness), static_cast<size_t>(*device));
        std::printf("worker %s is ready to work\n", argv[5]);
        std::fflush(stdout);
        return worker.serve(stop_fd);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "worker %s: %s\n", argv[5], error.what());
        return 1;
    }
}
