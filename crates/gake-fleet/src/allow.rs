//! What an agent may be made to do: its targets and its bounds.

use std::net::IpAddr;
use std::time::Duration;

use gake_core::Load;
use gake_core::plan::{DRAIN, Plan};
use gake_core::schedule::Slice;
use gake_core::spec::{BodySpec, ConnectionSpec, RequestSource, RunSpec};
use gake_run::{ConnectionPermit, Destination, Prepared};
use gake_text::duration::format_duration;

use crate::rule::{AllowRule, allows, reserved};

/// What an agent may be made to do. By default it may load nothing.
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
    /// Longest run: nothing begins later, and what is in flight has [`DRAIN`] more.
    pub max_duration: Option<Duration>,
}

impl AgentLimits {
    /// Whether the slice of a run keeps to the limits.
    ///
    /// # Errors
    /// Which limit it does not keep to, in a sentence.
    pub(crate) fn check(&self, spec: &RunSpec, run: &Prepared, slice: Slice) -> Result<(), String> {
        self.check_targets(&spec.connection, &run.destinations())?;
        let scenarios = run.plan.scenarios();
        if let Some(max) = self.max_rate {
            let rates = scenarios.iter().map(|plan| peak(plan, slice));
            let rate = rates.sum::<Option<f64>>();
            let rate = rate.ok_or("a closed loop has no rate that --max-rate could bound")?;
            if rate > max {
                return Err(format!("{rate:.0} requests a second are more than its {max:.0}"));
            }
        }
        if let Some(max) = self.max_connections {
            let origins = run.destinations().len().max(1);
            let own = |plan: &Plan| {
                let part =
                    |total| plan.slice(slice, Slice::WHOLE).map_or(0, |part| part.count(total));
                // A user of a closed loop keeps a connection to each origin.
                let each = if plan.load.is_open() { 1 } else { origins };
                part(plan.connections)
                    .saturating_mul(each)
                    .saturating_add(part(plan.idle_connections))
            };
            let connections = scenarios.iter().map(own).fold(0_usize, usize::saturating_add);
            if connections > max {
                return Err(format!("{connections} connections are more than its {max}"));
            }
        }
        self.check_length(&run.plan)
    }

    /// Whether the slice of a script's run keeps to the limits that it has beforehand; its
    /// connections are checked when they are opened.
    ///
    /// # Errors
    /// Which limit it does not keep to, in a sentence.
    pub(crate) fn check_users(&self, run: &Plan, slice: Slice) -> Result<(), String> {
        let part = |lanes| slice.among(lanes).map_or(0, |slice| slice.count(lanes));
        let users = run.scenarios().iter().map(|plan| part(plan.lanes()));
        let users = users.fold(0_usize, usize::saturating_add);
        match self.max_users {
            Some(max) if users > max => {
                Err(format!("{users} users are more than its {max} (--max-users)"))
            }
            _ => self.check_length(run),
        }
    }

    fn check_length(&self, run: &Plan) -> Result<(), String> {
        let Some(max) = self.max_duration else { return Ok(()) };
        let end = |plan: &Plan| plan.start.checked_add(plan.length()?);
        let mut ends = run.scenarios().iter().map(end);
        let length = ends.try_fold(Duration::ZERO, |last, end| Some(last.max(end?)));
        let length = length.ok_or_else(|| {
            format!("nothing but a count ends the run, and it allows {}", format_duration(max))
        })?;
        if length > max {
            let (length, max) = (format_duration(length), format_duration(max));
            return Err(format!("the run takes {length}, and it allows {max}"));
        }
        Ok(())
    }

    /// What bounds an agent with `slice` of a run during it.
    pub(crate) fn bounds(&self, run: &Plan, slice: Slice) -> SliceBounds {
        let own = || run.scenarios().iter().filter_map(|plan| peak(plan, slice)).sum::<f64>();
        let budget = RateBudget { left: self.max_rate.map(|max| max - own()) };
        let end = self.max_duration.map(|max| max.saturating_add(DRAIN));
        SliceBounds { budget, end }
    }

    /// Whether a script may be run, whose requests and targets nobody knows beforehand.
    ///
    /// # Errors
    /// Why not, in a sentence.
    pub(crate) fn check_script(&self) -> Result<(), String> {
        match self.max_rate {
            None => Ok(()),
            Some(_) => {
                Err("a script's requests have no rate that --max-rate could bound".to_owned())
            }
        }
    }

    /// The connections that a script may open, each checked when it is.
    pub(crate) fn permit(&self, by: &ConnectionSpec) -> ConnectionPermit {
        let (allow, by_name) = (self.allow.clone(), is_by_name(by));
        let allows = move |host: &str, address| allows(&allow, by_name, host, address);
        ConnectionPermit::new(allows, self.max_connections)
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

/// Whether a host's name is enough: a name that the spec itself resolves is no longer that of the
/// host.
fn is_by_name(by: &ConnectionSpec) -> bool {
    by.resolve.is_empty() && by.connect_to.is_empty()
}

/// The highest rate of an open loop's slice.
fn peak(plan: &Plan, slice: Slice) -> Option<f64> {
    let Some(part) = plan.slice(slice, Slice::WHOLE) else { return Some(0.0) };
    peak_of(plan.load.one()?, part.fraction())
}

/// The highest rate of a part of an open loop.
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

/// What bounds a slice while it runs.
#[derive(Debug)]
pub(crate) struct SliceBounds {
    /// For what it takes over.
    pub(crate) budget: RateBudget,
    /// When everything ends that is in flight still, after the epoch.
    pub(crate) end: Option<Duration>,
}

/// What is left of an agent's highest rate.
#[derive(Debug)]
pub(crate) struct RateBudget {
    /// `None` without a limit.
    left: Option<f64>,
}

impl RateBudget {
    /// Takes the rate of one of `of` equal parts of an open loop, when there is enough left.
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

/// A spec as agents are given it: without what the coordinator does by itself.
///
/// # Errors
/// What a fleet cannot do, or an agent must not, in a sentence.
pub(crate) fn for_agents(spec: &RunSpec) -> Result<RunSpec, String> {
    let mut spec = spec.clone();
    spec.objectives.clear();
    spec.watch.clear();
    spec.abort = false;
    let file = |what: &str| Err(format!("{what} is a file, and files do not travel with the spec"));
    if spec.tls.key_log.is_some() {
        return file("a key log");
    }
    let by = &spec.connection;
    if by.unix_socket.is_some() {
        return Err("a Unix socket is on one machine".to_owned());
    }
    if by.proxy.is_some() {
        return Err("an agent cannot know what a proxy leads to".to_owned());
    }
    if by.max_redirects > 0 {
        return Err("a redirect may lead to a target that is not allowed".to_owned());
    }
    for scenario in &spec.scenarios {
        let is_file = |body: &Option<BodySpec>| matches!(body, Some(BodySpec::File(_)));
        match &scenario.source {
            // A script's file, and those that it reads, travel in its archive.
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
            // Without definitions an agent would ask a server that may not be allowed.
            RequestSource::Grpc(grpc) => {
                if !matches!(grpc.proto_set, Some(BodySpec::Bytes(_))) {
                    return Err("the definitions of gRPC are not in the spec itself".to_owned());
                }
            }
            RequestSource::Targets(_) => return file("a list of targets"),
            RequestSource::Given(_) => return Err("its requests are made here".to_owned()),
        }
        if is_file(&scenario.request.body) {
            return file("a body");
        }
        if matches!(scenario.load, Load::External { .. }) {
            return Err("the number of its users is set by hand".to_owned());
        }
    }
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use gake_core::spec::{GrpcSpec, RequestSpec, ScenarioSpec};
    use gake_run::Inputs;

    use super::*;

    use crate::rule::tests::rules;

    fn spec(url: &str, load: Load) -> RunSpec {
        RunSpec::new(ScenarioSpec::new(RequestSource::Url(url.to_owned()), load))
    }

    fn refusal(limits: &AgentLimits, spec: &RunSpec, slice: Slice) -> String {
        let prepared = Prepared::new(spec, Inputs::default()).unwrap();
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
        assert!(refusal(&named, &run, Slice::WHOLE).contains("10.0.0.7"));
        let networks = AgentLimits { allow: rules(&["10.0.0.0/8"]), ..none };
        assert_eq!(refusal(&networks, &run, Slice::WHOLE), "");
    }

    #[test]
    fn a_script_under_a_rate_is_refused() {
        let bounded = AgentLimits { max_rate: Some(1.0), ..AgentLimits::default() };
        assert!(bounded.check_script().unwrap_err().contains("--max-rate"));
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
        assert!(refusal(&slower, &open, slice).contains("more than its 99"));
        let fewer = AgentLimits { max_connections: Some(249), ..bound.clone() };
        assert!(refusal(&fewer, &open, slice).contains("250 connections"));
        let shorter = AgentLimits { max_duration: Some(Duration::from_secs(59)), ..bound.clone() };
        assert!(refusal(&shorter, &open, slice).contains("1m"));
        let mut late = open.clone();
        late.scenarios[0].start = Duration::from_secs(1);
        assert!(refusal(&bound, &late, slice).contains("the run takes 61s"), "it starts later");
        let end = bound.bounds(&Prepared::new(&open, Inputs::default()).unwrap().plan, slice).end;
        assert_eq!(end, Some(Duration::from_secs(60) + DRAIN));
        let closed = spec("http://127.0.0.1:9/", Load::closed(5));
        let plan = Prepared::new(&closed, Inputs::default()).unwrap().plan;
        let users = |max| {
            let limits = AgentLimits { max_users: Some(max), ..AgentLimits::default() };
            limits.check_users(&plan, slice)
        };
        assert_eq!(users(2), Ok(()), "two of five in the first of four parts");
        assert!(users(1).unwrap_err().contains("2 users are more than its 1"));
        assert!(refusal(&bound, &closed, slice).contains("--max-rate"));
        let free = AgentLimits { allow, ..AgentLimits::default() };
        assert_eq!(refusal(&free, &closed, slice), "");
    }

    #[test]
    fn nothing_that_is_on_one_machine_travels() {
        let load = || Load::closed(1);
        let plain = spec("http://h/", load());
        let mut own = plain.clone();
        own.objectives = vec!["p99<5ms".to_owned()];
        own.watch = vec!["pid:1".to_owned()];
        own.abort = true;
        assert_eq!(for_agents(&own), Ok(plain.clone()), "objectives are judged by one");
        let changed = |change: &dyn Fn(&mut RunSpec)| {
            let mut spec = plain.clone();
            change(&mut spec);
            for_agents(&spec)
        };
        let body = || Some(BodySpec::File("/etc/passwd".into()));
        for refused in [
            changed(&|spec| spec.scenarios[0].source = RequestSource::Targets("/etc/hosts".into())),
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
