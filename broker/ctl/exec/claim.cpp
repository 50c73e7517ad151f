// broker/ctl/exec/claim.cpp -- `dibs claim`: holds a slot until it is interrupted.
//
// A lease ends with its session's process, so the tool stays: as long as it runs, the slot is held.
// It prints what was granted in one piece on standard output, then waits for a signal, or for the
// lease to end on its own. To hold a slot for one command, use `dibs exec`.
// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "broker/ctl/exec/lease_watch.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/stop_signals.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/line_writer.hpp"
#include "shm/descriptor.hpp"

namespace dibs::ctl {

namespace {

constexpr const char* kClaimAbout =
    "Claims a slot of a pool (or N, all or none), says on standard output what was granted, and "
    "holds it until it is interrupted (INT, TERM, HUP) or the lease ends from outside. A lease "
    "ends "
    "with the process that holds it: to hold a slot for one command, use dibs exec.";

constexpr const char* kClaimFooter =
    "Exit codes: 0 held until interrupted; 1 the lease was lost; 2 wrong usage, 3 no broker, 4 no "
    "such pool, 5 not allowed, 6 a limit, 75 no slot free, 124 the timeout passed.";

// From here on signals are taken from a descriptor. Before, they end the tool and so its claim.
shm::Descriptor take_signals() {
    const sigset_t set = stop_signals();
    sigprocmask(SIG_BLOCK, &set, nullptr);
    return shm::Descriptor(signalfd(-1, &set, SFD_CLOEXEC));
}

// What is to be said on standard output, as its reader makes room: meanwhile the lease is kept
// alive and signals are heard.
class Said {
  public:
    // Standard output, where there is something to say.
    [[nodiscard]] pollfd watched() const {
        return {text_.empty() ? -1 : STDOUT_FILENO, POLLOUT, 0};
    }
    void add(const std::string& text) { text_ += text; }
    // False: its reader is gone.
    bool write() {
        while (!text_.empty()) {
            const ssize_t size = writer_.offer(text_);
            if (size == 0) return true;
            if (size < 0 && errno == EPIPE) return false;
            if (size < 0) throw Failure(kExitFailed, unwritten(errno));
            text_.erase(0, static_cast<size_t>(size));
        }
        return true;
    }

  private:
    LineWriter writer_{STDOUT_FILENO, LineWriter::Opened::kBeside};
    std::string text_;
};

Sheet grant_sheet(const exec::LeaseWatch& lease, const std::string& pool) {
    const dibs_completion& granted = lease.granted();
    std::vector<uint64_t> slots;
    std::vector<std::string> attributes;
    for (uint32_t unit = 0; unit < granted.lease.units; ++unit) {
        dibs_slot slot = {};
        if (dibs_lease_slot(lease.attachment().session(), &granted.lease, unit, &slot) < 0)
            continue;
        slots.push_back(slot.number);
        const std::string_view all(slot.attributes, slot.attributes_size);
        for (size_t at = 0; at < all.size();) {
            const size_t end = std::min(all.find('\0', at), all.size());
            attributes.emplace_back(all.substr(at, end - at));
            at = end + 1;
        }
    }
    Sheet sheet{"dibs.claim/1",
                {{"number", "lease"},
                 {"id", "id"},
                 {"pool", "pool"},
                 {"slots", "slots"},
                 {"fence", "fence"},
                 {"interval_ns", "interval"},
                 {"attributes", "attributes"},
                 {"provision", ""}}};
    sheet.rows.push_back({Cell::numbered(Letter::kLease, granted.claim),
                          Cell::identifier(Letter::kLease, granted.lease.id),
                          Cell::of(pool),
                          Cell::of(std::move(slots)),
                          Cell::of(granted.lease.fence),
                          granted.interval_ns != 0
                              ? Cell::duration(static_cast<uint64_t>(granted.interval_ns))
                              : Cell(),
                          Cell::of(std::move(attributes)),
                          Cell::of(lease.provision())});
    return sheet;
}

// Says what was granted. False: the reader of standard output is gone.
bool show(const exec::LeaseWatch& lease, Output* output, Said* said) {
    output->show_record(grant_sheet(lease, lease.pool_name()));
    said->add(output->take());
    return said->write();
}

int hold(exec::LeaseWatch* lease, Output* output, Said* said, int signals) {
    bool told = false;  // that it waits again
    for (;;) {
        struct pollfd waits[] = {{signals, POLLIN, 0}, {lease->fd(), POLLIN, 0}, said->watched()};
        (void)poll(waits, 3, lease->poll_timeout_ms());
        if ((waits[0].revents & POLLIN) != 0) break;
        if (waits[2].revents != 0 && !said->write()) return kExitOk;
        if (!lease->look(true)) {
            throw Failure(kExitFailed, "the lease is lost: " + lease->why_lost());
        }
        if (lease->waits() && !told) {
            talk("dibs claim: " + lease->why_requeued() + ": waiting again, in the old place");
        }
        told = lease->waits();
        if (lease->newly_granted() && !show(*lease, output, said)) return kExitOk;
        if (const auto left = lease->newly_taken()) {
            talk("dibs claim: a better claim takes the slot: it is lost in " +
                 duration_text(static_cast<uint64_t>(*left)));
        }
    }
    if (lease->waits()) return kExitOk;  // the claim ends with this process
    const int code =
        dibs_release(lease->attachment().session(), &lease->granted().lease, DIBS_SECOND);
    if (code < 0) throw Failure(kExitFailed, std::string("cannot release: ") + dibs_strerror(code));
    return kExitOk;
}

}  // namespace

int run_claim(int argc, char** argv) {
    std::string operand;
    std::string preempt;
    exec::Options options;
    Arguments arguments("claim", kClaimAbout);
    arguments.operand(
        "POOL", &operand, "the pool's name, or a pool set's; POOL:N for N slots at once");
    arguments.further(
        "it claims of one pool; dibs exec POOL:N POOL:N -- COMMAND has slots of several");
    arguments.duration("-t,--timeout",
                       &options.timeout_ns,
                       "how long to wait for it; if not said, as the pool's when_busy has it: for "
                       "ever, or not at all");
    arguments.flag("-n,--now", &options.now, "do not wait: now or not at all");
    arguments.duration("-i,--interval",
                       &options.keepalive_ns,
                       "hold it for so long at a time and prolong it; without, the lease is bound "
                       "to this process alone");
    arguments.texts("-l,--label",
                    &options.labels,
                    "a label for the slot's worker, which the slot must have in a pool ordered by "
                    "account (repeatable)",
                    "LABEL");
    arguments.texts("-p,--prefer", &options.prefer, exec::kPreferAbout, "LABEL");
    exec::add_part_options(&arguments, &options);
    arguments.text("--meta", &options.meta, exec::kMetaAbout);
    arguments.number("-P,--priority", &options.priority, exec::kPriorities, exec::kPriorityAbout);
    arguments.text("--account", &options.account, exec::kAccountAbout, "NAME");
    arguments.text("--preempt",
                   &preempt,
                   std::string(exec::kPreemptAbout) + ". As the pool is configured, if not said",
                   "WORD");
    arguments.flag("--requeue",
                   &options.requeue,
                   "taken for a better claim, wait again in the old place, and say what is granted "
                   "then; else the lease is lost");
    Output output(arguments);
    arguments.footer(kClaimFooter);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    exec::read_preempt(preempt, &options);
    options.pool = parse_pool_operand(operand, DIBS_UNITS_MAX);
    exec::check_terms(options, arguments.given("--account"));
    if (options.now && options.timeout_ns != DIBS_FOREVER) {
        throw Failure(kExitUsage, "--now does not wait, so it goes without --timeout");
    }
    require_output();
    ignore_lost_readers();
    options.socket = output.socket();
    exec::LeaseWatch lease(options);
    const shm::Descriptor signals = take_signals();
    Said said;
    if (!show(lease, &output, &said)) return kExitOk;  // it goes back
    return hold(&lease, &output, &said, signals.get());
}

}  // namespace dibs::ctl
