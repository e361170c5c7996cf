//! The native functions under the module's JavaScript, and its state of a user.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::Poll;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gake_core::clock::Clock;
use gake_core::metric::MetricUnit;
use gake_files::Access;
use gake_js::errors::{go_error, go_value};
use gake_js::native::named;
use gake_js::value::{buffer, bytes, evaluate_as};
use gake_k6::metrics::MetricNumber;
use gake_k6::modules::{BROWSER_METRICS, NO_BROWSER};
use gake_k6::test::LogLevel;
use gake_k6::user::dial::resolve as resolve_host;
use gake_k6::user::vu::{OpenResource, Vu, VuStage};
use gake_script::user::{Completion, aside, bound};
use rquickjs::{ArrayBuffer, Ctx, Function, Object, Persistent, Promise, Value};

use crate::browser::BrowserUser;
use crate::launch::LaunchOptions;

/// The module's JavaScript: a function of the native functions, which returns the exports.
const SOURCE: &str = concat!(
    "(native) => {\n",
    include_str!("js/connection.js"),
    include_str!("js/options.js"),
    include_str!("js/keyboard.js"),
    include_str!("js/handle.js"),
    include_str!("js/element.js"),
    include_str!("js/locator.js"),
    include_str!("js/network.js"),
    include_str!("js/frame.js"),
    include_str!("js/page.js"),
    include_str!("js/context.js"),
    include_str!("js/devices.js"),
    "return exports;\n}",
);

/// Helpers in pages.
const INJECTED: &str = include_str!("js/injected.js");

/// The script of pages that reports web vitals.
const VITALS: &str = include_str!("js/vitals.js");

/// Archives and agents have no files of the machine.
const NO_FILES: &str = "a script of an archive writes no screenshots: screenshot returns them";

/// Agents drive no browser.
const NO_CONNECTION: &str = "a script of an archive, as on an agent, connects with no browser";

/// The bytes that are logged of a command or message, at most.
const DEBUG_MAX: usize = 4096;

/// Nanoseconds in a millisecond.
const MS: f64 = 1e6;

/// The longest wait for messages, in milliseconds.
const WAIT_MAX_MS: f64 = 3_600_000.0;

/// The browser of a user, from the first call of an iteration on.
#[derive(Default)]
struct Session {
    user: RefCell<Option<BrowserUser>>,
    /// Whether the iteration has called it.
    is_current: Cell<bool>,
    /// Whether the iteration has connected with one by a URL.
    is_connected: Cell<bool>,
    /// Whether commands and messages are logged.
    is_debug: Cell<bool>,
    /// How long the browser and a new page may take.
    timeout: Cell<Duration>,
}

impl OpenResource for Session {
    fn end(&self) {
        self.is_current.set(false);
        if let Some(user) = &*self.user.borrow() {
            user.end_iteration();
        }
        if self.is_connected.take() {
            self.user.take();
        }
    }
}

/// What native functions share.
struct Natives {
    vu: Rc<Vu>,
    session: Rc<Session>,
    metrics: Vec<(&'static str, MetricNumber, MetricUnit)>,
}

pub(crate) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let vu = Vu::of(ctx)?;
    let mut metrics = Vec::new();
    for (name, kind, unit) in BROWSER_METRICS {
        let number = vu.series_index.metric(name, kind, unit);
        metrics.push((name, number.map_err(|error| go_error(ctx, &error.to_string()))?, unit));
    }
    let natives = Rc::new(Natives { vu, session: Rc::default(), metrics });
    let make: Function<'js> = evaluate_as(ctx, SOURCE, "k6/browser")?;
    make.call((natives.object(ctx)?,))
}

impl Natives {
    fn object<'js>(self: &Rc<Self>, ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
        let object = Object::new(ctx.clone())?;
        let of = || Rc::clone(self);
        let natives = of();
        let check = move |ctx: Ctx<'js>| natives.check(&ctx);
        object.set("check", named("browser", "check", check))?;
        let natives = of();
        let open = move |ctx: Ctx<'js>, url: Option<String>| natives.open(&ctx, url);
        object.set("open", named("browser", "open", open))?;
        let natives = of();
        let send = move |ctx: Ctx<'js>, session: Option<String>, method: String, params: String| {
            natives.send(&ctx, session.as_deref(), (&method, &params))
        };
        object.set("send", named("browser", "send", send))?;
        let natives = of();
        let receive = move |ctx: Ctx<'js>, ms: f64| natives.receive(&ctx, ms);
        object.set("receive", named("browser", "receive", receive))?;
        let natives = of();
        let wake = move || natives.with_user(|user| user.inbox.wake()).unwrap_or_default();
        object.set("wake", named("browser", "wake", wake))?;
        let natives = of();
        let idle = move |is_idle: bool| natives.vu.tasks.set_idle(usize::from(is_idle));
        object.set("idle", named("browser", "idle", idle))?;
        let bind = |ctx: Ctx<'js>, handler: Function<'js>| bound(&ctx, handler);
        object.set("bind", named("browser", "bind", bind))?;
        let natives = of();
        let timeout = move || natives.session.timeout.get().as_secs_f64() * 1e3;
        object.set("timeout", named("browser", "timeout", timeout))?;
        let natives = of();
        let sample = move |name: String, tags: Vec<Vec<String>>, value: f64| {
            natives.sample(&name, tags, value);
        };
        object.set("sample", named("browser", "sample", sample))?;
        let natives = of();
        let now = move || natives.vu.now() as f64 / MS;
        object.set("now", named("browser", "now", now))?;
        let natives = of();
        let is_current = move || natives.session.is_current.get();
        object.set("isCurrent", named("browser", "isCurrent", is_current))?;
        let natives = of();
        let has_blocks = move || !natives.vu.test.settings().blocked.is_empty();
        object.set("hasBlocks", named("browser", "hasBlocks", has_blocks))?;
        let natives = of();
        let blocked =
            move |ctx: Ctx<'js>, host: String, port: u16| natives.blocked(&ctx, host, port);
        object.set("blocked", named("browser", "blocked", blocked))?;
        object.set("injected", INJECTED)?;
        object.set("vitals", VITALS)?;
        object.set("text", named("browser", "text", text_of))?;
        object.set("fail", named("browser", "fail", fail))?;
        object.set("decode", named("browser", "decode", decode))?;
        object.set("encode", named("browser", "encode", encode))?;
        let natives = of();
        let write =
            move |ctx: Ctx<'js>, path: String, text: String| natives.write(&ctx, path, text);
        object.set("write", named("browser", "write", write))?;
        Ok(object)
    }

    fn with_user<T>(&self, call: impl FnOnce(&BrowserUser) -> T) -> Option<T> {
        self.session.user.borrow().as_ref().map(call)
    }

    /// Refuses a browser outside of iterations of a scenario that has one.
    fn check(&self, ctx: &Ctx<'_>) -> rquickjs::Result<()> {
        let has_browser = |name: &String| *name == self.vu.scenario.name;
        let is_there = self.vu.stage.get() == VuStage::Iteration
            && self.vu.test.settings().browser.scenarios.iter().any(has_browser);
        if is_there { Ok(()) } else { Err(error(ctx, NO_BROWSER)) }
    }

    /// Refuses a browser at a URL outside of iterations, and to scripts of archives: an agent
    /// could not check what its pages load.
    fn check_connection(&self, ctx: &Ctx<'_>) -> rquickjs::Result<()> {
        match self.vu.stage.get() {
            _ if self.vu.test.files.are_closed() => Err(error(ctx, NO_CONNECTION)),
            VuStage::Iteration => Ok(()),
            _ => Err(error(ctx, NO_BROWSER)),
        }
    }

    /// Connects the user with a running Chromium for the rest of the iteration: with the one at a
    /// URL, or that of the run.
    fn open(&self, ctx: &Ctx<'_>, url: Option<String>) -> rquickjs::Result<()> {
        let is_connected = url.is_some();
        match is_connected {
            true => self.check_connection(ctx)?,
            false => self.check(ctx)?,
        }
        let mut session = self.session.user.borrow_mut();
        if is_connected || session.as_ref().is_none_or(|user| !user.is_open()) {
            let options = LaunchOptions::read(&self.vu.test.settings().browser);
            let opened = options.and_then(|options| match url {
                Some(url) => Ok((BrowserUser::connected(&options, url)?, options)),
                None => Ok((BrowserUser::new(&options)?, options)),
            });
            match opened {
                Ok((user, options)) => {
                    *session = Some(user);
                    self.session.is_debug.set(options.is_debug);
                    self.session.timeout.set(options.timeout);
                    self.session.is_connected.set(is_connected);
                }
                Err(why) if is_connected => return Err(error(ctx, &why)),
                Err(why) => {
                    // No iteration can do without it.
                    self.vu.aborts.set(true);
                    self.vu.tasks.end();
                    self.vu.test.abort(why);
                    return Err(self.vu.end(ctx));
                }
            }
        }
        drop(session);
        self.session.is_current.set(true);
        let resource: Rc<dyn OpenResource> = Rc::clone(&self.session) as Rc<dyn OpenResource>;
        self.vu.register_open(Rc::downgrade(&resource) as Weak<dyn OpenResource>);
        Ok(())
    }

    fn send(
        &self,
        ctx: &Ctx<'_>,
        session: Option<&str>,
        (method, params): (&str, &str),
    ) -> rquickjs::Result<f64> {
        if self.session.is_debug.get() {
            self.debug(&format!("-> {method} {params}"));
        }
        let sent = self.with_user(|user| user.send(session, method, params));
        let sent = sent.unwrap_or_else(|| Err("the browser has been closed".to_owned()));
        sent.map(|id| id as f64).map_err(|why| error(ctx, &why))
    }

    /// Logs a command or message, cut to a length that can be read.
    fn debug(&self, text: &str) {
        let text = &text[..text.floor_char_boundary(DEBUG_MAX)];
        self.vu.test.log(LogLevel::Debug, text, &[("source", "browser")]);
    }

    /// The next messages within some milliseconds, maybe none.
    fn receive<'js>(self: &Rc<Self>, ctx: &Ctx<'js>, ms: f64) -> rquickjs::Result<Promise<'js>> {
        self.vu.room_for_task(ctx)?;
        let inbox = self.with_user(|user| Rc::new(std::sync::Arc::clone(&user.inbox)));
        let Some(inbox) = inbox else { return Err(error(ctx, "the browser has been closed")) };
        let until = self.vu.now().saturating_add((ms.clamp(0.0, WAIT_MAX_MS) * MS) as u64);
        let clock = self.vu.clock.clone();
        let (promise, resolve, reject) = ctx.promise()?;
        let (resolve, reject) = (Persistent::save(ctx, resolve), Persistent::save(ctx, reject));
        let natives = self.session.is_debug.get().then(|| Rc::clone(self));
        self.vu.tasks.add(async move {
            let mut sleep = pin!(clock.sleep_until(until));
            let received = poll_fn(|cx| match inbox.poll(cx) {
                Poll::Ready(received) => Poll::Ready(received),
                Poll::Pending => sleep.as_mut().poll(cx).map(|()| Ok(Vec::new())),
            });
            let received = received.await;
            Box::new(move |ctx: &Ctx<'_>| match received {
                Ok(messages) => {
                    let parsed = rquickjs::Array::new(ctx.clone())?;
                    for (index, message) in messages.into_iter().enumerate() {
                        natives.iter().for_each(|natives| natives.debug(&format!("<- {message}")));
                        parsed.set(index, ctx.json_parse(message)?)?;
                    }
                    resolve.restore(ctx)?.call((parsed,))
                }
                Err(why) => {
                    let _ = error(ctx, &why);
                    reject.restore(ctx)?.call((ctx.catch(),))
                }
            }) as Completion
        });
        Ok(promise)
    }

    /// A promise for the reason why no request may go to a host, empty if it may.
    fn blocked<'js>(
        &self,
        ctx: &Ctx<'js>,
        host: String,
        port: u16,
    ) -> rquickjs::Result<Promise<'js>> {
        self.vu.room_for_task(ctx)?;
        let vu = Rc::clone(&self.vu);
        let (promise, resolve, _) = ctx.promise()?;
        let resolve = Persistent::save(ctx, resolve);
        self.vu.tasks.add(async move {
            // A host that cannot be resolved is Chromium's to report.
            let error = resolve_host(&vu, &host, port).await.err();
            let why = error.filter(|error| error.is_blocked).map(|error| error.message);
            Box::new(move |ctx: &Ctx<'_>| resolve.restore(ctx)?.call((why.unwrap_or_default(),)))
                as Completion
        });
        Ok(promise)
    }

    /// Records a sample; times are in milliseconds.
    fn sample(&self, name: &str, tags: Vec<Vec<String>>, value: f64) {
        let known = self.metrics.iter().find(|(known, ..)| *known == name);
        let Some((_, number, unit)) = known.filter(|_| value.is_finite()) else { return };
        /// Tags of k6 that options turn off.
        const SYSTEM: [&str; 6] = ["ip", "method", "name", "proto", "status", "url"];
        let tags = tags.into_iter().filter_map(|tag| <[String; 2]>::try_from(tag).ok());
        let tags = tags
            .filter(|[key, _]| !SYSTEM.contains(&key.as_str()) || self.vu.test.has_system_tag(key));
        let tags: Vec<(String, String)> = tags.map(|[key, value]| (key, value)).collect();
        let value = if *unit == MetricUnit::Time { value * MS } else { value };
        self.vu.record_tagged(*number, &tags, value);
    }

    /// Writes a file from base64.
    fn write(&self, ctx: &Ctx<'_>, path: String, text: String) -> rquickjs::Result<()> {
        if self.vu.test.files.are_closed() {
            return Err(error(ctx, NO_FILES));
        }
        let written = aside(ctx, move || {
            let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
            let target = PathBuf::from(&path);
            if let Some(folder) = target.parent() {
                std::fs::create_dir_all(folder).map_err(|error| format!("{path}: {error}"))?;
            }
            let mut file = gake_files::create(&target, Access::Owner)
                .map_err(|error| format!("{path}: {error}"))?;
            std::io::Write::write_all(&mut file, &bytes).map_err(|error| format!("{path}: {error}"))
        })?;
        written.map_err(|why| error(ctx, &format!("writing the screenshot to {why}")))
    }
}

/// Throws an error of Go by value, as calls of k6's module do.
fn error(ctx: &Ctx<'_>, message: &str) -> rquickjs::Error {
    match go_value(ctx, message) {
        Ok(value) => ctx.throw(value),
        Err(error) => error,
    }
}

fn fail(ctx: Ctx<'_>, message: String) -> rquickjs::Result<()> {
    Err(error(&ctx, &message))
}

fn decode<'js>(ctx: Ctx<'js>, text: String) -> rquickjs::Result<ArrayBuffer<'js>> {
    let bytes = STANDARD.decode(text).map_err(|why| error(&ctx, &why.to_string()))?;
    buffer(&ctx, bytes)
}

/// The text of base64.
fn text_of(ctx: Ctx<'_>, text: String) -> rquickjs::Result<String> {
    let bytes = STANDARD.decode(text).map_err(|why| error(&ctx, &why.to_string()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The base64 of bytes; a string stands for its UTF-8.
fn encode<'js>(ctx: Ctx<'js>, value: Value<'js>) -> rquickjs::Result<String> {
    match bytes(&ctx, &value)? {
        Some(bytes) => Ok(STANDARD.encode(bytes)),
        None => Ok(STANDARD.encode(gake_js::value::text(&ctx, &value)?)),
    }
}
