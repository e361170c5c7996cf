//! Descriptor sets and `.proto` sources: definitions or one error. The first byte of an input
//! chooses.
#![no_main]

use gake_wire::GrpcSchema;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [choice, bytes @ ..] = data else { return };
    let mut schema = GrpcSchema::default();
    if choice % 2 == 0 {
        let _ = schema.add_set(bytes);
    } else if let Ok(source) = std::str::from_utf8(bytes) {
        let source = source.to_owned();
        let open = move |name: &str| (name == "a.proto").then(|| source.clone());
        schema = GrpcSchema::compile(&["a.proto".to_owned()], open).unwrap_or_default();
    }
    for method in schema.methods() {
        let _ = method.encode("{}");
        let _ = method.decode(&[10, 1, b'a']);
    }
});
