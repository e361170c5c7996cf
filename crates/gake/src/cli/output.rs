//! Where results go: `FORMAT`, or `FORMAT=FILE`.

use std::path::{Path, PathBuf};

use gake_report::Format;

/// The form of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A summary in a format.
    Summary(Format),
    /// A run file.
    Hlog,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its form.
    pub form: Form,
    /// The file it is written to; standard output without one.
    pub file: Option<PathBuf>,
}

/// The files that outputs are written to.
pub fn files<'a>(outputs: impl IntoIterator<Item = &'a Output>) -> impl Iterator<Item = &'a Path> {
    outputs.into_iter().filter_map(|output| output.file.as_deref())
}

/// An output of `gake run`.
pub fn of_run(text: &str) -> Result<Output, String> {
    match of_report(text)? {
        Output { form: Form::Hlog, .. } => {
            Err("a run writes its run file as it goes: --out FILE".to_owned())
        }
        output => Ok(output),
    }
}

/// An output of `gake report`.
pub fn of_report(text: &str) -> Result<Output, String> {
    let (name, file) = match text.split_once('=') {
        Some((_, "")) => return Err("there is no file after the =".to_owned()),
        Some((name, file)) => (name, Some(PathBuf::from(file))),
        None => (text, None),
    };
    let form = match name {
        "hlog" => Form::Hlog,
        _ => Form::Summary(name.parse().map_err(|e: gake_report::FormatError| e.to_string())?),
    };
    Ok(Output { form, file })
}

/// An output of `gake compare`.
pub fn of_compare(text: &str) -> Result<Output, String> {
    let output = of_report(text)?;
    match output.form {
        Form::Summary(Format::Text | Format::Markdown | Format::Json | Format::Html) => Ok(output),
        _ => Err("a comparison is text, markdown, json or html".to_owned()),
    }
}

/// An output of a search, or of judged shadows.
pub fn of_answer(text: &str) -> Result<Output, String> {
    let output = of_report(text)?;
    match output.form {
        Form::Summary(Format::Text | Format::Json | Format::Html) => Ok(output),
        _ => Err("it is text, json or html".to_owned()),
    }
}

/// The file of `--html`, short for `-o html=FILE`.
pub fn html(text: &str) -> Result<Output, String> {
    match text {
        "" => Err("it names no file".to_owned()),
        file => Ok(Output { form: Form::Summary(Format::Html), file: Some(PathBuf::from(file)) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_may_have_a_file() {
        let file = Some(PathBuf::from("a=b, c.xml"));
        let junit = Form::Summary(Format::Junit);
        assert_eq!(of_run("junit=a=b, c.xml"), Ok(Output { form: junit, file }));
        assert_eq!(of_report("hlog"), Ok(Output { form: Form::Hlog, file: None }));
        for (text, part) in [("hlog", "--out"), ("json=", "no file"), ("xml", "junit")] {
            assert!(of_run(text).unwrap_err().contains(part), "{text}");
        }
    }
}
