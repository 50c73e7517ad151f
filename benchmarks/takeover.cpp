// benchmarks/takeover.cpp -- deaths: of the broker to the next one's first answer, of a holder to
// its slot in another's hands.
//
// Each figure stands beside what no program can go below: the kernel's notice of a death, and for
// the takeover the start and end of the same program besides.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/takeover.hpp"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchmarks/broker_process.hpp"
#include "benchmarks/placement.hpp"
#include "benchmarks/session_client.hpp"
#include "shm/descriptor.hpp"

namespace dibs::bench {

namespace {

constexpr uint32_t kSessions = 100;
constexpr uint32_t kLeasesEach = 1000;
constexpr double kMs = 1e6;
constexpr int kServiceNice = -10;  // packaging/systemd/dibsd.service
const char* const kDying =
    "[limits]\nsessions = 16\n[[pool]]\nname = \"one\"\nkind = \"counted\"\nslots = 1\n";

double now_ns() {
    struct timespec time = {};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

void await_death(const shm::Descriptor& pidfd) {
    pollfd death = {pidfd.get(), POLLIN, 0};
    while (poll(&death, 1, -1) < 0 && errno == EINTR) {
    }
}

shm::Descriptor pidfd_of(pid_t pid) {
    return shm::Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0U)));
}

// A process that does `body` and then waits for its end.
class Mortal {
  public:
    explicit Mortal(const std::function<void()>& body) {
        int ends[2];
        if (pipe(ends) != 0) throw std::runtime_error("pipe");
        pid_ = fork();
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            body();
            (void)!write(ends[1], "r", 1);
            for (;;)
                pause();
        }
        char ready = 0;
        if (read(ends[0], &ready, 1) != 1) throw std::runtime_error("no child");
        close(ends[0]);
        close(ends[1]);
    }
    ~Mortal() {
        (void)kill(pid_, SIGKILL);
        (void)waitpid(pid_, nullptr, 0);
    }
    Mortal(const Mortal&) = delete;
    Mortal& operator=(const Mortal&) = delete;
    [[nodiscard]] pid_t pid() const { return pid_; }

  private:
    pid_t pid_ = -1;
};

double start_and_end(const std::string& program) {
    std::string name = "dibsd";
    std::string option = "--version";
    char* arguments[] = {name.data(), option.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1, 0);
    const double begin = now_ns();
    pid_t pid = -1;
    const int error = posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error("cannot start " + program);
    await_death(pidfd_of(pid));
    const double end = now_ns();
    (void)waitpid(pid, nullptr, 0);
    return end - begin;
}

// The broker's death is proved before the claim is made: no answer is the dead one's.
double take_over(const BrokerProcess& broker, const SessionClient& client, uint32_t pool) {
    broker.await_standby();
    const pid_t dying = broker.kept_pid();
    const shm::Descriptor pidfd = pidfd_of(dying);
    const double begin = now_ns();
    (void)kill(dying, SIGKILL);
    await_death(pidfd);
    dibs_completion end = {};
    must(dibs_claim(client.get(), pool, nullptr, &end), "claim");
    const double answered = now_ns();
    if (end.outcome != DIBS_GRANTED) throw std::runtime_error("the next broker grants nothing");
    must(dibs_release(client.get(), &end.lease, DIBS_FOREVER), "release");
    return answered - begin;
}

void add_pair(Report& report,
              const std::string& state,
              const Row& ours,
              const Samples& ours_samples,
              const Row& floor,
              const Samples& floor_samples) {
    Row below = floor;
    below.state = state;
    below.samples = floor_samples.count();
    below.ns = floor_samples.percentiles();
    Row row = ours;
    row.state = state;
    row.samples = ours_samples.count();
    row.ns = ours_samples.percentiles();
    row.floor = below.name;
    row.ratio_p50 = row.ns.p50 / below.ns.p50;
    row.ratio_p99 = row.ns.p99 / below.ns.p99;
    for (Target& target : row.targets)
        target.value = row.ns.p99 / kMs;
    report.rows.push_back(below);
    report.rows.push_back(row);
}

// From the kill of the process that holds the only slot to the grant of a claim that waits for it.
double inherit(const BrokerProcess& broker, const SessionClient& client, uint32_t pool) {
    SessionClient* held = nullptr;  // lives as long as the child does
    const Mortal holder([&] {
        held = new SessionClient(ClientSetup{.socket = broker.socket()});
        dibs_completion end = {};
        must(dibs_claim(held->get(), held->pool("one"), nullptr, &end), "claim of the holder");
    });
    dibs_op claim = {};
    claim.size = sizeof claim;
    claim.kind = DIBS_OP_CLAIM;
    claim.pool = pool;
    if (dibs_submit(client.get(), &claim, 1) != 1) throw std::runtime_error("no claim");
    dibs_counters counters = {};
    counters.size = sizeof counters;
    while (counters.queued != 1)
        must(dibs_snapshot(client.get(), pool, &counters), "snapshot");
    client.pace(Pace::kAsleep, false);
    const double begin = now_ns();
    (void)kill(holder.pid(), SIGKILL);
    dibs_completion granted = {};
    if (dibs_reap(client.get(), &granted, 1, DIBS_FOREVER) != 1 ||
        granted.outcome != DIBS_GRANTED) {
        throw std::runtime_error("the slot of a dead holder is not granted");
    }
    const double end = now_ns();
    must(dibs_release(client.get(), &granted.lease, DIBS_FOREVER), "release");
    return end - begin;
}

double notice() {
    const Mortal mortal([] {});
    const shm::Descriptor pidfd = pidfd_of(mortal.pid());
    const double begin = now_ns();
    (void)kill(mortal.pid(), SIGKILL);
    await_death(pidfd);
    return now_ns() - begin;
}

void race_deaths(const Stage& stage, const std::string& state, double limit_ms, int nice = 0) {
    const std::string how = nice == 0 ? "" : ", broker at nice " + std::to_string(nice);
    const std::string name = "kill -9 of a holder, to its slot granted" + how;
    if (!BrokerProcess::may_be(nice)) {
        stage.report.absences.push_back({name, "this process may not raise a priority"});
        return;
    }
    const BrokerProcess broker({.config = kDying, .cpu = stage.placement.far_side, .nice = nice});
    const SessionClient client(ClientSetup{.socket = broker.socket()});
    const uint32_t pool = client.pool("one");
    Samples ours;
    Samples floor;
    for (uint32_t round = 0; round < stage.options.rounds * 5; ++round) {
        floor.add(notice());
        ours.add(inherit(broker, client, pool));
    }
    Row row;
    row.group = "death of a holder";
    row.name = name;
    row.placement = across(stage.placement);
    row.targets = {{"p99 ms", limit_ms, 0}};
    Row below;
    below.group = row.group;
    below.name = "floor: kill -9, to the pidfd's notice";
    below.placement = one_core(stage.placement);
    add_pair(stage.report, state, row, ours, below, floor);
}

}  // namespace

void measure_takeovers(const Stage& stage) {
    const std::string leases = std::to_string(kSessions * kLeasesEach + 8);
    const BrokerProcess broker(
        {.config = "[limits]\nsessions = 128\nslots = " + leases + "\nleases = " + leases +
                   "\n[[pool]]\nname = \"many\"\nkind = \"counted\"\nslots = " + leases +
                   "\ninterval_max = \"24h\"\n",
         .cpu = stage.placement.far_side,
         .second_cpu = stage.placement.near_side,
         .keeper = true});
    const SessionClient client(ClientSetup{.socket = broker.socket()});
    const uint32_t pool = client.pool("many");
    std::vector<SessionClient> holders;
    holders.reserve(kSessions);
    for (uint32_t i = 0; i < kSessions; ++i) {
        holders.emplace_back(ClientSetup{.socket = broker.socket(), .leases_max = 1024});
        dibs_completion end = {};
        for (uint32_t lease = 0; lease < kLeasesEach; ++lease)
            must(dibs_claim(holders.back().get(), pool, nullptr, &end), "claim");
    }
    Samples ours;
    Samples floor;
    for (uint32_t round = 0; round < stage.options.rounds * 5; ++round) {
        floor.add(start_and_end(BrokerProcess::program()));
        ours.add(take_over(broker, client, pool));
    }
    // Or the broker would end with leases, and name them.
    holders.clear();
    dibs_counters counters = {};
    counters.size = sizeof counters;
    do
        must(dibs_snapshot(client.get(), pool, &counters), "snapshot");
    while (counters.leased != 0);
    Row row;
    row.group = "takeover";
    row.name = "kill -9 of the broker, to the first answer";
    row.placement = across(stage.placement) + ", the broker on both";
    row.targets = {{"p99 ms", 20, 0}};
    Row below;
    below.group = row.group;
    below.name = "floor: start of dibsd --version, to its end";
    below.placement = one_core(stage.placement);
    add_pair(stage.report, "full", row, ours, below, floor);
}

void measure_deaths_of_holders(const Stage& stage) {
    race_deaths(stage, "idle", 1);
    std::vector<std::unique_ptr<Mortal>> busy;
    for (int i = 0; i < 4; ++i) {
        busy.push_back(std::make_unique<Mortal>([&] {
            pin(i % 2 == 0 ? stage.placement.near_side : stage.placement.far_side);
            if (fork() == 0) {  // the child is busy, its parent says that it is there
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (volatile uint64_t turns = 0;;)
                    turns = turns + 1;
            }
        }));
    }
    race_deaths(stage, "busy", 10);
    race_deaths(stage, "busy", 10, kServiceNice);
}

}  // namespace dibs::bench
