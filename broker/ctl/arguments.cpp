// broker/ctl/arguments.cpp -- hides CLI11 behind a small interface.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <iostream>
#include <map>
#include <set>

#include "broker/ctl/subcommand.hpp"
#include "broker/text/line_wrap.hpp"
#include "broker/text/number_option.hpp"
#include "broker/text/parse_error.hpp"
#include "broker/text/spelling.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl {

namespace {

// The words behind "--" in the first line of the help too.
struct CommandFormatter : CLI::Formatter {
    std::string make_usage(const CLI::App* app, std::string name) const override {
        const std::string found = "[COMMAND...]";
        std::string text = Formatter::make_usage(app, std::move(name));
        const size_t at = text.find(found);
        if (at == std::string::npos) return text;
        return text.replace(at, found.size(), "-- COMMAND [ARGUMENT...]");
    }
};

// An empty name of a file is a script's empty variable: it would stand for the default, or for a
// file that has no name. `word`: what stands for it in --help.
void refuse_nameless(CLI::Option* option, const std::string& word) {
    if (word != "PATH" && word != "FILE" && word != "STATE") return;
    option->check([word](const std::string& name) -> std::string {
        if (!name.empty()) return "";
        return word == "PATH" ? "a path is needed, and none is there" : "the file's name is empty";
    });
}

std::string no_seconds(const std::string& text) {
    return "\"" + text + "\" is no time between two looks: write seconds, such as 2 or 0.5";
}

// A number alone is of seconds.
std::optional<int64_t> parse_seconds(const std::string& text) {
    constexpr int64_t kMost = INT64_MAX / 1000;
    if (const auto micros = parse_micros(text)) {
        return *micros > 0 && *micros <= kMost ? std::optional(*micros * 1000) : std::nullopt;
    }
    const auto ns = parse_duration(text);
    if (!ns || *ns == 0 || *ns > INT64_MAX) return std::nullopt;
    return static_cast<int64_t>(*ns);
}

}  // namespace

struct Arguments::Parser {
    CLI::App app;
    std::vector<std::string>* command = nullptr;
    bool is_marked = false;                           // by "--"
    std::map<std::string, std::string> without = {};  // options whose value may be left out
    std::vector<std::string> words = {};              // what is typed, with such values
    std::vector<std::string> loose;                   // words where only `-- COMMAND` may stand
    std::string further = {};                         // why there is no further operand
};

Arguments::Arguments(const std::string& subcommand, const std::string& about)
    : parser_(std::make_unique<Parser>()) {
    parser_->app.name(subcommand.starts_with("dibs-") ? subcommand : "dibs " + subcommand);
    parser_->app.allow_extras();  // check_rest() says more of them
    parser_->app.description(about);
}

Arguments::~Arguments() = default;

void Arguments::flag(const std::string& name, bool* target, const std::string& about) {
    parser_->app.add_flag(name, *target, about);
}

void Arguments::text(const std::string& name,
                     std::string* target,
                     const std::string& about,
                     const std::string& value) {
    refuse_nameless(parser_->app.add_option(name, *target, about)->type_name(value), value);
}

void Arguments::text(const std::string& name,
                     std::optional<std::string>* target,
                     const std::string& about) {
    parser_->app
        .add_option_function<std::string>(
            name, [target](const std::string& said) { *target = said; }, about)
        ->type_name("TEXT");
}

void Arguments::number(const std::string& name,
                       uint64_t* target,
                       NumberRange range,
                       const std::string& about,
                       bool has_default) {
    CLI::Option* option = add_number_option(&parser_->app, name, target, range, about);
    if (has_default) option->default_str(std::to_string(*target));
}

void Arguments::number(const std::string& name,
                       std::optional<uint64_t>* target,
                       NumberRange range,
                       const std::string& about) {
    (void)add_number_option(&parser_->app, name, target, range, about);
}

void Arguments::texts(const std::string& name,
                      std::vector<std::string>* target,
                      const std::string& about,
                      const std::string& value) {
    parser_->app.add_option(name, *target, about)->allow_extra_args(false)->type_name(value);
}

void Arguments::duration(const std::string& name, int64_t* target_ns, const std::string& about) {
    const auto take = [target_ns](const std::string& text) {
        const auto value = parse_duration(text);
        if (!value || *value > INT64_MAX) {
            throw CLI::ValidationError(no_duration(text));
        }
        *target_ns = static_cast<int64_t>(*value);
    };
    parser_->app.add_option_function<std::string>(name, take, about)->type_name("DURATION");
}

void Arguments::seconds(const std::string& name,
                        int64_t* target_ns,
                        const std::string& without,
                        const std::string& about) {
    const auto take = [target_ns](const std::string& text) {
        const auto value = parse_seconds(text);
        if (!value) throw CLI::ValidationError(no_seconds(text));
        *target_ns = *value;
    };
    CLI::Option* option = parser_->app.add_option_function<std::string>(name, take, about);
    option->type_name("[SECONDS]");
    for (const std::string& one : option->get_lnames())
        parser_->without["--" + one] = without;
    for (const std::string& one : option->get_snames())
        parser_->without["-" + one] = without;
}

void Arguments::operand(const std::string& name, std::string* target, const std::string& about) {
    refuse_nameless(parser_->app.add_option(name, *target, about)->required(), name);
}

void Arguments::further(const std::string& why) {
    parser_->further = ": " + why;
}

void Arguments::hide(const std::string& name) {
    parser_->app.get_option(name)->group("");
}

bool Arguments::given(const std::string& name) const {
    return parser_->app.count(name) != 0;
}

void Arguments::footer(const std::string& text) {
    parser_->app.footer(text);
}

void Arguments::command(std::vector<std::string>* target, const std::string& about) {
    parser_->command = target;
    parser_->app.formatter(std::make_shared<CommandFormatter>());
    parser_->app.add_option("COMMAND", parser_->loose, about)->type_name("");
}

void Arguments::operands(const std::string& name,
                         std::vector<std::string>* target,
                         const std::string& about) {
    refuse_nameless(parser_->app.add_option(name, *target, about)->required(), name);
}

void Arguments::words(const std::string& name,
                      std::vector<std::string>* target,
                      const std::string& about) {
    refuse_nameless(parser_->app.add_option(name, *target, about), name);
}

// The parser would take the word behind such an option for its value, whatever it is.
void Arguments::give_values(int argc, char** argv) {
    parser_->words.clear();
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        parser_->words.push_back(word);
        const auto found = parser_->without.find(word);
        if (found == parser_->without.end()) continue;
        const bool has_value = i + 1 < argc && *argv[i + 1] >= '0' && *argv[i + 1] <= '9';
        parser_->words.push_back(has_value ? argv[++i] : found->second);
    }
    std::reverse(parser_->words.begin(), parser_->words.end());  // as the parser wants it
}

void Arguments::take_command(int* argc, char** argv) {
    char** end = argv + *argc;
    char** mark = std::find_if(argv, end, [](char* word) { return std::strcmp(word, "--") == 0; });
    parser_->is_marked = mark != end;
    if (mark != end) parser_->command->assign(mark + 1, end);
    *argc = static_cast<int>(mark - argv);
}

void Arguments::check_command() const {
    const std::vector<std::string>& loose = parser_->loose;
    if (!loose.empty()) {
        throw CLI::ValidationError("write -- before the command, as in: " +
                                   parser_->app.get_name() + " POOL -- " + loose.front());
    }
    if (!parser_->command->empty()) return;
    // Several pools may be named, and so the command has been taken for one.
    for (const CLI::Option* option : parser_->app.get_options()) {
        if (!option->get_positional() || option->count() < 2 || parser_->is_marked) continue;
        throw CLI::ValidationError(
            "write -- before the command, as in: " + parser_->app.get_name() + " POOL -- " +
            option->results().back());
    }
    throw CLI::ValidationError("there is no command behind --");
}

std::string Arguments::unknown(const std::string& word) const {
    std::set<std::string> known = {"--help"};
    for (const CLI::Option* option : parser_->app.get_options()) {
        for (const std::string& one : option->get_lnames())
            known.insert("--" + one);
    }
    return no_such_option(word, known);
}

// The first operand that is not there, and what it would be; empty: all are.
std::string Arguments::missing() const {
    for (const CLI::Option* option : parser_->app.get_options()) {
        if (!option->get_required() || option->count() != 0) continue;
        return option->get_name() + " is required: " + option->get_description();
    }
    return "";
}

// What the parser could not place: a misspelt option, or a word too many.
void Arguments::check_rest() const {
    const std::vector<std::string> rest = parser_->app.remaining();
    if (rest.empty()) return;
    for (const std::string& word : rest) {
        if (word.size() > 1 && word.front() == '-') throw CLI::ValidationError(unknown(word));
    }
    throw CLI::ValidationError("\"" + rest.front() + "\" is a word too many" + parser_->further);
}

std::optional<int> Arguments::parse(int argc, char** argv) {
    try {
        if (parser_->command != nullptr) take_command(&argc, argv);
        give_values(argc, argv);
        parser_->app.parse(parser_->words);
        check_rest();
        if (parser_->command != nullptr) check_command();
        return std::nullopt;
    } catch (const CLI::Success&) {
        std::cout << help_for_output(parser_->app.help());
        return kExitOk;
    } catch (const CLI::ParseError& error) {
        std::string text = parse_error_text(error);
        if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) text = missing();
        try {
            check_rest();  // a misspelt option is named before what is missing because of it
        } catch (const CLI::ParseError& first) {
            text = first.what();
        }
        std::cerr << parser_->app.get_name() << ": " << harmless(text) << "\n"
                  << "See " << parser_->app.get_name() << " --help.\n";
        return kExitUsage;
    }
}

}  // namespace dibs::ctl
