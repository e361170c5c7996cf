//! Scripts as the request source of scenarios: `script = "checkout.js"` in a spec.

use std::path::PathBuf;
use std::sync::Arc;

use gake_core::Load;
use gake_core::metric::Registry;
use gake_core::spec::{ConnectionSpec, FieldPath, RequestSource, RunSpec, TlsSpec};
use gake_judge::Objective;
use gake_k6::test::{LogLine, ScriptLog};

use super::prepared::PreparedScript;
use super::{ConfiguredScript, ScriptRun, ScriptSettings, UnloadedScript, fetcher};
use crate::{RunError, Scripts};

/// A script that scenarios of a run fire.
#[derive(Debug)]
pub(crate) struct ScenarioScript {
    name: String,
    configured: ConfiguredScript,
    /// Indices of the scenarios.
    scenarios: Vec<usize>,
}

/// Loads each script of a spec once.
pub(crate) fn read(
    spec: &RunSpec,
    scripts: Option<&dyn Scripts>,
) -> Result<Vec<ScenarioScript>, RunError> {
    let mut paths: Vec<(PathBuf, Vec<usize>)> = Vec::new();
    for (number, scenario) in spec.scenarios.iter().enumerate() {
        let RequestSource::Script(script) = &scenario.source else { continue };
        match paths.iter_mut().find(|(path, _)| *path == script.path) {
            Some((_, numbers)) => numbers.push(number),
            None => paths.push((script.path.clone(), vec![number])),
        }
    }
    let load = |(path, scenarios): (PathBuf, Vec<usize>)| {
        let configured = match scripts {
            Some(scripts) => scripts.load(&path)?,
            None => from_disk(&path)?,
        };
        for number in &scenarios {
            let RequestSource::Script(script) = &spec.scenarios[*number].source else { continue };
            let function = script.function.as_deref().unwrap_or("default");
            if !configured.script.has(function) {
                let at = FieldPath::root().key("scenario").index(*number).key("function");
                let problem = format!("{} does not export {function:?}", path.display());
                return Err(RunError::spec(at, problem));
            }
        }
        Ok(ScenarioScript { name: path.display().to_string(), configured, scenarios })
    };
    paths.into_iter().map(load).collect()
}

/// The tags by which the objectives of a run select series.
fn tag_keys(spec: &RunSpec) -> Vec<String> {
    let objectives = spec.objectives.iter().filter_map(|text| text.parse::<Objective>().ok());
    objectives.flat_map(|objective| objective.tag_keys()).collect()
}

/// Loads a script for a program that provides no [`Scripts`]: without environment, and without a
/// log.
fn from_disk(path: &std::path::Path) -> Result<ConfiguredScript, RunError> {
    let name = path.to_string_lossy();
    let source = UnloadedScript::read(&name, fetcher(None, None, None), None)
        .map_err(|why| RunError::cannot(format!("{name}: {why}")))?;
    let log: ScriptLog = Arc::new(|_: &LogLine| ());
    ConfiguredScript::load(source, &ScriptSettings::default(), log)
        .map_err(|error| RunError::cannot(format!("{name}: {error}")))
}

impl ScenarioScript {
    /// The path of the script as in the spec.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The script with its options.
    pub(crate) fn configured(&self) -> &ConfiguredScript {
        &self.configured
    }

    /// Whether scenario `number` fires this script.
    pub(crate) fn fires(&self, number: usize) -> bool {
        self.scenarios.contains(&number)
    }

    pub(crate) fn define(&self, metrics: &mut Registry) -> Result<(), RunError> {
        for metric in &self.configured.script.metrics {
            metrics
                .define((**metric).clone())
                .map_err(|error| RunError::cannot(format!("{}: {error}", self.name())))?;
        }
        Ok(())
    }

    /// Prepares the script for a run of `spec`. Its connection settings override the script's
    /// options.
    pub(crate) fn prepared(&self, spec: &RunSpec) -> Result<PreparedScript, RunError> {
        let own = &self.configured.run;
        let scenarios: Vec<_> =
            self.scenarios.iter().map(|number| spec.scenarios[*number].clone()).collect();
        let executors = scenarios.iter().map(|one| executor(&one.load).to_owned()).collect();
        // Requests of a script are distinguished by the tag `name`, as others are by label.
        let mut keys = own.keys.clone();
        keys.push("name".to_owned());
        keys.extend(tag_keys(spec));
        let run = ScriptRun {
            keys,
            spec: RunSpec {
                scenarios,
                connection: connection(&spec.connection, &own.spec.connection),
                tls: TlsSpec {
                    insecure: spec.tls.insecure || own.spec.tls.insecure,
                    ..spec.tls.clone()
                },
                ..spec.clone()
            },
            executors,
            ..own.clone()
        };
        Ok(PreparedScript {
            script: self.configured.script.clone(),
            run,
            thresholds: Some(Arc::clone(&self.configured.thresholds)),
            scenarios: self.scenarios.clone(),
        })
    }
}

/// Connection settings of the run, with the script's where the run sets none.
fn connection(run: &ConnectionSpec, script: &ConnectionSpec) -> ConnectionSpec {
    let or = |run: &Vec<String>, script: &Vec<String>| {
        if run.is_empty() { script.clone() } else { run.clone() }
    };
    ConnectionSpec {
        keepalive: run.keepalive && script.keepalive,
        family: run.family.or(script.family),
        dns_ttl: run.dns_ttl.or(script.dns_ttl),
        first_address: run.first_address || script.first_address,
        sources: or(&run.sources, &script.sources),
        // The first matching rule applies.
        connect_to: [run.connect_to.as_slice(), &script.connect_to].concat(),
        ..run.clone()
    }
}

/// The k6 executor that corresponds to the load.
fn executor(load: &Load) -> &'static str {
    match load {
        Load::Open { stages, .. } => match stages.as_slice() {
            [only] if only.from == only.to => "constant-arrival-rate",
            _ => "ramping-arrival-rate",
        },
        Load::Replay { .. } => "ramping-arrival-rate",
        Load::Closed { .. } | Load::Paced { .. } => "constant-vus",
        Load::Ramping { .. } => "ramping-vus",
        Load::Shared { .. } => "shared-iterations",
        Load::PerUser { .. } => "per-vu-iterations",
        Load::External { .. } => "externally-controlled",
    }
}
