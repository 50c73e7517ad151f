// broker/takeover/descriptor_store.hpp -- keeps descriptors in the service manager's store.
//
//           keep             notice leaves          drop               notice leaves
//   absent ────────► wanted ────────────────► stored ───────► unwanted ────────────────► absent
//                      └── drop: the manager does not know of it ────────────────────────► absent
//
// sd_notify(3), FDSTORE=1: if keeper and broker both die, the keeper that the manager starts next
// finds these descriptors among those that it is passed. The manager may be the host's first
// process, so sessions are stored in batches, with a pause before each: a session that comes and
// goes within a pause costs the manager nothing, any other two datagrams. Names:
//
//   state  board  config          the segments, and the text of the last good configuration
//   listener                      the socket, if the broker opened it itself
//   broker.PID                    the pidfd of a broker that has been started
//   s.ROW.GENERATION              what one session has, all of it; hexadecimal
//
// They are short, because all of them are in one variable of the environment at the next start, and
// that holds 128 KiB (MAX_ARG_STRLEN).
//
// A name says what a descriptor should be, the kernel what it is: descriptors that do not match
// their names, a session that lacks one or has it twice, and unknown names are put aside. Without
// the pidfd of the broker that served from it STATE is not used, because nothing could prove that
// this broker is dead.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broker/takeover/keeper_socket.hpp"
#include "broker/takeover/service_notice.hpp"
#include "broker/takeover/socket_activation.hpp"
#include "shm/descriptor.hpp"

namespace dibs {

struct DescriptorName {
    enum class What : uint8_t { kState, kBoard, kListener, kConfig, kBroker, kSession };

    What what = What::kState;
    uint32_t row = 0;         // of a session; of a broker, its pid
    uint32_t generation = 0;  // of a session

    auto operator<=>(const DescriptorName&) const = default;

    [[nodiscard]] std::string text() const;
    // Nothing: no broker of ours has given that name.
    static std::optional<DescriptorName> of(std::string_view text);
};

class DescriptorStore {
  public:
    static constexpr uint64_t kPauseNs = 20'000'000;
    static constexpr uint32_t kBatch = 16;
    // Of all names together: they come back in one variable of the environment. None is shorter
    // than six letters with its separator: FileDescriptorStoreMax= of packaging/systemd/.
    static constexpr size_t kNamesMax = 96 * 1024;

    explicit DescriptorStore(ServiceNotices& notices) : notices_(notices) {}

    // A session's descriptors stay the caller's, and open until drop() or another keep() of that
    // name. Of everything else what waits is kept open here.
    void keep(const DescriptorName& name,
              std::span<const shm::Descriptor> descriptors,
              uint64_t now_ns);
    // Kept by an earlier keeper, and still the manager's.
    void found(const DescriptorName& name, std::span<const shm::Descriptor> descriptors);
    void drop(const DescriptorName& name, uint64_t now_ns);
    // What a successor would begin with. The sessions are worth nothing without it.
    void drop_segments(uint64_t now_ns);

    // Tells what is due, as far as there is room.
    void flush(uint64_t now_ns);
    // Segments and brokers that the manager has not heard of; they wait for room alone.
    [[nodiscard]] bool urgent() const { return !urgent_.empty(); }
    // When the next batch of sessions may leave, or shm::kNever.
    [[nodiscard]] uint64_t next_due_ns() const;
    // That the manager has been told of, and that are wanted.
    [[nodiscard]] size_t stored_sessions() const;

  private:
    struct Entry {
        std::vector<int> descriptors;
        std::vector<shm::Descriptor> own;  // the same ones, while they wait to be told of
        dev_t device = 0;  // of the first descriptor: what it is, whatever its number
        ino_t inode = 0;   // 0: indistinguishable (an anonymous inode)
        bool wanted = false;
        bool stored = false;
        bool stale = false;  // stored, but as something else: taken out first
    };

    [[nodiscard]] static Entry entry_of(std::span<const shm::Descriptor> descriptors);
    [[nodiscard]] static size_t size_of(const DescriptorName& name, const Entry& entry);
    [[nodiscard]] static bool make_own(Entry& entry);
    [[nodiscard]] bool is_settled(const DescriptorName& name) const;
    void change(const DescriptorName& name, uint64_t now_ns);
    [[nodiscard]] bool tell(const DescriptorName& name);
    [[nodiscard]] bool take_out(const DescriptorName& name);

    ServiceNotices& notices_;
    std::map<DescriptorName, Entry> entries_;
    std::deque<DescriptorName> urgent_;
    std::deque<DescriptorName> sessions_;
    uint64_t paused_until_ns_ = 0;
    size_t names_size_ = 0;
    bool said_full_ = false;
};

// Of a session that has been welcomed, by SessionDescriptor; that of a tree may be missing.
inline constexpr size_t kStoredOfSession = kKeptMax - 1;

struct StoredDescriptors {
    // Takes all of them.
    explicit StoredDescriptors(std::vector<PassedDescriptor> passed);

    shm::Descriptor state;  // invalid: there is nothing to go on from, and the rest is put aside
    shm::Descriptor board;
    shm::Descriptor listener;
    shm::Descriptor config;
    // Pidfds. A pid may have been several brokers': each is to be proved dead.
    std::map<DescriptorName, std::vector<shm::Descriptor>> brokers;
    std::map<DescriptorName, std::array<shm::Descriptor, kStoredOfSession>> sessions;
    // As the manager calls them; each once. What it holds under them is worth nothing.
    std::vector<std::string> aside;
    // Sessions are all there is. A service that stops in order leaves them, as they are too many to
    // be told of one by one.
    bool ended = false;

  private:
    using Group = std::vector<shm::Descriptor>;
    [[nodiscard]] bool place(const DescriptorName& name, Group& group);
    void put_all_aside();
};

}  // namespace dibs
