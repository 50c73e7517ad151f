// tests/sim/house.cpp -- a broker's lives.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/house.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <type_traits>
#include <utility>

#include "broker/admission/handshake.hpp"
#include "broker/admission/peer.hpp"
#include "broker/control/exchange.hpp"
#include "broker/core/store/store.hpp"
#include "broker/segments/segments.hpp"
#include "broker/text/log.hpp"

namespace dibs::sim {

House* House::here = nullptr;

namespace {

// Few, so that rows name others that are looked at later: tables are small here.
constexpr uint32_t kRowsAtOnce = 3;

shm::Descriptor copy_of(int fd) {
    return shm::Descriptor(fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

}  // namespace

// Everything that a broker's process has and loses with it.
struct House::Life {
    explicit Life(uint32_t sessions_max) : exchange(sessions_max) {}
    ~Life() {
        if (turn != nullptr) sessions.insert(turn->adopted().begin(), turn->adopted().end());
        turn.reset();
        for (Request request; exchange.next(request);)
            delete request.config;
        for (const Request& request : wanted)
            delete request.config;
        for (Session* session : sessions)
            delete session;
    }
    Life(const Life&) = delete;
    Life& operator=(const Life&) = delete;

    Exchange exchange;
    std::unique_ptr<core::Core> core;
    std::unique_ptr<BoardSegment> board;
    std::unique_ptr<Turn> turn;
    std::set<Session*> sessions;
    std::vector<Caller> callers;
    // Requests of administrators that have no answer yet, and those that have one.
    std::set<std::unique_ptr<AdminJob>> asked;
    std::set<AdminJob*> answered;
    std::vector<Request> wanted;  // that control has not passed on yet
    std::shared_ptr<Task> turn_task;
    std::shared_ptr<Task> control_task;
    bool serving = false;
};

House::House(World& world, const Config& config, uint64_t hash_seed, Auditor& auditor)
    : world_(world),
      auditor_(auditor),
      config_(config),
      hash_seed_(hash_seed),
      state_(core::state_size(config.limits)) {
    here = this;
    log::open("off");  // what it must not do is said by `broken`
    core::format_state(state_.bytes(), config.limits);
    core::store_hook = &House::stored;
    auditor_.when_administered([this] { heard_command(); });
}

House::~House() {
    core::store_hook = nullptr;
    here = nullptr;
}

// Behind each store to STATE: the last thing that this life does, if it has come to that.
void House::stored() {
    House& house = *here;
    if (house.store_ == 0 || house.life_ == nullptr) return;
    if (house.world_.running() != house.life_->turn_task.get() || --house.store_ != 0) return;
    ++house.world_.faults;
    ++house.deaths_behind_a_store_;
    house.life_->turn_task->doomed = true;
    throw Killed{};
}

void House::start() {
    ++lives_;
    life_ = std::make_unique<Life>(config_.limits.sessions);
    life_->turn_task = world_.start("turn", 0, [this] { serve(); });
    life_->control_task = world_.start("control", 0, [this] { control(); });
}

void House::serve() {
    const std::span<std::byte> state = state_.bytes();
    try {
        std::string why = core::state_refusal(state);
        if (why.empty()) {
            core::Core::Refusal refusal;
            life_->core = core::Core::attach(state, hash_seed_, &refusal, kRowsAtOnce);
            why = refusal.wrong.empty() ? refusal.unsound : refusal.wrong.back();
        }
        if (!why.empty()) {
            broken = "a STATE that a killed broker left: " + why;
            return;
        }
        core::Core& core = *life_->core;
        auditor_.attach(core);
        Inheritance inheritance;
        inherit(inheritance);
        life_->board = std::make_unique<BoardSegment>(
            config_.limits.pools, config_.limits.accounts, std::move(inheritance.board));
        if (!board_.valid()) board_ = copy_of(life_->board->fd());
        life_->turn = std::make_unique<Turn>(core, *life_->board, life_->exchange);
        core.set_epoch(core.head().epoch + 1);
        life_->turn->prepare(config_, inheritance);
        for (Session* session : life_->turn->adopted()) {
            life_->sessions.insert(session);
            if (session->client_event_socket.valid()) welcome(session);
        }
        clock_offset_ = life_->turn->clock_offset();  // told to the keeper here, and never again
        life_->serving = true;
        world_.stir();
        life_->turn->serve();
    } catch (const std::exception& error) {
        broken = std::string("the broker gives up: ") + error.what();
    }
}

bool House::kill_at_rest() {
    if (!open() || !life_->turn_task->on_descriptors) return false;
    world_.kill(*life_->turn_task);
    return true;
}

void House::kill_at_moment(uint64_t n) {
    if (life_ != nullptr) life_->turn_task->dies_in = n;
}

void House::kill_at_command(uint64_t n, bool heard) {
    (heard ? store_of_heard_ : store_of_asked_) = n;
}

void House::heard_command() {
    if (store_of_heard_ != 0) store_ = std::exchange(store_of_heard_, 0);
}

bool House::administer(AdminJob& job) {
    if (!open()) return false;
    const uint64_t life = lives_;
    auto asked = std::make_unique<AdminJob>();
    std::swap(*asked, job);
    AdminJob* mine = asked.get();
    const auto place = life_->asked.insert(std::move(asked)).first;
    Request request;
    request.kind = Request::Kind::kAdmin;
    request.job = mine;
    life_->wanted.push_back(request);
    world_.stir();
    if (store_of_asked_ != 0) store_ = std::exchange(store_of_asked_, 0);
    while (life == lives_ && life_ != nullptr && !life_->answered.contains(mine))
        (void)world_.wait_descriptors(kForever);
    if (life != lives_ || life_ == nullptr) return false;
    std::swap(*mine, job);
    life_->answered.erase(mine);
    life_->asked.erase(place);
    return true;
}

void House::reload(const Config& config) {
    config_ = config;
    if (!open()) return;
    Request request;
    request.kind = Request::Kind::kConfig;
    request.config = new Config(config);
    life_->wanted.push_back(request);
    world_.stir();
}

// What the keeper would hand over.
void House::inherit(Inheritance& inheritance) {
    if (!board_.valid()) return;
    inheritance.board = copy_of(board_.get());
    inheritance.death_ns = death_ns_;
    inheritance.clock_offset = clock_offset_;
    for (const auto& [key, descriptors] : kept_) {
        InheritedSession session;
        session.row = key.first;
        session.generation = key.second;
        for (size_t i = 0; i < kKeptMax; ++i)
            session.descriptors[i] = copy_of(descriptors[i].get());
        inheritance.sessions.push_back(std::move(session));
    }
}

void House::keep(const Session& session) {
    kept_[{session.row, session.generation}] = {copy_of(session.up_fd.get()),
                                                copy_of(session.down_fd.get()),
                                                copy_of(session.bell.get()),
                                                copy_of(session.event_socket.get()),
                                                copy_of(session.peer.pidfd.get()),
                                                copy_of(session.socket.get()),
                                                copy_of(session.tree.events.get()),
                                                copy_of(session.client_event_socket.get())};
}

bool House::died() const {
    return life_ != nullptr && life_->turn_task->fiber->ended();
}

void House::bury() {
    world_.kill(*life_->control_task);
    while (!life_->control_task->fiber->ended())
        (void)world_.step();
    store_ = store_of_asked_ = store_of_heard_ = 0;
    auditor_.leave();
    if (life_->serving && life_->core->head().clock_offset != clock_offset_) ++standstills_;
    if (life_->serving) death_ns_ = world_.now();  // of one that has not, time stands still
    life_.reset();
    world_.stir();  // its sockets have hung up
}

bool House::open() const {
    return life_ != nullptr && life_->serving && !life_->turn_task->fiber->ended();
}

uint64_t House::net_found_work() const {
    return life_ == nullptr || life_->board == nullptr
               ? 0
               : life_->board->head().net_found_work.load(std::memory_order_relaxed);
}

std::vector<std::string> House::check_all() const {
    return life_->core->check_all();
}

bool House::all_idle() const {
    const core::Core& core = *life_->core;
    for (uint32_t row = 0; row < core.pools(); ++row) {
        const shm::PoolRow& pool = core.pool(row);
        if (pool.idle != pool.slots || pool.waiting != 0 || pool.confirming != 0) return false;
        if (pool.kind == shm::PoolKind::kWorker && pool.slots != 0) return false;
    }
    for (uint32_t row = 0; row < core.sessions_max(); ++row) {
        if (core.session(row).state != shm::SessionState::kFree) return false;
    }
    return true;
}

bool House::configured() const {
    const core::Core& core = *life_->core;
    for (const PoolSettings& pool : config_.pools) {
        if (core.find_pool(pool.name) == shm::kNoRow) return false;
    }
    for (const AccountSettings& wanted : config_.accounts) {
        const uint32_t row = core.find_account(wanted.name);
        if (row == shm::kNoRow) return false;
        if ((core.account(row).flags & shm::AccountFlag::kConfigured) == 0) return false;
    }
    return true;
}

int House::call() {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return -1;
    shm::Descriptor other(pair[1]);
    const Task& caller = *world_.running();
    if (open()) life_->callers.push_back({std::move(other), caller.lifeline, caller.uid});
    return pair[0];
}

bool House::owns(int fd) const {
    return life_ != nullptr &&
           (fd == life_->exchange.turn().fd() || fd == life_->exchange.control().fd());
}

// The part of the control thread.
void House::control() {
    for (;;) {
        life_->exchange.control().answer();
        take_reports();
        hear_callers();
        pass_on();
        (void)world_.wait_descriptors(kForever);
    }
}

void House::pass_on() {
    while (!life_->wanted.empty()) {
        const Request request = life_->wanted.front();
        life_->wanted.erase(life_->wanted.begin());
        if (!life_->exchange.ask(request)) broken = "the queue of requests is full";
    }
}

void House::take_reports() {
    Report report;
    while (life_->exchange.next(report)) {
        switch (report.kind) {
            case Report::Kind::kOpened:
                keep(*report.session);
                welcome(report.session);
                break;
            case Report::Kind::kFull:
                send_farewell(report.session->socket.get(),
                              {shm::FarewellCode::kFull, 0, "no row for another session"});
                forget(report.session);
                break;
            case Report::Kind::kRetired:
                kept_.erase({report.session->row, report.session->generation});
                forget(report.session);
                break;
            case Report::Kind::kAdmin:
                life_->answered.insert(report.job);
                world_.stir();
                break;
            default:
                break;
        }
    }
}

void House::welcome(Session* session) {
    const bool sent = send_welcome(*session, *life_->board, life_->core->head().epoch);
    (void)shutdown(session->socket.get(), SHUT_RD);
    session->client_event_socket.reset();
    kept_[{session->row, session->generation}]
         [static_cast<size_t>(SessionDescriptor::kClientEvents)]
             .reset();
    world_.stir();
    if (sent) return;
    Request request;
    request.kind = Request::Kind::kEnd;
    request.row = session->row;
    request.generation = session->generation;
    (void)life_->exchange.ask(request);
}

void House::forget(Session* session) {
    life_->sessions.erase(session);
    session->socket.reset();
    std::unique_ptr<Session> owned(session);
    if (session->row == shm::kNoRow) refused_.push_back(std::move(owned));
    world_.stir();
}

// Where rows are scarce most of those who ask are refused. What was made for one of them, and
// nobody has seen, is there for the next.
Session* House::session_for(Peer peer, const shm::SessionSizes& sizes) {
    static_assert(std::has_unique_object_representations_v<shm::SessionSizes>);
    const auto fits = [&](const auto& refused) {
        return std::memcmp(&refused->sizes, &sizes, sizeof sizes) == 0;
    };
    const auto found = std::find_if(refused_.begin(), refused_.end(), fits);
    if (found == refused_.end()) return new Session(std::move(peer), sizes);
    Session* session = found->release();
    refused_.erase(found);
    session->peer = std::move(peer);
    return session;
}

void House::hear_callers() {
    std::vector<Caller> waiting;
    std::swap(waiting, life_->callers);
    for (Caller& caller : waiting) {
        const HelloResult hello = receive_hello(caller.socket.get());
        if (hello.first == FirstPacket::kNothingYet) {
            life_->callers.push_back(std::move(caller));
            continue;
        }
        if (hello.first != FirstPacket::kHello) continue;
        Peer peer;
        peer.uid = caller.uid;
        peer.gid = caller.uid;
        peer.pid = 0x7fffffff;  // that no process of this host has
        peer.start_time = 1;
        peer.pidfd = copy_of(caller.lifeline);
        peer.killable = may_kill(peer.pidfd.get());
        Session* session = session_for(std::move(peer), hello.sizes);
        life_->sessions.insert(session);
        session->socket = std::move(caller.socket);
        Request request;
        request.kind = Request::Kind::kSession;
        request.session = session;
        (void)life_->exchange.ask(request);
    }
}

}  // namespace dibs::sim
