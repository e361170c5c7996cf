//! `cargo xtask bench`: gake and its peers in turn, on the same two cores, in one run.
//!
//! The server has one core, the client the other. Each comparison is made in
//! several rounds with the order rotated, so that a slow minute of the machine
//! meets every tool; ratios are taken within a round. Requests are counted by the
//! server, CPU by the kernel, and no tool is asked how well it did except where
//! what it reports is the question. Beside it, what else is measured over several runs: causes,
//! experiments, a soak.
// A bench's output is its purpose: it speaks on stdout and stderr directly.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod arrival;
mod calls;
mod causes;
mod changes;
mod clock;
mod compute;
mod cpu;
mod experiments;
mod floor;
mod fuzz;
mod grpc;
mod http2;
mod inputs;
mod k6;
mod memory;
mod metronome;
mod nginx;
mod peers;
mod pictures;
mod process;
mod real_k6;
mod recorder;
mod recording;
mod report;
mod screenshots;
mod shadow;
mod sinks;
mod soak;
mod stall;
mod start;
mod stats;
mod stolen;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use calls::Call;
use peers::{Peers, Tool};
use process::{Ended, Launch, Running};
use report::Report;
use xtask::workspace;

/// The parts, in their order.
const PARTS: [&str; 11] =
    ["cpu", "arrival", "stall", "memory", "start", "inputs", HTTP2, GRPC, SHADOW, K6, SINKS];

/// The parts with a goal (DESIGN.md, Numbers), which `bench goals` does in ten minutes.
const GOALS: [&str; 7] = ["cpu", "arrival", "start", "inputs", HTTP2, SHADOW, K6];

/// The part with servers of its own, done when it is asked for.
const HTTP2: &str = "http2";

/// The part beside ghz, done when it is asked for.
const GRPC: &str = "grpc";

/// The part with peers of its own, which is done alone.
const SHADOW: &str = "shadow";

/// The part beside the real k6, done when it is asked for.
const K6: &str = "k6";

/// What sinks cost a load, done when it is asked for.
const SINKS: &str = "sinks";

/// The parts that are done only when they are asked for; each keeps a report of its own.
const ON_REQUEST: [&str; 5] = [HTTP2, GRPC, SHADOW, K6, SINKS];

/// How long everything is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// To be kept: half an hour and more.
    Whole,
    /// To be kept: what has a goal, in ten minutes.
    Goals,
    /// To see that it works.
    Quick,
}

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// Rounds of each comparison.
    rounds: usize,
    /// The length of runs.
    pace: Pace,
    /// Parts to do.
    parts: Vec<String>,
    /// Build oha.
    with_oha: bool,
    /// Measure this binary.
    gake: Option<PathBuf>,
    /// Keep the report here.
    out: Option<PathBuf>,
}

/// What every part needs.
pub struct Bench {
    options: Options,
    peers: Peers,
    dir: PathBuf,
    server_core: usize,
    client_core: usize,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    let rest = args.get(1..).unwrap_or_default();
    match args.first().map(String::as_str) {
        Some("causes") => causes::main(rest),
        Some("changes") => changes::main(rest),
        Some("experiments") => experiments::main(rest),
        Some("pictures") => pictures::main(rest),
        Some("k6") => match rest {
            [soak, rest @ ..] if soak == "--soak" => soak::main(rest),
            [fuzz, rest @ ..] if fuzz == "--fuzz" => fuzz::main(rest, &real_k6::peer()?),
            [flag, ..] if flag == "--record" || flag == "--live" => real_k6::main(rest),
            _ => compare(args),
        },
        // Started by the bench itself: processes of their own, so that they can be pinned.
        Some("recorder") => recorder::main(rest),
        Some("floor") => floor::main(rest),
        Some("metronome") => metronome::main(rest),
        _ => compare(args),
    }
}

/// Measures gake and its peers.
fn compare(args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    let tools_dir = workspace::target_dir()?.join("bench-tools");
    let dir = tools_dir.join(format!("run-{}", std::process::id()));
    fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    let result = run(options, &tools_dir, &dir);
    let _ = fs::remove_dir_all(&dir);
    result
}

fn run(options: Options, tools_dir: &Path, dir: &Path) -> Result<()> {
    if options.pace != Pace::Goals && options.parts.iter().any(|part| part == K6) {
        real_k6::peer()?;
    }
    let peers = Peers::gather(&options, tools_dir)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let client_core = usize::from(cores > 1);
    let bench = Bench { options, peers, dir: dir.to_owned(), server_core: 0, client_core };
    let mut report = Report::default();
    println!();
    let pinned = match bench.options.parts.as_slice() {
        [part] if part == SHADOW => "nothing".to_owned(),
        _ => format!("server to core 0, client to core {client_core} (shadow: nothing)"),
    };
    report.header(cores, &pinned, bench.options.rounds);
    report.tools(&bench.peers);
    // From here on the bench itself stays off the server's core.
    process::pin_this_thread(client_core)?;
    if client_core == 0 {
        report.line("warning  one core for both ends: the figures are of little use");
    }
    for part in PARTS {
        if !bench.options.parts.iter().any(|wanted| wanted == part) {
            report.heading(format!("{part}: not asked for"));
            continue;
        }
        let result = match part {
            "cpu" => cpu::run(&bench, &mut report),
            "arrival" => arrival::run(&bench, &mut report),
            "stall" => stall::run(&bench, &mut report),
            "memory" => memory::run(&bench, &mut report),
            "inputs" => inputs::run(&bench, &mut report),
            HTTP2 => http2::run(&bench, &mut report),
            GRPC => grpc::run(&bench, &mut report),
            SHADOW => shadow::run(&bench, &mut report),
            K6 => k6::run(&bench, &mut report),
            SINKS => sinks::run(&bench, &mut report),
            _ => start::run(&bench, &mut report),
        };
        if let Err(error) = result {
            report.line(format!("  {part} could not be measured: {error:#}"));
        }
    }
    keep(&bench.options, &report)
}

/// A whole run is kept in the tree; a short or partial one only with --out.
fn keep(options: &Options, report: &Report) -> Result<()> {
    let kept = |name: String| workspace::root().join("bench").join(name);
    let alone = ON_REQUEST.into_iter().find(|part| options.is_alone(part));
    let path = match &options.out {
        Some(path) => path.clone(),
        None if options.pace == Pace::Goals => kept(format!("{}-goals.txt", report::today())),
        None if options.is_whole() => kept(format!("{}.txt", report::today())),
        None => match alone {
            Some(part) => kept(format!("{}-{part}.txt", report::today())),
            None => {
                println!("\nnot kept: a short or partial run (--out FILE keeps it)");
                return Ok(());
            }
        },
    };
    report.write(&path)?;
    println!("\nkept in {}", path.display());
    Ok(())
}

impl Bench {
    /// Starts a call on the client's core.
    fn start(&self, call: &Call, limit: Duration) -> Result<Running> {
        let program = self.peers.path(call.tool).context("the tool is not available")?;
        let stdin = process::memory_file(call.input.as_bytes())?.into();
        let (args, core) = (call.args.as_slice(), self.client_core);
        Launch { program, args, stdin: Some(stdin), core: Some(core), limit }.start()
    }

    /// Runs a call on the client's core; an end with a bad code is an error.
    fn run(&self, call: &Call, limit: Duration) -> Result<Ended> {
        self.start(call, limit)?.wait()?.accept(&call.label, call.good_codes())
    }

    /// The tools that are here, in the order of the tables.
    fn tools(&self) -> impl Iterator<Item = Tool> + '_ {
        self.peers.have.iter().map(|peer| peer.tool)
    }

    /// The value for the pace.
    fn pick<T>(&self, whole: T, goals: T, quick: T) -> T {
        match self.options.pace {
            Pace::Whole => whole,
            Pace::Goals => goals,
            Pace::Quick => quick,
        }
    }
}

impl Options {
    /// Whether it is a long run of all that load generators are compared by.
    fn is_whole(&self) -> bool {
        let is_asked = |part: &&str| self.parts.iter().any(|asked| asked == part);
        let others = |part: &&&str| !ON_REQUEST.contains(*part);
        self.pace == Pace::Whole && PARTS.iter().filter(others).all(is_asked)
    }

    /// Whether a tool is measured in any of the parts.
    pub fn needs(&self, tool: Tool) -> bool {
        match self.parts.as_slice() {
            [part] if part == HTTP2 => matches!(tool, Tool::Gake | Tool::H2load),
            [part] if [K6, GRPC, SINKS].contains(&part.as_str()) => tool == Tool::Gake,
            _ => true,
        }
    }

    /// Whether it is a long run of this part alone.
    fn is_alone(&self, part: &str) -> bool {
        self.pace == Pace::Whole && self.parts == [part]
    }

    fn parse(args: &[String]) -> Result<Self> {
        let mut rounds = None;
        let mut options = Self {
            rounds: 0,
            pace: Pace::Whole,
            parts: Vec::new(),
            with_oha: false,
            gake: None,
            out: None,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--rounds" => rounds = Some(value()?.parse().context("--rounds needs a number")?),
                "--only" => options.parts.extend(value()?.split(',').map(str::to_owned)),
                "--quick" => options.pace = Pace::Quick,
                "goals" => options.pace = Pace::Goals,
                "--with-oha" => options.with_oha = true,
                "--gake" => options.gake = Some(value()?.into()),
                "--out" => options.out = Some(value()?.into()),
                part if !part.starts_with('-') => options.parts.push(part.to_owned()),
                other => bail!("bench has no option `{other}`"),
            }
        }
        if let Some(unknown) = options.parts.iter().find(|part| !PARTS.contains(&part.as_str())) {
            bail!("bench has no part `{unknown}`; it has {}", PARTS.join(", "));
        }
        if options.parts.is_empty() && options.pace == Pace::Goals {
            options.parts = GOALS.map(str::to_owned).to_vec();
        }
        if options.parts.is_empty() {
            options.parts = PARTS.map(str::to_owned).to_vec();
            options.parts.retain(|part| !ON_REQUEST.contains(&part.as_str()));
        }
        options.rounds = rounds.unwrap_or(match options.pace {
            Pace::Whole => 5,
            Pace::Goals => 3,
            Pace::Quick => 1,
        });
        if options.rounds == 0 {
            bail!("--rounds must be at least 1");
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn no_selection_means_everything() {
        let options = parse("").unwrap();
        assert_eq!((options.rounds, options.parts.len(), options.pace), (5, 6, Pace::Whole));
    }

    #[test]
    fn parts_and_rounds_are_chosen() {
        let options = parse("--only cpu --only stall,start --quick --rounds 2").unwrap();
        assert_eq!((options.rounds, options.parts.len()), (2, 3));
        assert_eq!(parse("--quick").unwrap().rounds, 1);
        let shadow = parse("shadow").unwrap();
        assert!(shadow.is_alone(SHADOW) && !shadow.is_whole() && parse("").unwrap().is_whole());
        assert!(parse("sinks").unwrap().is_alone(SINKS));
        assert!(parse("--only http2").unwrap().is_alone(HTTP2));
        let goals = parse("goals").unwrap();
        assert_eq!((goals.rounds, goals.parts), (3, GOALS.map(str::to_owned).to_vec()));
        let k6 = parse("--only k6").unwrap();
        assert!(k6.is_alone(K6) && k6.needs(Tool::Gake) && !k6.needs(Tool::Wrk));
    }

    #[test]
    fn nonsense_is_refused() {
        for line in ["lunch", "--only lunch", "--rounds 0", "--rounds x", "--rounds", "--fast"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
