//! Everything that is known before the first request: the plan, the requests, their destinations.

use std::sync::Arc;

use gake_core::metric::{Registry, Tags};
use gake_core::plan::{Plan, PlanLoad};
use gake_core::spec::{FieldPath, RequestSource, RunSpec, ScenarioSpec};
use gake_judge::Objective;
use gake_text::redact::Redactor;
use gake_watch::{SourceError, WatchSource};
use gake_wire::{
    BodyCheck, ClientSettings, PreparedRequests, Protocol, RedirectRules, Resolver, TlsOptions,
    Tracer, WireError, address_metrics, handshake_metrics, stream_metrics,
};

use crate::requests::{self, RequestSet};
use crate::script::scenario::{self, ScenarioScript};
use crate::script::{ConfiguredScript, PreparedScript};
use crate::{Inputs, RunError, Scripts, connection, plan};

/// The requests of a spec, read once for any number of runs.
#[derive(Debug)]
pub struct LoadedRequests {
    /// By scenario; `None` for scripts.
    pub(crate) sets: Vec<Option<RequestSet>>,
    scripts: Vec<ScenarioScript>,
    resolver: Resolver,
    tls: TlsOptions,
    redirect_rules: RedirectRules,
}

/// A run that is ready to start, any number of times.
#[derive(Debug, Clone)]
pub struct ResolvedRun {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Requests and connections of each scenario that does not fire a script.
    pub wires: Vec<Arc<PreparedRequests>>,
    /// The scripts of the run.
    pub scripts: Vec<PreparedScript>,
    /// The seed of random arrivals.
    pub seed: u64,
    /// The objectives of the run.
    pub objectives: Vec<Objective>,
    /// Whether a missed objective ends the run.
    pub abort: bool,
    /// Sources to sample during the run.
    pub watch: Vec<WatchSource>,
    /// Warnings and notes for the user, in sentences, to be shown before the run.
    pub notes: Vec<String>,
    /// Hides secrets in recorded responses.
    pub redactor: Redactor,
    /// Samples requests for traces.
    pub tracer: Option<Arc<Tracer>>,
}

impl LoadedRequests {
    /// Reads the requests of every scenario of `spec`.
    ///
    /// # Errors
    /// When something cannot be read or is not valid.
    pub fn read(spec: &RunSpec, mut inputs: Inputs<'_>) -> Result<Self, RunError> {
        let resolver = connection::resolver(spec)?;
        let tls = connection::tls(&spec.tls)?;
        // Errors in settings are reported before a large file is read.
        connection::settings(&spec.connection, true, (1, 1))?;
        for (i, scenario) in spec.scenarios.iter().enumerate() {
            let at = FieldPath::root().key("scenario").index(i);
            connection::inspection(scenario, &at)?;
            if let RequestSource::WebSocket(websocket) = &scenario.source {
                connection::reply_rule(websocket, &at)?;
            }
        }
        let sets = requests::read(spec, &mut inputs)?;
        let scripts = scenario::read(spec, inputs.scripts)?;
        let tls = TlsOptions { key_log: connection::key_log(&spec.tls)?, ..tls };
        let redirect_rules = inputs.redirect_rules;
        Ok(Self { sets, scripts, resolver, tls, redirect_rules })
    }

    /// The target of the first scenario, as the user named it: a URL without its password, or a
    /// file.
    #[must_use]
    pub fn name(&self) -> &str {
        match self.sets.first() {
            Some(Some(set)) => set.name.as_str(),
            Some(None) => self.scripts.first().map_or("", ScenarioScript::name),
            None => "",
        }
    }

    /// The scripts of the run.
    pub fn scripts(&self) -> impl Iterator<Item = &ConfiguredScript> {
        self.scripts.iter().map(ScenarioScript::configured)
    }

    /// Reloads the scripts for another run, since a script runs once.
    pub(crate) fn load_scripts_again(
        &mut self,
        spec: &RunSpec,
        scripts: Option<&dyn Scripts>,
    ) -> Result<(), RunError> {
        self.scripts = scenario::read(spec, scripts)?;
        Ok(())
    }

    /// Whether every request goes over TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.scripts.is_empty() && self.sets.iter().flatten().all(|set| set.requests.is_secure())
    }

    /// Hides secrets in names of targets.
    pub fn redact(&mut self, redactor: &Redactor) {
        for set in self.sets.iter_mut().flatten() {
            set.name = redactor.text(&set.name).into_inner();
        }
    }

    /// Notes for the user about the requests, in sentences.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.sets.iter().flatten().flat_map(|set| &set.notes).map(String::as_str)
    }

    /// Prepares a run of `spec`, which must have the same requests as the spec that was read, but
    /// may differ in everything else. Blocks for name resolution.
    ///
    /// # Errors
    /// When a request is not HTTP, a name has no address, or an objective or source is not valid.
    pub fn prepare(&self, spec: &RunSpec) -> Result<ResolvedRun, RunError> {
        let plans = self.plans(spec);
        plan::check_size(&plans, gake_files::table_size()).map_err(RunError::cannot)?;
        let mut labels = Vec::new();
        let mut wires = Vec::with_capacity(self.sets.len());
        let list = FieldPath::root().key("scenario");
        let scenarios = spec.scenarios.iter().enumerate();
        for ((set, (i, scenario)), plan) in self.sets.iter().zip(scenarios).zip(&plans) {
            let Some(set) = set else { continue };
            let pooled = plan.load.is_open();
            let mut settings =
                connection::settings(&spec.connection, pooled, (plan.connections, plan.streams))?;
            settings.inspect = connection::inspection(scenario, &list.index(i))?;
            if let (Some(inspection), Some(call)) = (&mut settings.inspect, &set.call)
                && let Some(check) = inspection.body.take()
            {
                let check = BodyCheck::clone(&check).of_messages(call.method.clone());
                inspection.body = Some(Arc::new(check));
            }
            settings.redirect_rules = self.redirect_rules;
            settings.stream = scenario.stream || set.is_stream;
            if let RequestSource::WebSocket(websocket) = &scenario.source {
                settings.protocol = Protocol::WebSocket;
                settings.reply = connection::reply_rule(websocket, &list.index(i))?;
            }
            let mut wire = self.wire(set, settings)?;
            if self.sets.len() > 1 {
                wire.number_labels(&mut labels);
            } else {
                labels.clone_from(&wire.labels);
            }
            wires.push(Arc::new(wire));
        }
        self.ready(spec, plans, wires, &labels)
    }

    /// As [`LoadedRequests::prepare`], reusing the wires of a run with the same connection
    /// settings.
    ///
    /// # Errors
    /// When an objective or source is not valid.
    pub fn prepare_over(
        &self,
        spec: &RunSpec,
        wires: Vec<Arc<PreparedRequests>>,
    ) -> Result<ResolvedRun, RunError> {
        let labels = wires.last().map(|wire| wire.labels.clone()).unwrap_or_default();
        let plans = self.plans(spec);
        plan::check_size(&plans, gake_files::table_size()).map_err(RunError::cannot)?;
        self.ready(spec, plans, wires, &labels)
    }

    fn plans(&self, spec: &RunSpec) -> Vec<Plan> {
        let plan = |(number, (one, set)): (usize, (&ScenarioSpec, &Option<RequestSet>))| match set {
            Some(set) => plan::of_scenario(spec, one, set.name.clone(), set.trace.as_ref()),
            None => {
                let script = self.scripts.iter().find(|script| script.fires(number));
                let name = script.map_or("", ScenarioScript::name).to_owned();
                plan::of_scenario(spec, one, name, None)
            }
        };
        spec.scenarios.iter().zip(&self.sets).enumerate().map(plan).collect()
    }

    fn wire(
        &self,
        set: &RequestSet,
        mut settings: ClientSettings,
    ) -> Result<PreparedRequests, RunError> {
        settings.feed.clone_from(&set.feed);
        settings.labels = self.sets.len() > 1;
        let wire = PreparedRequests::prepare(&set.requests, &self.resolver, &self.tls, settings);
        let wire = match &set.order {
            Some(order) => wire.and_then(|wire| wire.in_order(order.clone())),
            None => wire,
        };
        wire.map_err(|error| {
            let prefix = set.file.as_ref().map_or(String::new(), |file| format!("{file}: "));
            match error {
                WireError::Resolve(_) | WireError::Tls(_) => {
                    RunError::cannot(format!("{prefix}{error}"))
                }
                WireError::Source(_) => {
                    let field = FieldPath::root().key("connection").key("sources");
                    RunError::spec(field, error)
                }
                // A recorded request cannot be sent.
                _ if set.trace.is_some() => RunError::cannot(format!("{prefix}{error}")),
                _ => RunError::spec(set.field.clone(), format!("{prefix}{error}")),
            }
        })
    }

    fn ready(
        &self,
        spec: &RunSpec,
        plans: Vec<Plan>,
        wires: Vec<Arc<PreparedRequests>>,
        labels: &[String],
    ) -> Result<ResolvedRun, RunError> {
        let mut metrics = Registry::default();
        let streams = wires.iter().any(|wire| wire.network.settings.stream);
        let own = stream_metrics().into_iter().filter(|_| streams);
        for metric in own.chain(handshake_metrics()).chain(address_metrics()) {
            let defined = metrics.define((*metric).clone());
            defined.map_err(|error| RunError::cannot(error.to_string()))?;
        }
        for script in &self.scripts {
            script.define(&mut metrics)?;
        }
        let mut ready = ready(spec, plans, labels, &metrics)?;
        ready.scripts =
            self.scripts.iter().map(|one| one.prepared(spec)).collect::<Result<_, _>>()?;
        if !ready.scripts.is_empty() && spec.threads.is_none() {
            // Scripts take more CPU than plain requests.
            ready.spread_over_cores();
        }
        // A feed or script may share open files among workers.
        let is_made_before = wires.iter().all(|wire| wire.network.settings.feed.is_none());
        if is_made_before && ready.scripts.is_empty() {
            let plan = Arc::make_mut(&mut ready.plan);
            let tables = plan::tables(plan, gake_files::table_size());
            plan.tables = if tables > 1 && gake_files::can_own_table() { tables } else { 1 };
        }
        let wire_notes = wires.iter().flat_map(|wire| &wire.notes).cloned();
        let set_notes = |is_file: bool| {
            let sets = self.sets.iter().flatten().filter(move |set| set.file.is_some() == is_file);
            sets.flat_map(|set| &set.notes).cloned()
        };
        let notes = set_notes(false).chain(wire_notes).chain(set_notes(true)).collect();
        Ok(ResolvedRun { wires, notes, ..ready })
    }
}

/// The fields of a run that do not depend on its requests.
fn ready(
    spec: &RunSpec,
    plans: Vec<Plan>,
    labels: &[String],
    metrics: &Registry,
) -> Result<ResolvedRun, RunError> {
    let objectives: Vec<Objective> = parsed(&spec.objectives, "objectives")?;
    let watch = sources(&spec.watch)?;
    let about_target = objectives.iter().position(Objective::is_about_target);
    if let (Some(at), true) = (about_target, watch.is_empty()) {
        let problem = format!(
            "{} is about the target itself: add --watch port:8080, pid:1234, prometheus:URL or \
             actuator:URL",
            objectives[at]
        );
        return Err(RunError::spec(FieldPath::root().key("objectives").index(at), problem));
    }
    let plan = plan::whole(spec, plans, labels);
    let objectives: Vec<_> = objectives.into_iter().map(|one| one.of_plan(&plan)).collect();
    for (i, objective) in objectives.iter().enumerate() {
        let path = FieldPath::root().key("objectives").index(i);
        let check = objective.check(&plan, metrics);
        check.map_err(|why| RunError::spec(path, format!("{objective}: {why}")))?;
    }
    Ok(ResolvedRun {
        plan: Arc::new(plan),
        wires: Vec::new(),
        scripts: Vec::new(),
        seed: spec.seed,
        objectives,
        abort: spec.abort,
        watch,
        notes: Vec::new(),
        redactor: Redactor::off(),
        tracer: None,
    })
}

impl ResolvedRun {
    /// Gives the run one worker per core, as far as it has enough users or requests in flight: for
    /// works that take more CPU than plain requests.
    pub fn spread_over_cores(&mut self) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let plan = Arc::make_mut(&mut self.plan);
        let lanes = plan.scenarios().iter().map(Plan::lanes).max();
        plan.threads = cores.min(lanes.unwrap_or(1));
    }

    /// Hides secrets in names of targets and labels, and in the bodies of failed responses.
    pub fn redact(&mut self, redactor: &Redactor) {
        self.plan = Arc::new(redacted(&self.plan, redactor));
        self.redactor = redactor.clone();
    }

    /// Reads the requests of `spec` and prepares a run. Blocks for name resolution.
    ///
    /// # Errors
    /// When the spec is not valid, or something cannot be read or resolved.
    pub fn new(spec: &RunSpec, inputs: Inputs<'_>) -> Result<Self, RunError> {
        LoadedRequests::read(spec, inputs)?.prepare(spec)
    }

    /// Prepares a run of `spec` for [`ResolvedRun::run_works`], whose works have these labels and
    /// metrics. The requests of the spec are ignored; `targets` names the target of each scenario.
    ///
    /// # Errors
    /// When an objective or source is not valid, or names a metric or label that the run does not
    /// have.
    pub fn of_works(
        spec: &RunSpec,
        targets: &[String],
        labels: &[String],
        metrics: &Registry,
    ) -> Result<Self, RunError> {
        let target = |number: usize| targets.get(number).cloned().unwrap_or_default();
        let scenarios = spec.scenarios.iter().enumerate();
        let plans: Vec<_> = scenarios
            .map(|(number, scenario)| plan::of_scenario(spec, scenario, target(number), None))
            .collect();
        plan::check_lanes(&plans, "users").map_err(RunError::cannot)?;
        ready(spec, plans, labels, metrics)
    }
}

/// Hides secrets in the names of a plan.
fn redacted(plan: &Plan, redactor: &Redactor) -> Plan {
    let mut plan = plan.clone();
    let hide = |text: &mut String| *text = redactor.text(text).into_inner();
    hide(&mut plan.target);
    plan.labels.iter_mut().for_each(hide);
    // As in the series that carry them.
    plan.tags = Tags::new(plan.tags).without_secrets().pairs().to_vec();
    if let PlanLoad::Scenarios { scenarios } = &mut plan.load {
        for plan in scenarios {
            *plan = redacted(plan, redactor);
        }
    }
    plan
}

/// Parses the sources to watch. Errors must not quote them, since they may contain passwords.
fn sources(texts: &[String]) -> Result<Vec<WatchSource>, RunError> {
    let list = FieldPath::root().key("watch");
    let each = texts.iter().enumerate().map(|(i, text)| {
        let refused = |error: SourceError| RunError::spec(list.index(i), error.to_string());
        text.parse().map_err(refused)
    });
    each.collect()
}

fn parsed<T>(texts: &[String], key: &str) -> Result<Vec<T>, RunError>
where
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    let list = FieldPath::root().key(key);
    let each = texts.iter().enumerate().map(|(i, text)| {
        text.parse().map_err(|error| RunError::spec(list.index(i), format!("{text}: {error}")))
    });
    each.collect()
}
