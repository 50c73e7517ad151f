// tests/broker/journal/command_fields_test.cpp -- compares the fields of the core's commands with
// schemas/journal.fbs: names, order, types and defaults.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/command_fields.hpp"

#include <flatbuffers/idl.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "broker/journal/decision_text.hpp"
#include "broker/journal/field_place.hpp"
#include "schemas/journal_bfbs_generated.h"

namespace dibs::ctl {
namespace {

using core::Of;
using flatbuffers::FieldDef;
using flatbuffers::StructDef;

struct Anything {
    template <class Value>
    constexpr operator Value() const;  // NOLINT: never defined, only asked for
};

// How many values a struct can be made of: its members, listed or not.
template <class Struct, class... Members>
constexpr size_t members_of() {
    if constexpr (requires { Struct{Members{}..., Anything{}}; }) {
        return members_of<Struct, Members..., Anything>();
    } else {
        return sizeof...(Members);
    }
}

template <class Enum>
constexpr Enum kLast = {};
template <>
constexpr auto kLast<shm::PoolKind> = shm::PoolKind::kWorker;
template <>
constexpr auto kLast<shm::PoolOrder> = shm::PoolOrder::kAccount;
template <>
constexpr auto kLast<shm::WhenBusy> = shm::WhenBusy::kCold;
template <>
constexpr auto kLast<shm::ExpiryMode> = shm::ExpiryMode::kLazy;
template <>
constexpr auto kLast<shm::PreemptMode> = shm::PreemptMode::kForbidden;
template <>
constexpr auto kLast<core::WorkerWord::Kind> = core::WorkerWord::Kind::kUnprotect;
template <>
constexpr auto kLast<core::Steer::Kind> = core::Steer::Kind::kCancel;
template <>
constexpr auto kLast<core::Report::Kind> = core::Report::Kind::kAbsent;
template <>
constexpr auto kLast<core::Provisioned::Answer> = core::Provisioned::Answer::kFailed;
template <>
constexpr auto kLast<core::Provisioned::Scope> = core::Provisioned::Scope::kType;
template <>
constexpr auto kLast<core::QueueState> = core::QueueState::kCancelled;
template <>
constexpr auto kLast<core::QueueWord> = core::QueueWord::kForget;
template <>
constexpr auto kLast<core::WorkerReport::State> = core::WorkerReport::State::kAbsent;
template <>
constexpr auto kLast<shm::Behaviour> = shm::Behaviour::kDrain;
template <>
constexpr auto kLast<shm::GangStyle> = shm::GangStyle::kHard;
template <>
constexpr auto kLast<core::ApplicationEvent::Kind> = core::ApplicationEvent::Kind::kCompleteTask;

template <class Enum>
bool is_value(int64_t value) {
    return value >= 0 && value <= static_cast<int64_t>(kLast<Enum>);
}
template <>
bool is_value<shm::Reason>(int64_t value) {
    return reason_word(static_cast<shm::Reason>(value)) != "unknown";
}

template <class Scalar>
std::string type_of() {
    if constexpr (core::AnyId<Scalar>) return type_of<decltype(Scalar::number)>();
    if constexpr (std::is_same_v<Scalar, bool>) return "bool";
    if constexpr (std::is_enum_v<Scalar>) return "enum";
    const std::string sign = std::is_signed_v<Scalar> ? "" : "u";
    return sign + (sizeof(Scalar) == 1   ? "byte"
                   : sizeof(Scalar) == 2 ? "short"
                   : sizeof(Scalar) == 4 ? "int"
                                         : "long");
}

std::string type_of(const flatbuffers::Type& type) {
    if (type.base_type == flatbuffers::BASE_TYPE_VECTOR)
        return "[" + type_of(type.VectorType()) + "]";
    if (type.base_type == flatbuffers::BASE_TYPE_STRUCT) return "table";
    return type.enum_def != nullptr ? "enum" : flatbuffers::kTypeNames[type.base_type];
}

class CommandFields : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(parser_.Deserialize(journal::LineBinarySchema::data(),
                                        journal::LineBinarySchema::size()));
    }
    [[nodiscard]] const StructDef& given() const {
        return *parser_.root_struct_def_->fields.Lookup("given")->value.type.struct_def;
    }

    // The table's fields are the struct's; what scenarios alone have, stands behind them.
    template <class Struct>
    void compare(const StructDef& table) {
        const std::vector<FieldDef*>& fields = table.fields.vec;
        size_t at = 0;
        const Struct defaults{};
        core::each_field(Of<Struct>{}, [&](const char* name, auto member, auto... kind) {
            const std::string where = table.name + "." + name;
            ASSERT_LT(at, fields.size()) << where;
            const FieldDef& field = *fields[at];
            EXPECT_EQ(field.name, name) << where;
            EXPECT_EQ(field.value.offset, field_place(at++)) << where;
            compare_field(where, field, defaults.*member, kind...);
        });
        EXPECT_EQ(members_of<Struct>(), at) << table.name << ": a member is not listed";
        for (; at < fields.size(); ++at) {
            const bool later = fields[at]->attributes.Lookup("later") != nullptr;
            EXPECT_TRUE(later || fields[at]->name == "description")
                << table.name << '.' << fields[at]->name << " is not listed";
        }
    }

    template <class Value>
    void compare_field(const std::string& where, const FieldDef& field, const Value& value) {
        const std::string type = type_of(field.value.type);
        if constexpr (kScalar<Value>) {
            EXPECT_EQ(type, type_of<Value>()) << where;
            compare_default(where, field, raw(value));
            if constexpr (std::is_enum_v<Value>) compare_values<Value>(where, field.value.type);
        } else if constexpr (std::is_same_v<Value, core::Key>) {
            EXPECT_EQ(type, "[ubyte]") << where;
        } else if constexpr (std::is_same_v<Value, std::string_view>) {
            EXPECT_EQ(type, "string") << where;
        } else if constexpr (std::is_pointer_v<Value>) {
            ASSERT_EQ(type, "table") << where;
            compare<std::remove_cvref_t<decltype(*value)>>(*field.value.type.struct_def);
        } else {
            compare_list<typename Value::value_type>(where, field);
        }
    }
    void compare_field(const std::string& where,
                       const FieldDef& field,
                       std::string_view,
                       core::Bytes) {
        EXPECT_EQ(type_of(field.value.type), "[ubyte]") << where;
    }
    void compare_field(const std::string& where,
                       const FieldDef& field,
                       std::span<const std::string_view>,
                       core::SlotAttributes) {
        ASSERT_EQ(type_of(field.value.type), "[table]") << where;
        EXPECT_EQ(field.value.type.struct_def->name, "SlotAttributes") << where;
    }

    // The schema as bytes has none above the largest signed number: such a field is absent instead.
    template <class Number>
    static void compare_default(const std::string& where, const FieldDef& field, Number number) {
        const bool fits = std::in_range<int64_t>(number);
        // States and decisions have it, too, and tell a 0.
        const bool is_told = where == "Amount.amount";
        EXPECT_EQ(field.IsScalarOptional(), !fits || is_told) << where;
        EXPECT_EQ(field.value.constant, std::to_string(fits ? number : Number{})) << where;
    }

    template <class Member>
    void compare_list(const std::string& where, const FieldDef& field) {
        const std::string type = type_of(field.value.type);
        if constexpr (kScalar<Member>) {
            EXPECT_EQ(type, "[" + type_of<Member>() + "]") << where;
        } else if constexpr (std::is_same_v<Member, std::string_view>) {
            EXPECT_EQ(type, "[string]") << where;
        } else {
            ASSERT_EQ(type, "[table]") << where;
            compare<Member>(*field.value.type.struct_def);
        }
    }

    // The reader refuses what the schema does not have, and the core knows no other value.
    template <class Enum>
    static void compare_values(const std::string& where, const flatbuffers::Type& type) {
        EXPECT_EQ(flatbuffers::SizeOf(type.base_type), sizeof(Enum)) << where;
        for (int64_t value = -128; value < 128; ++value) {
            const bool there = type.enum_def->ReverseLookup(value) != nullptr;
            EXPECT_EQ(there, is_value<Enum>(value)) << where << " = " << value;
        }
    }

    template <class... Command>
    void compare_all(const std::variant<const Command*...>*) {
        const std::vector<FieldDef*>& tables = given().fields.vec;
        ASSERT_EQ(tables.size(), sizeof...(Command));
        size_t at = 0;
        (compare<Command>(*tables[at++]->value.type.struct_def), ...);
    }

    flatbuffers::Parser parser_;
};

TEST_F(CommandFields, AreTheFieldsOfTheirTables) {
    const core::CommandRef* const commands = nullptr;
    compare_all(commands);
}

}  // namespace
}  // namespace dibs::ctl
