//! The tags of calls and streams.

use std::borrow::Cow;
use std::rc::Rc;

use gake_core::record::GrpcStatus;

use super::connection::{GrpcConnection, HEALTH_CHECK};
use crate::user::series_index::TagSource;
use crate::user::vu::Vu;

/// The system tags of a call.
const SYSTEM_TAGS: [&str; 5] = ["url", "name", "service", "method", "status"];

pub(super) struct CallTags<'a> {
    pub(super) vu: &'a Rc<Vu>,
    pub(super) connection: &'a GrpcConnection,
    /// `/package.Service/Method`
    pub(super) path: &'a str,
    /// The script's own.
    pub(super) own: &'a [(String, String)],
    pub(super) status: Option<GrpcStatus>,
}

impl TagSource for CallTags<'_> {
    fn tag(&self, key: &str) -> Option<Cow<'_, str>> {
        let Self { vu, connection, path, own, status } = self;
        if let Some((_, value)) = own.iter().rev().find(|(known, _)| known == key) {
            return Some(value.as_str().into());
        }
        let mut segments = path[1..].split('/');
        match key {
            // In k6, health checks have fewer tags.
            "url" | "name" | "service" | "method" if *path == HEALTH_CHECK => None,
            "url" => Some(format!("{}{path}", connection.address).into()),
            "name" => Some((*path).into()),
            "service" => segments.next().map(Cow::Borrowed),
            "method" => segments.nth(1).map(Cow::Borrowed),
            "status" => status.map(|status| status.number().to_string().into()),
            _ => vu.tag(key),
        }
    }

    fn keys(&self) -> Vec<String> {
        let Self { vu, own, .. } = self;
        let system = SYSTEM_TAGS.into_iter().filter(|tag| vu.test.has_system_tag(tag));
        let own = own.iter().map(|(name, _)| name.clone());
        system.map(str::to_owned).chain(own).chain(vu.keys()).collect()
    }
}
