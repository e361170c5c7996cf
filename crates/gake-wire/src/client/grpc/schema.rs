//! The definitions of services, their methods and messages.

use std::path::{Path, PathBuf};

use prost_reflect::prost::Message as _;
use prost_reflect::prost_types::{FileDescriptorProto, FileDescriptorSet};
use prost_reflect::{
    DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor, SerializeOptions,
};
use protox::file::{File, FileResolver, GoogleFileResolver};

use super::error::GrpcError;
use super::message::GrpcMessages;

/// Maximum bytes of a descriptor set.
const SET_MAX: u64 = 64 << 20;

/// Definitions of services and their messages. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct GrpcSchema {
    pool: DescriptorPool,
}

/// A method of a service.
#[derive(Debug, Clone)]
pub struct GrpcMethod {
    descriptor: MethodDescriptor,
}

impl GrpcSchema {
    /// Reads `.proto` sources, which may import files from the folders `imports` (by default, their
    /// own), or descriptor sets written by `protoc --descriptor_set_out --include_imports`.
    ///
    /// # Errors
    /// A file cannot be read or is invalid.
    pub fn read(files: &[PathBuf], imports: &[PathBuf]) -> Result<Self, GrpcError> {
        let is_source = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "proto");
        let (sources, sets): (Vec<_>, Vec<_>) = files.iter().partition(is_source);
        let mut schema = Self::default();
        if !sources.is_empty() {
            schema.pool = compiled(&sources, imports)?;
        }
        for path in sets {
            let wrong = |why: &dyn std::fmt::Display| GrpcError::Definitions(why.to_string());
            let bytes = gake_files::read(path, "a descriptor set", SET_MAX);
            schema
                .add_set(&bytes.map_err(|error| wrong(&error))?)
                .map_err(|error| wrong(&format_args!("{}: {error}", path.display())))?;
        }
        Ok(schema)
    }

    /// Compiles the `.proto` sources of these names. `open` returns the source of a name, also of an
    /// imported one.
    ///
    /// # Errors
    /// A source is missing or invalid.
    pub fn compile(
        names: &[String],
        open: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, GrpcError> {
        let mut compiler = protox::Compiler::with_file_resolver(SourceResolver(open));
        compiler.include_imports(true);
        compiler.open_files(names).map_err(wrong)?;
        Ok(Self { pool: compiler.descriptor_pool() })
    }

    /// Adds the files of a descriptor set, encoded as protoc writes it.
    ///
    /// # Errors
    /// It is invalid, incomplete, or has duplicate definitions.
    pub fn add_set(&mut self, bytes: &[u8]) -> Result<(), GrpcError> {
        let wrong = |error| GrpcError::Definitions(format!("not a descriptor set: {error}"));
        let set = FileDescriptorSet::decode(bytes).map_err(wrong)?;
        set.file.iter().try_for_each(has_known_syntax)?;
        // Decoded again, since extensions in options are lost above.
        let added = self.pool.decode_file_descriptor_set(bytes);
        added.map_err(|error| GrpcError::Definitions(error.to_string()))
    }

    /// Adds files, in any order.
    pub(super) fn add_files(
        &mut self,
        files: impl IntoIterator<Item = FileDescriptorProto>,
    ) -> Result<(), GrpcError> {
        let files: Vec<_> = files.into_iter().collect();
        files.iter().try_for_each(has_known_syntax)?;
        let added = self.pool.add_file_descriptor_protos(files);
        added.map_err(|error| GrpcError::Definitions(error.to_string()))
    }

    /// Every method, by service.
    pub fn methods(&self) -> impl Iterator<Item = GrpcMethod> {
        let services = self.pool.services();
        services.flat_map(|service| {
            let all: Vec<_> = service.methods().collect();
            all.into_iter().map(|descriptor| GrpcMethod { descriptor })
        })
    }

    /// The method at a path, `package.Service/Method` with an optional leading slash.
    ///
    /// # Errors
    /// There is no such service or method.
    pub fn method(&self, path: &str) -> Result<GrpcMethod, GrpcError> {
        let bad = || GrpcError::Path(path.to_owned());
        let (service, name) = path.trim_start_matches('/').split_once('/').ok_or_else(bad)?;
        let Some(service) = self.pool.get_service_by_name(service) else {
            let known = self.pool.services().map(|one| one.full_name().to_owned()).collect();
            return Err(GrpcError::Service { name: service.to_owned(), known });
        };
        let found = service.methods().find(|method| method.name() == name);
        found.map(|descriptor| GrpcMethod { descriptor }).ok_or_else(|| GrpcError::Method {
            service: service.full_name().to_owned(),
            name: name.to_owned(),
            known: service.methods().map(|method| method.name().to_owned()).collect(),
        })
    }
}

/// prost-reflect panics on any other syntax.
fn has_known_syntax(file: &FileDescriptorProto) -> Result<(), GrpcError> {
    match file.syntax() {
        "" | "proto2" | "proto3" => Ok(()),
        other => Err(GrpcError::Definitions(format!(
            "{:?} has the syntax {other:?}; only proto2 and proto3 are supported",
            file.name()
        ))),
    }
}

fn wrong(error: protox::Error) -> GrpcError {
    // Only its Debug format has the file and the line.
    GrpcError::Definitions(format!("{error:?}"))
}

fn compiled(files: &[&PathBuf], imports: &[PathBuf]) -> Result<DescriptorPool, GrpcError> {
    let own = || files.iter().map(|file| folder_of(file)).collect();
    let folders: Vec<_> = if imports.is_empty() { own() } else { imports.to_vec() };
    let mut compiler = protox::Compiler::new(folders).map_err(wrong)?;
    compiler.include_imports(true);
    compiler.open_files(files).map_err(wrong)?;
    Ok(compiler.descriptor_pool())
}

struct SourceResolver<F>(F);

impl<F: Fn(&str) -> Option<String>> FileResolver for SourceResolver<F> {
    fn resolve_path(&self, path: &Path) -> Option<String> {
        path.to_str().map(str::to_owned)
    }

    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match (self.0)(name) {
            Some(source) => File::from_source(name, &source),
            // Well-known types need no file.
            None => GoogleFileResolver::new().open_file(name),
        }
    }
}

fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

impl GrpcMethod {
    /// The path: `package.Service/Method`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}", self.descriptor.parent_service().full_name(), self.descriptor.name())
    }

    /// Its definitions as an encoded descriptor set.
    #[must_use]
    pub fn definitions(&self) -> Vec<u8> {
        self.descriptor.parent_pool().encode_to_vec()
    }

    /// The package; empty without one.
    #[must_use]
    pub fn package(&self) -> String {
        self.descriptor.parent_service().package_name().to_owned()
    }

    /// The service, without the package.
    #[must_use]
    pub fn service(&self) -> String {
        self.descriptor.parent_service().name().to_owned()
    }

    /// The name of the method.
    #[must_use]
    pub fn name(&self) -> &str {
        self.descriptor.name()
    }

    /// Whether the client sends a stream of messages.
    #[must_use]
    pub fn is_client_streaming(&self) -> bool {
        self.descriptor.is_client_streaming()
    }

    /// Whether the server sends a stream of messages.
    #[must_use]
    pub fn is_server_streaming(&self) -> bool {
        self.descriptor.is_server_streaming()
    }

    /// Encodes a request message from JSON.
    ///
    /// # Errors
    /// The text is not JSON of the request type.
    pub fn encode(&self, json: &str) -> Result<Vec<u8>, GrpcError> {
        let input = self.descriptor.input();
        let wrong = |error: serde_json::Error| GrpcError::Json {
            message: input.full_name().to_owned(),
            why: error.to_string(),
        };
        let mut reader = serde_json::Deserializer::from_str(json);
        let message = DynamicMessage::deserialize(input.clone(), &mut reader).map_err(wrong)?;
        reader.end().map_err(wrong)?;
        Ok(message.encode_to_vec())
    }

    /// Encodes request messages from JSON: an array, or consecutive values, such as lines.
    ///
    /// # Errors
    /// The text is not JSON, or a value is not of the request type.
    pub fn encode_stream(&self, json: &str) -> Result<Vec<Vec<u8>>, GrpcError> {
        let input = self.descriptor.input();
        let wrong = |error: serde_json::Error, number: usize| GrpcError::Json {
            message: input.full_name().to_owned(),
            why: format!("message {number}: {error}"),
        };
        let values: Result<Vec<serde_json::Value>, _> =
            serde_json::Deserializer::from_str(json).into_iter().collect();
        let mut values = values.map_err(|error| GrpcError::Json {
            message: format!("stream of {}", input.full_name()),
            why: error.to_string(),
        })?;
        if let [serde_json::Value::Array(all)] = values.as_mut_slice() {
            values = std::mem::take(all);
        }
        let numbered = (1..).zip(values);
        numbered
            .map(|(number, value)| {
                let message = DynamicMessage::deserialize(input.clone(), value);
                Ok(message.map_err(|error| wrong(error, number))?.encode_to_vec())
            })
            .collect()
    }

    /// Whether a body has messages, and all pass `check` as JSON.
    pub(crate) fn returns(&self, body: &[u8], check: impl Fn(&[u8]) -> bool) -> bool {
        let passes =
            |message: &Vec<u8>| self.decode(message).is_ok_and(|json| check(json.as_bytes()));
        GrpcMessages::of(body).is_ok_and(|all| !all.is_empty() && all.iter().all(passes))
    }

    /// Decodes a response message to JSON with all fields.
    ///
    /// # Errors
    /// The bytes are not a message of the response type.
    pub fn decode(&self, bytes: &[u8]) -> Result<String, GrpcError> {
        let output: MessageDescriptor = self.descriptor.output();
        let wrong = |why: &dyn std::fmt::Display| GrpcError::Message {
            message: output.full_name().to_owned(),
            why: why.to_string(),
        };
        let message =
            DynamicMessage::decode(output.clone(), bytes).map_err(|error| wrong(&error))?;
        let mut writer = serde_json::Serializer::new(Vec::new());
        let options = SerializeOptions::new().skip_default_fields(false);
        message.serialize_with_options(&mut writer, &options).map_err(|error| wrong(&error))?;
        String::from_utf8(writer.into_inner()).map_err(|error| wrong(&error))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use gake_core::random::SplitMix64;

    use super::*;

    const SOURCE: &str = r#"
        syntax = "proto3";
        package shop.v1;
        message Item { string name = 1; int64 count = 2; repeated Item parts = 3; Kind kind = 4; }
        enum Kind { PLAIN = 0; FANCY = 1; }
        service Shop {
            rpc Order(Item) returns (Item);
            rpc Watch(Item) returns (stream Item);
        }
    "#;

    fn schema() -> (tempfile::TempDir, GrpcSchema) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.proto");
        std::fs::write(&path, SOURCE).unwrap();
        let schema = GrpcSchema::read(&[path], &[]).unwrap();
        (folder, schema)
    }

    #[test]
    fn json_round_trips() {
        let (_folder, schema) = schema();
        let method = schema.method("/shop.v1.Shop/Order").unwrap();
        assert_eq!(
            (method.path().as_str(), method.is_server_streaming()),
            ("shop.v1.Shop/Order", false)
        );
        let bytes =
            method.encode(r#"{"name":"a","count":"7","parts":[{"kind":"FANCY"}]}"#).unwrap();
        assert_eq!(bytes, [0x0a, 1, b'a', 0x10, 7, 0x1a, 2, 0x20, 1]);
        let json: serde_json::Value =
            serde_json::from_str(&method.decode(&bytes).unwrap()).unwrap();
        let part = serde_json::json!({"name": "", "count": "0", "parts": [], "kind": "FANCY"});
        let whole =
            serde_json::json!({"name": "a", "count": "7", "parts": [part], "kind": "PLAIN"});
        assert_eq!(json, whole);
        let error = method.decode(&[0x0a]).unwrap_err().to_string();
        assert!(error.contains("not a shop.v1.Item"), "{error}");
    }

    #[test]
    fn errors_name_the_type_the_methods_or_the_file() {
        let (folder, schema) = schema();
        let order = schema.method("shop.v1.Shop/Order").unwrap();
        for json in ["{", "[]", r#"{"nam":"x"}"#, r#"{"count":"x"}"#, "{} x"] {
            let error = order.encode(json).unwrap_err().to_string();
            assert!(error.contains("not a shop.v1.Item"), "{json}: {error}");
        }
        let unknown = ["shop.v1.Shop/Sell", "shop.Shop/Order", "Order"];
        let errors = unknown.map(|path| schema.method(path).unwrap_err().to_string());
        expect![[r#"
            shop.v1.Shop has no method "Sell"; it has Order, Watch
            there is no service "shop.Shop"; there are shop.v1.Shop
            "Order" is not a method: write package.Service/Method"#]]
        .assert_eq(&errors.join("\n"));
        let broken = folder.path().join("broken.proto");
        std::fs::write(&broken, "syntax = \"proto3\";\nmessage {").unwrap();
        let error = GrpcSchema::read(&[broken], &[]).unwrap_err().to_string();
        assert!(error.contains("broken.proto"), "{error}");
        let missing = GrpcSchema::read(&[folder.path().join("none.proto")], &[]);
        assert!(missing.unwrap_err().to_string().contains("none.proto"));
    }

    #[test]
    fn a_stream_is_an_array_or_values_in_a_row() {
        let (_folder, schema) = schema();
        let watch = schema.method("shop.v1.Shop/Watch").unwrap();
        let two = vec![vec![0x0a, 1, b'a'], vec![0x10, 7]];
        for json in [
            r#"[{"name":"a"},{"count":7}]"#,
            "{\"name\":\"a\"}\n{\"count\":\"7\"}\n",
            r#" {"name":"a"} {"count":7}"#,
        ] {
            assert_eq!(watch.encode_stream(json).unwrap(), two, "{json}");
        }
        assert!(watch.encode_stream("[]").unwrap().is_empty());
        for (json, reason) in [
            (r#"[{"name":"a"},{"nam":"b"}]"#, "message 2"),
            (r#"{"name":"a"}{"#, "EOF"),
            ("7", "message 1"),
        ] {
            let error = watch.encode_stream(json).unwrap_err().to_string();
            assert!(error.contains("shop.v1.Item") && error.contains(reason), "{json}: {error}");
        }
    }

    #[test]
    fn compiled_sets_are_read_too() {
        let (folder, schema) = schema();
        let set = folder.path().join("shop.protoset");
        std::fs::write(&set, schema.pool.encode_to_vec()).unwrap();
        let read = GrpcSchema::read(&[set], &[]).unwrap();
        let paths: Vec<_> = read.methods().map(|method| method.path()).collect();
        assert_eq!(paths, ["shop.v1.Shop/Order", "shop.v1.Shop/Watch"]);
        let noise = folder.path().join("noise.pb");
        std::fs::write(&noise, [0xff; 10]).unwrap();
        assert!(GrpcSchema::read(&[noise], &[]).unwrap_err().to_string().contains("noise.pb"));
    }

    #[test]
    fn other_syntaxes_are_an_error() {
        for syntax in ["editions", "proto4", "Proto3", " "] {
            let file = FileDescriptorProto {
                name: Some("a.proto".to_owned()),
                syntax: Some(syntax.to_owned()),
                ..FileDescriptorProto::default()
            };
            let expected = format!(
                "\"a.proto\" has the syntax {syntax:?}; only proto2 and proto3 are supported"
            );
            let set = FileDescriptorSet { file: vec![file.clone()] }.encode_to_vec();
            for added in
                [GrpcSchema::default().add_set(&set), GrpcSchema::default().add_files([file])]
            {
                assert!(added.unwrap_err().to_string().contains(&expected));
            }
        }
        let source = |_: &str| Some("edition = \"2023\";".to_owned());
        assert!(GrpcSchema::compile(&["a.proto".to_owned()], source).is_err());
    }

    const RICH: &str = r#"
        syntax = "proto2";
        package rich;
        import "google/protobuf/descriptor.proto";
        import "google/protobuf/any.proto";
        extend google.protobuf.FieldOptions { optional string note = 50000; }
        enum Kind { option allow_alias = true; A = 0; B = -1; C = 0; reserved 5 to 9; reserved "D"; }
        message Tree {
            required string name = 1 [(note) = "x"];
            optional double weight = 2 [default = inf];
            repeated sint32 packed = 3 [packed = true];
            map<string, Tree> children = 4;
            oneof choice { bytes raw = 5; Kind kind = 6 [deprecated = true]; }
            optional group Part = 7 { optional fixed64 id = 1; }
            optional google.protobuf.Any any = 8;
            extensions 100 to 199;
            reserved 20 to 29, 31;
            message Inner { optional Tree tree = 1; }
            extend Tree { optional Inner inner = 100; }
        }
        service Trees {
            rpc Grow(Tree) returns (stream Tree);
            rpc Cut(stream Tree.Inner) returns (Tree) { option idempotency_level = IDEMPOTENT; }
        }
    "#;

    /// A file with a few bytes or runs of bytes changed.
    fn mutant(original: &[u8], random: &mut SplitMix64) -> Vec<u8> {
        let mut bytes = original.to_vec();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len() + 1);
            let end = bytes.len().min(at + random.below(20));
            match random.below(6) {
                0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
                1 if at < bytes.len() => bytes[at] = random.below(256) as u8,
                2 => bytes.insert(at, random.below(256) as u8),
                3 => drop(bytes.drain(at..end)),
                4 => {
                    let run = bytes[at..end].to_vec();
                    let to = random.below(bytes.len() + 1);
                    bytes.splice(to..to, run);
                }
                _ if random.below(20) == 0 => bytes.truncate(at),
                _ => {}
            }
        }
        bytes
    }

    #[test]
    fn mutants_of_files_are_read_or_refused() {
        let name = ["rich.proto".to_owned()];
        let compile = |source: String| {
            GrpcSchema::compile(&name, move |name| (name == "rich.proto").then(|| source.clone()))
        };
        let set = compile(RICH.to_owned()).unwrap().pool.encode_to_vec();
        let mut random = SplitMix64::new(43);
        let mut read = 0;
        for number in 0..5_000 {
            let mut schema = GrpcSchema::default();
            let added = if number % 20 > 0 {
                schema.add_set(&mutant(&set, &mut random))
            } else {
                let source = mutant(RICH.as_bytes(), &mut random);
                compile(String::from_utf8_lossy(&source).into_owned()).map(|new| schema = new)
            };
            if added.is_ok() {
                read += 1;
                for method in schema.methods() {
                    let _ = (method.path(), method.definitions(), method.package());
                    let _ = method.encode(r#"{"name":"a","kind":"A","children":{"a":{}}}"#);
                    let _ = method.decode(&[10, 1, b'a', 0x3b, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0x3c]);
                }
            }
        }
        assert!((100..4_900).contains(&read), "{read} of 5,000 were read");
    }
}
