// broker/ctl/worker/post.cpp -- announces a slot and sends words about it without waiting.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/worker/post.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "broker/ctl/failure.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/ctl/worker/template_text.hpp"

namespace dibs::ctl::worker {

namespace {

// Nothing that the broker or another worker may do later makes these good.
bool for_good(int code) {
    switch (code) {
        case DIBS_EPAYLOAD:
        case DIBS_ENAME:
        case DIBS_EOPTIONS:
        case DIBS_ELABELS:
        case DIBS_EVECTOR:
        case DIBS_ENOTALLOWED:
        case DIBS_EARGUMENT:
            return true;
        default:
            return false;
    }
}

// The attributes' values of one process.
std::vector<std::string> values_of(const Options& options, uint32_t index, pid_t process) {
    std::vector<std::string> values;
    for (const auto& [key, value] : options.attributes)
        values.push_back(
            filled_in(with_index(value, index), "{pid}", static_cast<uint32_t>(process)));
    return values;
}

// Each part takes as much of the session's credit as a slot, and words of all may come at once.
dibs_connect_options session_for(uint32_t parts) {
    dibs_connect_options options = small_session();
    if (parts <= 1) return options;
    options.submission_entries = std::bit_ceil(std::max(options.submission_entries, 4 * parts));
    options.completion_entries = 4 * options.submission_entries;
    return options;
}

std::string why_refused(int code, const Options& options) {
    switch (code) {
        case DIBS_ENOTALLOWED:
            return against_policy("offer slots of pool \"" + options.pool.name + "\"", "offers");
        case DIBS_EVECTOR:
            return "--resource names resources of its pool's slots, each once and of at most "
                   "2^53, and --parts is for a pool whose slots have some (resources in its "
                   "[[pool]]; dibs show " +
                   options.pool.name + " -o json tells them)";
        case DIBS_ESTATE:
            return options.type.empty()
                       ? "nothing attaches in pool \"" + options.pool.name +
                             "\": its workers are known by reports alone (dispatch = true)"
                       : "type \"" + options.type +
                             "\" promises labels that its workers do not have: labels in its "
                             "[[type]] of dibsd's configuration, --label here";
        case DIBS_ELIMIT:
            return "user " + user_name(geteuid()) +
                   " has as many slots, label sets or bytes of attributes as it may: by its "
                   "[[policy]] (slots, label_sets, arena) or by its share of a table that is "
                   "nearly full (limits), in dibsd's configuration";
        default:
            return dibs_strerror(code);
    }
}

// A full ring is emptied by the broker; a session that says so for good has ended.
bool said(int code) {
    return code >= 0;
}

}  // namespace

void check_attributes(const Options& options,
                      uint32_t index,
                      pid_t process,
                      const dibs_pool_limits& limits) {
    const std::vector<std::string> values = values_of(options, index, process);
    size_t size = 0;  // as they travel: "key=value" and a zero byte each
    for (size_t i = 0; i < values.size(); ++i)
        size += options.attributes[i].first.size() + values[i].size() + 2;
    if (size <= limits.attributes_max) return;
    const std::string needed = std::to_string(size);
    throw Hopeless(kExitLimit,
                   "the attributes of a slot take " + needed + " bytes, pool \"" +
                       options.pool.name + "\" takes at most " +
                       std::to_string(limits.attributes_max) + ": set attributes_max = " + needed +
                       " or more for the pool in dibsd's configuration, and start dibsd again");
}

Post::Post(const Options& options,
           const std::string& name,
           uint32_t index,
           pid_t process,
           const std::string& order)
    : attachment_(options.socket, session_for(options.parts)) {
    const uint32_t pool = attachment_.pool(options.pool.name);
    const dibs_pool_limits limits = attachment_.describe(pool);
    answer_max_ = limits.answer_max;
    check_attributes(options, index, process, limits);
    std::vector<const char*> labels;
    for (const std::string& label : options.labels)
        labels.push_back(label.c_str());
    const std::vector<std::string> values = values_of(options, index, process);
    std::vector<dibs_option> attributes;
    for (size_t i = 0; i < values.size(); ++i)
        attributes.push_back({options.attributes[i].first.c_str(), values[i].c_str()});
    std::vector<const char*> resources;
    for (const std::string& amount : options.resources)
        resources.push_back(amount.c_str());
    dibs_announce_options announced = {};
    announced.size = sizeof announced;
    announced.name = name.c_str();
    announced.labels = labels.data();
    announced.label_count = labels.size();
    announced.attributes = attributes.data();
    announced.attribute_count = attributes.size();
    announced.worker_tag = index;
    announced.ready = 1;
    announced.resources = resources.empty() ? nullptr : resources.data();
    announced.resource_count = resources.size();
    announced.parts = options.parts;
    announced.order = order.empty() ? nullptr : order.c_str();
    const int code =
        dibs_announce(attachment_.session(), pool, &announced, 5 * DIBS_SECOND, &slot_);
    if (code < 0) {
        const std::string why = "cannot announce " + name + ": " + why_refused(code, options);
        const int exit_code = code == DIBS_EVECTOR ? kExitUsage : exit_code_of(code);
        if (for_good(code)) throw Hopeless(exit_code, why);
        throw Failure(exit_code, why);
    }
}

int Post::next(dibs_assignment* assignment) {
    dibs_dispatch(attachment_.session());
    return dibs_next_assignment(attachment_.session(), DIBS_NOWAIT, assignment);
}

bool Post::confirm(Round round, std::string_view answer) {
    return said(dibs_confirm(attachment_.session(),
                             round.slot,
                             round.number,
                             answer.data(),
                             answer.size(),
                             DIBS_NOWAIT));
}

bool Post::refuse(Round round, int64_t code, bool try_again) {
    return said(dibs_refuse(
        attachment_.session(), round.slot, round.number, code, try_again ? 1 : 0, DIBS_NOWAIT));
}

bool Post::done(Round round, std::string_view answer, bool then_ready) {
    return said(dibs_done(attachment_.session(),
                          round.slot,
                          round.number,
                          answer.data(),
                          answer.size(),
                          then_ready ? 1 : 0,
                          DIBS_NOWAIT));
}

bool Post::ready(Round round) {
    return said(dibs_ready(attachment_.session(), round.slot, round.number, DIBS_NOWAIT));
}

bool Post::withdraw() {
    return said(dibs_withdraw(attachment_.session(), slot_, DIBS_NOWAIT));
}

std::string Post::end() const {
    return dibs_strerror(dibs_end_code(attachment_.session()));
}

}  // namespace dibs::ctl::worker
