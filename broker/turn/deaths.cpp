// broker/turn/deaths.cpp -- ends sessions, and kills holders of expired strict leases.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/deaths.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "broker/session/control_group.hpp"
#include "broker/text/log.hpp"

namespace dibs {

namespace {

constexpr size_t kKilledAtOnce = 16;     // leases, each with a line of log
constexpr size_t kProcessesAtOnce = 64;  // processes, over all leases: some 60 us each
constexpr size_t kOfATree = 65'536;      // more are started faster than they are killed
constexpr size_t kOfATreeAtEnd = 1024;   // for a broker that stops: it must be over in time

std::string who(const Session& session) {
    return "process " + std::to_string(session.peer.pid) + " of user " +
           std::to_string(session.peer.uid);
}

// A broker run by root can kill any process; the holder of the lease must not make it kill a
// process that the holder itself may not.
std::string foreign_uids(uint32_t pid, int pidfd, uint32_t own) {
    const auto uids = uids_now(pid, pidfd);
    const auto same = [&](uint32_t uid) { return uid == own; };
    if (own == 0) return {};
    if (!uids) return is_dead(pidfd) ? "" : "not to be seen";
    if (std::all_of(uids->begin(), uids->end(), same)) return {};
    std::string told;
    for (const uint32_t uid : *uids)
        told += (told.empty() ? "" : ", ") + std::to_string(uid);
    return told;
}

// Empty: it was killed, or is dead already. Else why it still lives.
std::string kill_or_why(uint32_t pid, int pidfd, uint32_t uid) {
    const std::string uids = foreign_uids(pid, pidfd, uid);
    if (!uids.empty()) {
        return "is not killed: it runs a set-user-ID program (its user ids are " + uids +
               " now), which its user may not kill either";
    }
    if (kill_process(pidfd)) return {};
    const std::string why = std::strerror(errno);
    const std::string hint = errno != EPERM
                                 ? ""
                                 : " (dibsd kills processes of other users with the "
                                   "capability CAP_KILL: AmbientCapabilities=CAP_KILL in "
                                   "its systemd unit)";
    return "cannot be killed: " + why + hint;
}

// Kills one process of the tree, unless it has left it. Empty: it was killed, or is none of it.
std::string kill_of_tree_or_why(uint32_t pid, const Session& session) {
    const shm::Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!pidfd.valid()) return errno == ESRCH ? "" : "cannot be killed";
    std::string why;
    const bool seen = !control_group_of(std::to_string(pid), &why).empty();
    if (seen && !is_in_group(pid, session.tree.folder)) return "";
    if (!seen) return is_dead(pidfd.get()) ? "" : "cannot be killed: " + why;
    return kill_or_why(pid, pidfd.get(), session.peer.uid);
}

}  // namespace

void Kills::tell() {
    size_t told = 0;
    while (told < failed_.size() && !core_.turn_full())
        core_.apply(core::KillFailed{failed_[told++]});
    failed_.erase(failed_.begin(), failed_.begin() + static_cast<std::ptrdiff_t>(told));
    kill_some(kOfATree);
}

void Kills::carry_out() {
    for (const core::Decision& decision : core_.decisions()) {
        if (decision.kind == core::DecisionKind::kKill) add(decision.id);
    }
    kill_some(kOfATree);
}

void Kills::finish() {
    while (!decided_.empty())
        kill_some(kOfATreeAtEnd);
}

void Kills::add(uint64_t lease) {
    if (!queued_.insert(lease).second) return;
    decided_.emplace_back();
    decided_.back().lease = lease;
}

// Null: the lease has ended meanwhile, which kills no process.
const Session* Kills::holder_to_kill(uint64_t id) const {
    const auto row = static_cast<uint32_t>(id);
    const shm::LeaseRow& lease = core_.lease(row);
    const bool is_it = core::row_id(lease.head.generation, row) == id;
    return is_it && lease.state == shm::LeaseState::kKilling ? sessions_.at(lease.session)
                                                             : nullptr;
}

// A tree that is not done goes behind the others: none of them waits for one that goes on starting
// processes.
void Kills::kill_some(size_t of_a_tree) {
    size_t left = kProcessesAtOnce;
    for (size_t count = std::min(decided_.size(), kKilledAtOnce); count != 0 && left != 0;
         --count) {
        Decided kill = std::move(decided_.front());
        decided_.pop_front();
        const Session* session = holder_to_kill(kill.lease);
        if (session == nullptr || is_killed(*session, kill, of_a_tree, left)) {
            queued_.erase(kill.lease);
            if (session != nullptr) tell_of(*session, kill);
        } else {
            decided_.push_back(std::move(kill));
        }
    }
}

void Kills::resume() {
    uint64_t recovering = 0;  // as the slots of a lease whose holder is being killed are
    for (uint32_t pool = 0; pool < core_.pools(); ++pool)
        recovering += core_.pool(pool).recovering;
    if (recovering == 0) return;
    for (uint32_t row = 0; row < core_.leases_max(); ++row) {
        const shm::LeaseRow& lease = core_.lease(row);
        if (lease.state != shm::LeaseState::kKilling) continue;
        add(core::row_id(lease.head.generation, row));
    }
}

// As far as `left` goes, which it takes from. False: its tree is to be looked at again.
bool Kills::is_killed(const Session& session, Decided& kill, size_t of_a_tree, size_t& left) {
    if (!std::exchange(kill.begun, true) && !session.dead) {
        kill.why = kill_or_why(session.peer.pid, session.peer.pidfd.get(), session.peer.uid);
        --left;
    }
    return session.tree.id == 0 || is_tree_killed(session, kill, of_a_tree, left);
}

// What is killed may have started others: it is killed when a look finds no other process than the
// last one.
bool Kills::is_tree_killed(const Session& session, Decided& kill, size_t of_a_tree, size_t& left) {
    if (!session.tree.is_populated()) return true;
    if (left == 0) return false;
    const auto fails = [&](const char* why) {
        if (kill.why.empty()) kill.why = why;
        return true;
    };
    const shm::Descriptor group = session.tree.open();
    if (!group.valid()) return fails("has left a control group that cannot be looked at");
    const GroupProcesses found = processes_of_group(group, kill.seen.size() + left);
    std::set<uint32_t> seen;
    bool more = false;
    for (const uint32_t pid : found.pids) {
        if (!kill.seen.contains(pid)) {
            more = true;
            if (left == 0) continue;
            --left;
            ++kill.of_tree;
            const std::string why = kill_of_tree_or_why(pid, session);
            if (!why.empty()) {
                kill.why = "has left process " + std::to_string(pid) + ", which " + why;
            }
        }
        seen.insert(pid);
    }
    kill.seen = std::move(seen);
    left -= std::min(left, found.groups - 1);  // as much work as a process, at most
    if (more && kill.of_tree < of_a_tree) return false;
    if (more) return fails("has left processes that start others faster than they are killed");
    return found.all || fails("has left groups that cannot be read, or too many, or too deep");
}

void Kills::tell_of(const Session& session, const Decided& kill) {
    const uint32_t uid = session.peer.uid;
    const std::string whom = session.dead ? "what has outlived " + who(session) : who(session);
    if (kill.why.empty()) {
        return log::client_info(uid, "killed", whom + " was killed: its lease is over");
    }
    log::client_warning(uid,
                        "not killed",
                        "the lease of " + who(session) + " is over, and the process " + kill.why +
                            "; what it holds is not granted before it is dead or gives it back");
    failed_.push_back(kill.lease);
}

bool Kills::holds_strictly(const Session& session) const {
    uint32_t left = core_.session(session.row).leases;
    for (uint16_t tag = 0; left != 0 && tag < session.tags.size(); ++tag) {
        const uint32_t row = core_.lease_of_tag(session.row, tag);
        if (row == shm::kNoRow) continue;
        if (core_.lease(row).mode == shm::ExpiryMode::kStrict) return true;
        --left;
    }
    return false;
}

bool Kills::condemn(Session& session) {
    if (session.dead || session.end_reason == shm::Reason::kOk) return false;
    if (!holds_strictly(session)) return false;
    session.condemned = true;  // what its tree has is killed once it has outlived its process
    const std::string why =
        kill_or_why(session.peer.pid, session.peer.pidfd.get(), session.peer.uid);
    log::client_warning(session.peer.uid,
                        "condemned",
                        who(session) + " broke a rule while it held a strict lease, and " +
                            (why.empty() ? "was killed" : why + "; its session ends with it"));
    return true;
}

namespace {

// How many deaths the core learns of in one turn: it may kill, log and close for each of them, and
// other clients' claims come between.
constexpr size_t kReapedAtOnce = 16;

}  // namespace

Deaths::Deaths(
    core::Core& core, Sessions& sessions, Ingest& ingest, Kills& kills, LeaseWords& words)
    : core_(core), sessions_(sessions), ingest_(ingest), kills_(kills), words_(words) {
    gone_.reserve(core.sessions_max());
}

// A dead process writes no more, and what it has left is at most one ring: a child of it that goes
// on writing must not keep it alive.
bool Deaths::drained(Session& session) {
    if (!session.draining || session.ending) return true;
    const uint64_t before = session.up.head();
    const auto left = static_cast<uint32_t>(session.drain_until - before);
    const Ingest::Read read = ingest_.read(session, left);
    if (session.up.head() != before) sessions_.in_turn(&session);
    return read != Ingest::Read::kMore || session.up.head() == session.drain_until;
}

// Nothing that is held needs to wait for the tree where nothing is.
bool Deaths::outlives(const Session& session) const {
    return session.dead && session.tree.id != 0 && core_.session(session.row).leases != 0 &&
           session.tree.is_populated();
}

void Deaths::reap() {
    std::vector<Session*>& ending = sessions_.ending();
    const size_t count = ending.size();  // what ends another one meanwhile adds it behind
    size_t kept = 0;
    size_t looked_at = 0;
    for (size_t at = 0; at < count; ++at) {
        Session* session = ending[at];
        const bool enough =
            looked_at == kReapedAtOnce || ingest_.turn_full() || sessions_.turn_full();
        if (!enough) ++looked_at;
        if (enough || !drained(*session)) {
            ending[kept++] = session;
            continue;
        }
        session->ending = true;
        if (kills_.condemn(*session)) continue;  // back when it is dead
        if (!words_.session_ends(session->row)) {
            ending[kept++] = session;
            continue;
        }
        if (outlives(*session)) {
            const bool settled = session->outlived_ns != 0;
            if (settled) core_.session_died(session->row, true);
            sessions_.outlive(session, settled, core_.now());
            continue;  // back when its tree is dead, or has settled
        }
        core_.session_died(session->row);
        gone_.push_back(session);
    }
    ending.erase(ending.begin() + static_cast<std::ptrdiff_t>(kept),
                 ending.begin() + static_cast<std::ptrdiff_t>(count));
}

}  // namespace dibs
