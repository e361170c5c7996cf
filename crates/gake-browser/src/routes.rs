//! Which user a message of Chromium is for.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::inbox::Inbox;

/// The number of a user.
pub(crate) type UserNumber = u64;

/// The result of a command that makes something of its user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Makes {
    Nothing,
    Session,
    Context,
}

impl Makes {
    /// By the method.
    pub(crate) fn of(method: &str) -> Self {
        match method {
            "Target.attachToTarget" => Self::Session,
            "Target.createBrowserContext" => Self::Context,
            _ => Self::Nothing,
        }
    }
}

/// Who waits for what.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    users: HashMap<UserNumber, Arc<Inbox>>,
    commands: HashMap<u64, (UserNumber, Makes)>,
    sessions: HashMap<String, UserNumber>,
    contexts: HashMap<String, UserNumber>,
    last: UserNumber,
    /// Why no message will come.
    closed: Option<String>,
}

/// The parts of a message that say whose it is.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Envelope<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    session_id: Option<Cow<'a, str>>,
}

/// The parts of what a target's messages hold.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TargetMessage {
    params: TargetParams,
    result: TargetParams,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TargetParams {
    session_id: Option<String>,
    browser_context_id: Option<String>,
    target_info: TargetInfo,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TargetInfo {
    browser_context_id: Option<String>,
}

impl Routes {
    /// Adds a user.
    pub(crate) fn add_user(&mut self, inbox: Arc<Inbox>) -> UserNumber {
        if let Some(why) = &self.closed {
            inbox.close(why);
        }
        self.last += 1;
        self.users.insert(self.last, inbox);
        self.last
    }

    /// Removes a user with all that is its own.
    pub(crate) fn remove_user(&mut self, user: UserNumber) {
        self.users.remove(&user);
        self.forget(user);
        self.contexts.retain(|_, owner| *owner != user);
    }

    /// Forgets the user's commands and sessions.
    pub(crate) fn forget(&mut self, user: UserNumber) {
        self.commands.retain(|_, (owner, _)| *owner != user);
        self.sessions.retain(|_, owner| *owner != user);
    }

    /// Takes the contexts of a user.
    pub(crate) fn take_contexts(&mut self, user: UserNumber) -> Vec<String> {
        self.contexts.extract_if(|_, owner| *owner == user).map(|(context, _)| context).collect()
    }

    /// Adds a command, whose response is for `user`.
    pub(crate) fn add_command(&mut self, id: u64, user: UserNumber, makes: Makes) {
        self.commands.insert(id, (user, makes));
    }

    /// Reports to all users that no message will come.
    pub(crate) fn close(&mut self, why: &str) {
        self.closed.get_or_insert_with(|| why.to_owned());
        self.users.values().for_each(|inbox| inbox.close(why));
    }

    /// Why no message will come.
    pub(crate) fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }

    /// Whether messages may come.
    pub(crate) fn is_open(&self) -> bool {
        self.closed.is_none()
    }

    /// Passes a message on to its user; drops one that has none.
    pub(crate) fn dispatch(&mut self, text: String) {
        let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(&text) else { return };
        let session = envelope.session_id.as_deref();
        let owner = match (envelope.id, envelope.method.as_deref()) {
            (Some(id), _) => self.owner_of_response(id, &text),
            (None, Some(method)) if method.starts_with("Target.") => {
                let method = method.to_owned();
                let owner = session.and_then(|session| self.sessions.get(session)).copied();
                self.owner_of_target(&method, owner, &text)
            }
            _ => session.and_then(|session| self.sessions.get(session)).copied(),
        };
        let is_event = envelope.id.is_none();
        if let Some(inbox) = owner.and_then(|owner| self.users.get(&owner)) {
            inbox.push(text, is_event);
        }
    }

    fn owner_of_response(&mut self, id: u64, text: &str) -> Option<UserNumber> {
        let (owner, makes) = self.commands.remove(&id)?;
        if makes != Makes::Nothing {
            let made = serde_json::from_str::<TargetMessage>(text).unwrap_or_default().result;
            let (map, made) = match makes {
                Makes::Session => (&mut self.sessions, made.session_id),
                _ => (&mut self.contexts, made.browser_context_id),
            };
            map.extend(made.map(|made| (made, owner)));
        }
        Some(owner)
    }

    fn owner_of_target(
        &mut self,
        method: &str,
        owner: Option<UserNumber>,
        text: &str,
    ) -> Option<UserNumber> {
        let params = serde_json::from_str::<TargetMessage>(text).unwrap_or_default().params;
        let context = params.target_info.browser_context_id;
        let owner = owner.or_else(|| self.contexts.get(&context?).copied());
        match (method, params.session_id) {
            ("Target.attachedToTarget", Some(session)) => {
                self.sessions.insert(session, owner?);
                owner
            }
            ("Target.detachedFromTarget", Some(session)) => {
                self.sessions.remove(&session).or(owner)
            }
            _ => owner,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Poll, Waker};

    fn count(inbox: &Inbox) -> usize {
        match inbox.poll(&Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(messages)) => messages.len(),
            _ => 0,
        }
    }

    #[test]
    fn each_message_goes_to_the_user_who_made_its_session_or_context() {
        let mut routes = Routes::default();
        let (one, two) = (Arc::new(Inbox::default()), Arc::new(Inbox::default()));
        let (first, second) = (routes.add_user(one.clone()), routes.add_user(two.clone()));
        routes.add_command(1, first, Makes::of("Target.attachToTarget"));
        routes.add_command(2, second, Makes::of("Target.createBrowserContext"));
        routes.dispatch(r#"{"id":1,"result":{"sessionId":"S"}}"#.to_owned());
        routes.dispatch(r#"{"id":2,"result":{"browserContextId":"C"}}"#.to_owned());
        assert_eq!((count(&one), count(&two)), (1, 1));
        let events = [
            r#"{"method":"Page.loaded","sessionId":"S","params":{}}"#,
            r#"{"method":"Target.attachedToTarget","sessionId":"S","params":{"sessionId":"T"}}"#,
            r#"{"method":"Page.loaded","sessionId":"T"}"#,
            r#"{"method":"Target.targetCreated","params":{"targetInfo":{"browserContextId":"C"}}}"#,
            r#"{"method":"Page.loaded","sessionId":"unknown"}"#,
            r#"{"id":1,"result":{}}"#,
            "not JSON",
        ];
        events.iter().for_each(|event| routes.dispatch((*event).to_owned()));
        assert_eq!((count(&one), count(&two)), (3, 1));
        assert_eq!(routes.take_contexts(second), ["C"]);
        routes.remove_user(first);
        routes.dispatch(r#"{"method":"Page.loaded","sessionId":"T"}"#.to_owned());
        assert_eq!(count(&one), 0);
    }
}
