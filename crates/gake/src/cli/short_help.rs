//! `-h`: the flags that people use, after examples; `--help` lists all of them.

use clap::{Arg, Command};

/// The flags in the short help of a command, by their long names; TARGET is always there.
const SHORT: &[(&str, &[&str])] = &[
    (
        "run",
        &[
            "rate",
            "stages",
            "users",
            "connections",
            "duration",
            "requests",
            "warmup",
            "method",
            "header",
            "data",
            "data-file",
            "expect",
            "env",
            "timeout",
            "max-redirs",
            "http2",
            "insecure",
            "slo",
            "watch",
            "format",
            "html",
            "out",
            "quiet",
            "save",
            "baseline",
            "tui",
            "web",
            "spec",
            "print-spec",
        ],
    ),
    (
        "find",
        &[
            "slo",
            "budget",
            "precision",
            "dimension",
            "max-rate",
            "map",
            "connections",
            "method",
            "header",
            "data",
            "insecure",
            "watch",
            "format",
            "html",
            "save",
            "quiet",
        ],
    ),
];

/// The heading of flags for several machines, which no short help lists.
const FLEET: &str = "Fleet";

/// Examples first, then the flags.
const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

{before-help}{all-args}{after-help}";

/// Leaves the rarer flags to `--help`.
pub fn shorten(mut command: Command) -> Command {
    for (name, flags) in SHORT {
        let is_short = |arg: &Arg| match arg.get_long() {
            Some(long) => flags.contains(&long),
            None => true,
        };
        command = command.mut_subcommand(name, |command| {
            command.help_template(TEMPLATE).mut_args(|arg| {
                let is_rare = !is_short(&arg);
                arg.hide_short_help(is_rare)
            })
        });
    }
    command.mut_subcommands(|command| {
        command.mut_args(|arg| {
            let is_fleet = arg.get_help_heading().is_some_and(|of| of.starts_with(FLEET));
            let is_hidden = is_fleet || arg.is_hide_short_help_set();
            arg.hide_short_help(is_hidden)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::definition;
    use super::*;

    #[test]
    fn the_short_help_is_a_screen_and_a_half_and_names_flags_that_exist() {
        for (name, flags) in SHORT {
            let mut definition = definition();
            definition.build();
            let command = definition.find_subcommand_mut(name).unwrap();
            for flag in *flags {
                assert!(command.get_arguments().any(|arg| arg.get_long() == Some(flag)), "{flag}");
            }
            let [short, long] = [command.render_help(), command.render_long_help()];
            let lines = short.to_string().lines().count();
            assert!((25..=75).contains(&lines), "{name}: {lines} lines\n{short}");
            assert!(long.to_string().contains("--agents") == cfg!(feature = "fleet"));
            assert!(!short.to_string().contains("--agents"), "{short}");
        }
    }
}
