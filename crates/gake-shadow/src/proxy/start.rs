//! Starting a proxy and ending it.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use socket2::{Domain, Socket, Type};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;

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

/// Bytes of a file of certificates.
const PEM_BYTES_MAX: u64 = 16 << 20;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;
/// Exchanges that wait for a hook.
const FINISHED: usize = 1024;
/// Time to tell a hook of the last exchanges when all else has ended.
const LAST_EXCHANGES: Duration = Duration::from_secs(5);
/// Threads that hooks are asked on.
const HOOK_THREADS: usize = 2;
/// How long a hook may run for a request.
const HOOK_LIMIT: Duration = Duration::from_millis(50);
/// How long a request may wait for a thread that runs hooks.
const HOOK_WAIT: Duration = Duration::from_secs(1);

/// A proxy that has not been started.
pub struct Proxy {
    config: Config,
    hooks: Option<Arc<dyn Hooks>>,
    hook_limits: HookLimits,
    feed: ExchangeFeed,
}

/// A proxy that runs. Dropping it ends it at once.
pub struct RunningProxy {
    addr: SocketAddr,
    admin: Option<SocketAddr>,
    control: ProxyControl,
    workers: Vec<JoinHandle<()>>,
    mirrors: Vec<JoinHandle<()>>,
    side: Option<JoinHandle<()>>,
}

impl Proxy {
    /// A proxy with these settings.
    ///
    /// # Errors
    /// When they contradict each other.
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

    /// With these hooks.
    #[must_use]
    pub fn hooks(mut self, hooks: impl Hooks) -> Self {
        self.hooks = Some(Arc::new(hooks));
        self
    }

    /// Who gets a request when the hook that selects fails or takes too long; the master alone
    /// unless told.
    #[must_use]
    pub fn on_select_failure(mut self, who: SelectFailure) -> Self {
        self.hook_limits.select_failure = who;
        self
    }

    /// On how many threads hooks are asked, at least one; 2 unless told. One more tells them what
    /// is finished.
    #[must_use]
    pub fn hook_threads(mut self, threads: usize) -> Self {
        self.hook_limits.threads = threads.max(1);
        self
    }

    /// How long a hook may run for a request before the default applies; 50 ms unless told.
    #[must_use]
    pub fn hook_limit(mut self, limit: Duration) -> Self {
        self.hook_limits.time = limit;
        self
    }

    /// How long a request may wait until a thread is free to run its hook; 1 s unless told. When
    /// the threads all hang it does not wait that long.
    #[must_use]
    pub fn hook_wait(mut self, wait: Duration) -> Self {
        self.hook_limits.wait = wait;
        self
    }

    /// When a hook that passes its limit again and again is not asked, so that the default applies
    /// at once; after 20 times in a row for 5 s unless told. Selection and each backend's changes
    /// count by themselves.
    #[must_use]
    pub fn hook_breaker(mut self, breaker: BreakerConfig) -> Self {
        self.hook_limits.breaker = breaker;
        self
    }

    /// Listens to the exchanges; `waiting` bounds how many may wait.
    pub fn exchanges(&mut self, capacity: usize) -> Exchanges {
        self.feed.listen(capacity)
    }

    /// Starts it. Blocks for name resolution.
    ///
    /// # Errors
    /// When it cannot listen, resolve a name or use a certificate.
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
            control: ProxyControl::new(Arc::clone(&shared), phase),
            workers: Vec::new(),
            mirrors: Vec::new(),
            side: None,
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
        let admin = admin.and_then(|(mut listeners, _)| listeners.pop());
        let control = running.control.clone();
        running.side = Some(thread("gake-control", move |ready| async move {
            ready.signal();
            background::run(control, admin).await;
        })?);
        Ok(running)
    }
}

/// What a worker's thread is made of.
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
            // It fails only when the listener cannot be watched, and then no client is served here:
            // the other workers take the connections.
            let _ = accept::run(Rc::clone(&worker), listener, phases).await;
        })?);
        Ok(())
    }

    /// Where clients come.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where the admin service listens.
    #[must_use]
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// Looks at it and changes it, from anywhere.
    #[must_use]
    pub fn control(&self) -> &ProxyControl {
        &self.control
    }

    /// Ends it: no new clients, and those inside may finish within `drain`, copies too.
    #[must_use]
    pub fn stop(self, drain: Duration) -> ProxySummary {
        self.control.drain(drain);
        self.join()
    }

    /// Waits until it is ended through its control.
    #[must_use]
    pub fn join(mut self) -> ProxySummary {
        self.wait();
        self.control.summary()
    }

    fn wait(&mut self) {
        // A thread that panicked has told so already.
        for thread in self.workers.drain(..).chain(self.mirrors.drain(..)) {
            let _ = thread.join();
        }
        let shared = self.control.shared();
        shared.feed.close();
        if let Some(hooks) = &shared.hooks {
            hooks.finish(LAST_EXCHANGES);
        }
        self.control.end();
        if let Some(side) = self.side.take() {
            let _ = side.join();
        }
    }
}

impl Drop for RunningProxy {
    fn drop(&mut self) {
        if !self.workers.is_empty() || self.side.is_some() {
            self.control.stop_now();
            self.wait();
        }
    }
}

/// Reports that a thread runs.
struct Ready(SyncSender<io::Result<()>>);

impl Ready {
    fn signal(self) {
        let _ = self.0.send(Ok(()));
    }
}

/// A thread with a runtime of its own, which runs until its future ends.
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
        Err(_) => Err(io::Error::other("it ended at once")),
    }
}

fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread().enable_all().build_local(LocalOptions::default())
}

/// Listeners on one address, one for each thread: the kernel deals the connections out.
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
        // With SO_REUSEPORT a second proxy of the same user would silently share the port.
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
