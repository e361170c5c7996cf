//! The tags of calls and streams.

use std::borrow::Cow;
use std::rc::Rc;

use gake_core::record::GrpcStatus;

use super::connection::{GrpcConnection, HEALTH_CHECK};
use crate::user::request_tags::RequestTags;
use crate::user::vu::Vu;

pub(super) struct CallTags<'a> {
    pub(super) vu: &'a Rc<Vu>,
    pub(super) connection: &'a GrpcConnection,
    /// `/package.Service/Method`
    pub(super) path: &'a str,
    /// The script's own, `name` among them.
    pub(super) own: &'a [(String, String)],
    pub(super) status: Option<GrpcStatus>,
}

impl RequestTags for CallTags<'_> {
    const SYSTEM: &'static [&'static str] = &["url", "name", "service", "method", "status"];

    fn vu(&self) -> &Vu {
        self.vu
    }

    fn own(&self) -> &[(String, String)] {
        self.own
    }

    fn name(&self) -> Option<&str> {
        None
    }

    fn system(&self, key: &str) -> Option<Cow<'_, str>> {
        let Self { connection, path, own, status, .. } = self;
        if let Some((_, value)) = own.iter().rev().find(|(known, _)| known == key) {
            return Some(value.as_str().into());
        }
        let mut segments = path[1..].split('/');
        match key {
            "status" => status.map(|status| status.number().to_string().into()),
            // In k6, health checks have fewer tags.
            _ if *path == HEALTH_CHECK => None,
            "url" => Some(format!("{}{path}", connection.address).into()),
            "name" => Some((*path).into()),
            "service" => segments.next().map(Cow::Borrowed),
            _ => segments.nth(1).map(Cow::Borrowed),
        }
    }
}
