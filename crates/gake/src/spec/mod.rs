//! From flags and a spec file to the spec of a run.
//!
//! Flags become a draft, the form in which a file is read too. With `--spec` they override the
//! file's fields where that is unambiguous.

#[cfg_attr(not(feature = "fleet"), path = "without_agents.rs")]
pub mod agents;
mod flags;
mod merge;
#[cfg_attr(not(feature = "scripts"), path = "without_scripts.rs")]
mod scripts;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use gake_core::Load;
use gake_core::schedule::Process;
use gake_core::spec::file::SpecFile;
use gake_core::spec::{FieldPath, RequestSource, RunSpec, ScenarioSpec};
use gake_files::Access;
use gake_lab::{Lab, LabConfig};
use gake_run::{Inputs, LoadedRequests, ResolvedRun, RunError, Scripts};
use gake_wire::Origin;

use crate::cli::{FindArgs, RunArgs};
use crate::cmd::demo;
use gake_session::Console;
use gake_session::Failure;
use gake_session::options::SpecFormat;
use gake_session::recording::inputs;
use gake_session::script::ScriptLoader;
use gake_session::spec_error::failure;
use gake_text::units::count;

/// The run that a command line describes.
#[derive(Debug)]
pub struct CommandSpec {
    /// The run.
    pub spec: RunSpec,
    /// The file that describes it, when there is one.
    file: Option<SpecFile>,
    /// Loads its scripts, when it has some.
    scripts: Option<ScriptLoader>,
}

/// Reads the run that the flags of `gake run` describe, without opening its targets.
///
/// # Errors
/// When a file is no spec, or flags or fields contradict each other.
pub fn of_run(args: &RunArgs, console: &Console) -> Result<CommandSpec, Failure> {
    let command = read_command(args, console)?;
    let is_random = |scenario: &ScenarioSpec| match &scenario.load {
        Load::Open { process, .. } => *process != Process::Uniform,
        _ => false,
    };
    let is_used = args.rand_url.is_some() || command.scripts.is_some();
    if args.load.seed.is_some() && !is_used && !command.spec.scenarios.iter().any(is_random) {
        let problem = "--seed repeats random arrivals, and these are not: add --arrivals poisson";
        return Err(Failure::usage(problem));
    }
    Ok(command)
}

/// Reads the requests that the flags of `gake find` describe: the spec has no load of its own.
///
/// # Errors
/// When flags contradict each other, or a script cannot be searched.
pub fn of_find(args: &FindArgs, target: &str, console: &Console) -> Result<CommandSpec, Failure> {
    let mut draft = flags::of_find(args, target)?;
    let scripts = scripts::load_journey(&mut draft, args, console)?;
    let spec = draft.decide().map_err(|error| failure(&error.into()))?;
    Ok(CommandSpec { spec, file: None, scripts })
}

/// Takes a TARGET that is a spec for the file of `--spec`.
///
/// # Errors
/// When a TOML file, which can be nothing else, is no spec, or the target is another tool's file.
pub fn take_target(args: &mut RunArgs) -> Result<(), Failure> {
    let named_otherwise = args.spec.spec.is_some() || args.request.targets || args.replay.replay;
    let Some(target) = args.target.as_deref().filter(|_| !named_otherwise) else { return Ok(()) };
    let path = Path::new(target);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if matches!(ending, "jmx" | "yml" | "yaml" | "py" | "scala" | "java" | "kt" | "lua") {
        return scripts::refuse_other_tools(path);
    }
    if !matches!(ending, "toml" | "json") || !path.is_file() {
        return Ok(());
    }
    match read(path) {
        Err(failure) if ending == "toml" => return Err(failure),
        // Targets may be JSON too.
        Err(_) => return scripts::refuse_other_tools(path),
        Ok(_) => args.spec.spec = args.target.take().map(PathBuf::from),
    }
    Ok(())
}

fn read_command(args: &RunArgs, console: &Console) -> Result<CommandSpec, Failure> {
    let flags = flags::draft(args)?;
    let (mut draft, file) = match &args.spec.spec {
        None => (flags, None),
        Some(path) => {
            let file = read(path)?;
            (merge::beside(file.draft().clone(), flags, args, path)?, Some(file))
        }
    };
    let scripts = scripts::load(&mut draft, args, console)?;
    match (draft.decide(), file) {
        (Ok(spec), file) => Ok(CommandSpec { spec, file, scripts }),
        (Err(error), Some(file)) => Err(Failure::usage(file.locate(error))),
        (Err(error), None) => Err(failure(&error.into())),
    }
}

/// Refuses certificates and ECH when no origin uses TLS and no redirect can lead to one that does.
///
/// # Errors
/// The field that is not used.
fn check_tls<'a>(
    spec: &RunSpec,
    origins: impl Iterator<Item = &'a Origin>,
) -> Result<(), RunError> {
    let (mut is_tls, mut is_tls_to_proxy) = (spec.connection.max_redirects > 0, false);
    for origin in origins {
        is_tls |= origin.is_tls();
        is_tls_to_proxy |= origin.has_tls_proxy();
    }
    let tls = &spec.tls;
    let given = [
        ("certificate", tls.certificate.is_some()),
        ("key", tls.key.is_some()),
        ("ca_certificates", !tls.ca_certificates.is_empty() && !is_tls_to_proxy),
        ("ech", tls.ech.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((field, _)) if !is_tls => {
            let path = FieldPath::root().key("tls").key(field);
            Err(RunError::spec(path, "it needs an https URL: nothing here is sent over TLS"))
        }
        _ => Ok(()),
    }
}

fn read(path: &Path) -> Result<SpecFile, Failure> {
    let name = path.display().to_string();
    let reader: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path).map_err(|error| {
            Failure::could_not(format!("the spec {name} cannot be read: {error}"))
        })?),
    };
    let name = if name == "-" { "standard input" } else { &name };
    SpecFile::read(name, reader).map_err(Failure::usage)
}

impl CommandSpec {
    /// Prints how many lines of its scripts' log were left out.
    pub fn note_repeats(&self, console: &Console) {
        if let Some(more) = self.scripts.as_ref().and_then(ScriptLoader::left_out) {
            console.note(&format!("{} more lines of the log repeat those above", count(more)));
        }
    }

    /// Sends the requests of scripts through the proxies in the environment, as k6 does, unless flags
    /// or the spec name one.
    ///
    /// # Errors
    /// When a variable holds a proxy that gake cannot use.
    pub fn proxy_from_environment(&mut self) -> Result<(), Failure> {
        match self.scripts {
            Some(_) => gake_session::proxy::use_environment(&mut self.spec.connection),
            None => Ok(()),
        }
    }

    /// Writes the secrets of TLS to the file in SSLKEYLOGFILE, unless flags or the spec name one. A
    /// file that cannot be written does not end the run: the variable may be meant for others.
    pub fn key_log_from(&mut self, variable: Option<OsString>, console: &Console) {
        let Some(path) = variable.filter(|path| !path.is_empty()).map(PathBuf::from) else {
            return;
        };
        if self.spec.tls.key_log.is_some() {
            return;
        }
        let shown = path.display();
        // The reader of a pipe would take the end of this attempt for the end of the secrets.
        let is_pipe = fs::metadata(&path).is_ok_and(|kind| kind.file_type().is_fifo());
        if !is_pipe && let Err(error) = gake_files::append(&path, Access::Owner) {
            let problem = format!("SSLKEYLOGFILE: {shown}: {error}; no secrets are written");
            return console.warn(&problem);
        }
        console.warn(&format!("SSLKEYLOGFILE: {shown} gets the secrets of TLS"));
        self.spec.tls.key_log = Some(path);
    }

    /// Reads the inputs of its requests.
    ///
    /// # Errors
    /// When something cannot be read or is not valid.
    pub fn load(&self) -> Result<LoadedRequests, Failure> {
        LoadedRequests::read(&self.spec, self.inputs()).map_err(|error| self.failure(error))
    }

    /// Reads the inputs of its requests and prepares the run. Blocks for name resolution.
    ///
    /// # Errors
    /// When an input cannot be read, a name cannot be resolved, or the spec cannot be run.
    pub fn prepare(&self) -> Result<ResolvedRun, Failure> {
        self.prepare_loaded(&self.load()?)
    }

    /// Prepares the run from its inputs. Blocks for name resolution.
    ///
    /// # Errors
    /// When a name cannot be resolved, or the spec cannot be run.
    pub fn prepare_loaded(&self, loaded: &LoadedRequests) -> Result<ResolvedRun, Failure> {
        let prepared = loaded.prepare(&self.spec).map_err(|error| self.failure(error))?;
        if !prepared.scripts.is_empty() {
            return Ok(prepared);
        }
        let origins = prepared.wires.iter().flat_map(|wire| &wire.network.origins);
        check_tls(&self.spec, origins).map_err(|error| self.failure(error))?;
        Ok(prepared)
    }

    /// Whether it fires scripts.
    pub fn has_scripts(&self) -> bool {
        self.scripts.is_some()
    }

    /// Inputs that only a program can open.
    pub fn inputs(&self) -> Inputs<'_> {
        // A spec from standard input has used it up.
        let used = self.file.as_ref().is_some_and(|file| file.name() == "standard input");
        let mut inputs = inputs();
        if used {
            inputs.stdin = None;
        }
        inputs.scripts = self.scripts.as_ref().map(|scripts| scripts as &dyn Scripts);
        inputs
    }

    /// The error in the words of the command line, or with its position in the spec file.
    pub fn failure(&self, error: RunError) -> Failure {
        match (error, &self.file) {
            (RunError::Spec(error), Some(file)) => Failure::usage(file.locate(error)),
            (error, _) => failure(&error),
        }
    }

    /// Starts the lab for scenarios that load the demo; dropping it stops it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_demo(&mut self) -> Result<Option<Lab>, Failure> {
        let connections: usize =
            self.spec.scenarios.iter().map(|scenario| scenario.connections).sum();
        // The lab shares this process's descriptor table.
        let has_many = connections > gake_files::table_size() / 2;
        let config = LabConfig {
            max_connections: has_many.then_some(connections.saturating_add(1_000)),
            ..LabConfig::default()
        };
        let mut lab = None;
        for scenario in &mut self.spec.scenarios {
            let RequestSource::Url(url) = &mut scenario.source else { continue };
            match &lab {
                Some((_, demo)) if demo::is_demo(url) => url.clone_from(demo),
                Some(_) => {}
                None => {
                    let (started, target) = demo::target(url, config.clone())?;
                    lab = started.map(|lab| (lab, target.clone()));
                    *url = target;
                }
            }
        }
        Ok(lab.map(|(lab, _)| lab))
    }

    /// The files that it reads, so that no output overwrites them.
    pub fn files(&self, spec: Option<&Path>) -> Vec<PathBuf> {
        let scenarios = self.spec.scenarios.iter().flat_map(|scenario| match &scenario.source {
            RequestSource::Targets(path) => vec![path.clone()],
            RequestSource::Rows(rows) => vec![rows.path.clone()],
            RequestSource::Recording(recording) => vec![recording.path.clone()],
            RequestSource::Script(script) => vec![script.path.clone()],
            RequestSource::Grpc(grpc) => grpc.proto.clone(),
            _ => Vec::new(),
        });
        scenarios.chain(spec.map(Path::to_owned)).collect()
    }

    /// The spec as it is printed.
    ///
    /// # Errors
    /// When a path in it is not UTF-8.
    pub fn print(&self, format: SpecFormat) -> Result<String, Failure> {
        let text = format.text(&self.spec)?;
        Ok(match format {
            SpecFormat::Json => text,
            SpecFormat::Toml => format!(
                "# gake run --spec FILE runs this again. It holds the credentials it needs.\n{text}"
            ),
        })
    }
}
