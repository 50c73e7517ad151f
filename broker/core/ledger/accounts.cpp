// broker/core/ledger/accounts.cpp -- configures accounts, charges them and removes unused ones.
//
// A balance is brought up to date when its account changes or is queried: with v ≤ cap, many turns
// and one step give the same result. With v above a cap that refills they do not, so such balances
// are stepped at the opening of each turn.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>

#include "broker/core/parts.hpp"

namespace dibs::core {

namespace AccountFlag = shm::AccountFlag;

namespace {

constexpr unsigned kAllLines = 0xfU;
constexpr unsigned kMoneyLines = 0x7U;

int64_t clamped(__int128 amount) {
    if (amount > kMoneyMax) return kMoneyMax;
    if (amount < -kMoneyMax) return -kMoneyMax;
    return static_cast<int64_t>(amount);
}

// floor(rate · to / 10⁶) − floor(rate · from / 10⁶): of the time between, and of what the first
// product leaves behind. Where that is no number of 64 bits, whole seconds apart.
__int128 earned(int64_t rate, uint64_t from_us, uint64_t to_us) {
    constexpr uint64_t kSecond = 1'000'000;
    const auto per_second = static_cast<uint64_t>(rate);
    uint64_t between = 0;
    if (!__builtin_mul_overflow(per_second, to_us - from_us, &between) && between >> 63U == 0) {
        const uint64_t odd = per_second % kSecond;
        if (odd != 0) between += odd * (from_us % kSecond) % kSecond;
        return static_cast<int64_t>(between / kSecond);
    }
    const __int128 whole =
        static_cast<__int128>(rate) * static_cast<int64_t>(to_us / kSecond - from_us / kSecond);
    const auto part = [&](uint64_t us) {
        return static_cast<int64_t>(per_second * (us % kSecond) / kSecond);
    };
    return whole + part(to_us) - part(from_us);
}

// Up to here 64 bits hold whatever an account may earn (10¹² a second) or pay (2³¹ slots).
constexpr uint64_t kShortUs = 1'000'000'000;

std::string said_of(std::string_view name) {
    return "account '" + std::string{name.substr(0, 80)} + "': ";
}

std::string refusal_of(const AccountConfig& config) {
    if (config.name.empty()) return "an account needs a name";
    const std::string who = said_of(config.name);
    if (std::string why = Ledger::account_name_refusal(config.name); !why.empty()) return why;
    if (config.rate.size() > shm::kClasses) return who + "more than 5 rates";
    if (config.balance.size() > shm::kClasses) return who + "more than 5 balances";
    for (const int64_t rate : config.rate) {
        if (rate < 0) return who + "a rate is negative";
        if (rate > kRateMax || cap_of(rate, config.charge_max_ns) > kMoneyMax) {
            return who + "a rate, or what it may save up, is too large";
        }
    }
    for (const int64_t balance : config.balance) {
        if (balance > kMoneyMax || balance < -kMoneyMax) return who + "a balance is too large";
    }
    if (config.fanout_max > 0xffff) return who + "fanout_max is at most 65535";
    if (config.label_limits.size() > shm::kLabelsMax) return who + "more than 32 label limits";
    for (const AccountConfig::Limit& limit : config.label_limits) {
        if (limit.key.empty() || limit.key.size() > shm::kNameMax ||
            limit.key.find('\0') != std::string_view::npos) {
            return who + "the key of a label limit is empty or longer than 63 bytes";
        }
    }
    return {};
}

// "key", a zero byte, four bytes of limit; one after the other.
std::string text_of(std::span<const AccountConfig::Limit> limits) {
    std::string text;
    for (const AccountConfig::Limit& limit : limits) {
        text += limit.key;
        text += '\0';
        char bytes[sizeof(limit.limit)];
        std::memcpy(bytes, &limit.limit, sizeof(bytes));
        text.append(bytes, sizeof(bytes));
    }
    return text;
}

std::vector<LabelLimit> limits_of(const std::string& text) {
    std::vector<LabelLimit> limits;
    for (size_t at = 0; at < text.size();) {
        const std::string key = text.c_str() + at;
        at += key.size() + 1;
        uint32_t limit = 0;
        std::memcpy(&limit, text.data() + at, sizeof(limit));
        at += sizeof(limit);
        limits.push_back({key + ':', limit});
    }
    return limits;
}

}  // namespace

AccountBook& Ledger::open_book() {
    if (!book()) {
        all().book = std::make_unique<AccountBook>(all().state, edit(), arena(), hash_seed());
    }
    return *book();
}

uint32_t Ledger::find_account(std::string_view name) const {
    if (!book()) return kNoRow;
    return book()->account_by_name.find(text_hash(name, hash_seed()), [&](uint32_t row) {
        return std::string_view{state.accounts[row].name, state.accounts[row].name_size} == name;
    });
}

void Ledger::index_account(uint32_t row) {
    const shm::AccountRow& account = state.accounts[row];
    assert(account.state != 0);
    const std::string_view name{account.name, account.name_size};
    book()->account_by_name.insert(text_hash(name, hash_seed()), row);
}

// Empty: an account may have it.
std::string Ledger::account_name_refusal(std::string_view name) {
    if (name.size() > shm::kNameMax) return said_of(name) + "its name is longer than 63 bytes";
    if (name.find('\0') != std::string_view::npos) return said_of(name) + "a zero byte in its name";
    return {};
}

// The lowest free place, or kNoRow.
uint32_t Ledger::make_account(std::string_view name) {
    uint32_t row = 0;
    while (row < state.accounts.size() && state.accounts[row].state != 0)
        ++row;
    if (row == state.accounts.size()) return kNoRow;
    assert(book()->account_waits[row] == 0 && book()->tenants_of_account[row].empty());
    shm::AccountRow& account = edit().row(state.accounts[row], kAllLines);
    put(account.state, 1);
    put(account.flags, 0);
    put(account.fanout_max, 0);
    put(account.charged_ns, turn().now_ns);
    put(account.charge_max_ns, 0);
    put(account.held, 0);
    put(account.used_us, 0);
    put(account.counted_since_ns, turn().now_ns);
    for (uint32_t p = 0; p < shm::kClasses; ++p) {
        put(account.balance[p], 0);
        put(account.rate[p], 0);
        put(account.running[p], 0);
    }
    put(account.label_limits, kNoRow);
    put(account.label_limits_size, 0);
    name.copy(account.name, sizeof(account.name));
    stored();
    put(account.name_size, name.size());
    index_account(row);
    book()->account_uses[row] = 0;
    book()->change_account(row);
    learn_account(row);
    return row;
}

// What is kept beside the row.
void Ledger::learn_account(uint32_t row) {
    const shm::AccountRow& account = state.accounts[row];
    assert(account.state != 0);
    for (uint32_t p = 0; p < shm::kClasses; ++p) {
        book()->caps[row][p] = static_cast<int64_t>(cap_of(account.rate[p], account.charge_max_ns));
    }
    std::string text(account.label_limits_size, '\0');
    if (!text.empty()) {
        arena().copy(account.label_limits,
                     account.label_limits_size,
                     reinterpret_cast<std::byte*>(text.data()));
    }
    book()->limits[row] = limits_of(text);
    learn_movements(row);
    watch_account(row);
}

// The classes whose balances time changes.
void Ledger::learn_movements(uint32_t row) {
    const shm::AccountRow& account = state.accounts[row];
    unsigned moving = 0;
    for (uint32_t p = 0; p < shm::kClasses; ++p)
        moving |= account.rate[p] != 0 || account.running[p] != 0 ? 1U << p : 0;
    book()->moving[row] = static_cast<uint8_t>(moving);
}

// Is it to be stepped turn by turn?
void Ledger::watch_account(uint32_t row) {
    const shm::AccountRow& account = state.accounts[row];
    book()->watch_tenants_of(row);
    bool above = false;
    for (uint32_t p = 0; p < shm::kClasses; ++p) {
        above = above || (account.rate[p] > 0 && account.running[p] > 0 &&
                          account.balance[p] > book()->caps[row][p]);
    }
    if (above == (book()->above_cap[row] != 0)) return;
    book()->above_cap[row] = above ? 1 : 0;
    if (above) {
        book()->above.push_back(row);
    } else {
        std::erase(book()->above, row);
    }
}

uint32_t Ledger::hold_account(std::string_view name, uint32_t otherwise) {
    uint32_t row = otherwise;
    if (!name.empty()) {
        open_book();
        row = find_account(name);
        if (row == kNoRow) row = make_account(name);
    }
    assert(row == kNoRow || state.accounts[row].state != 0);
    if (row != kNoRow) ++book()->account_uses[row];
    return row;
}

void Ledger::release_account(uint32_t row) {
    if (row == kNoRow) return;
    assert(book()->account_uses[row] != 0);
    --book()->account_uses[row];
    forget_unused_account(row);
}

void Ledger::forget_unused_account(uint32_t row) {
    const shm::AccountRow& known = state.accounts[row];
    if (book()->account_uses[row] != 0 || (known.flags & AccountFlag::kConfigured) != 0) return;
    assert(known.state != 0 && known.held == 0 && book()->account_waits[row] == 0);
    book()->forget_account(row);
    book()->change_account(row);
    book()->account_by_name.remove(text_hash({known.name, known.name_size}, hash_seed()), row);
    shm::AccountRow& account = edit().row(known, 1);
    put(account.state, 0);
    put(account.head.generation, account.head.generation + 1);
}

int64_t Ledger::balance_at(uint32_t row, uint32_t p) const {
    const shm::AccountRow& account = state.accounts[row];
    int64_t value = account.balance[p];
    const int64_t rate = account.rate[p];
    const uint32_t running = account.running[p];
    if (rate == 0 && running == 0) return value;  // most of them
    const uint64_t from = account.charged_ns / 1000;
    const uint64_t to = turn().now_ns / 1000;
    if (from == to || (account.flags & AccountFlag::kConfigured) == 0) return value;
    const uint64_t elapsed = to - from;
    if (running != 0) {
        value = elapsed < kShortUs
                    ? std::max(value - static_cast<int64_t>(running * elapsed), -kMoneyMax)
                    : clamped(value - static_cast<__int128>(running) * elapsed);
    }
    const int64_t cap = book()->caps[row][p];
    if (rate == 0 || value >= cap) return value;
    const __int128 sum = value + earned(rate, from, to);
    return static_cast<int64_t>(std::min<__int128>(sum, cap));
}

uint64_t Ledger::used_us(uint32_t row) const {
    const shm::AccountRow& account = state.accounts[row];
    return account.used_us + account.held * (turn().now_ns / 1000 - account.charged_ns / 1000);
}

shm::AccountRow& Ledger::settle(uint32_t row) {
    shm::AccountRow& account = edit().row(state.accounts[row], kMoneyLines);
    if (account.charged_ns == turn().now_ns) return account;
    if (account.held != 0) put(account.used_us, used_us(row));
    for (unsigned classes = book()->moving[row]; classes != 0; classes &= classes - 1) {
        const auto p = static_cast<uint32_t>(std::countr_zero(classes));
        put(account.balance[p], balance_at(row, p));
    }
    put(account.charged_ns, turn().now_ns);
    return account;
}

void Ledger::pay(uint32_t row, const Cost& amount, bool refund) {
    shm::AccountRow& account = settle(row);
    for (uint32_t p = 0; p < shm::kClasses; ++p) {
        const __int128 change = refund ? amount[p] : -static_cast<__int128>(amount[p]);
        put(account.balance[p], clamped(account.balance[p] + change));
    }
    watch_account(row);
}

// Slots that its leases begin or end to hold, and those of them that begin or end to pay.
void Ledger::count_run(uint32_t row, uint8_t at_class, int32_t units) {
    if (row == kNoRow) return;
    shm::AccountRow& account = settle(row);
    assert(units > 0 || account.held >= static_cast<uint32_t>(-units));
    put(account.held, account.held + static_cast<uint32_t>(units));
    book()->change_account(row);
    if (at_class >= shm::kClasses) return;
    book()->watch_tenants_of(row);
    count_at(row, &account, at_class, units);
}

// Slots that pay at another class from now on.
void Ledger::count_move(uint32_t row, uint8_t from, uint8_t to, int32_t units) {
    assert(from != to && units > 0);
    if (row == kNoRow) return;
    shm::AccountRow& account = settle(row);
    book()->watch_tenants_of(row);
    if (from < shm::kClasses) count_at(row, &account, from, -units);
    if (to < shm::kClasses) count_at(row, &account, to, units);
}

void Ledger::count_at(uint32_t row, shm::AccountRow* account, uint8_t at_class, int32_t units) {
    uint32_t& running = account->running[at_class];
    assert(units > 0 || running >= static_cast<uint32_t>(-units));
    const bool was_idle = running == 0;
    put(running, running + static_cast<uint32_t>(units));
    if (was_idle || running == 0) learn_movements(row);
    // Only this class has changed: what was not above its cap is not by itself.
    const bool was = book()->above_cap[row] != 0;
    if (was || account->balance[at_class] > book()->caps[row][at_class]) watch_account(row);
}

void Ledger::step_accounts() {
    if (turn().now_ns / 1000 == book()->stepped_us) return;
    book()->stepped_us = turn().now_ns / 1000;
    book()->row_scratch = book()->above;
    for (const uint32_t row : book()->row_scratch) {
        assert(book()->above_cap[row] != 0);
        settle(row);
        watch_account(row);
    }
}

uint8_t Ledger::best_class(uint32_t row) const {
    if (row == kNoRow) return kFreeClass;
    const shm::AccountRow& account = state.accounts[row];
    if ((account.flags & AccountFlag::kConfigured) == 0) return kFreeClass;
    const uint64_t elapsed = turn().now_ns / 1000 - account.charged_ns / 1000;
    for (uint8_t p = 0; p < shm::kClasses; ++p) {
        if (account.balance[p] <= 0 && account.rate[p] == 0) continue;
        // What it has earned since only adds to what is left.
        const bool has_some =
            elapsed < kShortUs &&
            account.balance[p] > static_cast<int64_t>(account.running[p] * elapsed);
        if (has_some || balance_at(row, p) > 0) return p;
    }
    return kFreeClass;
}

bool Ledger::set_account(const AccountConfig& config, std::string* why) {
    early_grants().settle_fresh();
    open_book();
    std::string wrong = refusal_of(config);
    uint32_t row = wrong.empty() ? find_account(config.name) : kNoRow;
    const std::string text = text_of(config.label_limits);
    if (wrong.empty() && !arena().has_room(text.size())) {
        wrong = "account '" + std::string{config.name} + "': the arena has no room for its limits";
    }
    if (wrong.empty() && row == kNoRow) {
        row = make_account(config.name);
        if (row == kNoRow) {
            wrong = "account '" + std::string{config.name} + "': all " +
                    std::to_string(state.accounts.size()) + " rows of accounts are in use";
        }
    }
    if (!wrong.empty()) {
        if (why != nullptr) *why = wrong;
        return false;
    }
    settle(row);
    shm::AccountRow& account = edit().row(state.accounts[row], kAllLines);
    const bool keep = config.keep_balance && (account.flags & AccountFlag::kConfigured) != 0;
    for (uint32_t p = 0; p < shm::kClasses; ++p) {
        put(account.rate[p], p < config.rate.size() ? config.rate[p] : 0);
        if (!keep) put(account.balance[p], p < config.balance.size() ? config.balance[p] : 0);
    }
    put(account.charge_max_ns, config.charge_max_ns);
    put(account.fanout_max, config.fanout_max);
    put(account.flags,
        AccountFlag::kConfigured |
            (config.free_tasks_disabled ? AccountFlag::kFreeTasksDisabled : 0) |
            (config.of_file ? AccountFlag::kOfFile : 0));
    const uint32_t chain =
        arena().store({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    assert(text.empty() || chain != kNoRow);
    arena().free(account.label_limits, account.label_limits_size);
    put(account.label_limits, chain);
    put(account.label_limits_size, text.size());
    book()->change_account(row);
    learn_account(row);
    crowds().recount_labels(row);
    book()->excuse_holdings(row);
    matcher().account_news();
    return true;
}

void Ledger::delete_account(std::string_view name) {
    const uint32_t row = find_account(name);
    if (row == kNoRow || (state.accounts[row].flags & AccountFlag::kConfigured) == 0) return;
    settle(row);
    shm::AccountRow& account = edit().row(state.accounts[row], kAllLines);
    put(account.flags, 0);
    put(account.fanout_max, 0);
    put(account.charge_max_ns, 0);
    for (uint32_t p = 0; p < shm::kClasses; ++p) {
        put(account.rate[p], 0);
        put(account.balance[p], 0);
    }
    arena().free(account.label_limits, account.label_limits_size);
    put(account.label_limits, kNoRow);
    put(account.label_limits_size, 0);
    book()->change_account(row);
    learn_account(row);
    crowds().recount_labels(row);
    matcher().account_news();
    forget_unused_account(row);
}

bool Ledger::reset_balance(std::string_view name,
                           std::span<const int64_t> balance,
                           std::string* why) {
    const AccountConfig asked{.name = name, .balance = balance};
    if (std::string wrong = refusal_of(asked); !wrong.empty()) {
        if (why != nullptr) *why = wrong;
        return false;
    }
    const uint32_t row = find_account(name);
    if (row == kNoRow || (state.accounts[row].flags & AccountFlag::kConfigured) == 0) return true;
    shm::AccountRow& account = settle(row);
    for (uint32_t p = 0; p < shm::kClasses; ++p)
        put(account.balance[p], p < balance.size() ? balance[p] : 0);
    watch_account(row);
    matcher().account_news();
    return true;
}

// Wakes pools in which a claim waits or an account has leases, including pools that only wait for a
// death.
void Matcher::wake_account_pools() {
    for (uint32_t pool = 0; pool < state.counters->pools; ++pool) {
        const bool has_work =
            state.pools[pool].waiting != 0 || !book()->tenants_of_pool[pool].empty();
        if (by_account(pool) && has_work) turn().dirty.add(pool);
    }
}

}  // namespace dibs::core
