#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "apps/command.h"

namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

int run(int argc, char** argv) {
  CLI::App app{"Compiles, runs and measures machine-learning models."};
  app.name("rlx");
  app.require_subcommand(0, 1);  // of none there is a better message below
  for (const auto add :
       {rlx::apps::add_run, rlx::apps::add_inspect, rlx::apps::add_explain, rlx::apps::add_bench,
        rlx::apps::add_profile, rlx::apps::add_verify, rlx::apps::add_embed}) {
    add(app);
  }
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty())
      throw rlx::apps::UsageError("a subcommand is required; rlx --help lists them");
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  } catch (const rlx::apps::UsageError& error) {
    fmt::print(stderr, "rlx: {}\n", error.what());
    return kWrongUsage;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "rlx: {}\n", error.what());
    return kFailed;
  }
}
