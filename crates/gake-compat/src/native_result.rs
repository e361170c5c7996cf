//! gake's own result in addition to the tool's output.

use std::io::Write;
use std::path::{Path, PathBuf};

use gake_judge::Summary;
use gake_report::Format;
use gake_run::Sink;
use gake_run::sink::RunFileSink;
use gake_session::files::{create, distinct};
use gake_session::{Console, Failure, rendered};

/// `--gake-out FILE` and `--gake-format FORMAT[=FILE]`, which every personality accepts, with one
/// dash or two, since some of the tools have one-dash flags.
#[derive(Debug, Default)]
pub struct NativeResult {
    /// The file of the native result; a run file if there is no format.
    out: Option<PathBuf>,
    format: Option<Format>,
}

impl NativeResult {
    /// Removes gake's own flags from a tool's command line.
    ///
    /// # Errors
    /// When a flag lacks its value.
    pub fn extract(args: &mut Vec<String>) -> Result<Self, Failure> {
        let mut native = Self::default();
        while let Some(path) = take_value(args, "--gake-out")? {
            native.out = Some(path.into());
        }
        while let Some(value) = take_value(args, "--gake-format")? {
            // `text=FILE` sets both, as `-o` of gake's own commands does.
            let (name, path) = match value.split_once('=') {
                Some((name, path)) if !path.is_empty() => (name, Some(path)),
                _ => (value.as_str(), None),
            };
            let format = name.parse::<Format>();
            native.format =
                Some(format.map_err(|e| Failure::usage(format!("--gake-format: {e}")))?);
            native.out = path.map(Into::into).or(native.out);
        }
        Ok(native)
    }

    /// Refuses to write the native result over a file that the tool itself writes.
    ///
    /// # Errors
    /// When it is one of `files`, or two of them are the same file.
    pub fn check_conflicts<'a>(
        &'a self,
        files: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Failure> {
        let files = files.into_iter().map(Path::new);
        distinct(files.chain(self.out.as_deref()), [])
    }

    /// The sink that writes the run file during the run.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn sink(&self) -> Result<Option<Box<dyn Sink>>, Failure> {
        let Some(path) = self.run_file() else { return Ok(None) };
        Ok(Some(Box::new(RunFileSink::create(path)?)))
    }

    fn run_file(&self) -> Option<&Path> {
        self.out.as_deref().filter(|_| self.format.is_none())
    }

    /// Writes the result to the file, or to standard error, since standard output is the tool's.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn show(&self, summary: &Summary, console: &Console) -> Result<(), Failure> {
        let Some(format) = self.format else { return Ok(()) };
        let text = rendered(summary, format)?;
        let Some(path) = &self.out else {
            console.plain(&text);
            return Ok(());
        };
        create(path)?.write_all(text.as_bytes()).map_err(|error| {
            Failure::could_not(format!("{} cannot be written: {error}", path.display()))
        })
    }
}

/// Removes `name VALUE` or `name=VALUE` from the arguments, wherever it is; the name may lack one
/// of its two dashes.
fn take_value(args: &mut Vec<String>, name: &str) -> Result<Option<String>, Failure> {
    let named = |arg: &str, name: &str| {
        arg.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    let is = |arg: &String| named(arg, name) || named(arg, &name[1..]);
    let Some(at) = args.iter().position(is) else { return Ok(None) };
    let arg = args.remove(at);
    if let Some((_, value)) = arg.split_once('=') {
        return Ok(Some(value.to_owned()));
    }
    if at == args.len() {
        return Err(Failure::usage(format!("{name} needs a value")));
    }
    Ok(Some(args.remove(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_flags_are_taken_out() {
        let mut args: Vec<String> =
            ["-n", "5", "--gake-out", "a.json", "url", "--gake-format=json"].map(Into::into).into();
        let native = NativeResult::extract(&mut args).unwrap();
        assert_eq!(args, ["-n", "5", "url"]);
        assert_eq!(native.format, Some(Format::Json));
        assert_eq!(native.run_file(), None);
        for form in [&["--gake-format", "text=a.txt"][..], &["-gake-format=text=a.txt"]] {
            let mut args: Vec<String> = form.iter().map(|arg| (*arg).to_owned()).collect();
            let native = NativeResult::extract(&mut args).unwrap();
            assert_eq!((args.len(), native.format), (0, Some(Format::Text)), "{form:?}");
            assert_eq!(native.out.as_deref(), Some(Path::new("a.txt")), "{form:?}");
            assert_eq!(native.run_file(), None);
        }
        assert!(NativeResult::extract(&mut vec!["--gake-out".to_owned()]).is_err());
        assert!(NativeResult::extract(&mut vec!["--gake-format=xml".to_owned()]).is_err());
    }
}
