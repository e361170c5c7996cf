//! Reflection: what the lab tells of its own services.

use prost::Message;

use super::definitions;
use super::messages::{
    ReflectionError, ReflectionFiles, ReflectionReply, ReflectionRequest, ReflectionService,
    ReflectionServices,
};
use super::replies::Status;

/// The answer to one question. As some servers do, it does not send along what a file imports.
pub(super) fn answer(asked: ReflectionRequest) -> ReflectionReply {
    let mut reply =
        ReflectionReply { valid_host: asked.host.clone(), ..ReflectionReply::default() };
    let files = definitions::files();
    let file = match (&asked.file_by_filename, &asked.file_containing_symbol) {
        (Some(name), _) => files.iter().find(|file| file.name() == name),
        (None, Some(symbol)) => files.iter().find(|file| definitions::has(file, symbol)),
        (None, None) => None,
    };
    if asked.list_services.is_some() {
        let services = files.iter().flat_map(definitions::services);
        let services = services.map(|name| ReflectionService { name }).collect();
        reply.services = Some(ReflectionServices { services });
    } else if let Some(file) = file {
        reply.files = Some(ReflectionFiles { files: vec![file.encode_to_vec()] });
    } else {
        let code = Status::NOT_FOUND as i32;
        reply.error = Some(ReflectionError { code, message: "it is not defined".to_owned() });
    }
    reply.original_request = Some(asked);
    reply
}
