//! Starts and stops a proxy.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gake_listen::Server;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use socket2::{Domain, Socket, Type};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;

use crate::admin::AdminSite;
use crate::background;
use crate::collect::{ExchangeFeed, Exchanges};
use crate::config::{BreakerConfig, Config, ConfigError, ServerTls};
use crate::control::{ProxyControl, ProxySummary};
use crate::hooks::{HookLimits, HookRunner, Hooks, SelectFailure};
use crate::mirror::backend::ShadowBackend;
use crate::mirror::gate::Gate;
use crate::mirror::{self, Mirror};
use crate::proxy::accept;
use crate::proxy::start_error::ProxyStartError;
use crate::proxy::state::ProxyState;
use crate::proxy::upstream::target::{BackendTarget, BackendTls};
use crate::proxy::worker::{ProxyPhase, ProxyWorker};

const PEM_BYTES_MAX: u64 = 16 << 20;

const BACKLOG: i32 = 4096;
/// Exchanges queued for `Hooks::finished`.
const FINISHED: usize = 1024;
/// Time limit at the end for the remaining calls of `Hooks::finished`.
const LAST_EXCHANGES: Duration = Duration::from_secs(5);
const HOOK_THREADS: usize = 2;
const HOOK_LIMIT: Duration = Duration::from_millis(50);
const HOOK_WAIT: Duration = Duration::from_secs(1);

/// A configured proxy that has not been started.
pub struct Proxy {
    config: Config,
    hooks: Option<Arc<dyn Hooks>>,
    hook_limits: HookLimits,
    feed: ExchangeFeed,
}

/// A running proxy. Dropping it stops it without a drain.
pub struct RunningProxy {
    addr: SocketAddr,
    admin: Option<SocketAddr>,
    admin_server: Option<Server>,
    control: ProxyControl,
    workers: Vec<JoinHandle<()>>,
    mirrors: Vec<JoinHandle<()>>,
    background: Option<JoinHandle<()>>,
}

impl Proxy {
    /// A proxy with these settings.
    ///
    /// # Errors
    /// See [`Config::check`].
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            hooks: None,
            hook_limits: HookLimits {
                threads: HOOK_THREADS,
                time: HOOK_LIMIT,
                wait: HOOK_WAIT,
                breaker: BreakerConfig::default(),
                select_failure: SelectFailure::default(),
            },
            feed: ExchangeFeed::default(),
        })
    }

    /// Sets the hooks.
    #[must_use]
    pub fn hooks(mut self, hooks: impl Hooks) -> Self {
        self.hooks = Some(Arc::new(hooks));
        self
    }

    /// The selection when the selecting hook fails or times out; by default only the master.
    #[must_use]
    pub fn on_select_failure(mut self, who: SelectFailure) -> Self {
        self.hook_limits.select_failure = who;
        self
    }

    /// The number of hook threads, at least one; by default 2. Another one calls
    /// [`Hooks::finished`].
    #[must_use]
    pub fn hook_threads(mut self, threads: usize) -> Self {
        self.hook_limits.threads = threads.max(1);
        self
    }

    /// The time limit of a hook per request; by default 50 ms.
    #[must_use]
    pub fn hook_limit(mut self, limit: Duration) -> Self {
        self.hook_limits.time = limit;
        self
    }

    /// The time limit of a request's wait for a hook thread; by default 1 s. It is cut short when
    /// all threads hang.
    #[must_use]
    pub fn hook_wait(mut self, wait: Duration) -> Self {
        self.hook_limits.wait = wait;
        self
    }

    /// When hooks are skipped after consecutive timeouts; by default for 5 s after 20. Selection
    /// and each backend's changes have separate breakers.
    #[must_use]
    pub fn hook_breaker(mut self, breaker: BreakerConfig) -> Self {
        self.hook_limits.breaker = breaker;
        self
    }

    /// Adds a listener for finished exchanges, with a queue of `capacity`.
    pub fn exchanges(&mut self, capacity: usize) -> Exchanges {
        self.feed.listen(capacity)
    }

    /// Starts the proxy. Blocks for name resolution.
    ///
    /// # Errors
    /// When it cannot listen, resolve a name or load a certificate.
    pub fn start(mut self) -> Result<RunningProxy, ProxyStartError> {
        let mut config = self.config;
        let threads = match config.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let backend_tls = BackendTls {
            http1: config.backend_tls.config(gake_wire::Protocol::Http1)?,
            http2: config.backend_tls.config(gake_wire::Protocol::Http2)?,
        };
        let acceptor = config.tls.as_ref().map(acceptor).transpose()?;
        let master = Arc::new(BackendTarget::new(&config.master, &backend_tls)?);
        let started = Instant::now();
        let (mut shadows, mut contenders) = (Vec::new(), Vec::new());
        for shadow in &config.shadows {
            let target = BackendTarget::new(&shadow.backend, &backend_tls)?;
            contenders.push(Arc::new(BackendTarget::new(&shadow.backend, &backend_tls)?));
            let gate = Gate::new(shadow, started);
            shadows.push(ShadowBackend::new(shadow.clone(), target, gate, threads));
        }
        let (listeners, addr) = listen(config.listen, threads)?;
        config.listen = addr;
        let targets = shadows.iter().map(|backend| &backend.target).chain([&*master]);
        if let Some(target) = targets.into_iter().find(|target| target.is_at(addr)) {
            let name = target.backend.name.to_string();
            return Err(ProxyStartError::Loop { name, addr });
        }
        let admin = config.admin.map(|admin| listen(admin, 1)).transpose()?;
        let hooks = match self.hooks {
            None => None,
            Some(hooks) => {
                let names = std::iter::once(&config.master)
                    .chain(config.shadows.iter().map(|shadow| &shadow.backend))
                    .map(|backend| Arc::clone(&backend.name));
                let finished = hooks.finishes().then(|| self.feed.listen(FINISHED));
                Some(Arc::new(HookRunner::start(hooks, names, self.hook_limits, finished)?))
            }
        };
        let feed = Arc::new(self.feed);
        let shared = Arc::new(ProxyState::new(config, master, shadows, feed, hooks, threads));
        let (phase, phases) = watch::channel(ProxyPhase::Running);
        let mut running = RunningProxy {
            addr,
            admin: admin.as_ref().map(|(_, addr)| *addr),
            admin_server: None,
            control: ProxyControl::new(Arc::clone(&shared), phase),
            workers: Vec::new(),
            mirrors: Vec::new(),
            background: None,
        };
        for (index, listener) in listeners.into_iter().enumerate() {
            let setup = WorkerSetup {
                shared: Arc::clone(&shared),
                index,
                listener,
                acceptor: acceptor.clone(),
                contenders: contenders.clone(),
                phases: phases.clone(),
            };
            running.add_worker(setup)?;
        }
        if let Some(listener) = admin.and_then(|(mut listeners, _)| listeners.pop()) {
            let site = AdminSite(running.control.clone());
            running.admin_server = Some(Server::start("gake-admin", listener, site, || ())?);
        }
        let control = running.control.clone();
        running.background = Some(thread("gake-control", move |ready| async move {
            ready.signal();
            background::run(control).await;
        })?);
        Ok(running)
    }
}

/// The ingredients of a worker thread.
struct WorkerSetup {
    shared: Arc<ProxyState>,
    index: usize,
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    contenders: Vec<Arc<BackendTarget>>,
    phases: watch::Receiver<ProxyPhase>,
}

impl RunningProxy {
    fn add_worker(&mut self, setup: WorkerSetup) -> Result<(), ProxyStartError> {
        let WorkerSetup { shared, index, listener, acceptor, contenders, phases } = setup;
        let (jobs, receiver) = mpsc::unbounded_channel();
        let mirror = Mirror::new(Arc::clone(&shared), index, jobs);
        let for_mirror = Arc::clone(&shared);
        self.mirrors.push(thread("gake-shadow", move |ready| async move {
            ready.signal();
            mirror::thread::run(for_mirror, receiver).await;
        })?);
        self.workers.push(thread("gake-proxy", move |ready| async move {
            let worker = ProxyWorker::new(shared, index, acceptor, mirror, &contenders);
            ready.signal();
            // Fails only if the listener cannot be registered. The other workers then take the
            // connections.
            let _ = accept::run(Rc::clone(&worker), listener, phases).await;
        })?);
        Ok(())
    }

    /// The address for clients.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The address of the admin service.
    #[must_use]
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// The handle for reading and changing the proxy.
    #[must_use]
    pub fn control(&self) -> &ProxyControl {
        &self.control
    }

    /// Stops accepting clients, and waits up to `drain` for running requests and copies.
    #[must_use]
    pub fn stop(self, drain: Duration) -> ProxySummary {
        self.control.drain(drain);
        self.join()
    }

    /// Waits until the proxy is ended through its control.
    #[must_use]
    pub fn join(mut self) -> ProxySummary {
        self.wait();
        self.control.summary()
    }

    fn wait(&mut self) {
        // A panic has already been printed.
        for thread in self.workers.drain(..).chain(self.mirrors.drain(..)) {
            let _ = thread.join();
        }
        let shared = self.control.shared();
        shared.feed.close();
        if let Some(hooks) = &shared.hooks {
            hooks.finish(LAST_EXCHANGES);
        }
        self.control.end();
        self.admin_server = None;
        if let Some(background) = self.background.take() {
            let _ = background.join();
        }
    }
}

impl Drop for RunningProxy {
    fn drop(&mut self) {
        if !self.workers.is_empty() || self.background.is_some() {
            self.control.stop_now();
            self.wait();
        }
    }
}

/// Signals that a thread has started.
struct Ready(SyncSender<io::Result<()>>);

impl Ready {
    fn signal(self) {
        let _ = self.0.send(Ok(()));
    }
}

/// Starts a thread with its own runtime, and waits for its signal.
fn thread<F: Future<Output = ()>>(
    name: &str,
    run: impl FnOnce(Ready) -> F + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let (sender, ready) = sync_channel(1);
    let thread =
        std::thread::Builder::new().name(name.to_owned()).spawn(move || match runtime() {
            Ok(runtime) => runtime.block_on(run(Ready(sender))),
            Err(error) => drop(sender.send(Err(error))),
        })?;
    match ready.recv() {
        Ok(started) => started.map(|()| thread),
        Err(_) => Err(io::Error::other("the thread ended during its start")),
    }
}

fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread().enable_all().build_local(LocalOptions::default())
}

/// Opens a listener per thread on one address; the kernel distributes the connections.
fn listen(
    addr: SocketAddr,
    count: usize,
) -> Result<(Vec<TcpListener>, SocketAddr), ProxyStartError> {
    let open = |addr: SocketAddr, shared: bool| -> io::Result<TcpListener> {
        let socket = Socket::new(Domain::for_address(addr), Type::STREAM.nonblocking(), None)?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(shared)?;
        socket.bind(&addr.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    let failed = |source| ProxyStartError::Listen { addr, source };
    if addr.port() != 0 {
        // SO_REUSEPORT would let a second proxy of the same user silently share the port.
        drop(open(addr, false).map_err(failed)?);
    }
    let first = open(addr, count > 1).map_err(failed)?;
    let addr = first.local_addr().map_err(failed)?;
    let mut listeners = vec![first];
    for _ in 1..count {
        listeners.push(open(addr, true).map_err(failed)?);
    }
    Ok((listeners, addr))
}

fn acceptor(tls: &ServerTls) -> Result<TlsAcceptor, ProxyStartError> {
    let bad =
        |what: &std::path::Path, reason: &dyn std::fmt::Display| ProxyStartError::Certificate {
            what: what.display().to_string(),
            reason: reason.to_string(),
        };
    let read = |path| {
        gake_files::read(path, "a certificate or key", PEM_BYTES_MAX)
            .map_err(|error| bad(path, &error))
    };
    let chain = CertificateDer::pem_slice_iter(&read(&tls.cert)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| bad(&tls.cert, &error))?;
    if chain.is_empty() {
        return Err(bad(&tls.cert, &"it holds no PEM certificate"));
    }
    let key =
        PrivateKeyDer::from_pem_slice(&read(&tls.key)?).map_err(|error| bad(&tls.key, &error))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| bad(&tls.cert, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
