//! The servers and the load of a step.

use gake_judge::Summary;
use gake_report::experiment::Expectation;
use gake_run::spec::{RunDraft, RunSpec};
use gake_session::Failure;
use toml::{Table, Value};

use crate::arithmetic::{evaluate, fill};
use crate::bench::StepError;
use crate::database;
use crate::definition::StepDefinition;
use crate::expectations;
use crate::names::StepNames;
use crate::proxy::{ProxyFlags, ShadowSetup};
use crate::real_database::{CLOSING, DatabaseGuard};
use crate::server::ExperimentServer;
use crate::settings::ExperimentSettings;
use crate::slow_clients::SlowClients;

/// The servers of a step, and clients that occupy their threads. Dropping it stops them.
#[derive(Debug)]
pub struct StepServers<'a> {
    _slow_clients: Option<SlowClients>,
    servers: Servers,
    other: Option<ExperimentServer>,
    database: Option<&'a DatabaseGuard<'a>>,
    rows_before: u64,
}

#[derive(Debug)]
enum Servers {
    Plain(ExperimentServer),
    ShadowSetup(Box<ShadowSetup>),
}

impl<'a> StepServers<'a> {
    /// Starts them and gives the step their URLs.
    pub fn start(
        settings: &ExperimentSettings,
        step: &StepDefinition,
        names: &mut StepNames<'_>,
        database: Option<&'a DatabaseGuard<'a>>,
    ) -> Result<Self, StepError> {
        let flags = match settings.target {
            Some(_) => String::new(),
            None => fill(&step.server, names)?,
        };
        let mut rows_before = 0;
        let servers = if let Some(url) = &settings.target {
            Servers::Plain(ExperimentServer::target(url))
        } else if let Some(proxy) = &step.proxy {
            let flags = ProxyFlags {
                production: flags,
                sandbox: fill(&proxy.sandbox, names)?,
                user: fill(&proxy.user, names)?,
                has_second: proxy.has_second,
                proxy: fill(&proxy.flags, names)?,
            };
            Servers::ShadowSetup(Box::new(ShadowSetup::start(&flags)?))
        } else if let Some(database) = database {
            let (server, rows) = database.start(&flags, !step.calibrates)?;
            rows_before = rows;
            Servers::Plain(server)
        } else {
            Servers::Plain(ExperimentServer::lab(&flags)?)
        };
        let other = step.other.as_deref().map(ExperimentServer::lab).transpose()?;
        let _slow_clients = None;
        let mut loaded = Self { _slow_clients, servers, other, database, rows_before };
        let other = loaded.other.as_ref().map(|other| ("other", other));
        for (name, server) in [("url", loaded.server())].into_iter().chain(other) {
            names.texts.insert(name.to_owned(), server.url_of(step.path()));
        }
        if let Some(count) = &step.slow_clients {
            let count = evaluate(count, names)? as usize;
            let clients = SlowClients::start(loaded.server(), step.path(), count)?;
            names.numbers.insert("taken".to_owned(), clients.count() as f64);
            loaded._slow_clients = Some(clients);
        }
        Ok(loaded)
    }

    /// The loaded server.
    pub fn server(&self) -> &ExperimentServer {
        match &self.servers {
            Servers::Plain(server) => server,
            Servers::ShadowSetup(proxied) => &proxied.server,
        }
    }

    /// The proxy, if any.
    pub fn proxied(&mut self) -> Option<&mut ShadowSetup> {
        match &mut self.servers {
            Servers::Plain(_) => None,
            Servers::ShadowSetup(proxied) => Some(proxied),
        }
    }

    /// Stops the proxy and gives the step the counts of its ledger.
    pub fn end(&mut self, names: &mut StepNames<'_>) -> Result<(), Failure> {
        let Some(proxied) = self.proxied() else { return Ok(()) };
        let ledger = proxied.end()?;
        let numbers = ledger.as_object().into_iter().flatten();
        names.numbers.extend(
            numbers.filter_map(|(key, value)| Some((format!("ledger_{key}"), value.as_f64()?))),
        );
        Ok(())
    }

    /// The predictions of theory; empty for the user's own server, whose settings are unknown.
    pub fn expectations(
        &self,
        step: &StepDefinition,
        names: &StepNames<'_>,
        summary: &Summary,
    ) -> Result<Vec<Expectation>, String> {
        let is_known = !self.server().is_target();
        let mut expectations = Vec::new();
        for one in step.expect.iter().filter(|_| is_known) {
            if !names.holds(one.when.as_ref())? {
                continue;
            }
            expectations.push(match (&one.cause, &one.first_cause, &one.found) {
                (Some(cause), ..) => expectations::cause(summary, cause, &one.beside),
                (_, Some(causes), _) => expectations::first_cause(summary, causes),
                (.., Some(fields)) => match &self.servers {
                    Servers::ShadowSetup(proxied) => {
                        proxied.found(fields, one.slower, fill(&one.theory, names)?)
                    }
                    Servers::Plain(_) => return Err("a comparison needs a proxy".to_owned()),
                },
                _ if one.no_cause => expectations::no_cause(summary),
                _ if one.rows => {
                    let after = match self.database {
                        Some(database) => database.rows(self.server()),
                        None => self.server().users(),
                    };
                    database::rows(summary, self.rows_before, after.map_err(|why| why.to_string()))
                }
                _ => expectations::figure(one, names)?,
            });
        }
        Ok(expectations)
    }

    /// The load of a step as a spec.
    pub fn spec(
        &self,
        settings: &ExperimentSettings,
        step: &StepDefinition,
        names: &StepNames<'_>,
    ) -> Result<RunSpec, String> {
        let mut watch = settings.watch.clone();
        watch.extend(self.server().figures().filter(|_| !step.unwatched));
        watch.extend(self.server().process().filter(|_| step.watches_process));
        let database = self.database.filter(|_| !step.calibrates);
        watch.extend(database.and_then(DatabaseGuard::source));
        spec(step, names, watch)
    }
}

impl Drop for StepServers<'_> {
    fn drop(&mut self) {
        // The database can close the connections only after the process has ended.
        if self.database.is_some()
            && let Servers::Plain(server) = &mut self.servers
        {
            server.stop();
            std::thread::sleep(CLOSING);
        }
    }
}

/// The load of a step, with these sources sampled during it.
pub fn spec(
    step: &StepDefinition,
    names: &StepNames<'_>,
    watch: Vec<String>,
) -> Result<RunSpec, String> {
    let mut scenarios = Vec::new();
    for load in [Some(&step.load), step.beside.as_ref()].into_iter().flatten() {
        let mut scenario = names.filled_table(load)?;
        let url = Value::String(fill("{url}", names)?);
        scenario.entry("url").or_insert(url);
        scenarios.push(Value::Table(scenario));
    }
    let mut run = Table::new();
    run.insert("scenario".to_owned(), Value::Array(scenarios));
    run.insert("connection".to_owned(), Value::Table(names.filled_table(&step.connection)?));
    run.insert(
        "warmup".to_owned(),
        Value::String(fill(step.warmup.as_deref().unwrap_or("0"), names)?),
    );
    run.insert("watch".to_owned(), watch.into());
    let draft: RunDraft = run.try_into().map_err(|error: toml::de::Error| error.to_string())?;
    draft.decide().map_err(|error| error.to_string())
}
