// tests/broker/bench.hpp -- the parts of a turn on one thread and one mapping, without doorbells:
// a session whose two segments the test writes and reads as its client would.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/segments/segments.hpp"
#include "broker/session/sessions.hpp"
#include "broker/turn/answer.hpp"
#include "broker/turn/clock.hpp"
#include "broker/turn/deaths.hpp"
#include "broker/turn/ingest.hpp"
#include "broker/turn/lease_words.hpp"
#include "broker/turn/operations.hpp"
#include "broker/turn/prepared_grant.hpp"
#include "broker/turn/publish.hpp"
#include "shm/doorbell.hpp"
#include "shm/memfd.hpp"
#include "shm/ring.hpp"

namespace dibs::test {

class Bench {
  public:
    static constexpr core::Limits kLimits = {
        .pools = 4, .sessions = 8, .slots = 64, .claims = 256, .leases = 256, .arena_blocks = 64};

    static constexpr uint32_t kAccountsShown = 8;

    explicit Bench(const core::Limits& limits = kLimits)
        : pushed_(limits.sessions, 0),
          read_(limits.sessions, 0),
          state_(shm::make_memfd("bench", core::state_size(limits))),
          mapping_(state_.get(), core::state_size(limits)),
          core((core::format_state(mapping_.bytes(), limits), mapping_.bytes())),
          board(limits.pools, kAccountsShown),
          sessions(limits.sessions),
          quotas(core),
          pledges(core),
          words(core, sessions, clock),
          operations(core, quotas, pledges, accounts, words),
          prepared(core, operations, pledges),
          publisher(core, board),
          ingest(core, operations, pledges),
          read_budget(limits.sessions),
          answers(core, sessions, operations, publisher, quotas, read_budget),
          kills(core, sessions),
          deaths(core, sessions, ingest, kills, words) {}

    std::span<std::byte> state() const { return mapping_.bytes(); }

    uint32_t pool(core::PoolConfig config) {
        std::string why;
        core.begin_turn(now);
        const uint32_t row = core.set_pool(config, &why);
        core.decide();
        core.commit();
        core.clear();
        return row;
    }

    Session& open(const shm::SessionSizes& sizes = {}, uint32_t uid = 1000) {
        Peer peer;
        peer.uid = uid;
        peer.gid = 1000;
        peer.pid = 42;
        peer.killable = true;
        owned_.push_back(std::make_unique<Session>(std::move(peer), sizes));
        Session& session = *owned_.back();
        core.begin_turn(now);
        session.row = core.open_session({.uid = uid,
                                         .gid = 1000,
                                         .pid = 42,
                                         .start_time = 1,
                                         .tags_max = static_cast<uint16_t>(sizes.tags),
                                         .submission_entries = sizes.submission_entries,
                                         .completion_entries = sizes.completion_entries,
                                         .up_payload_size = sizes.up_payload,
                                         .down_payload_size = sizes.down_payload});
        session.generation = core.session(session.row).head.generation;
        pushed_[session.row] = 0;
        read_[session.row] = 0;
        core.decide();
        core.commit();
        core.clear();
        shm::write_up_head(up(session), sizes, session.row, session.generation);
        shm::write_down_head(*session.down, sizes, session.row, session.generation, 1);
        sessions.add(&session);
        quotas.add(session);
        sessions.poll(&session);
        return session;
    }

    static shm::UpHead& up(Session& session) { return *session.up_mapping.at<shm::UpHead>(0); }
    static shm::SubmissionEntry* lines(Session& session) {
        return session.up_mapping.at<shm::SubmissionEntry>(shm::plan_up(session.sizes).submission);
    }
    static std::byte* up_payload(Session& session) {
        return session.up_mapping.at<std::byte>(shm::plan_up(session.sizes).payload);
    }

    // As the client: the next entry of its ring.
    void push(Session& session, const shm::Submission& entry) {
        shm::store_line(lines(session), session.sizes.submission_entries, pushed(session)++, entry);
    }
    uint64_t& pushed(Session& session) { return pushed_[session.row]; }
    // As the client: the next completion, read or only looked at.
    std::optional<shm::Completion> next(Session& session) {
        shm::CompletionConsumer ring(
            session.completions, session.sizes.completion_entries, read_[session.row]);
        shm::Completion entry;
        if (ring.pop(entry) != shm::Poll::kEntry) return std::nullopt;
        read_[session.row] = ring.head();
        return entry;
    }
    void release_read(Session& session) {
        shm::release_completions(up(session), read_[session.row]);
    }

    // One turn over all sessions, as Turn::take does it.
    Ingest::Read turn(bool alone = false) {
        const Ingest::Read last = read(alone);
        finish();
        return last;
    }
    // Its first half; `alone`: what one session says may be answered at once.
    Ingest::Read read(bool alone = false) {
        core.begin_turn(now);
        operations.begin_turn();
        pledges.begin_turn();
        ingest.begin_turn();
        kills.tell();
        if (sessions.next_look() <= now) sessions.look_at_trees(now);
        deaths.reap();
        accounts.step(now);
        pledges.allow(alone);
        Ingest::Read last = Ingest::Read::kOpen;
        for (size_t i = sessions.polled().size(); i-- > 0;) {
            if (ingest.turn_full()) break;
            Session* session = sessions.polled()[i];
            last = ingest.read(*session, read_budget.budget(session->row));
            sessions.in_turn(session);
            if (last == Ingest::Read::kClosed) sessions.end(session, shm::Reason::kOk);
            if (last == Ingest::Read::kViolation) sessions.end(session, shm::Reason::kMalformed);
        }
        return last;
    }
    // Instead of read(): what was prepared between turns is told, if it fits.
    bool answer() {
        const bool plain = core.begins_plainly();
        if (!plain) core.begin_turn(now);
        pledges.begin_turn();
        answered_ = prepared.find(sessions.polled(), answered_claim_);
        if (answered_ != nullptr && !prepared.tell(now, answered_claim_)) answered_ = nullptr;
        if (plain) core.begin_turn(now);
        prepared.forget();
        operations.begin_turn();
        ingest.begin_turn();
        return answered_ != nullptr;
    }
    // And its claim is applied.
    void apply_answered() {
        ingest.read_answered(*answered_, answered_claim_);
        sessions.in_turn(answered_);
    }
    void finish() {
        core.decide();
        answers.stage();
        core.commit();
        accounts.note();
        answers.store();
        if (answers.kills()) kills.carry_out();
        publisher.publish(false);
        core.clear();
        for (Session* session : deaths.gone()) {
            operations.forget(*session);
            sessions.remove(session);
        }
        deaths.gone().clear();
    }

  private:
    std::vector<std::unique_ptr<Session>> owned_;
    std::vector<uint64_t> pushed_;
    std::vector<uint64_t> read_;
    Session* answered_ = nullptr;
    shm::Submission answered_claim_;
    shm::Descriptor state_;
    Mapping mapping_;

  public:
    core::Core core;
    BoardSegment board;
    Sessions sessions;
    Quotas quotas;
    Pledges pledges;
    UidAccounts accounts{core};
    Clock clock{1000};  // of words: theirs passes by itself
    LeaseWords words;
    Operations operations;
    PreparedGrant prepared;
    Publisher publisher;
    Ingest ingest;
    ReadBudget read_budget;
    Answers answers;
    Kills kills;
    Deaths deaths;
    core::TimeNs now = 1000;
};

inline shm::Submission claim(uint16_t tag, uint16_t pool = 0, uint16_t units = 1) {
    shm::Submission entry;
    entry.op = shm::Op::kClaim;
    entry.tag = tag;
    entry.pool = pool;
    entry.units = units;
    entry.user_data = 100U + tag;
    entry.id = shm::kNever;
    return entry;
}

inline shm::Submission word(shm::Op op, uint64_t id, uint64_t fence, uint8_t flags = 0) {
    shm::Submission entry;
    entry.op = op;
    entry.id = id;
    entry.fence = fence;
    entry.flags = flags;
    return entry;
}

}  // namespace dibs::test
