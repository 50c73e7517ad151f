// broker/segments/failed_state.cpp -- saves a STATE that failed its checks.
// SPDX-License-Identifier: Apache-2.0
#include "broker/segments/failed_state.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>

#include "broker/segments/mapping.hpp"
#include "broker/takeover/adoption.hpp"
#include "broker/takeover/hang_watch.hpp"
#include "broker/text/log.hpp"
#include "shm/memfd.hpp"

namespace dibs {

namespace {

constexpr size_t kPiece = 1 << 20;

// Piece by piece to the disk, so that each has the time of a start: a slow disk is no hang.
bool write_all(int fd, std::span<const std::byte> bytes, const HangWatch& watch) {
    while (!bytes.empty()) {
        watch.set(HangWatch::kServesWithinNs);
        const ssize_t written = write(fd, bytes.data(), std::min(bytes.size(), kPiece));
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0 || fsync(fd) != 0) return false;
        bytes = bytes.subspan(static_cast<size_t>(written));
    }
    watch.set(HangWatch::kServesWithinNs);
    return true;
}

// Under another name first: a file of that name is whole.
bool write_file(const std::string& path, std::span<const std::byte> bytes, const HangWatch& watch) {
    const std::string draft = path + ".draft";
    const shm::Descriptor file(
        open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.valid()) return false;
    if (write_all(file.get(), bytes, watch) && rename(draft.c_str(), path.c_str()) == 0)
        return true;
    const int error = errno;
    (void)unlink(draft.c_str());  // a full disk has no room for half of it
    errno = error;
    return false;
}

// No service has as many brokers.
constexpr uint64_t kEpochMax = uint64_t{1} << 32U;

// STATE is what is wrong, so its head may be: then the BOARD says how far the service has come, and
// the epoch is a later one.
uint64_t epoch_of(std::span<const std::byte> state, const shm::Descriptor& board) {
    uint64_t said = 0;
    if (state.size() >= sizeof(shm::StateHead)) {
        shm::StateHead head;
        std::memcpy(static_cast<void*>(&head), state.data(), sizeof(head));
        if (head.magic == shm::kStateMagic && head.epoch < kEpochMax) said = head.epoch;
    }
    if (!board.valid() || shm::size_of(board.get()) < sizeof(shm::BoardHead)) return said;
    const Mapping mapping(board.get(), sizeof(shm::BoardHead));
    const auto& head = *mapping.at<const shm::BoardHead>(0);
    const uint64_t seen = head.epoch.load(std::memory_order_relaxed);
    return head.magic == shm::kBoardMagic && seen < kEpochMax ? std::max(said, seen) : said;
}

// A free name: an earlier file of that epoch was another service's, or of another life of this one,
// and is worth as much to its reader.
std::string free_path(const std::string& folder, uint64_t epoch) {
    const std::string stem = folder + "/failed-" + std::to_string(epoch);
    for (uint32_t more = 1;; ++more) {
        const std::string path = stem + (more == 1 ? "" : "." + std::to_string(more)) + ".state";
        struct stat about = {};
        if (lstat(path.c_str(), &about) != 0) return path;
    }
}

}  // namespace

void put_aside(Inheritance& inheritance,
               KeeperLink& keeper,
               const Config& config,
               const std::string& why) {
    log::error("STATE is put aside: " + why);
    for (InheritedSession& session : inheritance.sessions) {
        part_with(session, shm::Reason::kStateLost);
        keeper.drop(session.row, session.generation);
    }
    inheritance.sessions.clear();
    const HangWatch watch(shm::Descriptor(fcntl(inheritance.watch.get(), F_DUPFD_CLOEXEC, 0)));
    try {
        const int fd = inheritance.state.get();
        const Mapping mapping(fd, shm::size_of(fd));
        inheritance.epoch = epoch_of(mapping.bytes(), inheritance.board);
        const std::string folder =
            config.state_dir.empty() ? default_state_dir() : config.state_dir;
        (void)mkdir(folder.c_str(), 0700);
        const std::string path = free_path(folder, inheritance.epoch);
        if (write_file(path, mapping.bytes(), watch)) {
            log::error("it is in " + path + "; `dibs fsck` says what is wrong with it");
        } else {
            log::error(path + ": cannot be written: " + std::strerror(errno));
        }
    } catch (const std::exception& error) {
        log::error(std::string("it cannot be read: ") + error.what());
    }
    inheritance.state.reset();
    inheritance.board.reset();
}

}  // namespace dibs
