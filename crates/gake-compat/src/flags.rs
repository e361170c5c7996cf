//! Command lines in the grammars of other tools' parsers.
//!
//! A tool's flags are a table. Flags that are not in it are refused by name; flags in it that gake
//! does not support are refused with a reason. So no flag is ever ignored.

use std::fmt::Display;
use std::str::FromStr;

/// The grammar of a tool's command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grammar {
    /// Go's `flag`: `-n 5`, `-n=5`, `--n=5`; ends at the first operand.
    Go,
    /// POSIX `getopt`: `-n5`, `-n 5`, `-ki`; ends at the first operand.
    Getopt,
    /// GNU `getopt_long` and similar ones: also `--name 5`, `--name=5`; operands anywhere.
    GetoptLong,
    /// Go's `pflag`: as `getopt_long`, and `-n=5`.
    Pflag,
}

impl Grammar {
    /// The error of the tool's parser for an unknown flag. Scripts depend on Go's words; the others
    /// differ between C libraries.
    fn unknown(self, shown: &str) -> String {
        match self {
            Self::Go => {
                format!("flag provided but not defined: -{}", shown.trim_start_matches('-'))
            }
            Self::Pflag => format!("unknown flag: {shown}"),
            _ => format!("there is no flag {shown}"),
        }
    }

    /// The error for a flag without its value.
    fn lacks_value(self, shown: &str) -> String {
        match self {
            Self::Go => format!("flag needs an argument: -{}", shown.trim_start_matches('-')),
            Self::Pflag => format!("flag needs an argument: {shown}"),
            _ => format!("{shown} needs a value"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagValue {
    /// No value; Go and long flags still accept `=true` or `=false`.
    Nothing,
    Value,
    /// The flag is refused with this sentence.
    Refused(&'static str),
}

/// A flag. Its first name is its key; a name of one letter has one dash.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Its names, without dashes.
    pub names: &'static [&'static str],
    pub value: FlagValue,
}

/// A flag without a value.
pub const fn switch(names: &'static [&'static str]) -> Flag {
    Flag { names, value: FlagValue::Nothing }
}

pub const fn value(names: &'static [&'static str]) -> Flag {
    Flag { names, value: FlagValue::Value }
}

pub const fn refused(names: &'static [&'static str], why: &'static str) -> Flag {
    Flag { names, value: FlagValue::Refused(why) }
}

/// A flag as in a command line, with dashes.
pub fn dashed(name: &str) -> String {
    if name.len() == 1 { format!("-{name}") } else { format!("--{name}") }
}

/// The request of a GNU `getopt_long` command line.
#[derive(Debug)]
pub enum CommandLine<T> {
    Help,
    Version,
    Run(Box<T>),
}

impl<T> CommandLine<T> {
    /// Reads `args`; `help` is the first name of the help flag, and `options` reads the other
    /// flags.
    pub fn read(
        flags: &[Flag],
        help: &str,
        args: &[String],
        options: impl FnOnce(Parsed) -> Result<T, String>,
    ) -> Result<Self, String> {
        let parsed = Parsed::read(Grammar::GetoptLong, flags, args)?;
        if parsed.on(help)? {
            return Ok(Self::Help);
        }
        if parsed.on("version")? {
            return Ok(Self::Version);
        }
        options(parsed).map(|options| Self::Run(Box::new(options)))
    }
}

/// A parsed command line.
#[derive(Debug, Default)]
pub struct Parsed {
    /// Flags in order, by their first names.
    given: Vec<(&'static str, String)>,
    /// Arguments that are not flags.
    pub operands: Vec<String>,
}

/// An error of a command line: a sentence that names the flag.
#[derive(Debug, PartialEq, Eq)]
pub enum FlagError {
    /// The tool has the flag, and gake does not support it.
    Refused(String),
    /// The flag is unknown or lacks its value.
    Wrong(String),
}

impl FlagError {
    fn refused(shown: &str, why: &str) -> Self {
        Self::Refused(format!("{shown} cannot be honoured: {why}"))
    }
}

impl From<FlagError> for String {
    fn from(error: FlagError) -> Self {
        match error {
            FlagError::Refused(sentence) | FlagError::Wrong(sentence) => sentence,
        }
    }
}

impl Parsed {
    /// Reads `args`.
    ///
    /// # Errors
    /// When a flag is unknown, refused or lacks its value; the error names it.
    pub fn read(grammar: Grammar, flags: &[Flag], args: &[String]) -> Result<Self, FlagError> {
        let mut parsed = Self::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            if arg == "--" {
                parsed.operands.extend(rest.cloned());
                break;
            }
            let is_flag = arg.len() > 1 && arg.starts_with('-');
            match (is_flag, grammar) {
                (false, Grammar::GetoptLong | Grammar::Pflag) => parsed.operands.push(arg.clone()),
                (false, _) => {
                    parsed.operands.push(arg.clone());
                    parsed.operands.extend(rest.cloned());
                    break;
                }
                (true, Grammar::Go) => parsed.word(grammar, flags, arg, &mut rest)?,
                (true, _) if arg.starts_with("--") => {
                    parsed.word(grammar, flags, arg, &mut rest)?;
                }
                (true, _) => parsed.letters(grammar, flags, &arg[1..], &mut rest)?,
            }
        }
        Ok(parsed)
    }

    /// Parses `--name`, `--name=value`, `--name value`, and with one dash where the grammar has
    /// that.
    fn word<'a>(
        &mut self,
        grammar: Grammar,
        flags: &[Flag],
        arg: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), FlagError> {
        let bare = arg.trim_start_matches('-');
        let (name, inline) = match bare.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (bare, None),
        };
        let shown = arg.split('=').next().unwrap_or(arg);
        let flag = find(flags, name).ok_or_else(|| FlagError::Wrong(grammar.unknown(shown)))?;
        let value = match flag.value {
            FlagValue::Refused(why) => return Err(FlagError::refused(shown, why)),
            FlagValue::Nothing => inline.unwrap_or_else(|| "true".to_owned()),
            FlagValue::Value => inline
                .or_else(|| rest.next().cloned())
                .ok_or_else(|| FlagError::Wrong(grammar.lacks_value(shown)))?,
        };
        self.given.push((flag.names[0], value));
        Ok(())
    }

    /// Parses `-k`, `-n5`, `-n 5`, `-kin 5`, and `-n=5` where the grammar has that.
    fn letters<'a>(
        &mut self,
        grammar: Grammar,
        flags: &[Flag],
        letters: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), FlagError> {
        for (at, letter) in letters.char_indices() {
            let after = &letters[at + letter.len_utf8()..];
            let mut name = [0; 4];
            let flag = find(flags, letter.encode_utf8(&mut name)).ok_or_else(|| {
                FlagError::Wrong(match grammar {
                    Grammar::Pflag => {
                        format!("unknown shorthand flag: '{letter}' in -{}", &letters[at..])
                    }
                    _ => format!("there is no flag -{letter}"),
                })
            })?;
            let inline = after.strip_prefix('=').filter(|_| grammar == Grammar::Pflag);
            match (flag.value, inline) {
                (FlagValue::Refused(why), _) => {
                    return Err(FlagError::refused(&format!("-{letter}"), why));
                }
                (_, Some(value)) => {
                    self.given.push((flag.names[0], value.to_owned()));
                    return Ok(());
                }
                (FlagValue::Nothing, _) => self.given.push((flag.names[0], "true".to_owned())),
                (FlagValue::Value, _) => {
                    let value = if after.is_empty() {
                        rest.next()
                            .cloned()
                            .ok_or_else(|| FlagError::Wrong(format!("-{letter} needs a value")))?
                    } else {
                        after.to_owned()
                    };
                    self.given.push((flag.names[0], value));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Every flag with its value, in order.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.given.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// The last value of a flag.
    pub fn last(&self, name: &str) -> Option<&str> {
        self.all(name).last()
    }

    /// Every value of a flag, in order.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.given.iter().filter(move |(given, _)| *given == name).map(|(_, value)| value.as_str())
    }

    /// Whether a flag without a value is on.
    ///
    /// # Errors
    /// When its value is neither true nor false.
    pub fn on(&self, name: &str) -> Result<bool, String> {
        match self.last(name) {
            None | Some("false" | "f" | "F" | "0" | "False" | "FALSE") => Ok(false),
            Some("true" | "t" | "T" | "1" | "True" | "TRUE") => Ok(true),
            Some(other) => Err(format!("-{name}={other}: it is true or false")),
        }
    }

    /// The last value of a flag, parsed.
    ///
    /// # Errors
    /// When it cannot be parsed; the error has the flag's name.
    pub fn get<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, String> {
        self.read_with(name, |text| text.parse::<T>().map_err(|error| error.to_string()))
    }

    /// The last value of a flag, parsed by `read`.
    ///
    /// # Errors
    /// The error of `read`, with the flag's name.
    pub fn read_with<T>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        self.last(name)
            .map(|text| read(text).map_err(|error| format!("{} {text:?}: {error}", dashed(name))))
            .transpose()
    }
}

fn find<'a>(flags: &'a [Flag], name: &str) -> Option<&'a Flag> {
    flags.iter().find(|flag| flag.names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: &[Flag] = &[
        value(&["n", "number"]),
        switch(&["k", "keep"]),
        value(&["H"]),
        refused(&["s"], "there is no Lua"),
    ];

    fn read(grammar: Grammar, line: &str) -> Result<Parsed, String> {
        let args: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        Parsed::read(grammar, FLAGS, &args).map_err(String::from)
    }

    #[test]
    fn go_takes_one_dash_or_two() {
        for line in ["-n 5 -k url -x", "--n=5 -k=true url -x", "-n=5 --k=t url -x"] {
            let parsed = read(Grammar::Go, line).unwrap();
            assert_eq!(parsed.get::<u32>("n"), Ok(Some(5)), "{line}");
            assert_eq!(parsed.on("k"), Ok(true), "{line}");
            assert_eq!(parsed.operands, ["url", "-x"], "{line}");
        }
        assert!(!read(Grammar::Go, "-k=false").unwrap().on("k").unwrap());
        assert!(read(Grammar::Go, "-kn 5").is_err());
    }

    #[test]
    fn getopt_joins_letters_and_values() {
        for line in ["-kn5 url", "-k -n 5 url", "-kn 5 -- url"] {
            let parsed = read(Grammar::Getopt, line).unwrap();
            assert_eq!(parsed.get::<u32>("n"), Ok(Some(5)), "{line}");
            assert_eq!((parsed.on("k"), parsed.operands), (Ok(true), vec!["url".to_owned()]));
        }
    }

    #[test]
    fn long_flags_and_operands_mix() {
        let parsed = read(Grammar::GetoptLong, "url --number=5 -H a --keep -H b -").unwrap();
        assert_eq!(parsed.last("n"), Some("5"));
        assert_eq!(parsed.all("H").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((parsed.on("k"), parsed.operands), (Ok(true), vec!["url".into(), "-".into()]));
    }

    #[test]
    fn nothing_is_ignored() {
        for (grammar, line, expected) in [
            (Grammar::Go, "--zz 1", "flag provided but not defined: -zz"),
            (Grammar::Go, "-n", "flag needs an argument: -n"),
            (Grammar::Getopt, "-kz", "no flag -z"),
            (Grammar::GetoptLong, "--zz=1", "no flag --zz"),
            (Grammar::GetoptLong, "-s x.lua", "there is no Lua"),
            (Grammar::Getopt, "-n", "-n needs a value"),
            (Grammar::GetoptLong, "--number", "--number needs a value"),
        ] {
            let error = read(grammar, line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
        let refused = Parsed::read(Grammar::Getopt, FLAGS, &["-s".to_owned()]).unwrap_err();
        assert!(matches!(refused, FlagError::Refused(_)), "{refused:?}");
        let error = read(Grammar::Go, "-n five").unwrap().get::<u32>("n").unwrap_err();
        assert!(error.contains("-n \"five\""), "{error}");
    }
}
