//! A script loaded on several threads, called from other threads.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::console::ConsoleSink;
use crate::error::ScriptError;
use crate::script::{Export, LoadedScript, ScriptLimits};
use crate::source::ScriptSource;
use crate::value::Value;

/// Stack of a thread in addition to the script's.
const STACK_BESIDE: usize = 1 << 20;

/// Threads with the same script, without shared variables.
pub struct ScriptThreads {
    calls: SyncSender<CallRequest>,
    exports: Vec<(String, Export)>,
}

struct CallRequest {
    function: &'static str,
    arguments: Vec<Value>,
    limit: Duration,
    until: Instant,
    reply: SyncSender<Result<Value, ScriptError>>,
}

impl std::fmt::Debug for ScriptThreads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptThreads").field("exports", &self.exports).finish_non_exhaustive()
    }
}

impl ScriptThreads {
    /// Loads the script on `threads` threads, which end when this is dropped. Dropping does not
    /// wait for a script that hangs.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub fn start(
        source: &ScriptSource,
        limits: ScriptLimits,
        threads: usize,
        sink: &ConsoleSink,
    ) -> Result<Self, ScriptError> {
        let threads = threads.max(1);
        let (calls, receiver) = sync_channel(threads);
        let receiver = Arc::new(Mutex::new(receiver));
        let mut exports = Vec::new();
        for _ in 0..threads {
            let (source, sink) = (source.clone(), Arc::clone(sink));
            let receiver = Arc::clone(&receiver);
            let (loaded, load) = sync_channel(1);
            std::thread::Builder::new()
                .name("gake-script".to_owned())
                .stack_size(limits.stack + STACK_BESIDE)
                .spawn(move || match LoadedScript::load(&source, limits, &sink) {
                    Ok((script, exports)) => {
                        let _ = loaded.send(Ok(exports));
                        serve(&script, &receiver);
                    }
                    Err(error) => {
                        let _ = loaded.send(Err(error));
                    }
                })?;
            exports = load.recv().unwrap_or(Err(ScriptError::Gone))?;
        }
        Ok(Self { calls, exports })
    }

    /// The export with this name.
    #[must_use]
    pub fn export(&self, name: &str) -> Option<&Export> {
        self.exports.iter().find(|(export, _)| export == name).map(|(_, export)| export)
    }

    /// Calls an exported function, awaits a promise, and returns the result, within `limit` in any
    /// case.
    ///
    /// # Errors
    /// When it throws, takes too long, or returns a value that cannot be converted; when as many
    /// calls are queued as there are threads.
    pub fn call(
        &self,
        function: &'static str,
        arguments: Vec<Value>,
        limit: Duration,
    ) -> Result<Value, ScriptError> {
        let until = Instant::now() + limit;
        let (reply, replies) = sync_channel(1);
        let call = CallRequest { function, arguments, limit, until, reply };
        self.calls.try_send(call).map_err(|error| match error {
            TrySendError::Full(_) => ScriptError::Busy(function.to_owned()),
            TrySendError::Disconnected(_) => ScriptError::Gone,
        })?;
        // A loop in QuickJS's own code cannot be interrupted: do not wait for the thread.
        match replies.recv_timeout(limit) {
            Ok(reply) => reply,
            Err(RecvTimeoutError::Timeout) => {
                Err(ScriptError::Late { what: function.to_owned(), limit })
            }
            Err(RecvTimeoutError::Disconnected) => Err(ScriptError::Gone),
        }
    }
}

fn serve(script: &LoadedScript, calls: &Mutex<Receiver<CallRequest>>) {
    loop {
        let call = calls.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(CallRequest { function, arguments, limit, until, reply }) = call else { return };
        let result = if Instant::now() >= until {
            Err(ScriptError::Late { what: function.to_owned(), limit })
        } else {
            script.call(function, arguments, limit, until)
        };
        // The caller may have timed out.
        let _ = reply.send(result);
        script.finish_jobs();
    }
}
