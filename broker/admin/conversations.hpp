// broker/admin/conversations.hpp -- serves admin connections on the control thread.
//
//   quiet ── a request comes ──► busy (the turn has it) ── its answer leaves ──► quiet
//     └── 10 s of silence, hang-up, nonsense ──► gone        └── hang-up ──► gone
//
// Each conversation has one request at a time. The number of conversations is bounded, and smaller
// still for one user; one that is silent for long is closed. While a conversation is busy nothing
// is read from it, so further requests wait in its own socket; a conversation whose client does not
// take an answer ends. A request that is no valid table, or exceeds its limits, gets an error and
// ends the conversation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "broker/admin/admin.hpp"
#include "broker/admin/dumps.hpp"
#include "broker/admin/recording.hpp"
#include "broker/admin/subscriber.hpp"
#include "broker/admission/callers.hpp"
#include "broker/control/exchange.hpp"
#include "broker/segments/loaded_state.hpp"
#include "shm/descriptor.hpp"

namespace dibs {

class Conversations {
  public:
    static constexpr size_t kMost = 64;           // that ask
    static constexpr size_t kMostOfAll = 128;     // with those that listen to events
    static constexpr size_t kMostOfOneUser = 16;  // administrators: all
    static constexpr uint64_t kSilenceNs = 10'000'000'000;
    static constexpr size_t kRequestSize = 1024;       // bytes of one request, at most
    static constexpr size_t kAppRequestSize = 16384;   // of an application, with its groups
    static constexpr size_t kLoadRequestSize = 65536;  // of an administrator's load, or queue
    static constexpr size_t kSliceSize = 65536;        // of a dump, in one answer

    Conversations(Exchange& exchange, uint64_t now_ns);

    // Readable when there is something to read.
    [[nodiscard]] int fd() const { return epoll_.get(); }
    void begin(Caller caller,
               bool is_admin,
               std::optional<uint32_t> admin_group,
               uint64_t epoch,
               uint64_t now_ns);
    void hear(uint64_t now_ns);
    void answer(std::unique_ptr<AdminJob> job, uint64_t now_ns);
    void copied(std::unique_ptr<Copying> copying) { dumps_.copied(std::move(copying)); }
    void drop_silent(uint64_t now_ns);
    [[nodiscard]] uint64_t next_due() const;  // monotonic; kNever = none
    // The text about the broker's own restrictions in a status. Set it before any client is read.
    void set_hardening(std::string text) { hardening_ = std::move(text); }
    // And of the program that was to serve in its place.
    void set_not_upgraded(std::string why) { not_upgraded_ = std::move(why); }
    // A snapshot that was sent whole is made the state that a successor is to go on from, if the
    // turn agrees; then replaced() tells the sender. It stays here until this broker's end: the
    // keeper that it is handed to may die, and the next one must have it, too.
    using Load = std::function<LoadedState(std::span<const uint8_t> snapshot, uint64_t epoch)>;
    using TakeLoaded = std::function<void(const LoadedState&)>;
    void set_loader(Load load, TakeLoaded take) {
        load_ = std::move(load);
        take_loaded_ = std::move(take);
    }
    // What the control thread does itself: stop, reload, upgrade. Set it before any client is read.
    using Obey = std::function<admin::AnswerT(const admin::Request& order)>;
    void set_orders(Obey obey) { obey_ = std::move(obey); }
    // The broker has stopped in order: tells the client that ordered it.
    void stopped();
    void replaced(const char* why, uint64_t now_ns);
    // Names of one queue, at most. Set it before any client is read.
    void set_names_max(size_t most) { names_max_ = most; }
    // What is dumped. Set it before any client is read.
    void set_state(std::span<std::byte> state) { dumps_.set_state(state); }
    [[nodiscard]] size_t size() const { return all_.size(); }

  private:
    struct Conversation {
        ClientSocket socket;
        uint32_t uid = 0;
        bool is_admin = false;
        bool busy = false;
        bool awaits_end = false;  // it has ordered a stop
        uint64_t silent_until_ns = 0;
        AdminJob* job = nullptr;                    // that the turn has of it
        std::vector<uint8_t> dump = {};             // of which it reads slices
        std::vector<uint8_t> load = {};             // slices that have come
        std::vector<std::string> names = {};        // of a queue, likewise
        std::optional<Subscriber> subscriber = {};  // it has asked for events: nothing else comes
        Credentials peer = {};
        std::optional<Recorder> recorder = {};  // it has its snapshot, and gets what follows
    };

    [[nodiscard]] bool make_room(uint32_t uid, bool is_admin);
    void hear_one(uint64_t number, bool room, uint64_t now_ns);
    [[nodiscard]] bool subscribe(uint64_t number, Conversation& conversation);
    void tell_events();
    void forget(std::map<uint64_t, Conversation>::iterator gone);
    void look_for_room(uint64_t number, const Conversation& conversation) const;
    // The turn answers; it adds to what this answer says already.
    [[nodiscard]] bool ask_turn(uint64_t number,
                                Conversation& conversation,
                                const admin::Request& asked,
                                admin::AnswerT answer);
    [[nodiscard]] bool take(uint64_t number,
                            Conversation& conversation,
                            std::span<const uint8_t> packet);
    [[nodiscard]] bool dump(uint64_t number, Conversation& conversation, uint64_t from);
    [[nodiscard]] static bool send_slice(Conversation& conversation, uint64_t from);
    void finish_dump(uint64_t now_ns);
    [[nodiscard]] bool load(uint64_t number,
                            Conversation& conversation,
                            const admin::Request& request);
    [[nodiscard]] bool order(uint64_t number,
                             Conversation& conversation,
                             const admin::Request& request);
    [[nodiscard]] bool begin_load(uint64_t number, std::span<const uint8_t> snapshot);
    [[nodiscard]] static bool refuse(const Conversation& conversation, const std::string& why);
    [[nodiscard]] static bool deny(const Conversation& conversation);
    void listen(uint64_t number, const Conversation& conversation, bool on) const;

    // conversations_record.cpp
    [[nodiscard]] bool record(uint64_t number, Conversation& conversation, uint64_t from);
    void begin_telling(uint64_t number, Conversation& conversation);
    void hear_recorder(uint64_t number, Conversation& conversation);
    void tell_recorder();
    void look_for_stop(uint64_t number, const Conversation& conversation, bool waits) const;
    void unrecord();
    void recorder_gone();

    Exchange& exchange_;
    Dumps dumps_;
    Obey obey_;
    size_t names_max_ = 0;
    Load load_;
    TakeLoaded take_loaded_;  // none: no successor could be started
    LoadedState loaded_;      // while the turn is asked, and for ever once it has agreed
    uint64_t loader_ = 0;     // its conversation
    uint64_t recorder_ = 0;   // the conversation that records, or did, until the turn has stopped
    uint64_t epoch_ = 0;
    shm::Descriptor epoll_;
    std::map<uint64_t, Conversation> all_;  // by number: in the order in which they came
    uint64_t next_number_ = 1;
    uint64_t started_ns_;
    std::string hardening_ = "none";
    std::string not_upgraded_;
};

}  // namespace dibs
