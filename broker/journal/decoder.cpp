// broker/journal/decoder.cpp -- reads the fields of each command from its table and applies it.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/decoder.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "broker/core/command_fields.hpp"
#include "broker/journal/decision_text.hpp"
#include "broker/journal/field_place.hpp"
#include "broker/journal/journal_error.hpp"
#include "broker/journal/journal_texts.hpp"
#include "broker/journal/json_text.hpp"
#include "shm/pool_name.hpp"

namespace dibs::ctl {
namespace {

using core::Core;
using core::Of;
using flatbuffers::Offset;
using flatbuffers::Table;
using flatbuffers::Vector;
using flatbuffers::voffset_t;

// Reads commands, and keeps what their spans point to.
class Unpacker {
  public:
    template <class Command>
    Command command(const Table& table) {
        Command command;
        size_t at = 0;
        core::each_field(Of<Command>{}, [&](const char* name, auto member, auto... kind) {
            field_ = name;
            take(table, field_place(at++), command.*member, kind...);
        });
        return command;
    }

  private:
    template <class Value>
    void take(const Table& table, voffset_t place, Value& value) {
        if constexpr (kScalar<Value>) {
            value = static_cast<Value>(table.GetField(place, raw(value)));
        } else if (const auto* there = table.GetPointer<const uint8_t*>(place); there != nullptr) {
            read(there, value);
        }
    }
    void take(const Table& table, voffset_t place, std::string_view& text, core::Bytes) {
        std::span<const uint8_t> bytes;
        take(table, place, bytes);
        text = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    void take(const Table& table,
              voffset_t place,
              std::span<const std::string_view>& slots,
              core::SlotAttributes) {
        const auto* lists = table.GetPointer<const Vector<Offset<journal::SlotAttributes>>*>(place);
        if (lists == nullptr) return;
        std::vector<std::string_view> joined;
        for (const journal::SlotAttributes* list : *lists)
            joined.push_back(*keep(joined_attributes(list->attributes())));
        slots = *keep(std::move(joined));
    }

    static void read(const void* there, std::string_view& text) {
        text = static_cast<const flatbuffers::String*>(there)->string_view();
    }
    void read(const void* there, core::Key& key) {
        const auto& bytes = *static_cast<const Vector<uint8_t>*>(there);
        if (bytes.size() > key.size()) {
            throw JournalError(json_string(field_) + " is longer than 16 bytes");
        }
        std::copy(bytes.begin(), bytes.end(), key.begin());
    }
    template <class Command>
    void read(const void* there, const Command*& part) {
        part = keep(command<Command>(*static_cast<const Table*>(there)));
    }
    void read(const void* there, std::span<const std::string_view>& texts) {
        texts = *keep(views(static_cast<const Strings*>(there)));
    }
    template <class Member>
    void read(const void* there, std::span<const Member>& members) {
        if constexpr (kScalar<Member>) {
            const auto& numbers = *static_cast<const Vector<Member>*>(there);
            members = {numbers.data(), numbers.size()};
        } else {
            std::vector<Member> read;
            for (const Table* table : *static_cast<const Vector<Offset<Table>>*>(there))
                read.push_back(command<Member>(*table));
            members = *keep(std::move(read));
        }
    }

    template <class Value>
    const Value* keep(Value value) {
        const auto kept = std::make_shared<const Value>(std::move(value));
        kept_.push_back(kept);
        return kept.get();
    }

    const char* field_ = "";
    std::vector<std::shared_ptr<const void>> kept_;
};

void require_open(const Core& core, core::SessionId session) {
    if (session < core.sessions_max() && core.session(session).state == shm::SessionState::kOpen)
        return;
    throw JournalError("there is no open session in row " + std::to_string(session));
}

template <class Command>
void apply(Core& core, const Command& command) {
    if constexpr (requires { command.session; }) require_open(core, command.session);
    core.apply(command);
}

void apply(Core& core, const core::AddApplication& added) {
    if (!added.session.is_none()) require_open(core, added.session);
    (void)core.apply(added);
}

void apply(Core& core, const core::ApplicationEvent& event) {
    if (!event.session.is_none()) require_open(core, event.session);
    (void)core.apply(event);
}

void apply(Core& core, const core::PoolConfig& pool) {
    if (!shm::is_pool_name(pool.name.data(), pool.name.size())) {
        throw JournalError(json_string(std::string(pool.name)) + ": " + shm::kPoolNameRule);
    }
    std::string why;
    if (core.set_pool(pool, &why) == shm::kNoRow) throw JournalError(why);
}

void apply(Core& core, const core::DeletePool& command) {
    if (command.pool >= core.pools() ||
        core.delete_pool(command.pool, command.when_unused) != shm::Reason::kOk) {
        throw JournalError("the pool in row " + std::to_string(command.pool) + " cannot go");
    }
}

void apply(Core& core, const core::AccountConfig& account) {
    std::string why;
    if (!core.set_account(account, &why)) throw JournalError(why);
}

void apply(Core& core, const core::TypeConfig& type) {
    std::string why;
    if (!core.set_type(type, &why)) throw JournalError(why);
}

void apply(Core& core, const core::DeleteType& command) {
    const shm::Reason reason = core.apply(command);
    const bool goes = reason == shm::Reason::kState;  // with its last worker
    if (goes || reason == shm::Reason::kOk) return;
    throw JournalError("type " + json_string(std::string(command.name)) + ": " +
                       std::string(reason_word(reason)));
}

void apply(Core& core, const core::DeleteAccount& command) {
    core.delete_account(command.account);
}

void apply(Core& core, const core::ResetBalance& reset) {
    std::string why;
    if (!core.reset_balance(reset.account, reset.balance, &why)) throw JournalError(why);
}

void apply(Core& core, const core::SessionOpen& open) {
    std::string why;
    if (core.open_session(open, &why) == shm::kNoRow) throw JournalError(why);
}

void apply(Core& core, const core::SessionDeath& death) {
    core.session_died(death.session);
}

// A successor may say it once more.
void apply(Core& core, const core::HolderDied& death) {
    core.session_died(death.session, true);
}

// Here, too, it is published before its turn, without a client.
void apply(Core& core, const core::PledgedClaim& pledged) {
    if (pledged.claim == nullptr) throw JournalError("a grant was told of no claim");
    const core::Claim& claim = *pledged.claim;
    require_open(core, claim.session);
    Core::Foreseen seen{};
    if (!core.foresee(claim, &seen)) {
        throw JournalError("a grant that was told before its turn cannot be foreseen");
    }
    shm::Completion told;
    told.sequence = core.session(claim.session).completion_tail + 1;
    told.user_data = claim.user_data;
    shm::set_grant(
        told, 1, claim.tag, seen.reason, claim.room * static_cast<uint32_t>(shm::kLineSize));
    told.id = seen.lease;
    told.fence = seen.fence;
    told.value = seen.interval_ns;
    told.claim = seen.claim;
    core.pledge(claim, told);
    core.apply(claim);
}

void apply(Core& core, const core::Steer& steer) {
    core::TimeNs unused = 0;
    (void)core.apply(steer, &unused);
}

template <class Command, class Given>
void give_as(Core& core, const Given& given) {
    Unpacker unpacker;
    apply(core, unpacker.command<Command>(reinterpret_cast<const Table&>(given)));
}

// The one command that is there.
template <class... Command>
void give_one(Core& core, const Table& given, const std::variant<const Command*...>*) {
    size_t at = 0;
    const auto give_if_there = [&](auto of) {
        const auto* table = given.GetPointer<const Table*>(field_place(at++));
        if (table != nullptr) give_as<typename decltype(of)::Type>(core, *table);
    };
    (give_if_there(Of<Command>{}), ...);
}

}  // namespace

void give(Core& core, const journal::Given& given) {
    const core::CommandRef* const commands = nullptr;
    give_one(core, reinterpret_cast<const Table&>(given), commands);
}
void give(Core& core, const journal::Pool& pool) {
    give_as<core::PoolConfig>(core, pool);
}
void give(Core& core, const journal::Account& account) {
    give_as<core::AccountConfig>(core, account);
}
void give(Core& core, const journal::AccountName& deleted) {
    give_as<core::DeleteAccount>(core, deleted);
}
void give(Core& core, const journal::Type& type) {
    give_as<core::TypeConfig>(core, type);
}
void give(Core& core, const journal::DeletedType& deleted) {
    give_as<core::DeleteType>(core, deleted);
}
void give(Core& core, const journal::Balance& balance) {
    give_as<core::ResetBalance>(core, balance);
}

}  // namespace dibs::ctl
