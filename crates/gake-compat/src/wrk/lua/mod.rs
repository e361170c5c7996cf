//! wrk's Lua scripts, on Lua 5.1, the language of wrk's LuaJIT. (LuaJIT's own build links a program
//! for the target, which musl's compiler wrapper cannot.)
//!
//! As in wrk, there is a state for each thread, and one for `setup` and `done`.

mod end_stats;
mod pipeline;
mod thread;
mod work;

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};

use gake_run::EachSecond;
use gake_session::Failure;
use gake_wire::Location;
use mlua::{Function, Lua, Table, Variadic};

use super::options::WrkOptions;
use super::report::Figures;
use crate::tool_run::{ToolResult, ToolRun};
use end_stats::{EndStats, summary};
use thread::{LuaAddress, ThreadHandle, ThreadState};
use work::LuaFactory;

/// Maximum bytes of a script.
const SCRIPT_MAX: u64 = 16 << 20;

/// A script, with its states.
#[derive(Debug)]
pub struct LuaScript {
    main: Lua,
    threads: Vec<Arc<ThreadState>>,
    /// Responses to what one call of `request` returns.
    responses: u64,
    /// Whether `request` makes each request.
    is_dynamic: bool,
    has_delay: bool,
    /// Whether `response` sees the responses.
    wants_response: bool,
    /// The first error during the run.
    failure: Mutex<Option<String>>,
}

impl LuaScript {
    /// Loads a script, sets its threads up and checks its first request.
    ///
    /// # Errors
    /// A sentence with file and line.
    pub fn load(path: &str, options: &WrkOptions) -> Result<Self, String> {
        let text = gake_files::read(path.as_ref(), "a script", SCRIPT_MAX);
        let text = text.map_err(|error| match error.io() {
            Some(error) => format!("cannot open {path}: {error}"),
            None => error.to_string(),
        })?;
        let target = Target::of(&options.url).ok_or("the URL has no host")?;
        let state = || new_state(path, &text, options, &target).map_err(|error| explained(&error));
        let (main, _) = state()?;
        let service = target.port.clone().unwrap_or_else(|| target.scheme.clone());
        let resolved = resolve(&main, &target.host, &service);
        let first = resolved.map_err(|error| explained(&error))?;
        let first = first.ok_or_else(|| format!("unable to connect to {}", target.host))?;
        let mut threads = Vec::with_capacity(options.threads);
        for _ in 0..options.threads {
            let (lua, functions) = state()?;
            let thread = Arc::new(ThreadState::new(lua, functions, first));
            set_up(&main, &thread, options).map_err(|error| explained(&error))?;
            threads.push(thread);
        }
        let globals = threads[0].lua.globals();
        let is_function = |name: &str| globals.get::<Function>(name).is_ok();
        let request = threads[0].request().map_err(|error| explained(&error))?;
        let responses = pipeline::requests(&request).map_err(|why| format!("{path}: {why}"))?;
        Ok(Self {
            responses,
            is_dynamic: is_function("request"),
            has_delay: is_function("delay"),
            wants_response: is_function("response"),
            failure: Mutex::default(),
            main,
            threads,
        })
    }

    /// Runs the load of the script, whose target is that of `run`.
    ///
    /// # Errors
    /// The run fails, or the script does: a sentence with file and line.
    pub fn run(
        self: &Arc<Self>,
        run: &ToolRun<'_>,
        each: &mut EachSecond<'_>,
    ) -> Result<ToolResult, Failure> {
        let wire = run.prepared.wires.first().map(Arc::clone);
        let wire = wire.ok_or_else(|| Failure::could_not("the run has no requests"))?;
        let script = Arc::clone(self);
        let make = move |context| LuaFactory::new(&script, &wire, context);
        let result = run.run_works(make, &mut |update| self.failure().or_else(|| each(update)))?;
        self.failure().map_or(Ok(result), |why| Err(Failure::could_not(why)))
    }

    /// The first error during the run.
    fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fail(&self, error: &mlua::Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert_with(|| explained(error));
    }

    /// Calls `done`, if the script has it.
    ///
    /// # Errors
    /// A sentence with file and line.
    pub fn done(&self, figures: &Figures<'_>) -> Result<(), String> {
        let call = || -> mlua::Result<()> {
            if let Ok(done) = self.main.globals().get::<Function>("done") {
                let latency = EndStats::micros(figures.latency);
                let rates = EndStats::whole(figures.rates);
                done.call::<()>((summary(&self.main, figures)?, latency, rates))?;
            }
            flush(&self.main)
        };
        call().map_err(|error| explained(&error))
    }
}

/// The states of a process share the C library's buffer.
fn flush(lua: &Lua) -> mlua::Result<()> {
    lua.load("io.stdout:flush()").exec()
}

/// The parts of a URL, as written.
#[derive(Debug, PartialEq)]
struct Target {
    scheme: String,
    host: String,
    port: Option<String>,
    path: String,
}

impl Target {
    fn of(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        let authority = authority.rsplit('@').next()?;
        let (host, port) = match authority.strip_prefix('[').and_then(|v6| v6.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let (scheme, host) = (scheme.to_owned(), host.to_owned());
        let path = Location::parse(url).ok()?.target;
        Some(Self { scheme, host, port: port.map(ToOwned::to_owned), path })
    }
}

/// A state that has run the script, with the functions of the prelude.
fn new_state(
    path: &str,
    text: &[u8],
    options: &WrkOptions,
    target: &Target,
) -> mlua::Result<(Lua, [Function; 2])> {
    let lua = Lua::new();
    let prelude = lua.load(include_str!("prelude.lua")).set_name("=wrk");
    let (request, response) = prelude.eval::<(Function, Function)>()?;
    let wrk: Table = lua.globals().get("wrk")?;
    wrk.set("lookup", lua.create_function(|lua, to: (String, String)| lookup(lua, &to))?)?;
    wrk.set("connect", lua.create_function(|_, to: LuaAddress| Ok(to.connects()))?)?;
    lua.globals().set("bit", bit_operations(&lua)?)?;
    let Target { scheme, host, port, path: url_path } = target;
    wrk.set("scheme", scheme.as_str())?;
    wrk.set("host", host.as_str())?;
    wrk.set("port", port.as_deref())?;
    wrk.set("path", url_path.as_str())?;
    let headers: Table = wrk.get("headers")?;
    for (name, value) in &options.headers {
        headers.set(name.as_str(), value.as_str())?;
    }
    lua.load(text).set_name(format!("@{path}")).exec()?;
    Ok((lua, [request, response]))
}

/// Resolves the target in `main`; returns its first address that accepts connections.
fn resolve(main: &Lua, host: &str, service: &str) -> mlua::Result<Option<SocketAddr>> {
    let wrk: Table = main.globals().get("wrk")?;
    wrk.get::<Function>("resolve")?.call::<()>((host, service))?;
    let first = wrk.get::<Table>("addrs")?.get::<Option<LuaAddress>>(1)?;
    Ok(first.map(|address| address.0))
}

fn lookup(lua: &Lua, (host, service): &(String, String)) -> mlua::Result<Table> {
    let port = match service.as_str() {
        "http" => 80,
        "https" => 443,
        number => number.parse().map_err(|_| {
            mlua::Error::runtime(format!("unable to resolve {host}:{service} no such service"))
        })?,
    };
    let addresses = (host.as_str(), port).to_socket_addrs().map_err(|error| {
        mlua::Error::runtime(format!("unable to resolve {host}:{service} {error}"))
    })?;
    lua.create_sequence_from(addresses.map(LuaAddress))
}

/// LuaJIT's module `bit`, on 32 bits.
fn bit_operations(lua: &Lua) -> mlua::Result<Table> {
    // As in LuaJIT, numbers wrap around.
    let bits = |number: f64| number as i64 as i32;
    let bit = lua.create_table()?;
    for (name, fold) in [
        ("band", (|a, b| a & b) as fn(i32, i32) -> i32),
        ("bor", |a, b| a | b),
        ("bxor", |a, b| a ^ b),
        ("lshift", |a, b| a.wrapping_shl(b as u32)),
        ("rshift", |a, b| (a as u32).wrapping_shr(b as u32) as i32),
        ("arshift", |a, b| a.wrapping_shr(b as u32)),
        ("rol", |a, b| a.rotate_left(b as u32 & 31)),
        ("ror", |a, b| a.rotate_right(b as u32 & 31)),
    ] {
        let folded = move |_: &Lua, numbers: Variadic<f64>| {
            Ok(numbers.iter().map(|number| bits(*number)).reduce(fold))
        };
        bit.set(name, lua.create_function(folded)?)?;
    }
    bit.set("tobit", lua.create_function(move |_, number: f64| Ok(bits(number)))?)?;
    bit.set("bnot", lua.create_function(move |_, number: f64| Ok(!bits(number)))?)?;
    let hex = move |_: &Lua, number: f64| Ok(format!("{:08x}", bits(number)));
    bit.set("tohex", lua.create_function(hex)?)?;
    Ok(bit)
}

/// Calls `setup` in `main` and `init` in the thread's state.
fn set_up(main: &Lua, thread: &Arc<ThreadState>, options: &WrkOptions) -> mlua::Result<()> {
    let own: Table = thread.lua.globals().get("wrk")?;
    own.set("thread", ThreadHandle(Arc::clone(thread)))?;
    let wrk: Table = main.globals().get("wrk")?;
    wrk.get::<Function>("setup")?.call::<()>(ThreadHandle(Arc::clone(thread)))?;
    let args = thread.lua.create_table()?;
    for (i, arg) in std::iter::once(&options.url).chain(&options.script_args).enumerate() {
        args.set(i, arg.as_str())?;
    }
    own.get::<Function>("init")?.call::<()>(args)
}

/// An error of Lua as one line that begins with file and line.
fn explained(error: &mlua::Error) -> String {
    match error {
        mlua::Error::SyntaxError { message, .. } | mlua::Error::RuntimeError(message) => {
            message.split("\nstack traceback:").next().unwrap_or_default().to_owned()
        }
        mlua::Error::CallbackError { traceback, cause } => {
            // The line of the script that called the function of gake.
            let mut lines = traceback.lines().map(str::trim);
            let at = lines.find(|line| line.contains(": in ") && !line.starts_with(['[', 'w']));
            let at = at.and_then(|line| line.split(": in ").next());
            let why = explained(cause);
            at.map_or_else(|| why.clone(), |at| format!("{at}: {why}"))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
