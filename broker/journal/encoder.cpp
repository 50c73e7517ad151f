// broker/journal/encoder.cpp -- writes the fields of each command as a table.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/encoder.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "broker/core/command_fields.hpp"
#include "broker/core/decision_sum.hpp"
#include "broker/journal/field_place.hpp"
#include "schemas/journal_generated.h"

namespace dibs {
namespace {

using core::Of;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::uoffset_t;
using journal::Line;

template <class Command>
consteval size_t fields_of() {
    size_t fields = 0;
    core::each_field(Of<Command>{}, [&](auto...) { ++fields; });
    return fields;
}

// Writes what a table only refers to first, each with its overload of part(); 0 = nothing to write.
class Packer {
  public:
    explicit Packer(FlatBufferBuilder& builder) : builder_(builder) {}

    template <class Command>
    uoffset_t table(const Command& command) {
        const Command defaults{};
        std::array<uoffset_t, fields_of<Command>()> parts{};
        size_t at = 0;
        core::each_field(Of<Command>{}, [&](const char*, auto member, auto... kind) {
            parts[at++] = part(command.*member, kind...);
        });
        const uoffset_t start = builder_.StartTable();
        at = 0;
        core::each_field(Of<Command>{}, [&](const char*, auto member, auto...) {
            const flatbuffers::voffset_t place = field_place(at);
            const uoffset_t part = parts[at++];
            if (part != 0) builder_.AddOffset(place, Offset<void>(part));
            if constexpr (kScalar<std::remove_cvref_t<decltype(command.*member)>>) {
                builder_.AddElement(place, raw(command.*member), raw(defaults.*member));
            }
        });
        return builder_.EndTable(start);
    }

  private:
    template <class Value, class... Kind>
    uoffset_t part(const Value& value, Kind... kind) {
        if constexpr (kScalar<Value>) {
            return 0;
        } else if constexpr (std::is_pointer_v<Value>) {
            return value == nullptr ? 0 : table(*value);
        } else {
            return part_of(value, kind...);
        }
    }
    // Empty text, too: a table may require it.
    uoffset_t part_of(std::string_view text) {
        return builder_.CreateString(text.data(), text.size()).o;
    }
    uoffset_t part_of(std::string_view text, core::Bytes) {
        return list(std::span{reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    }
    uoffset_t part_of(const core::Key& key) {
        return key == core::Key{} ? 0 : list(std::span{key});
    }
    template <class Member>
    uoffset_t part_of(std::span<const Member> members) {
        if constexpr (kScalar<Member>) {
            return list(members);
        } else {
            return each(members, [this](const Member& member) { return item(member); });
        }
    }
    uoffset_t part_of(std::span<const std::string_view> slots, core::SlotAttributes) {
        return each(slots, [this](std::string_view joined) { return attributes(joined); });
    }

    uoffset_t item(std::string_view text) { return part_of(text); }
    template <class Member>
    uoffset_t item(const Member& member) {
        return table(member);
    }
    // A table of the one list.
    uoffset_t attributes(std::string_view joined) {
        std::vector<std::string_view> texts;
        while (!joined.empty()) {
            const size_t end = std::min(joined.find('\0'), joined.size());
            texts.push_back(joined.substr(0, end));
            joined.remove_prefix(std::min(end + 1, joined.size()));
        }
        return journal::CreateSlotAttributes(builder_, part_of(std::span{std::as_const(texts)})).o;
    }

    template <class Number, size_t Size>
    uoffset_t list(std::span<const Number, Size> numbers) {
        return numbers.empty() ? 0 : builder_.CreateVector(numbers.data(), numbers.size()).o;
    }
    template <class Member, class Write>
    uoffset_t each(std::span<const Member> members, const Write& write) {
        if (members.empty()) return 0;
        std::vector<Offset<void>> offsets;
        for (const Member& member : members)
            offsets.emplace_back(write(member));
        return builder_.CreateVector(offsets).o;
    }

    FlatBufferBuilder& builder_;
};

}  // namespace

void Encoder::hear(const core::CommandRef& command) {
    open_turn();
    builder_.Clear();
    const uoffset_t table =
        std::visit([this](const auto* given) { return Packer(builder_).table(*given); }, command);
    const uoffset_t start = builder_.StartTable();
    builder_.AddOffset(field_place(command.index()), Offset<void>(table));
    line(Line::VT_GIVEN, builder_.EndTable(start));
}

void Encoder::open_turn() {
    if (std::exchange(turn_open_, true)) return;
    builder_.Clear();
    line(Line::VT_TURN_OPENS, journal::CreateTurnOpens(builder_, core_.now()).o);
}

void Encoder::hear_of_commit() {
    open_turn();
    turn_open_ = false;
    std::vector<uint32_t> sums;
    for (const core::Decision& decision : core_.decisions())
        sums.push_back(core::sum_of(core_, decision));
    builder_.Clear();
    const auto* decided = sums.empty() ? nullptr : &sums;
    const uint64_t turns = core_.counters().turns;
    line(Line::VT_TURN_CLOSED,
         journal::CreateTurnClosedDirect(builder_, turns, core_.cut(), decided).o);
}

void Encoder::line(flatbuffers::voffset_t field, uoffset_t table) {
    const uoffset_t start = builder_.StartTable();
    builder_.AddOffset(field, Offset<void>(table));
    builder_.Finish(Offset<Line>(builder_.EndTable(start)));
    const uint32_t size = builder_.GetSize();
    for (uint32_t shift = 0; shift < 32; shift += 8)
        lines_.push_back(static_cast<uint8_t>(size >> shift));
    lines_.insert(lines_.end(), builder_.GetBufferPointer(), builder_.GetBufferPointer() + size);
}

std::vector<uint8_t> Encoder::take() {
    return std::exchange(lines_, {});
}

}  // namespace dibs
