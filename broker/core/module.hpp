// broker/core/module.hpp -- shows a module of the scheduler the rows and the other modules.
//
// A module has the functions and the derived data of one noun. It reads rows in `state`, writes
// them through edit(), and names another module where it calls it: slots().make_idle(row). All
// modules are bases of Core::Parts, so that this costs nothing: with references in their place a
// claim took 4 to 6 % more instructions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "broker/core/core.hpp"
#include "broker/core/store/arena.hpp"
#include "broker/core/store/edit.hpp"
#include "broker/core/store/row_states.hpp"
#include "broker/core/store/state.hpp"

namespace dibs::core {

struct AccountBook;
struct Claims;
struct Crowds;
struct Dispatch;
struct EarlyGrants;
struct Explainer;
struct FreeRows;
struct Gangs;
struct Leases;
struct Ledger;
struct Matcher;
struct Parking;
struct Pools;
struct Preemption;
struct Provisioning;
struct Reports;
struct Sessions;
struct SeveralPools;
struct Slots;
struct Turn;
struct Vectors;
struct Workers;

// What all modules write; Core::Parts has it first.
struct Store {
    Store(std::span<std::byte> bytes, uint64_t seed);

    State state;
    Edit edit;
    Arena arena;
    const uint64_t hash_seed;           // of the indices over what clients choose
    std::unique_ptr<AccountBook> book;  // there if a pool is ordered by account, or has been
};

template <class It>
struct Module {
    explicit Module(const State& rows) : state(rows) {}

    const State state;  // where the rows are

    Core::Parts& all();
    [[nodiscard]] const Core::Parts& all() const;
    Edit& edit() { return other<Store>().edit; }
    [[nodiscard]] const Edit& edit() const { return other<Store>().edit; }
    Arena& arena() { return other<Store>().arena; }
    [[nodiscard]] const Arena& arena() const { return other<Store>().arena; }
    [[nodiscard]] AccountBook* book() const { return other<Store>().book.get(); }
    [[nodiscard]] uint64_t hash_seed() const { return other<Store>().hash_seed; }

    FreeRows& free_rows() { return other<FreeRows>(); }
    [[nodiscard]] const FreeRows& free_rows() const { return other<FreeRows>(); }
    Turn& turn() { return other<Turn>(); }
    [[nodiscard]] const Turn& turn() const { return other<Turn>(); }
    Sessions& sessions() { return other<Sessions>(); }
    [[nodiscard]] const Sessions& sessions() const { return other<Sessions>(); }
    Pools& pools() { return other<Pools>(); }
    [[nodiscard]] const Pools& pools() const { return other<Pools>(); }
    SeveralPools& several_pools() { return other<SeveralPools>(); }
    [[nodiscard]] const SeveralPools& several_pools() const { return other<SeveralPools>(); }
    Slots& slots() { return other<Slots>(); }
    [[nodiscard]] const Slots& slots() const { return other<Slots>(); }
    Workers& workers() { return other<Workers>(); }
    [[nodiscard]] const Workers& workers() const { return other<Workers>(); }
    Claims& claims() { return other<Claims>(); }
    [[nodiscard]] const Claims& claims() const { return other<Claims>(); }
    EarlyGrants& early_grants() { return other<EarlyGrants>(); }
    [[nodiscard]] const EarlyGrants& early_grants() const { return other<EarlyGrants>(); }
    Parking& parking() { return other<Parking>(); }
    [[nodiscard]] const Parking& parking() const { return other<Parking>(); }
    Leases& leases() { return other<Leases>(); }
    [[nodiscard]] const Leases& leases() const { return other<Leases>(); }
    Ledger& ledger() { return other<Ledger>(); }
    [[nodiscard]] const Ledger& ledger() const { return other<Ledger>(); }
    Preemption& preemption() { return other<Preemption>(); }
    [[nodiscard]] const Preemption& preemption() const { return other<Preemption>(); }
    Provisioning& provisioning() { return other<Provisioning>(); }
    [[nodiscard]] const Provisioning& provisioning() const { return other<Provisioning>(); }
    Crowds& crowds() { return other<Crowds>(); }
    [[nodiscard]] const Crowds& crowds() const { return other<Crowds>(); }
    Matcher& matcher() { return other<Matcher>(); }
    [[nodiscard]] const Matcher& matcher() const { return other<Matcher>(); }
    Vectors& vectors() { return other<Vectors>(); }
    [[nodiscard]] const Vectors& vectors() const { return other<Vectors>(); }
    Dispatch& dispatch() { return other<Dispatch>(); }
    [[nodiscard]] const Dispatch& dispatch() const { return other<Dispatch>(); }
    Gangs& gangs() { return other<Gangs>(); }
    [[nodiscard]] const Gangs& gangs() const { return other<Gangs>(); }
    Explainer& explainer() { return other<Explainer>(); }
    [[nodiscard]] const Explainer& explainer() const { return other<Explainer>(); }
    Reports& reports() { return other<Reports>(); }
    [[nodiscard]] const Reports& reports() const { return other<Reports>(); }

  private:
    template <class Other>
    Other& other();
    template <class Other>
    [[nodiscard]] const Other& other() const;
};

}  // namespace dibs::core
