//! Limits of an agent: its targets, rates, connections, users and durations.

use std::net::IpAddr;
use std::time::Duration;

use gake_core::Load;
use gake_core::plan::{DRAIN, Plan};
use gake_core::schedule::Slice;
use gake_core::spec::{BodySpec, ConnectionSpec, RequestSource, RunSpec};
use gake_run::{ConnectionPermit, Destination, ResolvedRun};
use gake_text::duration::format_duration;

use crate::rule::{AllowRule, allows, reserved};

/// Limits of an agent. By default it may not load any target.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentLimits {
    /// The targets it may load.
    pub allow: Vec<AllowRule>,
    /// Highest rate, in arrivals a second.
    pub max_rate: Option<f64>,
    /// Maximum number of connections.
    pub max_connections: Option<usize>,
    /// Maximum number of users of a script.
    pub max_users: Option<usize>,
    /// Maximum duration of a run: nothing starts later, and requests in flight have [`DRAIN`] more.
    pub max_duration: Option<Duration>,
}

impl AgentLimits {
    /// Checks the slice of a run against the limits.
    ///
    /// # Errors
    /// The exceeded limit, in a sentence.
    pub(crate) fn check(
        &self,
        spec: &RunSpec,
        run: &ResolvedRun,
        slice: Slice,
    ) -> Result<(), String> {
        self.check_targets(&spec.connection, &run.destinations())?;
        if let Some(max) = self.max_rate {
            let rates = plain(run).map(|plan| peak(plan, slice));
            let rate = rates.sum::<Option<f64>>();
            let rate = rate.ok_or("a closed loop has no rate that --max-rate could limit")?;
            if rate > max {
                return Err(format!("{rate:.0} requests a second exceed its limit of {max:.0}"));
            }
        }
        let connections = connections(run, slice);
        if let Some(max) = self.max_connections.filter(|max| connections > *max) {
            return Err(format!("{connections} connections exceed its limit of {max}"));
        }
        // Connections of scripts are checked when they are opened.
        let scenarios = run.plan.scenarios();
        let of_scripts = run.scripts.iter().flat_map(|script| &script.scenarios);
        self.check_users(of_scripts.map(|number| &scenarios[*number]), slice)?;
        self.check_length(&run.plan)
    }

    /// Checks the users of scripts' scenarios.
    fn check_users<'a>(
        &self,
        scenarios: impl Iterator<Item = &'a Plan>,
        slice: Slice,
    ) -> Result<(), String> {
        let part = |lanes| slice.among(lanes).map_or(0, |slice| slice.count(lanes));
        let users = scenarios.map(|plan| part(plan.lanes())).fold(0_usize, usize::saturating_add);
        match self.max_users {
            Some(max) if users > max => {
                Err(format!("{users} users exceed its limit of {max} (--max-users)"))
            }
            _ => Ok(()),
        }
    }

    fn check_length(&self, run: &Plan) -> Result<(), String> {
        let Some(max) = self.max_duration else { return Ok(()) };
        let end = |plan: &Plan| plan.start.checked_add(plan.length()?);
        let mut ends = run.scenarios().iter().map(end);
        let length = ends.try_fold(Duration::ZERO, |last, end| Some(last.max(end?)));
        let length = length.ok_or_else(|| {
            format!("only a count ends the run, and its limit is {}", format_duration(max))
        })?;
        if length > max {
            let (length, max) = (format_duration(length), format_duration(max));
            return Err(format!("the run takes {length}, and its limit is {max}"));
        }
        Ok(())
    }

    /// The limits during a run of `slice`.
    pub(crate) fn bounds(&self, run: &Plan, slice: Slice) -> SliceBounds {
        let own = || run.scenarios().iter().filter_map(|plan| peak(plan, slice)).sum::<f64>();
        let budget = RateBudget { left: self.max_rate.map(|max| max - own()) };
        let end = self.max_duration.map(|max| max.saturating_add(DRAIN));
        SliceBounds { budget, end }
    }

    /// Checks that scripts, whose requests and targets are not known beforehand, are allowed.
    ///
    /// # Errors
    /// Why not, in a sentence.
    pub(crate) fn check_script(&self) -> Result<(), String> {
        match self.max_rate {
            None => Ok(()),
            Some(_) => {
                Err("a script's requests have no rate that --max-rate could limit".to_owned())
            }
        }
    }

    /// The permit for connections of scripts, which checks each of them; plain scenarios of the
    /// slice have a share of the connections.
    pub(crate) fn permit(
        &self,
        by: &ConnectionSpec,
        run: &ResolvedRun,
        slice: Slice,
    ) -> ConnectionPermit {
        let (allow, by_name) = (self.allow.clone(), is_by_name(by));
        let allows = move |host: &str, address| allows(&allow, by_name, host, address);
        let left = self.max_connections.map(|max| max.saturating_sub(connections(run, slice)));
        ConnectionPermit::new(allows, left)
    }

    fn check_targets(&self, by: &ConnectionSpec, targets: &[Destination]) -> Result<(), String> {
        let by_name = is_by_name(by);
        for Destination { host, addresses } in targets {
            let refused =
                addresses.iter().find(|address| !allows(&self.allow, by_name, host, **address));
            if let Some(address) = refused {
                let place = match host.parse::<IpAddr>() {
                    Ok(_) => address.to_string(),
                    Err(_) => format!("{host} ({address})"),
                };
                let what = reserved(*address).map_or(String::new(), |range| format!(", {range}"));
                return Err(format!(
                    "it may not load {place}{what}: start it with --allow {address}"
                ));
            }
        }
        Ok(())
    }
}

/// Whether rules for host names apply: not if the spec itself maps names to addresses.
fn is_by_name(by: &ConnectionSpec) -> bool {
    by.resolve.is_empty() && by.connect_to.is_empty()
}

/// The scenarios that do not fire a script.
fn plain(run: &ResolvedRun) -> impl Iterator<Item = &Plan> {
    let is_plain = |number: &usize| !run.scripts.iter().any(|one| one.scenarios.contains(number));
    let scenarios = run.plan.scenarios().iter().enumerate();
    scenarios.filter(move |(number, _)| is_plain(number)).map(|(_, plan)| plan)
}

/// The connections of the plain scenarios of a slice.
fn connections(run: &ResolvedRun, slice: Slice) -> usize {
    let origins = run.destinations().len().max(1);
    let own = |plan: &Plan| {
        let part = |total| plan.slice(slice, Slice::WHOLE).map_or(0, |part| part.count(total));
        // A user of a closed loop keeps a connection to each origin.
        let each = if plan.load.is_open() { 1 } else { origins };
        part(plan.connections).saturating_mul(each).saturating_add(part(plan.idle_connections))
    };
    plain(run).map(own).fold(0_usize, usize::saturating_add)
}

/// The peak rate of an open loop's slice.
fn peak(plan: &Plan, slice: Slice) -> Option<f64> {
    let Some(part) = plan.slice(slice, Slice::WHOLE) else { return Some(0.0) };
    peak_of(plan.load.one()?, part.fraction())
}

/// The peak rate of a share of an open loop.
fn peak_of(load: &Load, part: f64) -> Option<f64> {
    match load {
        Load::Open { stages, .. } => {
            let highest = stages.iter().map(|stage| stage.from.max(stage.to)).fold(0.0, f64::max);
            Some(highest * part)
        }
        Load::Replay { trace, .. } => Some(trace.as_ref()?.peak() as f64 * part),
        _ => None,
    }
}

/// The limits of a slice during the run.
#[derive(Debug)]
pub(crate) struct SliceBounds {
    /// The rate left for arrivals that it takes over.
    pub(crate) budget: RateBudget,
    /// When requests in flight are aborted, since the epoch.
    pub(crate) end: Option<Duration>,
}

/// The unused part of an agent's maximum rate.
#[derive(Debug)]
pub(crate) struct RateBudget {
    /// `None` without a limit.
    left: Option<f64>,
}

impl RateBudget {
    /// Reserves the rate of one of `of` equal slices of an open loop, if enough is left.
    pub(crate) fn take(&mut self, load: &Load, of: usize) -> bool {
        let (Some(left), Some(rate)) = (self.left, peak_of(load, 1.0 / of as f64)) else {
            return load.is_open();
        };
        // Sums of shares are exact up to rounding.
        let fits = rate <= left + 1e-9 * rate.max(1.0);
        if fits {
            self.left = Some(left - rate);
        }
        fits
    }
}

/// The spec for agents, without what the coordinator does itself.
///
/// # Errors
/// What a fleet does not support, or an agent must not do, in a sentence.
pub(crate) fn for_agents(spec: &RunSpec) -> Result<RunSpec, String> {
    let mut spec = spec.clone();
    spec.objectives.clear();
    spec.watch.clear();
    spec.abort = false;
    let file = |what: &str| {
        Err(format!("{what} is a file, and only certificates, recordings and scripts are sent"))
    };
    if spec.tls.key_log.is_some() {
        return file("a key log");
    }
    let by = &spec.connection;
    if by.unix_socket.is_some() {
        return Err("a Unix socket is local to one machine".to_owned());
    }
    if by.proxy.is_some() {
        return Err("an agent cannot check the targets behind a proxy".to_owned());
    }
    if by.max_redirects > 0 {
        return Err("a redirect may lead to a target that is not allowed".to_owned());
    }
    for scenario in &spec.scenarios {
        let is_file = |body: &Option<BodySpec>| matches!(body, Some(BodySpec::File(_)));
        match &scenario.source {
            // A script and the files that it reads are sent in an archive.
            RequestSource::Url(_) | RequestSource::Recording(_) | RequestSource::Script(_) => {}
            RequestSource::WebSocket(websocket) => {
                if is_file(&websocket.message) {
                    return file("a message");
                }
            }
            RequestSource::Requests(requests) => {
                if requests.iter().any(|request| is_file(&request.body)) {
                    return file("a body");
                }
            }
            // Without definitions an agent would contact a server that may not be allowed.
            RequestSource::Grpc(grpc) => {
                if !matches!(grpc.proto_set, Some(BodySpec::Bytes(_))) {
                    return Err("the definitions of gRPC are not in the spec itself".to_owned());
                }
            }
            RequestSource::Targets(_) => return file("a list of targets"),
            RequestSource::Rows(_) => return file("a data file"),
            RequestSource::Given(_) => {
                return Err("its requests are made on this machine".to_owned());
            }
        }
        if is_file(&scenario.request.body) {
            return file("a body");
        }
        if matches!(scenario.load, Load::External { .. }) {
            return Err("its number of users is set by hand".to_owned());
        }
    }
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use gake_core::spec::{GrpcSpec, RequestSpec, RowsSpec, ScenarioSpec};
    use gake_run::Inputs;

    use super::*;
    use expect_test::expect;

    use crate::rule::tests::rules;

    fn spec(url: &str, load: Load) -> RunSpec {
        RunSpec::new(ScenarioSpec::new(RequestSource::Url(url.to_owned()), load))
    }

    fn refusal(limits: &AgentLimits, spec: &RunSpec, slice: Slice) -> String {
        let prepared = ResolvedRun::new(spec, Inputs::default()).unwrap();
        limits.check(spec, &prepared, slice).err().unwrap_or_default()
    }

    #[test]
    fn targets_that_are_not_allowed_are_refused() {
        let load = || Load::rate(10.0, Duration::from_secs(1));
        let mut run = spec("http://localhost:9/", load());
        let none = AgentLimits::default();
        assert!(refusal(&none, &run, Slice::WHOLE).contains("--allow"), "nothing by default");
        let named = AgentLimits { allow: rules(&["LOCALHOST"]), ..none.clone() };
        assert_eq!(refusal(&named, &run, Slice::WHOLE), "");
        let all = AgentLimits { allow: rules(&["0.0.0.0/0", "::/0"]), ..none.clone() };
        let why = refusal(&all, &run, Slice::WHOLE);
        assert!(why.contains(", a loopback address: start it with --allow"), "{why}");
        run.connection.resolve = vec!["localhost:9:10.0.0.7".to_owned()];
        expect!["it may not load localhost (10.0.0.7), a private address: start it with --allow 10.0.0.7"].assert_eq(&refusal(&named, &run, Slice::WHOLE));
        let networks = AgentLimits { allow: rules(&["10.0.0.0/8"]), ..none };
        assert_eq!(refusal(&networks, &run, Slice::WHOLE), "");
    }

    #[test]
    fn a_script_under_a_rate_is_refused() {
        let bounded = AgentLimits { max_rate: Some(1.0), ..AgentLimits::default() };
        expect!["a script's requests have no rate that --max-rate could limit"]
            .assert_eq(&bounded.check_script().unwrap_err());
        assert_eq!(AgentLimits::default().check_script(), Ok(()));
    }

    #[test]
    fn an_agent_keeps_its_bounds() {
        let allow = rules(&["127.0.0.0/8"]);
        let slice = Slice::new(0, 4);
        let open = spec("http://127.0.0.1:9/", Load::rate(400.0, Duration::from_secs(60)));
        let bound = AgentLimits {
            allow: allow.clone(),
            max_rate: Some(100.0),
            max_connections: Some(250),
            max_users: None,
            max_duration: Some(Duration::from_secs(60)),
        };
        assert_eq!(refusal(&bound, &open, slice), "");
        let slower = AgentLimits { max_rate: Some(99.0), ..bound.clone() };
        expect!["100 requests a second exceed its limit of 99"]
            .assert_eq(&refusal(&slower, &open, slice));
        let fewer = AgentLimits { max_connections: Some(249), ..bound.clone() };
        expect!["250 connections exceed its limit of 249"]
            .assert_eq(&refusal(&fewer, &open, slice));
        let shorter = AgentLimits { max_duration: Some(Duration::from_secs(59)), ..bound.clone() };
        expect!["the run takes 1m, and its limit is 59s"]
            .assert_eq(&refusal(&shorter, &open, slice));
        let mut late = open.clone();
        late.scenarios[0].start = Duration::from_secs(1);
        expect!["the run takes 61s, and its limit is 1m"].assert_eq(&refusal(&bound, &late, slice));
        let end =
            bound.bounds(&ResolvedRun::new(&open, Inputs::default()).unwrap().plan, slice).end;
        assert_eq!(end, Some(Duration::from_secs(60) + DRAIN));
        let closed = spec("http://127.0.0.1:9/", Load::closed(5));
        let plan = ResolvedRun::new(&closed, Inputs::default()).unwrap().plan;
        let users = |max| {
            let limits = AgentLimits { max_users: Some(max), ..AgentLimits::default() };
            limits.check_users(plan.scenarios().iter(), slice)
        };
        assert_eq!(users(2), Ok(()), "two of five in the first of four slices");
        expect!["2 users exceed its limit of 1 (--max-users)"].assert_eq(&users(1).unwrap_err());
        expect!["a closed loop has no rate that --max-rate could limit"]
            .assert_eq(&refusal(&bound, &closed, slice));
        let free = AgentLimits { allow, ..AgentLimits::default() };
        assert_eq!(refusal(&free, &closed, slice), "");
    }

    #[test]
    fn local_files_and_settings_are_not_sent() {
        let load = || Load::closed(1);
        let plain = spec("http://h/", load());
        let mut own = plain.clone();
        own.objectives = vec!["p99<5ms".to_owned()];
        own.watch = vec!["pid:1".to_owned()];
        own.abort = true;
        assert_eq!(for_agents(&own), Ok(plain.clone()), "the coordinator judges objectives");
        let changed = |change: &dyn Fn(&mut RunSpec)| {
            let mut spec = plain.clone();
            change(&mut spec);
            for_agents(&spec)
        };
        let body = || Some(BodySpec::File("/etc/passwd".into()));
        for refused in [
            changed(&|spec| spec.scenarios[0].source = RequestSource::Targets("/etc/hosts".into())),
            changed(&|spec| {
                let rows = RowsSpec { url: "http://h/${x}".to_owned(), path: "/etc/hosts".into() };
                spec.scenarios[0].source = RequestSource::Rows(rows);
            }),
            changed(&|spec| spec.scenarios[0].request.body = body()),
            changed(&|spec| {
                let request = RequestSpec { body: body(), ..RequestSpec::new("http://h/") };
                spec.scenarios[0].source = RequestSource::Requests(vec![request]);
            }),
            changed(&|spec| {
                let grpc = GrpcSpec { proto: vec!["/etc/a.proto".into()], ..GrpcSpec::default() };
                spec.scenarios[0].source = RequestSource::Grpc(grpc);
            }),
            changed(&|spec| spec.tls.key_log = Some("keys".into())),
            changed(&|spec| spec.connection.unix_socket = Some("/run/x".into())),
            changed(&|spec| spec.connection.proxy = Some("http://p:1".to_owned())),
            changed(&|spec| spec.connection.max_redirects = 1),
            changed(&|spec| spec.scenarios[0].load = Load::External { users: 1, max: 2 }),
        ] {
            assert!(refused.is_err(), "{refused:?}");
        }
    }
}
