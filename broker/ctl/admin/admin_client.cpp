// broker/ctl/admin/admin_client.cpp -- sends one request packet and receives one answer packet.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/admin/admin_client.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "broker/ctl/attachment.hpp"
#include "broker/ctl/clock.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/subcommand.hpp"
#include "shm/packet.hpp"

namespace dibs::ctl {

using admin::Code;

namespace {

constexpr size_t kAnswerSize = 256 * 1024;

// A call on a socket with a time limit ends with EINTR at every signal that has a handler, and
// after a stop and continue: what is left of the limit is set again for each try. At least one is
// made. `option`: SO_RCVTIMEO or SO_SNDTIMEO.
template <class Call>
ssize_t within(int64_t limit_ns, int socket, int option, const Call& call) {
    const int64_t until_ns = after(monotonic_ns(), limit_ns);
    for (;;) {
        const int64_t left_us = std::max<int64_t>((until_ns - monotonic_ns()) / 1000, 1);
        const struct timeval limit = {left_us / 1'000'000, left_us % 1'000'000};
        (void)setsockopt(socket, SOL_SOCKET, option, &limit, sizeof(limit));
        const ssize_t result = call();
        if (result >= 0 || errno != EINTR || left_us == 1) return result;
    }
}

std::string version_text(const char* text, size_t size) {
    return {text, strnlen(text, size)};
}

// A broker that is older than admin conversations says that it expected a Hello.
Failure refused(const shm::Farewell& farewell, const std::string& path) {
    const std::string text(farewell.text,
                           std::min<size_t>(farewell.text_size, sizeof farewell.text));
    switch (farewell.code) {
        case shm::FarewellCode::kVersion:
            return {kExitUnreachable, path + ": " + text};
        case shm::FarewellCode::kNotAllowed:
            return {kExitDenied, path + ": " + text};
        case shm::FarewellCode::kFull:
            return {kExitLimit, path + ": " + text};
        case shm::FarewellCode::kMalformed:
            return {kExitUnreachable,
                    "dibs " DIBS_VERSION " and the broker at " + path + " (layout " +
                        std::to_string(farewell.broker_layout) +
                        ") do not understand each other: " + text +
                        "; bring the older one up to date"};
        default:
            return {kExitUnreachable, path + ": " + text};
    }
}

template <class Rows, class Key>
void sort_by(Rows* rows, const Key& key) {
    std::stable_sort(rows->begin(), rows->end(), [&](const auto& left, const auto& right) {
        return key(*left) < key(*right);
    });
}

template <class Rows>
void append(Rows* rows, Rows* more) {
    std::move(more->begin(), more->end(), std::back_inserter(*rows));
}

}  // namespace

AdminClient::AdminClient(const std::string& socket, int64_t answer_timeout_ns)
    : path_(socket_path(socket)), answer_timeout_ns_(answer_timeout_ns), packet_(kAnswerSize) {
    struct sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof(address.sun_path)) {
        throw Failure(kExitUsage, path_ + ": is too long for a socket's path");
    }
    std::memcpy(address.sun_path, path_.data(), path_.size());
    socket_ = shm::Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const int size = static_cast<int>(kAnswerSize);
    (void)setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    const auto reach = [&] {
        return connect(
            socket_.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof(address));
    };
    if (within(answer_timeout_ns_, socket_.get(), SO_SNDTIMEO, reach) != 0) {
        throw unreachable(path_, errno);
    }
    greet();
}

ssize_t AdminClient::send_packet(const void* packet, size_t size) const {
    return within(answer_timeout_ns_, socket_.get(), SO_SNDTIMEO, [&] {
        return send(socket_.get(), packet, size, MSG_NOSIGNAL);
    });
}

ssize_t AdminClient::receive_packet() {
    return within(answer_timeout_ns_, socket_.get(), SO_RCVTIMEO, [&] {
        return shm::receive_packet(socket_.get(), packet_.data(), packet_.size());
    });
}

// `result`: of the call that tells.
void AdminClient::fail(ssize_t result) const {
    if (result < 0 && errno == EAGAIN) throw silent(path_);
    throw Gone(kExitUnreachable, "the broker at " + path_ + " is gone");
}

void AdminClient::greet() {
    shm::AdminHello hello;
    std::strncpy(hello.version, DIBS_VERSION, sizeof(hello.version) - 1);
    (void)send_packet(&hello, sizeof(hello));
    const ssize_t size = receive_packet();
    if (size <= 0) fail(size);
    uint64_t magic = 0;
    std::memcpy(&magic, packet_.data(), std::min(sizeof(magic), static_cast<size_t>(size)));
    if (magic == shm::kFarewellMagic && size == sizeof(shm::Farewell)) {
        shm::Farewell farewell;
        std::memcpy(&farewell, packet_.data(), sizeof(farewell));
        throw refused(farewell, path_);
    }
    if (magic != shm::kAdminWelcomeMagic || size != sizeof(welcome_)) {
        throw Failure(kExitUnreachable, path_ + ": who listens there is no dibs broker");
    }
    std::memcpy(&welcome_, packet_.data(), sizeof(welcome_));
    if (welcome_.admin_version != shm::kAdminVersion) {
        throw Failure(kExitUnreachable,
                      "dibs " DIBS_VERSION " speaks admin version " +
                          std::to_string(shm::kAdminVersion) + ", dibsd " + broker_version() +
                          " version " + std::to_string(welcome_.admin_version) +
                          ": bring the older one up to date");
    }
}

// The kernel knows the uid of the listening process; with a socket that systemd holds that is root.
Failure AdminClient::denied(const std::string& what) const {
    struct ucred broker = {};
    socklen_t size = sizeof(broker);
    (void)getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &broker, &size);
    std::string text = (what.empty() ? "" : what + ": ") + "only administrators may: root";
    const bool own = broker.uid != 0;
    const bool group = welcome_.admin_group != 0;
    if (own) text += (group ? ", user " : " and user ") + user_name(broker.uid) + " (the broker's)";
    if (!group) {
        return {kExitDenied, text + "; dibsd's configuration names no admin_group"};
    }
    return {kExitDenied,
            text + " and the group " + group_name(welcome_.admin_group - 1) +
                " (admin_group in dibsd's configuration)"};
}

// The kernel tells 0 of a peer in a process namespace that is not part of this one.
Viewpoint AdminClient::viewpoint() const {
    struct ucred broker = {};
    socklen_t size = sizeof(broker);
    (void)getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &broker, &size);
    return {wall_ns(), broker.pid != 0};
}

std::string AdminClient::broker_version() const {
    return version_text(welcome_.version, sizeof(welcome_.version));
}

admin::AnswerT AdminClient::ask(const admin::RequestT& request) {
    say(request);
    return hear();
}

void AdminClient::say(const admin::RequestT& request) {
    flatbuffers::FlatBufferBuilder builder(256);
    builder.Finish(admin::Request::Pack(builder, &request));
    const ssize_t sent = send_packet(builder.GetBufferPointer(), builder.GetSize());
    if (sent < 0 && !shm::peer_has_hung_up()) fail(sent);
}

admin::AnswerT AdminClient::hear() {
    const ssize_t size = receive_packet();
    if (size <= 0) fail(size);
    flatbuffers::Verifier verifier(packet_.data(), static_cast<size_t>(size), 8, 4096);
    if (!verifier.VerifyBuffer<admin::Answer>(nullptr)) {
        throw Failure(kExitFailed, "the broker's answer cannot be read");
    }
    admin::AnswerT answer;
    flatbuffers::GetRoot<admin::Answer>(packet_.data())->UnPackTo(&answer);
    return answer;
}

// A pool set is none: what is for one pool takes a member.
Failure AdminClient::no_such_pool(const std::string& name, const std::vector<std::string>& pools) {
    std::vector<std::string> names;
    for (const auto& set : sets()) {
        names.push_back(set->name);
        if (set->name != name) continue;
        std::string text = "\"" + name + "\" is a pool set; name one of its pools";
        for (const std::string& pool : set->pools)
            text += (&pool == &set->pools.front() ? ": " : ", ") + pool;
        return {kExitNotFound, text};
    }
    return no_pool(name, pools, takes_sets_ ? names : std::vector<std::string>{});
}

admin::AnswerT AdminClient::must(const admin::RequestT& request, const std::string& what) {
    admin::AnswerT answer = ask(request);
    check(answer, request, what);
    return answer;
}

void AdminClient::check(const admin::AnswerT& answer,
                        const admin::RequestT& request,
                        const std::string& what) {
    switch (answer.code) {
        case Code::ok:
            return;
        case Code::unknown_pool:
            throw no_such_pool(request.pool, answer.names);
        case Code::not_found:
            if (!answer.names.empty() && (request.report >= admin::ReportKind::entry ||
                                          request.ask == admin::Ask::application)) {
                throw Failure(kExitNotFound, answer.names.front());
            }
            throw Failure(
                kExitNotFound,
                "there is no " + what + "; dibs ls claims, ls leases and ls slots show what is");
        case Code::already_ended:
            throw Failure(kExitNotFound, what + " has ended before");
        case Code::denied:
            throw denied(what);
        case Code::refused:
            throw Failure(kExitLimit,
                          (what.empty() ? "" : what + ": ") +
                              (answer.names.empty() ? "refused" : answer.names.front()));
        case Code::unknown_account:
            throw no_account(request.account, answer.names);
        case Code::malformed:
            throw Failure(kExitFailed, "the broker did not understand the request");
        case Code::unsupported:
            break;
    }
    throw Failure(
        kExitFailed,
        "dibsd " + broker_version() + " does not know this request of dibs " DIBS_VERSION);
}

void AdminClient::pages(admin::RequestT request,
                        const std::string& what,
                        const std::function<void(admin::AnswerT&)>& take) {
    for (bool more = true; more;) {
        admin::AnswerT answer = must(request, what);
        take(answer);
        more = answer.more && answer.cursor != request.cursor;
        request.cursor = answer.cursor;
    }
}

std::vector<std::unique_ptr<admin::PoolT>> AdminClient::pools(const std::string& only) {
    std::vector<std::unique_ptr<admin::PoolT>> rows;
    admin::RequestT request;
    request.ask = admin::Ask::pools;
    request.pool = only;
    pages(request, "pool", [&](admin::AnswerT& answer) { append(&rows, &answer.pools); });
    return rows;
}

std::vector<std::unique_ptr<admin::SlotT>> AdminClient::slots(const std::string& pool,
                                                              uint64_t number) {
    std::vector<std::unique_ptr<admin::SlotT>> rows;
    admin::RequestT request;
    request.ask = admin::Ask::slots;
    request.pool = pool;
    request.number = number;
    pages(request, "slot", [&](admin::AnswerT& answer) { append(&rows, &answer.slots); });
    sort_by(&rows, [](const admin::SlotT& row) { return std::pair(row.pool, row.number); });
    return rows;
}

std::vector<std::unique_ptr<admin::ClaimT>> AdminClient::claims(const std::string& pool,
                                                                uint64_t number) {
    std::vector<std::unique_ptr<admin::ClaimT>> rows;
    admin::RequestT request;
    request.ask = admin::Ask::claims;
    request.pool = pool;
    request.number = number;
    pages(request, "claim", [&](admin::AnswerT& answer) { append(&rows, &answer.claims); });
    sort_by(&rows, [](const admin::ClaimT& row) { return std::pair(~row.age_ns, row.number); });
    return rows;
}

std::vector<std::unique_ptr<admin::LeaseT>> AdminClient::leases(const std::string& pool,
                                                                uint64_t number) {
    std::vector<std::unique_ptr<admin::LeaseT>> rows;
    admin::RequestT request;
    request.ask = admin::Ask::leases;
    request.pool = pool;
    request.number = number;
    pages(request, "lease", [&](admin::AnswerT& answer) { append(&rows, &answer.leases); });
    sort_by(&rows, [](const admin::LeaseT& row) { return std::pair(~row.age_ns, row.number); });
    return rows;
}

std::vector<std::unique_ptr<admin::ClientT>> AdminClient::clients(bool workers) {
    std::vector<std::unique_ptr<admin::ClientT>> rows;
    admin::RequestT request;
    request.ask = workers ? admin::Ask::workers : admin::Ask::clients;
    pages(request, "client", [&](admin::AnswerT& answer) { append(&rows, &answer.clients); });
    return rows;
}

std::vector<std::unique_ptr<admin::AccountT>> AdminClient::accounts() {
    std::vector<std::unique_ptr<admin::AccountT>> rows;
    admin::RequestT request;
    request.ask = admin::Ask::accounts;
    pages(request, "accounts", [&](admin::AnswerT& answer) { append(&rows, &answer.accounts); });
    sort_by(&rows, [](const admin::AccountT& row) { return row.name; });
    return rows;
}

std::vector<std::unique_ptr<admin::SetT>> AdminClient::sets() {
    admin::RequestT request;
    request.ask = admin::Ask::sets;
    return must(request, "pool set").sets;
}

std::vector<std::unique_ptr<admin::EntryT>> AdminClient::entries(const std::string& pool) {
    std::vector<std::unique_ptr<admin::EntryT>> rows;
    admin::RequestT request;
    request.ask = admin::Ask::entries;
    request.pool = pool;
    pages(request, "", [&](admin::AnswerT& answer) { append(&rows, &answer.entries); });
    sort_by(&rows, [](const admin::EntryT& row) {
        return std::tuple(row.pool, row.position - 1, row.number);
    });
    return rows;
}

std::vector<std::unique_ptr<admin::ApplicationT>> AdminClient::applications(
    const std::string& name, std::optional<uint32_t> uid) {
    std::vector<std::unique_ptr<admin::ApplicationT>> rows;
    admin::RequestT request;
    request.ask = admin::Ask::applications;
    request.application = name;
    if (uid) request.uid = *uid;
    pages(request, "", [&](admin::AnswerT& answer) { append(&rows, &answer.applications); });
    sort_by(&rows,
            [](const admin::ApplicationT& row) { return std::pair(~row.age_ns, row.number); });
    return rows;
}

std::vector<std::unique_ptr<admin::TaskT>> AdminClient::tasks(const std::string& application,
                                                              std::optional<uint32_t> uid) {
    std::vector<std::unique_ptr<admin::TaskT>> rows;
    admin::RequestT request;
    request.ask = admin::Ask::tasks;
    request.application = application;
    if (uid) request.uid = *uid;
    pages(request, "", [&](admin::AnswerT& answer) { append(&rows, &answer.tasks); });
    sort_by(&rows, [](const admin::TaskT& row) { return row.number; });
    return rows;
}

std::vector<std::unique_ptr<admin::TypeT>> AdminClient::types(const std::string& pool) {
    std::map<uint32_t, std::unique_ptr<admin::TypeT>> by_row;
    admin::RequestT request;
    request.ask = admin::Ask::types;
    request.pool = pool;
    pages(request, "type", [&](admin::AnswerT& answer) {
        for (auto& told : answer.types) {
            auto& type = by_row[told->row];
            if (type != nullptr) {
                type->ordered += told->ordered;
                type->workers += told->workers;
            } else if (!told->name.empty()) {  // else it is newer than the list
                type = std::move(told);
            }
        }
    });
    std::vector<std::unique_ptr<admin::TypeT>> rows;
    for (auto& [row, type] : by_row) {
        if (type != nullptr) rows.push_back(std::move(type));
    }
    sort_by(&rows,
            [](const admin::TypeT& row) { return std::tuple(row.pool, row.cost, row.name); });
    return rows;
}

// Callers wait in the socket's queue until the successor listens. One that the last broker still
// took has lost it.
shm::AdminWelcome await_successor(const std::string& socket,
                                  uint64_t epoch,
                                  const std::function<void(AdminClient&)>& ask) {
    constexpr int kTries = 100;
    for (int i = 1;; ++i) {
        try {
            AdminClient client(socket);
            if (client.welcome().epoch <= epoch) continue;
            if (ask) ask(client);
            return client.welcome();
        } catch (const Failure&) {
            if (i == kTries) throw;
        }
    }
}

admin::AnswerT ask_waiting(const std::string& socket, admin::RequestT request, int64_t wait_ns) {
    const int64_t until_ns = after(monotonic_ns(), wait_ns);
    for (;;) {
        const int64_t left_ns = std::clamp<int64_t>(until_ns - monotonic_ns(), 0, INT64_MAX / 2);
        request.interval_ns = static_cast<uint64_t>(left_ns);
        try {
            return AdminClient(socket, kAnswerTimeoutNs + left_ns).ask(request);
        } catch (const Gone&) {
            if (left_ns == 0) throw;
        }
    }
}

}  // namespace dibs::ctl
