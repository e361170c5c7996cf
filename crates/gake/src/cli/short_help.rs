//! `-h`: the flags that people use, after examples; `--help` lists all of them.

use clap::Command;

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
            "expect",
            "env",
            "timeout",
            "http2",
            "insecure",
            "slo",
            "watch",
            "format",
            "html",
            "out",
            "quiet",
            "baseline",
            "tui",
            "spec",
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
pub fn shorten(command: Command) -> Command {
    command.mut_args(|arg| arg.hide_short_help(true)).mut_subcommands(|command| {
        let flags = SHORT.iter().find(|(name, _)| *name == command.get_name());
        let command = match flags {
            Some(_) => command.help_template(TEMPLATE),
            None => command,
        };
        command.mut_args(|arg| {
            let is_fleet = arg.get_help_heading().is_some_and(|of| of.starts_with(FLEET));
            let is_rare = match (flags, arg.get_long()) {
                (Some((_, flags)), Some(long)) => !flags.contains(&long),
                _ => is_fleet,
            };
            let is_hidden = is_rare || arg.is_hide_short_help_set();
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
            assert!((25..=80).contains(&lines), "{name}: {lines} lines\n{short}");
            assert!(long.to_string().contains("--agents") == cfg!(feature = "fleet"));
            assert!(!short.to_string().contains("--agents"), "{short}");
        }
    }
}
