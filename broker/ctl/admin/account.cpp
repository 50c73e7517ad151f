// broker/ctl/admin/account.cpp -- `dibs account`: shows, makes, changes and deletes accounts.
// Accounts pay in pools ordered by account; the list shows what each was configured to get and what
// it got, and the changes apply while the broker serves.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "broker/config/account_settings.hpp"
#include "broker/config/quantity.hpp"
#include "broker/ctl/admin/account_sheet.hpp"
#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/admin/name.hpp"
#include "broker/ctl/attachment.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/labels.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/spelling.hpp"

namespace dibs::ctl {

namespace {

const std::set<std::string_view> kWords = {"ls", "show", "set", "reset", "delete"};
constexpr NumberRange kFanouts = {0, 65535};

struct Wanted {
    std::string word;
    std::vector<std::string> names;
    std::optional<std::string> rate;
    std::optional<std::string> balance;
    int64_t charge_max_ns = -1;
    std::optional<uint64_t> fanout_max;
    std::vector<std::string> label_limits;
    bool free_tasks = false;
    bool no_free_tasks = false;

    [[nodiscard]] bool changes() const {
        return rate || charge_max_ns >= 0 || fanout_max || !label_limits.empty() || free_tasks ||
               no_free_tasks;
    }
};

void check_word(const std::string& word) {
    if (kWords.contains(word)) return;
    std::string text = "there is no \"" + word + "\" of an account";
    if (const auto near = nearest_word(word, kWords)) {
        text += "; did you mean " + std::string(*near) + "? There are ";
    } else {
        text += "; there are ";
    }
    throw Failure(kExitUsage, text + "ls, show, set, reset and delete");
}

void check_usage(const Wanted& wanted) {
    check_word(wanted.word);
    const bool lists = wanted.word == "ls";
    if (lists && !wanted.names.empty()) {  // where an option stands before it
        throw Failure(kExitUsage, "ls lists all accounts; show NAME shows one");
    }
    if (!lists && wanted.names.size() != 1) {
        throw Failure(kExitUsage, wanted.word + " needs the name of one account");
    }
    if (!lists) check_named(wanted.names.front());
    if (!lists) check_name("NAME", wanted.names.front());
    if (wanted.word != "set" && wanted.changes()) {
        throw Failure(kExitUsage, wanted.word + " changes no configuration; set does");
    }
    if (wanted.word != "set" && wanted.word != "reset" && wanted.balance) {
        throw Failure(kExitUsage, "--balance is for set and reset");
    }
    if (wanted.free_tasks && wanted.no_free_tasks) {
        throw Failure(kExitUsage, "--free-tasks and --no-free-tasks are opposites");
    }
}

// "3,0.5": P0 first.
std::vector<int64_t> classes(const std::string& option,
                             const std::string& text,
                             int64_t least,
                             int64_t most) {
    std::vector<int64_t> micros;
    for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find(',', at), text.size());
        const std::string word = text.substr(at, end - at);
        const auto amount = parse_micros(word);
        if (!amount) {
            throw Failure(kExitUsage,
                          option + ": \"" + word +
                              "\" is not a number with at most six decimals, such as 3 or 0.5");
        }
        if (*amount < least * kMicros || *amount > most * kMicros) {
            throw Failure(kExitUsage,
                          option + ": " + word + " is not between " + std::to_string(least) +
                              " and " + std::to_string(most));
        }
        micros.push_back(*amount);
        at = end + 1;
    }
    if (micros.size() > shm::kClasses) {
        throw Failure(kExitUsage,
                      option + ": " + std::to_string(micros.size()) +
                          " numbers; there are five classes, P0 to P4");
    }
    return micros;
}

// "gpu=2", or "gpu=none".
void add_limit(const std::string& text, admin::AccountChangeT& change) {
    const size_t sign = text.rfind('=');
    const std::string key = text.substr(0, std::min(sign, text.size()));
    const std::string limit = sign == std::string::npos ? "" : text.substr(sign + 1);
    const auto slots = limit == "none" ? std::optional<uint64_t>(shm::kNoRow)
                                       : parse_number(limit, {0, shm::kNoRow - 1});
    if (!fit_name(key) || !slots) {
        throw Failure(
            kExitUsage,
            "--label-limit: \"" + text + "\" is not KEY=SLOTS, such as gpu=2, or KEY=none");
    }
    change.label_keys.push_back(key);
    change.label_limits.push_back(static_cast<uint32_t>(*slots));
}

std::unique_ptr<admin::AccountChangeT> change_of(const Wanted& wanted) {
    auto change = std::make_unique<admin::AccountChangeT>();
    if (wanted.rate) {
        change->rate_given = true;
        change->rate = classes("--rate", *wanted.rate, 0, kRateMax);
    }
    if (wanted.balance) {
        change->balance_given = true;
        change->balance = classes("--balance", *wanted.balance, -kBalanceMax, kBalanceMax);
    }
    if (wanted.charge_max_ns >= 0) {
        change->charge_max_ns = static_cast<uint64_t>(wanted.charge_max_ns);
    }
    if (wanted.fanout_max) change->fanout_max = static_cast<uint32_t>(*wanted.fanout_max);
    if (wanted.free_tasks || wanted.no_free_tasks) {
        change->free_tasks_disabled = wanted.no_free_tasks;
    }
    for (const std::string& limit : wanted.label_limits)
        add_limit(limit, *change);
    return change;
}

admin::Ask ask_of(const std::string& word) {
    if (word == "set") return admin::Ask::set_account;
    if (word == "reset") return admin::Ask::reset_account;
    return admin::Ask::delete_account;
}

// The account as it is now, beside all other accounts; nothing if it is gone.
Sheet look(AdminClient& client, const std::string& name) {
    const Accounts all = client.accounts();
    std::vector<const admin::AccountT*> told;
    for (const auto& account : all) {
        if (name.empty() || account->name == name) told.push_back(account.get());
    }
    return account_sheet(all, told);
}

// In a record every value is shown, under the name that it has in JSON.
Sheet as_record(Sheet sheet) {
    for (Column& column : sheet.columns) {
        std::string_view name = column.key;
        if (name.ends_with("_ns")) name.remove_suffix(3);
        if (name.ends_with("_micros")) name.remove_suffix(7);
        if (name.ends_with("_ppm")) name = {};
        if (column.title == "SHARE") name = "share";
        if (column.title == "GOT") name = "got";
        column.title = name;
    }
    return sheet;
}

void show(AdminClient& client, const std::string& name, Output& output) {
    const Sheet sheet = look(client, name);
    if (sheet.rows.empty()) {
        std::vector<std::string> known;
        for (const auto& account : client.accounts())
            if (account->configured) known.push_back(account->name);
        throw no_account(name, known);
    }
    output.show_record(as_record(sheet));
}

void change(AdminClient& client, const Wanted& wanted, Output& output) {
    admin::RequestT request;
    request.ask = ask_of(wanted.word);
    request.account = wanted.names.front();
    if (wanted.word != "delete") request.change = change_of(wanted);
    (void)client.must(request, "account " + request.account);
    if (wanted.word != "delete") return show(client, request.account, output);
    Sheet sheet{"dibs.account_delete/1", {{"account", "account"}, {"did", "did"}}};
    sheet.rows.push_back({Cell::of(request.account), Cell::of("deleted")});
    output.show_record(sheet);
}

constexpr const char* kAccountsAbout =
    "Shows accounts, which pay in pools with order = \"account\": what each was configured to get "
    "and what it got. Administrators make, change, reset and delete them while the broker serves. "
    "Money is slots (a rate) and slot-seconds (a balance), classes P0 to P4 between commas. dibs "
    "account WHAT --help says more of each.";

struct Help {
    std::string_view word;
    const char* about;
    std::set<std::string> options;  // of its own
};

const std::array<Help, 5>& helps() {
    static const std::array<Help, 5> all = {
        {{"ls",
          "Lists accounts, which pay in pools with order = \"account\": what each was configured "
          "to "
          "get and what it got.",
          {}},
         {"show", "Shows everything about one account.", {}},
         {"set",
          "Makes an account, or changes of one that is there what is named. For administrators. "
          "Money is slots (a rate) and slot-seconds (a balance), classes P0 to P4 between commas.",
          {"--rate",
           "--balance",
           "--charge-max",
           "--fanout-max",
           "--label-limit",
           "--free-tasks",
           "--no-free-tasks"}},
         {"reset",
          "Sets an account's balance, and nothing else: to 0, unless --balance says otherwise. For "
          "administrators.",
          {"--balance"}},
         {"delete",
          "Deletes an account. It keeps what it holds; its claims are of the free class from then "
          "on. For administrators.",
          {}}}};
    return all;
}

void add_options(Arguments* arguments, Wanted* wanted) {
    arguments->text(
        "-r,--rate", &wanted->rate, "set: slots that it may hold all the time: 3, or 3,0.5");
    arguments->text("-b,--balance", &wanted->balance, "set, reset: slot-seconds; reset without: 0");
    arguments->duration("--charge-max",
                        &wanted->charge_max_ns,
                        "set: its rate is saved up for so long at most; a new one: 1min");
    arguments->number("--fanout-max",
                      &wanted->fanout_max,
                      kFanouts,
                      "set: slots of its claims with the same labels, paid ones; 0: any");
    arguments->texts(
        "--label-limit",
        &wanted->label_limits,
        "set: KEY=SLOTS with labels that begin with KEY:; KEY=none takes it away; may be "
        "repeated");
    arguments->flag(
        "--free-tasks", &wanted->free_tasks, "set: what it cannot pay for runs when idle");
    arguments->flag("--no-free-tasks", &wanted->no_free_tasks, "set: what it cannot pay for waits");
}

// Of one of the words, where it comes first: options of the other words are known, but not shown.
void hide_others(Arguments* arguments, const Help& help) {
    for (const std::string& option : helps()[2].options) {
        if (!help.options.contains(option)) arguments->hide(option);
    }
}

}  // namespace

int run_account(int argc, char** argv) {
    Wanted wanted;
    const auto help = std::find_if(helps().begin(), helps().end(), [&](const Help& one) {
        return argc > 1 && one.word == argv[1];
    });
    const bool worded = help != helps().end();
    Arguments arguments(worded ? "account " + std::string(help->word) : "account",
                        worded ? help->about : kAccountsAbout);
    if (worded) wanted.word = help->word;
    if (!worded) arguments.operand("WHAT", &wanted.word, "ls, show, set, reset or delete");
    if (!worded || help->word != "ls") {
        arguments.words(
            "NAME", &wanted.names, worded ? "of the account" : "of the account; not for ls");
    }
    add_options(&arguments, &wanted);
    if (worded) hide_others(&arguments, *help);
    Output output(arguments);
    const int own = worded ? 1 : 0;
    if (const auto exit = arguments.parse(argc - own, argv + own)) return *exit;
    (void)output.form();
    check_usage(wanted);
    if (wanted.word == "set" || wanted.word == "reset") (void)change_of(wanted);  // before a broker
    AdminClient client(output.socket());
    if (wanted.word == "ls") {
        output.show_rows(look(client, {}));
    } else if (wanted.word == "show") {
        show(client, wanted.names.front(), output);
    } else {
        change(client, wanted, output);
    }
    return output.finish(kExitOk);
}

}  // namespace dibs::ctl
