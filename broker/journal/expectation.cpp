// broker/journal/expectation.cpp -- compares JSON with JSON.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/expectation.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "broker/journal/journal_error.hpp"
#include "broker/journal/json_text.hpp"

namespace dibs::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kDemand = R"({"demand":)";

void number_to_text(Json& value) {
    if (value.is_number_unsigned()) value = std::to_string(value.get<uint64_t>());
}

// In a pool's and a session's row, "slots" is a count and stays one.
void slot_numbers_to_text(Json& value) {
    if (!value.is_object()) return;
    for (auto& [key, member] : value.items()) {
        if (key == "slot") number_to_text(member);
        if ((key == "slots" || key == "ready") && member.is_array()) {
            for (Json& slot : member)
                number_to_text(slot);
        }
        slot_numbers_to_text(member);
    }
}

std::string compare(const Json& expected, const Json& actual, const std::string& path) {
    if (!expected.is_object() || !actual.is_object()) {
        if (expected == actual) return {};
        return path + ": expected " + expected.dump() + ", is " + actual.dump();
    }
    for (const auto& [key, member] : expected.items()) {
        const std::string place = path.empty() ? key : path + "." + key;
        const auto found = actual.find(key);
        const bool is_nothing = member == "" || member == false;
        if (found == actual.end() && is_nothing) continue;
        if (found == actual.end()) return place + ": expected " + member.dump() + ", is not there";
        std::string differs = compare(member, *found, place);
        if (!differs.empty()) return differs;
    }
    return {};
}

}  // namespace

std::string with_slot_numbers_as_text(std::string line) {
    if (line.find("\"expect") == std::string::npos) return line;
    Json json = Json::parse(line, nullptr, false);
    if (json.is_discarded()) return line;  // its error is the schema parser's to tell
    slot_numbers_to_text(json);
    return json.dump();
}

std::string difference(const std::string& expected, const std::string& actual) {
    Json is = Json::parse(actual);
    slot_numbers_to_text(is);
    return compare(Json::parse(expected), is, {});
}

void Expectations::expect_decision(const std::string& line) {
    const std::string expected = Json::parse(line).at("expect").dump();
    if (!expected.starts_with(kDemand)) {
        while (!decided_.empty() && decided_.front().starts_with(kDemand))
            decided_.pop_front();
    }
    if (decided_.empty()) {
        throw JournalError("expected " + expected + "\n  but nothing more was decided");
    }
    const std::string decision = decided_.front();
    const std::string differs = difference(expected, decision);
    if (!differs.empty()) {
        throw JournalError("expected " + expected + "\n  decided  " + decision + "\n  " + differs);
    }
    decided_.pop_front();
    ++held_;
}

void Expectations::expect_none(const std::string& kind) {
    const std::string begin = "{" + json_string(kind) + ":";
    const auto unwanted = std::find_if(decided_.begin(), decided_.end(), [&](const auto& decision) {
        return kind.empty() ? !decision.starts_with(kDemand) : decision.starts_with(begin);
    });
    if (unwanted != decided_.end()) {
        throw JournalError("expected nothing" + (kind.empty() ? "" : " of " + json_string(kind)) +
                           "\n  decided  " + *unwanted);
    }
    ++held_;
}

void Expectations::expect_row(const std::string& line,
                              const std::string& word,
                              const std::string& row) {
    const std::string expected = Json::parse(line).at(word).dump();
    const Json is = Json::parse(row);
    const std::string differs = difference(expected, is.begin().value().dump());
    if (!differs.empty()) {
        throw JournalError(word + " " + expected + "\n  is  " + row + "\n  " + differs);
    }
    ++held_;
}

void Expectations::expect_rest() {
    decided_.clear();
}

void Expectations::settle() {
    while (!decided_.empty() && decided_.front().starts_with(kDemand))
        decided_.pop_front();
    if (decided_.empty()) return;
    throw JournalError("before this line, decided and not expected:\n  " + decided_.front());
}

}  // namespace dibs::ctl
