// broker/takeover/descriptor_store.cpp -- what a service manager holds for us while nobody of ours
// lives.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/descriptor_store.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "broker/text/log.hpp"
#include "shm/layout.hpp"

namespace dibs {

DescriptorStore::Entry DescriptorStore::entry_of(std::span<const shm::Descriptor> descriptors) {
    Entry entry;
    for (const shm::Descriptor& descriptor : descriptors)
        entry.descriptors.push_back(descriptor.get());
    struct stat about = {};
    if (!descriptors.empty() && fstat(descriptors.front().get(), &about) == 0 &&
        (S_ISREG(about.st_mode) || S_ISSOCK(about.st_mode))) {
        entry.device = about.st_dev;
        entry.inode = about.st_ino;
    }
    return entry;
}

// The name is repeated for each descriptor, with a separator.
size_t DescriptorStore::size_of(const DescriptorName& name, const Entry& entry) {
    return entry.descriptors.size() * (name.text().size() + 1);
}

// Their caller may close them before they leave, and a number that is free is soon another file's.
bool DescriptorStore::make_own(Entry& entry) {
    for (int& descriptor : entry.descriptors) {
        entry.own.emplace_back(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
        if (!entry.own.back().valid()) return false;
        descriptor = entry.own.back().get();
    }
    return true;
}

void DescriptorStore::keep(const DescriptorName& name,
                           std::span<const shm::Descriptor> descriptors,
                           uint64_t now_ns) {
    if (!notices_.heard()) return;
    Entry fresh = entry_of(descriptors);
    const auto known = entries_.find(name);
    const size_t before = known == entries_.end() ? 0 : size_of(name, known->second);
    const size_t size = names_size_ - before + size_of(name, fresh);
    if (name.what == DescriptorName::What::kSession && size > kNamesMax) {
        if (!std::exchange(said_full_, true)) {
            log::warning(
                "more sessions than a service manager can pass on: those that come now "
                "end if keeper and broker die together");
        }
        return drop(name, now_ns);
    }
    if (known != entries_.end()) {
        const Entry& entry = known->second;
        const bool same =
            fresh.inode != 0 && entry.device == fresh.device && entry.inode == fresh.inode;
        fresh.stored = entry.stored;
        fresh.stale = entry.stale || (entry.stored && !same);
    }
    const bool waits = !fresh.stored || fresh.stale;
    if (waits && name.what != DescriptorName::What::kSession && !make_own(fresh)) {
        log::warning("no descriptor is free for what the service manager is to store: " +
                     name.text());
        return drop(name, now_ns);
    }
    names_size_ = size;
    fresh.wanted = true;
    entries_[name] = std::move(fresh);
    if (waits) change(name, now_ns);
}

void DescriptorStore::found(const DescriptorName& name,
                            std::span<const shm::Descriptor> descriptors) {
    Entry& entry = entries_[name];
    entry = entry_of(descriptors);
    entry.wanted = entry.stored = true;
    names_size_ += size_of(name, entry);
}

void DescriptorStore::drop(const DescriptorName& name, uint64_t now_ns) {
    const auto known = entries_.find(name);
    if (known == entries_.end() || !known->second.wanted) return;
    Entry& entry = known->second;
    names_size_ -= size_of(name, entry);
    entry.wanted = false;
    entry.descriptors.clear();
    entry.own.clear();
    if (entry.stored) return change(name, now_ns);
    entries_.erase(known);
}

void DescriptorStore::drop_segments(uint64_t now_ns) {
    std::vector<DescriptorName> names;
    for (const auto& [name, entry] : entries_) {
        if (name.what != DescriptorName::What::kSession) names.push_back(name);
    }
    for (const DescriptorName& name : names)
        drop(name, now_ns);
}

void DescriptorStore::change(const DescriptorName& name, uint64_t now_ns) {
    if (name.what != DescriptorName::What::kSession) return urgent_.push_back(name);
    if (sessions_.empty()) paused_until_ns_ = std::max(paused_until_ns_, now_ns + kPauseNs);
    // Those that come and go leave their names: they are swept out before they are the most of it.
    if (sessions_.size() > 2 * entries_.size() + kBatch)
        std::erase_if(sessions_, [&](const DescriptorName& one) { return is_settled(one); });
    sessions_.push_back(name);
}

// The manager has of it what is wanted: a name that was queued before is worth nothing.
bool DescriptorStore::is_settled(const DescriptorName& name) const {
    const auto known = entries_.find(name);
    if (known == entries_.end()) return true;
    const Entry& entry = known->second;
    return !entry.stale && entry.stored == entry.wanted;
}

uint64_t DescriptorStore::next_due_ns() const {
    return sessions_.empty() ? shm::kNever : paused_until_ns_;
}

size_t DescriptorStore::stored_sessions() const {
    return static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(), [](const auto& one) {
        return one.first.what == DescriptorName::What::kSession && one.second.wanted &&
               one.second.stored && !one.second.stale;
    }));
}

void DescriptorStore::flush(uint64_t now_ns) {
    while (!urgent_.empty()) {
        if (!tell(urgent_.front())) return;
        urgent_.pop_front();
    }
    if (now_ns < paused_until_ns_) return;
    for (uint32_t told = 0; told < kBatch && !sessions_.empty();) {
        const bool settled = is_settled(sessions_.front());
        if (!settled && !tell(sessions_.front())) break;
        sessions_.pop_front();
        if (!settled) ++told;
    }
    paused_until_ns_ = now_ns + kPauseNs;
}

bool DescriptorStore::take_out(const DescriptorName& name) {
    return notices_.try_say("FDSTOREREMOVE=1\nFDNAME=" + name.text());
}

// Brings the manager to what is wanted of that name. False: it has no room now.
bool DescriptorStore::tell(const DescriptorName& name) {
    const auto known = entries_.find(name);
    if (known == entries_.end()) return true;
    Entry& entry = known->second;
    if (entry.stored && (entry.stale || !entry.wanted)) {
        if (!take_out(name)) return false;
        entry.stored = entry.stale = false;
    }
    if (!entry.wanted) {
        entries_.erase(known);
        return true;
    }
    if (entry.stored) return true;
    // Its end is told by nobody but us: FDPOLL=0, or a hung-up socket would be taken out.
    entry.stored =
        notices_.try_say("FDSTORE=1\nFDPOLL=0\nFDNAME=" + name.text(), entry.descriptors);
    if (entry.stored) entry.own.clear();
    return entry.stored;
}

}  // namespace dibs
