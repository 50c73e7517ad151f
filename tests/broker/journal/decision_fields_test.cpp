// tests/broker/journal/decision_fields_test.cpp -- compares the fields of the core's decisions with
// schemas/journal.fbs.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/decision_fields.hpp"

#include <flatbuffers/idl.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "broker/journal/decision_text.hpp"
#include "schemas/journal_bfbs_generated.h"

namespace dibs::ctl {
namespace {

using core::Decision;
using core::DecisionKind;
using core::Form;

// What a form writes beside or instead of its field.
const std::set<std::string> kOfForms = {"Result.claim",
                                        "Result.slot",
                                        "Result.worker",
                                        "Result.pool",
                                        "Result.type",
                                        "Result.interval_ns",
                                        "Result.application",
                                        "Result.value",
                                        "Answered.answer_hex",
                                        "Ended.code",
                                        "Ended.first",
                                        "Ended.resource"};

std::string kind_word(const Decision& decision) {
    const std::string text = decision_text(decision, {}, {});
    return text.substr(2, text.find('"', 2) - 2);
}

TEST(DecisionFields, AreThoseOfTheirTables) {
    flatbuffers::Parser parser;
    ASSERT_TRUE(
        parser.Deserialize(journal::LineBinarySchema::data(), journal::LineBinarySchema::size()));
    const auto& words = parser.LookupStruct("dibs.journal.Decision")->fields;
    std::map<const flatbuffers::StructDef*, std::set<std::string>> told;
    for (auto kind = DecisionKind::kResult; kind <= DecisionKind::kPlaceholder;
         kind = static_cast<DecisionKind>(static_cast<uint8_t>(kind) + 1)) {
        for (const bool is_void : {false, true}) {
            const std::string word = kind_word({.kind = kind, .is_void = is_void});
            const flatbuffers::FieldDef* field = words.Lookup(word);
            ASSERT_NE(field, nullptr) << word;
            core::each_field(kind, [&](const std::string& name, auto, Form form) {
                if (form == Form::kUntold) return;
                if (form == Form::kVoid && !is_void) return;
                if (form == Form::kCost && is_void) return;
                const flatbuffers::StructDef* table = field->value.type.struct_def;
                EXPECT_NE(table->fields.Lookup(name), nullptr) << word << '.' << name;
                told[table].insert(name);
            });
        }
    }
    for (const auto& [table, names] : told) {
        for (const flatbuffers::FieldDef* field : table->fields.vec) {
            const bool is_later = field->attributes.Lookup("later") != nullptr;
            const std::string place = table->name + '.' + field->name;
            EXPECT_TRUE(is_later || names.contains(field->name) || kOfForms.contains(place))
                << place << " is not listed";
        }
    }
}

}  // namespace
}  // namespace dibs::ctl
