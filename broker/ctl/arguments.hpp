// broker/ctl/arguments.hpp -- the arguments of one subcommand.
// Keeps the parser's headers, which take seconds to compile, in one translation unit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/config/quantity.hpp"

namespace dibs::ctl {

class Arguments {
  public:
    // `subcommand` of dibs, or a program of its own: "dibs-NAME".
    Arguments(const std::string& subcommand, const std::string& about);
    ~Arguments();
    Arguments(const Arguments&) = delete;
    Arguments& operator=(const Arguments&) = delete;

    // The targets are written by parse() and keep their value where the option is absent.
    void flag(const std::string& name, bool* target, const std::string& about);
    // `value`: what stands for the option's value in --help.
    void text(const std::string& name,
              std::string* target,
              const std::string& about,
              const std::string& value = "TEXT");
    // Where "" is something else than no option.
    void text(const std::string& name,
              std::optional<std::string>* target,
              const std::string& about);
    // What the target holds before is shown as its default, if that is a number that may be
    // written.
    void number(const std::string& name,
                uint64_t* target,
                NumberRange range,
                const std::string& about,
                bool has_default = true);
    // Where 0 is something else than no option.
    void number(const std::string& name,
                std::optional<uint64_t>* target,
                NumberRange range,
                const std::string& about);
    void texts(const std::string& name,
               std::vector<std::string>* target,
               const std::string& about,
               const std::string& value = "TEXT");
    // A duration with its unit; negative where the option is absent.
    void duration(const std::string& name, int64_t* target_ns, const std::string& about);
    // Seconds, "2", or a duration with its unit; as long as `without` says where the option stands
    // without a value.
    void seconds(const std::string& name,
                 int64_t* target_ns,
                 const std::string& without,
                 const std::string& about);
    void operand(const std::string& name, std::string* target, const std::string& about);
    void operands(const std::string& name,
                  std::vector<std::string>* target,
                  const std::string& about);
    // Operands that need not be there.
    void words(const std::string& name, std::vector<std::string>* target, const std::string& about);

    // What is said behind a word too many.
    void further(const std::string& why);

    // An option that is known, so that its misuse can be explained, and is not for --help.
    void hide(const std::string& name);

    // Whether the option is there; after parse().
    [[nodiscard]] bool given(const std::string& name) const;

    // What stands below the options in --help.
    void footer(const std::string& text);
    // `-- COMMAND [ARGUMENT...]`: everything behind the first "--", which parse() does not look at.
    void command(std::vector<std::string>* target, const std::string& about);

    // Empty: go on. Otherwise the exit code: help was printed, or what is wrong with the usage.
    std::optional<int> parse(int argc, char** argv);

  private:
    void give_values(int argc, char** argv);
    void take_command(int* argc, char** argv);
    void check_command() const;
    void check_rest() const;
    [[nodiscard]] std::string missing() const;
    [[nodiscard]] std::string unknown(const std::string& word) const;

    struct Parser;
    std::unique_ptr<Parser> parser_;
};

}  // namespace dibs::ctl
