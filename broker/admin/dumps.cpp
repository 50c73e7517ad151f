// broker/admin/dumps.cpp -- requests a copy of STATE and writes it in a thread of its own.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admin/dumps.hpp"

#include <exception>
#include <system_error>
#include <utility>

#include "broker/snapshot/dump.hpp"
#include "broker/text/shortage.hpp"

namespace dibs {

Dumps::~Dumps() {
    if (writer_.joinable()) writer_.join();
}

std::string Dumps::begin(uint64_t conversation, bool records) {
    if (busy_) return "another dump is being made: try again";
    try {
        auto copying = std::make_unique<Copying>(conversation, state_, records);
        Request request;
        request.kind = Request::Kind::kCopy;
        request.copying = copying.get();
        if (!exchange_.ask(request)) return "too much is asked of the broker: try again";
        (void)copying.release();
    } catch (const std::bad_alloc&) {
        return "no memory for a copy of the state";
    }
    busy_ = true;
    return {};
}

void Dumps::copied(std::unique_ptr<Copying> copying) {
    written_ = {copying->conversation, {}, {}};
    const auto write = [this, copy = std::shared_ptr<Copying>(std::move(copying))] {
        try {
            written_.bytes = snapshot::dump(copy->copy.bytes());
        } catch (const std::exception& error) {
            written_.fault = error.what();
        }
        done_.call();
    };
    try {
        writer_ = std::thread(write);
    } catch (const std::system_error& error) {
        written_.fault = "no thread to write it: " + with_limits(error);
        done_.call();
    }
}

std::optional<Dumps::Written> Dumps::take() {
    done_.answer();
    if (!busy_) return std::nullopt;
    if (writer_.joinable()) writer_.join();
    busy_ = false;
    return std::move(written_);
}

}  // namespace dibs
