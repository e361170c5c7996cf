//! Chooses the backends of a request.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use http::StatusCode;

use crate::hooks::{self, Selection};
use crate::message::head::RequestHead;
use crate::mirror::gate;
use crate::mirror::ledger::Category;
use crate::proxy::client::ClientState;
use crate::proxy::client::refusal::Refusal;
use crate::proxy::worker::ProxyWorker;

/// The chosen backends; shadows are a bit mask.
pub(crate) enum BackendChoice {
    Master {
        shadows: u32,
    },
    /// The first response goes to the client.
    Race {
        master: bool,
        shadows: u32,
    },
}

/// Applies the selecting hook, if any, then each shadow's policy. Shadows that get no copy get their
/// ledger entry here, the others when the copy is sent.
pub(crate) async fn choose(
    client: &Rc<ClientState>,
    head: &RequestHead,
    upgrade: bool,
) -> Result<BackendChoice, Refusal> {
    let worker = &client.worker;
    let selection = match &worker.shared.hooks {
        Some(hooks) if hooks.selects() => {
            let selection = hooks
                .select(hooks::HookRequestHead {
                    method: head.method().clone(),
                    uri: head.uri(),
                    headers: head.map(),
                    client: client.peer,
                    ids: head.ids,
                })
                .await;
            client.request_received();
            let Some(selection) = selection else {
                for backend in &worker.shared.shadows {
                    backend.worker_page(worker.index).settle(Category::SelectFailed);
                }
                return Ok(BackendChoice::Master { shadows: 0 });
            };
            selection
        }
        _ => Selection::All,
    };
    let (master, named) = named(client, &selection);
    let race = !upgrade && (selection == Selection::Race || (!master && named != 0));
    let shadows = by_policy(worker, head, PolicyContext { named, upgrade, race });
    match (race, master, shadows) {
        (true, false, 0) | (false, false, _) => Err(Refusal::new(
            StatusCode::MISDIRECTED_REQUEST,
            "no backend was selected that may receive this request",
        )),
        (true, true, 0) | (false, true, _) => Ok(BackendChoice::Master { shadows }),
        (true, master, shadows) => Ok(BackendChoice::Race { master, shadows }),
    }
}

struct PolicyContext {
    /// The shadows selected by the hook.
    named: u32,
    upgrade: bool,
    race: bool,
}

/// Like [`choose`], without hooks.
pub(crate) fn all(worker: &ProxyWorker, head: &RequestHead, upgrade: bool) -> u32 {
    by_policy(worker, head, PolicyContext { named: u32::MAX, upgrade, race: false })
}

fn by_policy(worker: &ProxyWorker, head: &RequestHead, context: PolicyContext) -> u32 {
    let PolicyContext { named, upgrade, race } = context;
    let killed = worker.shared.killed.load(Relaxed);
    let mut shadows = 0;
    for (number, backend) in worker.shared.shadows.iter().enumerate() {
        let page = backend.worker_page(worker.index);
        if named & (1 << number) == 0 {
            page.settle(Category::Unselected);
            continue;
        }
        let allowed = if upgrade {
            Err(Category::Upgrade)
        } else if killed {
            Err(Category::Killed)
        } else if race {
            gate::may_see(&backend.config, head.method(), head.path())
        } else {
            let mut draws = worker.draws.borrow_mut();
            gate::may_copy(&backend.config, &backend.gate, head, &mut draws)
        };
        match allowed {
            Ok(()) => shadows |= 1 << number,
            Err(category) => page.settle(category),
        }
        if race && shadows & (1 << number) != 0 {
            page.settle(Category::Raced);
        }
    }
    shadows
}

/// Whether the master is selected, and the selected shadows.
fn named(client: &ClientState, selection: &Selection) -> (bool, u32) {
    let shared = &client.worker.shared;
    let Selection::Names(names) = selection else {
        // SHADOWS_MAX is the number of bits.
        return (true, u32::MAX);
    };
    let (mut master, mut shadows) = (false, 0);
    for name in names {
        if *name == *shared.master.backend.name {
            master = true;
        } else if let Some(number) =
            shared.shadows.iter().position(|backend| *name == *backend.config.backend.name)
        {
            shadows |= 1 << number;
        } else if let Some(hooks) = &shared.hooks {
            hooks.unknown_name();
        }
    }
    (master, shadows)
}
