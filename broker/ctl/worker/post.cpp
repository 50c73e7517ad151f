// broker/ctl/worker/post.cpp -- announces a slot and sends words about it without waiting.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/worker/post.hpp"

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

Post::Post(const Options& options, const std::string& name, uint32_t index, pid_t process)
    : attachment_(options.socket, small_session()) {
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
    dibs_announce_options announced = {};
    announced.size = sizeof announced;
    announced.name = name.c_str();
    announced.labels = labels.data();
    announced.label_count = labels.size();
    announced.attributes = attributes.data();
    announced.attribute_count = attributes.size();
    announced.worker_tag = index;
    announced.ready = 1;
    const int code =
        dibs_announce(attachment_.session(), pool, &announced, 5 * DIBS_SECOND, &slot_);
    if (code < 0) {
        const std::string why =
            "cannot announce " + name + ": " +
            (code == DIBS_ENOTALLOWED
                 ? against_policy("offer slots of pool \"" + options.pool.name + "\"", "offers")
             : code == DIBS_ELIMIT
                 ? "user " + user_name(geteuid()) +
                       " has as many slots, label sets or bytes of attributes as it may: by its "
                       "[[policy]] (slots, label_sets, arena) or by its share of a table that is "
                       "nearly full (limits), in dibsd's configuration"
                 : dibs_strerror(code));
        if (for_good(code)) throw Hopeless(exit_code_of(code), why);
        throw Failure(exit_code_of(code), why);
    }
}

int Post::next(dibs_assignment* assignment) {
    dibs_dispatch(attachment_.session());
    return dibs_next_assignment(attachment_.session(), DIBS_NOWAIT, assignment);
}

bool Post::confirm(uint64_t round, std::string_view answer) {
    return said(dibs_confirm(
        attachment_.session(), slot_, round, answer.data(), answer.size(), DIBS_NOWAIT));
}

bool Post::refuse(uint64_t round, int64_t code, bool try_again) {
    return said(
        dibs_refuse(attachment_.session(), slot_, round, code, try_again ? 1 : 0, DIBS_NOWAIT));
}

bool Post::done(uint64_t round, std::string_view answer, bool then_ready) {
    return said(dibs_done(attachment_.session(),
                          slot_,
                          round,
                          answer.data(),
                          answer.size(),
                          then_ready ? 1 : 0,
                          DIBS_NOWAIT));
}

bool Post::ready(uint64_t round) {
    return said(dibs_ready(attachment_.session(), slot_, round, DIBS_NOWAIT));
}

bool Post::withdraw() {
    return said(dibs_withdraw(attachment_.session(), slot_, DIBS_NOWAIT));
}

std::string Post::end() const {
    return dibs_strerror(dibs_end_code(attachment_.session()));
}

}  // namespace dibs::ctl::worker
