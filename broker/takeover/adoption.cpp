// broker/takeover/adoption.cpp -- attaches a dead broker's sessions to its successor.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/adoption.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "broker/core/look.hpp"
#include "broker/session/grant_room.hpp"
#include "broker/takeover/second_thread.hpp"
#include "broker/text/log.hpp"
#include "broker/text/shortage.hpp"
#include "shm/doorbell.hpp"
#include "shm/memfd.hpp"

namespace dibs {

namespace {

constexpr uint32_t kHandDeathsMax = 2;
// Fewer are done with sooner than a thread is there.
constexpr size_t kSessionsForTwo = 16;
constexpr size_t kRoomsForTwo = 4'096;

}  // namespace

void part_with(InheritedSession& inherited, shm::Reason reason) {
    try {
        const int fd = inherited.at(SessionDescriptor::kDown).get();
        const Mapping mapping(fd, shm::size_of(fd));
        auto& down = *mapping.at<shm::DownHead>(0);
        // The dead broker may have said the reason itself.
        if (down.session_state.load(std::memory_order_relaxed) ==
            static_cast<uint32_t>(shm::SessionState::kOpen)) {
            down.end_reason.store(static_cast<int32_t>(reason), std::memory_order_relaxed);
        }
        // Pairs with the library's look at the state: makes the reason visible.
        down.session_state.store(static_cast<uint32_t>(shm::SessionState::kDying),
                                 std::memory_order_release);
        shm::wake_client(down);
        (void)send(
            inherited.at(SessionDescriptor::kEvents).get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    } catch (const std::exception& error) {
        log::warning(std::string("a client cannot be told of its session's end: ") + error.what());
    }
}

// A row belongs to another session, too, where another uid is behind the socket: row and generation
// alone may have been used in two STATEs, of which one was loaded in the place of the other.
bool Adoption::is_open(const InheritedSession& inherited) const {
    if (inherited.row >= core_.sessions_max()) return false;
    const shm::SessionRow& row = core_.session(inherited.row);
    const bool open =
        row.state == shm::SessionState::kOpen || row.state == shm::SessionState::kOutlived;
    if (!open || row.head.generation != inherited.generation) return false;
    return inherited.uid.value_or(row.uid) == row.uid;
}

// What belongs to one session belongs to no other: neither thread sees the other's work.
void Adoption::map(std::vector<InheritedSession>& inherited) {
    inherited_ = &inherited;
    mapped_.resize(inherited.size());
    std::atomic<size_t> next = 0;  // relaxed: a ticket
    in_two(inherited.size() >= kSessionsForTwo, [&](unsigned /*half*/) {
        for (;;) {
            const size_t place = next.fetch_add(1, std::memory_order_relaxed);
            if (place >= inherited.size()) return;
            if (!is_open(inherited[place])) continue;
            const shm::SessionRow& row = core_.session(inherited[place].row);
            try {
                mapped_[place].session = std::make_unique<Session>(row, inherited[place]);
            } catch (...) {
                mapped_[place].thrown = std::current_exception();
            }
        }
    });
}

Session* Adoption::adopt(size_t place) {
    InheritedSession& inherited = (*inherited_)[place];
    if (inherited.row >= core_.sessions_max()) return nullptr;
    if (!is_open(inherited)) {
        part_with(inherited, shm::Reason::kHolderGone);
        return nullptr;
    }
    Mapped& mapped = mapped_[place];
    try {
        if (mapped.thrown) std::rethrow_exception(mapped.thrown);
        inherited.row = shm::kNoRow;  // no longer
        sessions_.add(mapped.session.get());
        return mapped.session.release();
    } catch (const std::bad_alloc&) {
        throw;  // the next broker may have what this one lacks, and then the session goes on
    } catch (const std::system_error& error) {
        if (is_shortage(error.code())) throw;
        log::error(std::string("a session cannot be adopted: ") + error.what());
    } catch (const std::exception& error) {
        log::error(std::string("a session cannot be adopted: ") + error.what());
    }
    return nullptr;
}

void Adoption::take_hand(Session& session) {
    session.careful_until = core_.take_hand(session.row);
    if (core_.session(session.row).hand_deaths < kHandDeathsMax) return;
    log::error("two brokers running died with an entry of process " +
               std::to_string(session.peer.pid) + " in hand: its session ends");
    session.careful_until = 0;
    sessions_.end(&session, shm::Reason::kMalformed);
}

// The tables are looked through until all that is in use has been met: check_all() has counted it.
void Adoption::restore_rooms() {
    restore_leases();
    restore_claims();
    restore_slots();
    restore_applications();
    for (Session* session : sessions_.all())
        restore_unread(*session);
}

void Adoption::restore_claims() {
    uint64_t left = core_.claims_max() - core_.counters().claims_free;
    for (uint32_t row = 0; row < core_.claims_max() && left != 0; ++row) {
        const shm::ClaimRow& claim = core_.claim(row);
        if (claim.state == shm::ClaimState::kFree) continue;
        --left;
        const bool several = (claim.flags & shm::ClaimFlag::kSeveral) != 0;
        if (claim.session == shm::kNoRow) continue;  // for placeholders: nobody's
        if (claim.room == shm::kNoRow || (several && claim.several_first != row)) continue;
        const auto pool = static_cast<uint16_t>(claim.pool | (several ? shm::kGrantOfSeveral : 0));
        Session* session = sessions_.at(claim.session);
        if (session == nullptr || claim.tag >= session->tags.size()) continue;
        if (claim.state != shm::ClaimState::kRunning) {  // else the room is its lease's
            if (!restore_tag(*session, pool, claim.tag, claim.room, claim.room_lines)) {
                end_clashing(*session);
            }
        }
        session->tags[claim.tag].ingested_ns = claim.enqueued_ns;
    }
}

// Each thread those of every other session.
void Adoption::restore_leases() {
    const std::vector<core::Core::HeldRoom> rooms = core_.take_held_rooms();
    std::array<std::vector<Session*>, 2> clashing;
    in_two(rooms.size() >= kRoomsForTwo, [&](unsigned half) {
        // Mostly alternates between sessions: where a session's tags stand cannot be predicted.
        constexpr size_t kAhead = 16;
        for (size_t i = 0; i < rooms.size(); ++i) {
            const core::Core::HeldRoom& room = rooms[i];
            if (room.session % 2 != half) continue;
            if (i + kAhead < rooms.size()) fetch_tag(rooms[i + kAhead]);
            Session* session = sessions_.at(room.session);
            if (session == nullptr || room.tag >= session->tags.size()) continue;
            if (!restore_tag(*session, room.pool, room.tag, room.first, room.lines)) {
                clashing[half].push_back(session);
            }
        }
    });
    for (const std::vector<Session*>& some : clashing) {
        for (Session* session : some)
            end_clashing(*session);
    }
}

void Adoption::fetch_tag(const core::Core::HeldRoom& room) const {
    const Session* session = sessions_.at(room.session);
    if (session == nullptr || room.tag >= session->tags.size()) return;
    __builtin_prefetch(&session->tags[room.tag], 1);
}

bool Adoption::restore_tag(
    Session& session, uint32_t pool_row, uint16_t tag, uint32_t first, uint32_t lines) const {
    if ((pool_row & shm::kGrantOfSeveral) != 0) return restore_several(session, tag, first, lines);
    const shm::PoolRow& pool = core_.pool(pool_row);
    session.tags[tag] = {.first = first,
                         .lines = lines,
                         .stride = grant_stride(pool),
                         .answer_place = grant_answer_place(pool)};
    return session.rooms.take_at(first, lines);
}

// Its head stands there since its claim was taken.
bool Adoption::restore_several(Session& session,
                               uint16_t tag,
                               uint32_t first,
                               uint32_t lines) const {
    if (!session.rooms.take_at(first, lines)) return false;
    session.tags[tag] = several_room(session, first);
    return session.tags[tag].lines == lines;
}

void Adoption::restore_slots() {
    uint64_t left = 0;
    for (const Session* session : sessions_.all())
        left += session->slots;
    for (uint32_t row = 0; row < core_.slots_max() && left != 0; ++row) {
        const shm::SlotRow& slot = core_.slot(row);
        if (slot.state == shm::SlotState::kFree || slot.session == shm::kNoRow) continue;
        if (slot.part_of != shm::kNoRow) continue;  // it has its slot's
        Session* session = sessions_.at(slot.session);
        if (session == nullptr) continue;
        --left;
        session->slots += slot.parts_max;
        if (slot.room == shm::kNoRow) continue;
        const uint32_t lines = slot_room_lines(core_.pool(slot.pool));
        if (!session->rooms.take_at(slot.room, lines)) end_clashing(*session);
        operations_.restore_slot_room(row, {session, slot.room, lines, slot.parts_max});
    }
}

void Adoption::restore_applications() {
    const uint32_t rows = core::Look::applications_max(core_);
    uint32_t left = rows - core_.counters().apps_free;
    for (uint32_t row = 0; row < rows && left != 0; ++row) {
        const shm::AppRow& app = core::Look::application(core_, row);
        if (app.state == shm::AppState::kFree) continue;
        --left;
        Session* session = app.manager != shm::kNoRow ? sessions_.at(app.manager) : nullptr;
        if (session != nullptr) session->applications.push_back(row);
    }
}

// What its client has not read may name the room of a lease that has ended, or of a slot that is
// gone. A client that says it has read what cannot be is out.
void Adoption::restore_unread(Session& session) {
    const bool possible = session.refresh_released();
    const uint64_t unread = session.completion_tail - session.completions_released;
    if (!possible || unread > session.sizes.completion_entries) {
        return sessions_.end(&session, shm::Reason::kLimit);
    }
    shm::CompletionConsumer ring(
        session.completions, session.sizes.completion_entries, session.completions_released);
    shm::Completion entry;
    while (ring.head() < session.completion_tail && ring.pop(entry) == shm::Poll::kEntry) {
        if (entry.data == shm::kNoRow) continue;
        const uint32_t first = entry.data / static_cast<uint32_t>(shm::kLineSize);
        uint32_t lines = 0;
        const bool is_order = entry.kind == shm::CompletionKind::kCreate;
        if (is_order || entry.kind == shm::CompletionKind::kAssign)
            lines = room_lines(entry.holder);
        if (entry.kind == shm::CompletionKind::kClaim && first < session.rooms.lines()) {
            const auto* head = reinterpret_cast<const shm::GrantHead*>(
                session.payload + size_t{first} * shm::kLineSize);
            lines = (head->pool & shm::kGrantOfSeveral) != 0
                        ? several_room(session, first).lines
                        : room_lines(sizeof(*head) + uint64_t{entry.units} * head->stride);
        }
        if (lines == 0 || !session.rooms.take_at(first, lines)) continue;  // a live one's
        session.free_room(first, lines, ring.head());
    }
    session.settle_rooms();
}

void Adoption::end_clashing(Session& session) {
    log::error("two rooms of one session overlap: it ends");
    sessions_.end(&session, shm::Reason::kNoRoom);
}

}  // namespace dibs
