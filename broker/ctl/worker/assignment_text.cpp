// broker/ctl/worker/assignment_text.cpp -- writes assignments as JSON.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/worker/assignment_text.hpp"

#include <algorithm>
#include <cstdint>

#include "broker/config/quantity.hpp"
#include "broker/ctl/output/sheet.hpp"
#include "broker/journal/json_text.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl::worker {

namespace {

void begin(JsonText* text,
           const char* kind,
           const std::string& pool,
           uint32_t slot,
           uint64_t round,
           uint64_t claim) {
    text->open_object();
    text->text("kind", kind);
    text->text("pool", pool);
    text->number("slot", slot);
    text->number("round", round);
    text->number("claim", claim);
}

// A foreign string that is not UTF-8 would make the line no JSON.
std::string readable(const char* bytes) {
    std::string text = bytes;
    if (is_utf8(text)) return text;
    for (char& byte : text) {
        if (static_cast<unsigned char>(byte) >= 0x80) byte = '?';
    }
    return text;
}

// What a claim prefers, and what of it the slot lacks; nothing where it prefers nothing.
void write_preferred(JsonText* text, const dibs_assignment& assignment) {
    if (assignment.prefer_count == 0) return;
    for (const bool lacking : {false, true}) {
        text->open_list(lacking ? "provision" : "prefer");
        for (size_t i = 0; i < assignment.prefer_count; ++i) {
            if (lacking && (assignment.provision >> i & 1U) == 0) continue;
            text->text({}, readable(assignment.prefer[i]));
        }
        text->close_list();
    }
}

// Of a part of a slot: what it has.
void write_resources(JsonText* text, const dibs_assignment& assignment) {
    if (assignment.resource_count == 0) return;
    text->open_object("resources");
    for (size_t i = 0; i < assignment.resource_count; ++i) {
        const std::string_view amount = assignment.resources[i];
        const size_t equals = amount.find('=');
        text->number(amount.substr(0, equals), parse_size(amount.substr(equals + 1)).value_or(0));
    }
    text->close_object();
}

}  // namespace

std::string shown_time(int64_t ns) {
    return duration_text(static_cast<uint64_t>(std::max<int64_t>(ns, 0)));
}

bool is_utf8(std::string_view bytes) {
    while (!bytes.empty()) {
        const size_t size = utf8_size(bytes);
        if (size == 0) return false;
        bytes.remove_prefix(size);
    }
    return true;
}

std::string base64(std::string_view bytes) {
    static constexpr char kDigits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (size_t i = 0; i < bytes.size(); i += 3) {
        uint32_t three = 0;
        for (size_t k = 0; k < 3; ++k) {
            const auto byte = i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U;
            three = three << 8 | byte;
        }
        for (size_t k = 0; k < 4; ++k) {
            const bool there = i + k <= bytes.size();
            text += there ? kDigits[three >> (18 - 6 * k) & 63] : '=';
        }
    }
    return text;
}

std::string assign_line(const std::string& pool, const dibs_assignment& assignment) {
    JsonText text;
    begin(&text, "assign", pool, assignment.number, assignment.round, assignment.claim);
    text.open_object("options");
    for (size_t i = 0; i < assignment.option_count; ++i)
        text.text(readable(assignment.options[i].key), readable(assignment.options[i].value));
    text.close_object();
    text.open_list("labels");
    for (size_t i = 0; i < assignment.label_count; ++i)
        text.text({}, readable(assignment.labels[i]));
    text.close_list();
    write_preferred(&text, assignment);
    write_resources(&text, assignment);
    const std::string_view body(static_cast<const char*>(assignment.body), assignment.body_size);
    if (is_utf8(body)) {
        text.text("body", body);
    } else {
        text.text("body_base64", base64(body));
    }
    text.close_object();
    return text.line() + "\n";
}

std::string release_line(const std::string& pool, uint32_t slot, uint64_t round, uint64_t claim) {
    JsonText text;
    begin(&text, "release", pool, slot, round, claim);
    text.close_object();
    return text.line() + "\n";
}

}  // namespace dibs::ctl::worker
