//! gRPC reflection on the lab's own services.

use prost::Message;

use super::definitions;
use super::messages::{
    ReflectionError, ReflectionFiles, ReflectionReply, ReflectionRequest, ReflectionService,
    ReflectionServices,
};
use super::replies::CallStatus;

/// Handles one query. As some servers do, it does not include the imports of a file.
pub(super) fn reply(request: ReflectionRequest) -> ReflectionReply {
    let mut reply =
        ReflectionReply { valid_host: request.host.clone(), ..ReflectionReply::default() };
    let files = definitions::files();
    let file = match (&request.file_by_filename, &request.file_containing_symbol) {
        (Some(name), _) => files.iter().find(|file| file.name() == name),
        (None, Some(symbol)) => files.iter().find(|file| definitions::has(file, symbol)),
        (None, None) => None,
    };
    if request.list_services.is_some() {
        let services = files.iter().flat_map(definitions::services);
        let services = services.map(|name| ReflectionService { name }).collect();
        reply.services = Some(ReflectionServices { services });
    } else if let Some(file) = file {
        reply.files = Some(ReflectionFiles { files: vec![file.encode_to_vec()] });
    } else {
        let code = CallStatus::NOT_FOUND as i32;
        reply.error = Some(ReflectionError { code, message: "it is not defined".to_owned() });
    }
    reply.original_request = Some(request);
    reply
}
