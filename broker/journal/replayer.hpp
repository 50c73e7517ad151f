// broker/journal/replayer.hpp -- runs the commands of a journal through the scheduler.
//
// It is the same scheduler that the broker runs, over a STATE of its own, under the journal's own
// time: a turn opens with the first command after the last one was closed, and closes with the
// command "turn". A turn that the undo log cuts goes on at once, so that a cut is not seen.
//
// A recording of a live broker (it begins with "state") has the broker's turns instead, cut ones
// too, and the decisions of each: replay must make the same decisions, and the first that differs
// is an error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/core/ids.hpp"
#include "broker/journal/journal_size.hpp"
#include "broker/journal/name_map.hpp"
#include "schemas/journal_generated.h"
#include "shm/lines.hpp"

namespace dibs::ctl {

class Replayer {
  public:
    // A snapshot that is gone on from takes at most `memory_max` bytes.
    explicit Replayer(const core::Limits& limits, uint64_t memory_max = kJournalMemoryMax);

    // One command; expectations are not commands. Throws JournalError.
    void apply(const journal::Line& line);
    // What was decided since the last call, one line of JSON each.
    std::vector<std::string> take_decisions();
    // The journal has ended. Throws JournalError if a turn is open, or a recording was cut.
    void finish() const;

    // The state between two turns as a snapshot, and another one in its place: names stay as they
    // are. Throws JournalError with what is wrong.
    [[nodiscard]] std::vector<uint8_t> snapshot();
    void go_on_from(std::span<const uint8_t> snapshot);

    // A tap observes what is replayed, until a state is loaded.
    void set_tap(core::Tap* tap) { core_->set_tap(tap); }
    // Among the decisions, a line where a turn opens.
    void tell_turns() { tells_turns_ = true; }

    [[nodiscard]] bool turn_open() const { return turn_open_; }
    [[nodiscard]] uint64_t recorded_turns() const { return recorded_turns_; }
    [[nodiscard]] const core::Core& core() const { return *core_; }
    [[nodiscard]] const NameMap& name_map() const { return map_; }
    // The row that the scenario compares with its expectation.
    [[nodiscard]] std::string ranking_text(const journal::RankingRow& asked) const;

  private:
    [[nodiscard]] std::span<std::byte> state() { return state_.bytes(); }
    void open_turn();
    void close_turn();
    void settle_turn();
    void run_work_left();
    void collect();

    // replayer_recording.cpp
    void apply(const journal::State& state);
    [[nodiscard]] static bool of_recording(const journal::Line& line);
    void apply_recorded(const journal::Line& line);
    void apply(const journal::TurnClosed& closed);
    void compare(const journal::TurnClosed& closed) const;

    void apply(const journal::Advance& advance);
    void apply(const journal::Pool& pool);
    void apply(const journal::Session& session);
    void session_dies(const journal::SessionName& session);
    void holder_dies(const journal::SessionName& session);
    void apply(const journal::Claim& claim);
    struct Routed {
        core::PoolId pool = {};
        const core::Route* route = nullptr;
        shm::Reason refusal = shm::Reason::kOk;
        std::vector<core::RouteMember> members = {};  // of the route
        core::Route of_place = {};
    };
    void claim_from(const journal::Claim& claim, const Routed& routed);
    void apply(const journal::ClaimName& cancel);
    void apply(const journal::Release& release, std::string_view word);
    void apply(const journal::Keepalive& keepalive);
    void apply(const journal::Adopt& adopt);
    void apply(const journal::KillFailed& failed);
    void apply(const journal::Harvest& harvest);
    void apply(const journal::Touch& touch);
    void apply(const journal::Announce& announce);
    void apply(const journal::SlotWord& slot, core::WorkerWord::Kind kind, std::string_view word);
    void apply(const journal::Confirm& confirm);
    void apply(const journal::Refuse& refuse);
    void apply(const journal::Answer& done);
    void apply(const journal::Drained& named, bool on);
    void apply(const journal::DeletedPool& pool);
    void apply(const journal::Steered& named, bool ends);
    void apply(const journal::Application& added);
    void apply(const journal::ApplicationEvent& event);
    void tell_administrator(std::string_view word,
                            std::string_view application,
                            shm::Reason reason,
                            uint64_t value);
    void apply(const journal::Report& report);
    void apply(const journal::Pull& pull);
    void apply(const journal::Unassign& unassign);
    void apply(const journal::UpdateClaim& update);
    void apply(const journal::Provide& provide);
    void apply(const journal::Provisioned& provisioned);

    // replayer_routes.cpp
    void apply(const journal::Place& place);
    void apply(const journal::Route& route);
    [[nodiscard]] std::unique_ptr<Routed> routed(const flatbuffers::String& target,
                                                 const flatbuffers::String* cluster,
                                                 uint8_t version) const;

    // replayer_elastic.cpp
    [[nodiscard]] bool is_dispatched(core::PoolId pool) const;
    void update_entry(const journal::UpdateClaim& update);
    void report_worker(const journal::Report& report);
    void apply(const journal::QueueRead& read);
    void apply(const journal::QueueOperation& asked);
    void apply(const journal::OperationDone& done);
    void apply(const journal::Process& process);
    void apply(const journal::Probe& probe);
    void apply(const journal::SetBehaviour& set);

    // The number of a named claim that may be unknown; 0 = it never was.
    [[nodiscard]] core::ClaimNumber number_of(const flatbuffers::String* claim) const;
    void learn_pool(const journal::Pool& pool);
    void learn_worker(core::PoolId pool, std::string_view worker);
    void learn_account(const core::Decision& decision);
    void learn_type(const core::Decision& decision);

    // The row of a pool; kNoRow for an unknown one: the scheduler rejects it.
    [[nodiscard]] core::PoolId pool_row(const flatbuffers::String* name) const;
    // The session that an operation names, or else the one that it would come from.
    core::SessionId speaker(const flatbuffers::String* named, const std::string& otherwise);
    core::WorkerWord worker_word(core::WorkerWord::Kind kind,
                                 std::string_view word,
                                 const std::string& slot,
                                 const flatbuffers::String* session,
                                 flatbuffers::Optional<uint32_t> round);

    uint64_t memory_max_;
    shm::Lines state_;
    std::unique_ptr<core::Core> core_;
    NameMap map_;
    core::TimeNs now_ = 0;
    bool turn_open_ = false;
    bool tells_turns_ = false;
    bool first_ = true;
    size_t collected_ = 0;  // decisions of this turn that have been taken over
    uint32_t sessions_ = 0;
    std::vector<std::string> decisions_;
    struct Place {
        std::vector<std::string> pools;
        std::vector<core::RouteMember> members;  // by these names
        core::Route route;
    };
    std::map<std::string, Place> places_;  // by name

    // --- of a recording
    bool recording_ = false;
    bool ended_ = false;
    uint64_t recorded_turns_ = 0;
    std::vector<uint32_t> sums_;     // of what was decided in the open turn
    std::vector<std::string> told_;  // the same as text
};

}  // namespace dibs::ctl
