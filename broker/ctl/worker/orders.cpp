// broker/ctl/worker/orders.cpp -- holds the provisioner's session.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/worker/orders.hpp"

#include <algorithm>
#include <bit>
#include <cctype>

#include "broker/ctl/clock.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl::worker {

namespace {

constexpr int64_t kRetry = 200 * DIBS_MILLISECOND;  // twice as long each time
constexpr int64_t kRetryMost = 2 * DIBS_SECOND;
constexpr uint32_t kWorkersMost = 1000;  // of one pool: their orders and stops may all be unread

dibs_connect_options session_for_orders() {
    dibs_connect_options options = small_session();
    options.completion_entries = std::bit_ceil(options.submission_entries + 2 * kWorkersMost);
    return options;
}

std::string why_no_role(int code, const Options& options) {
    const std::string type = "type \"" + options.type + "\" of pool \"" + options.pool.name + "\"";
    switch (code) {
        case DIBS_ENOTFOUND:
            return "there is no " + type + ": [[type]] in dibsd's configuration names the types " +
                   "of an elastic pool, which says workers_max";
        case DIBS_ENAMEINUSE:
            return type + " has a provisioner already, and takes one at a time";
        case DIBS_ENOTALLOWED:
            return against_policy("make workers of pool \"" + options.pool.name + "\"",
                                  "provisions, or offers");
        case DIBS_ENOROOM:
            return "workers_max of pool \"" + options.pool.name + "\" is above the " +
                   std::to_string(kWorkersMost) + " that one dibs worker makes";
        default:
            return type + ": " + dibs_strerror(code);
    }
}

}  // namespace

// In names of variables what is no letter or digit is '_', and letters are capitals.
Order order_of(const dibs_assignment& told) {
    Order order{told.slot, std::string(static_cast<const char*>(told.body), told.body_size), {}};
    if (told.resource_count == 0) return order;
    for (size_t i = 0; i < told.resource_count; ++i) {
        std::string variable = std::string("DIBS_ORDER_") + told.resources[i];
        for (char& letter : variable) {
            if (letter == '=') break;
            letter = std::isalnum(static_cast<unsigned char>(letter)) == 0
                         ? '_'
                         : static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
        }
        order.variables.push_back(variable);
    }
    order.variables.push_back("DIBS_ORDER_WIDTH=" + std::to_string(told.width));
    return order;
}

Orders::Orders(const Options& options)
    : options_(options), due_ns_(options.service ? 0 : INT64_MAX) {
    if (!options.service) take_role();
}

void Orders::take_role() {
    auto attachment = std::make_unique<Attachment>(options_.socket, session_for_orders());
    const uint32_t pool = attachment->pool(options_.pool.name);
    const int code =
        dibs_provide(attachment->session(), pool, options_.type.c_str(), 0, 1, kAnswerTimeoutNs);
    if (code < 0) throw Failure(exit_code_of(code), why_no_role(code, options_));
    attachment_ = std::move(attachment);
}

bool Orders::try_role(int64_t now_ns) {
    const std::string role =
        "provisioner of type \"" + options_.type + "\" of pool \"" + options_.pool.name + "\"";
    try {
        take_role();
        due_ns_ = INT64_MAX;
        talk(options_.speaker + ": " + (had_role_ ? "back: " : "") + role);
        had_role_ = true;
        retry_ns_ = 0;
        trouble_.clear();
        return true;
    } catch (const std::exception& failure) {
        retry_ns_ = std::clamp(2 * retry_ns_, kRetry, kRetryMost);
        due_ns_ = after(now_ns, retry_ns_);
        const std::string trouble = harmless(failure.what());
        if (trouble_ != trouble) {
            talk(options_.speaker + ": not yet " + role + ": " + trouble + "; trying again");
        }
        trouble_ = trouble;
        return false;
    }
}

bool Orders::next(dibs_assignment* order, int64_t now_ns) {
    if (!attachment_ && (now_ns < due_ns_ || !try_role(now_ns))) return false;
    dibs_dispatch(attachment_->session());
    const int code = dibs_next_assignment(attachment_->session(), DIBS_NOWAIT, order);
    if (code == DIBS_OK) return true;
    if (code == DIBS_ETIMEDOUT) return false;
    talk(options_.speaker + ": the provisioner's session at the broker has ended (" +
         std::string(dibs_strerror(dibs_end_code(attachment_->session()))) + "); trying again");
    attachment_.reset();
    due_ns_ = now_ns;
    return false;
}

// Where it is known, it has been answered so, and nothing changes.
std::optional<bool> Orders::is_over(uint64_t order) {
    if (!attachment_) return std::nullopt;
    const int code = dibs_provisioned(
        attachment_->session(), order, DIBS_CREATED, DIBS_SCOPE_TYPE, nullptr, DIBS_SECOND);
    if (code != DIBS_OK && code != DIBS_ENOTFOUND) return std::nullopt;
    return code == DIBS_ENOTFOUND;
}

// Whether it is heard says the next order.
void Orders::answer(uint64_t order, int answer) {
    if (!attachment_) return;
    (void)dibs_provisioned(
        attachment_->session(), order, answer, DIBS_SCOPE_TYPE, nullptr, DIBS_NOWAIT);
}

}  // namespace dibs::ctl::worker
