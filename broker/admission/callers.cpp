// broker/admission/callers.cpp -- keeps the connections that have not yet said Hello.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admission/callers.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace dibs {

int Callers::least_wanted() const {
    // Of uids with as many each the smallest, so that it is one.
    uint32_t uid = 0;
    size_t most = 0;
    for (const auto& [who, count] : by_uid_) {
        if (count > most || (count == most && who < uid)) {
            uid = who;
            most = count;
        }
    }
    const auto found = std::find_if(list_.begin(), list_.end(), [&](const Caller& caller) {
        return caller.credentials.uid == uid;
    });
    return found == list_.end() ? -1 : found->socket.get();
}

void Callers::add(Caller caller) {
    const int fd = caller.socket.get();
    ++by_uid_[caller.credentials.uid];
    list_.push_back(std::move(caller));
    by_fd_[fd] = std::prev(list_.end());
}

const Caller* Callers::find(int fd) const {
    const auto found = by_fd_.find(fd);
    return found == by_fd_.end() ? nullptr : &*found->second;
}

Caller Callers::take(int fd) {
    const auto found = by_fd_.find(fd);
    Caller caller = std::move(*found->second);
    const auto count = by_uid_.find(caller.credentials.uid);
    if (--count->second == 0) by_uid_.erase(count);
    list_.erase(found->second);
    by_fd_.erase(found);
    return caller;
}

void Callers::clear() {
    list_.clear();
    by_fd_.clear();
    by_uid_.clear();
}

}  // namespace dibs
