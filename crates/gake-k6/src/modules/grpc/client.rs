//! A gRPC client of a script: its definitions and its connection.

use gake_js::native::named;
use std::cell::RefCell;
use std::path::{Component, Path};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use gake_core::clock::{Clock, nanos};
use gake_js::errors::go_error;
use gake_script::user::{Completion, HeapCharge};
use gake_wire::{Deadline, GrpcError, GrpcMethod, GrpcReflection, GrpcSchema, HttpRequest};
use rquickjs::function::Opt;
use rquickjs::{Ctx, Function, Object, Persistent, Value};
use serde_json::json;

use super::address::address_error;
use super::call::{GrpcCall, encoded};
use super::connection::{GrpcConnection, HEALTH_CHECK};
use super::params::{CallParams, ConnectParams};
use super::status::{go_text, preface_error};
use super::stream::GrpcStream;
use crate::paths::{FILE, folder, normal};
use crate::user::loader::check_local;
use crate::user::vu::{Vu, VuStage};

/// The definition of the standard health check.
const HEALTH: &str = "syntax = \"proto3\"; package grpc.health.v1;
    message HealthCheckRequest { string service = 1; }
    message HealthCheckResponse {
        enum ServingStatus { UNKNOWN = 0; SERVING = 1; NOT_SERVING = 2; SERVICE_UNKNOWN = 3; }
        ServingStatus status = 1;
    }
    service Health { rpc Check(HealthCheckRequest) returns (HealthCheckResponse); }";

/// The name of a call in errors.
const INVOKE: &str = "GRPC's client.invoke()";

/// The first pause between attempts to connect.
const RETRY: Duration = Duration::from_secs(1);

/// The error of a client that is not connected.
const UNCONNECTED: &str = "no gRPC connection, you must call connect first";

pub(super) struct GrpcClient {
    vu: Rc<Vu>,
    /// Definitions that the script has loaded.
    loaded: RefCell<Vec<GrpcSchema>>,
    /// Definitions from server reflection.
    reflected: RefCell<Option<GrpcSchema>>,
    connection: RefCell<Option<Rc<GrpcConnection>>>,
}

impl GrpcClient {
    pub(super) fn new(vu: &Rc<Vu>) -> Rc<Self> {
        Rc::new(Self {
            vu: Rc::clone(vu),
            loaded: RefCell::default(),
            reflected: RefCell::default(),
            connection: RefCell::default(),
        })
    }

    /// The native functions of a client, for `client.js`.
    pub(super) fn shown<'js>(self: &Rc<Self>, ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
        let shown = Object::new(ctx.clone())?;
        let client = Rc::clone(self);
        let load = move |ctx: Ctx<'js>, imports: Vec<String>, names: Vec<String>| {
            client.load(&ctx, &imports, &names)
        };
        shown.set("load", named("grpc.Client", "load", load))?;
        let client = Rc::clone(self);
        let load = move |ctx: Ctx<'js>, path: String| client.load_set(&ctx, &path);
        shown.set("loadProtoset", named("grpc.Client", "loadProtoset", load))?;
        let client = Rc::clone(self);
        let connect = move |ctx: Ctx<'js>, address: String, params: Opt<Value<'js>>| {
            client.connect(&ctx, &address, params.0)
        };
        shown.set("connect", named("grpc.Client", "connect", connect))?;
        let client = Rc::clone(self);
        let invoke = move |ctx: Ctx<'js>, method: String, json: String, params: Opt<Value<'js>>| {
            let call = client.call(&ctx, &method, &json, params.0)?;
            let response = client.vu.wait(&ctx, call.run())?;
            response.shown(&ctx)
        };
        shown.set("invoke", named("grpc.Client", "invoke", invoke))?;
        let client = Rc::clone(self);
        let later = move |ctx: Ctx<'js>,
                          method: String,
                          json: String,
                          params: Value<'js>,
                          callback: Function<'js>| {
            client.vu.room_for_task(&ctx)?;
            let call = client.call(&ctx, &method, &json, Some(params))?;
            let held = HeapCharge::new(&ctx, call.bytes())?;
            let callback = Persistent::save(&ctx, callback);
            client.vu.tasks.add(async move {
                let response = call.run().await;
                drop(held);
                Box::new(move |ctx: &Ctx<'_>| {
                    callback.restore(ctx)?.call::<_, ()>((response.shown(ctx)?,))
                }) as Completion
            });
            Ok::<_, rquickjs::Error>(())
        };
        shown.set("invokeLater", named("grpc.Client", "asyncInvoke", later))?;
        let client = Rc::clone(self);
        let stream = move |ctx: Ctx<'js>, method: String, params: Value<'js>| {
            client.stream(&ctx, &method, Some(params))?.shown(&ctx)
        };
        shown.set("stream", named("grpc.Client", "stream", stream))?;
        let client = Rc::clone(self);
        let check = move |ctx: Ctx<'js>, service: String| client.health(&ctx, &service);
        shown.set("healthCheck", named("grpc.Client", "healthCheck", check))?;
        let client = Rc::clone(self);
        shown
            .set("close", named("grpc.Client", "close", move || drop(client.connection.take())))?;
        Ok(shown)
    }

    /// Loads definitions from proto files; returns their methods as JSON.
    fn load(
        &self,
        ctx: &Ctx<'_>,
        imports: &[String],
        names: &[String],
    ) -> rquickjs::Result<String> {
        self.only_in_init(ctx, "load must be called in the init context")?;
        names.iter().try_for_each(|name| check_local(ctx, name))?;
        let base = folder(&self.vu.test.main);
        let folders =
            imports.iter().map(|path| normal(&base.join(path.strip_prefix(FILE).unwrap_or(path))));
        let mut folders: Vec<_> = folders.collect();
        if folders.is_empty() {
            folders.push(base);
        }
        let key = format!("{folders:?} {names:?}");
        let test = Arc::clone(&self.vu.test);
        let is_missing =
            |name: &&String| folders.iter().all(|one| test.file(&one.join(name)).is_err());
        if let Some(name) = names.iter().find(is_missing) {
            let last = folders.last().map(|one| one.join(name.trim_start_matches('/')));
            let path = normal(&last.unwrap_or_default());
            let why = format!("stat {}: no such file or directory", path.display());
            let is_plain = Path::new(name)
                .components()
                .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
            let resolve = format!("could not resolve path {name:?}: ");
            return Err(go_error(ctx, &(if is_plain { String::new() } else { resolve } + &why)));
        }
        let compiled = self.vu.test.definitions.get(key, || {
            GrpcSchema::compile(names, move |name| {
                let found = folders.iter().find_map(|one| test.file(&one.join(name)).ok())?;
                Some(String::from_utf8_lossy(&found).into_owned())
            })
        });
        let compiled = compiled.map_err(|error| go_error(ctx, &error.to_string()))?;
        Ok(self.take(compiled))
    }

    /// Loads definitions from a compiled set.
    fn load_set(&self, ctx: &Ctx<'_>, path: &str) -> rquickjs::Result<String> {
        self.only_in_init(ctx, "load must be called in the init context")?;
        check_local(ctx, path)?;
        let base = folder(&self.vu.test.main);
        let path = normal(&base.join(path.strip_prefix(FILE).unwrap_or(path)));
        let read = self.vu.test.definitions.get(path.display().to_string(), || {
            let wrong = |error: std::io::Error| {
                GrpcError::Definitions(format!("couldn't open protoset: {error}"))
            };
            let bytes = self.vu.test.file(&path).map_err(wrong)?;
            let mut schema = GrpcSchema::default();
            schema.add_set(&bytes)?;
            Ok(schema)
        });
        let read = read.map_err(|error| go_error(ctx, &error.to_string()))?;
        Ok(self.take(read))
    }

    fn only_in_init(&self, ctx: &Ctx<'_>, why: &str) -> rquickjs::Result<()> {
        match self.vu.stage.get() {
            VuStage::Init => Ok(()),
            _ => Err(go_error(ctx, why)),
        }
    }

    /// Adds definitions; returns their methods as JSON.
    fn take(&self, added: GrpcSchema) -> String {
        let methods: Vec<_> = added.methods().map(|method| information(&method)).collect();
        self.loaded.borrow_mut().push(added);
        json!(methods).to_string()
    }

    /// The method at a path: the server's own definition, or the one loaded last.
    fn method(&self, path: &str) -> Option<GrpcMethod> {
        let (reflected, loaded) = (self.reflected.borrow(), self.loaded.borrow());
        let mut all = reflected.iter().chain(loaded.iter().rev());
        all.find_map(|schema| schema.method(path).ok())
    }

    fn connect<'js>(
        &self,
        ctx: &Ctx<'js>,
        address: &str,
        params: Option<Value<'js>>,
    ) -> rquickjs::Result<bool> {
        self.vu.not_in_init(ctx, "connecting to a gRPC server")?;
        let params = ConnectParams::read(ctx, params)?;
        let Some(base) = self.vu.grpc.borrow().clone() else {
            return Err(go_error(ctx, "no connections outside of a run"));
        };
        let scheme = if params.is_plain { "http" } else { "https" };
        let connection = GrpcConnection {
            client: base.with_own_connections(),
            address: address.to_owned(),
            origin: format!("{scheme}://{address}"),
            authority: params.authority.clone(),
            max_receive: params.max_receive,
        };
        let opened = self.vu.wait(ctx, open(&self.vu, &connection, &params))?;
        let schema = opened.map_err(|error| go_error(ctx, &error))?;
        if schema.is_some() {
            *self.reflected.borrow_mut() = schema;
        }
        *self.connection.borrow_mut() = Some(Rc::new(connection));
        Ok(true)
    }

    fn connected(&self, ctx: &Ctx<'_>) -> rquickjs::Result<Rc<GrpcConnection>> {
        let connection = self.connection.borrow().clone();
        connection.ok_or_else(|| go_error(ctx, UNCONNECTED))
    }

    /// Prepares a call of a method with a message in JSON.
    fn call<'js>(
        &self,
        ctx: &Ctx<'js>,
        method: &str,
        json: &str,
        params: Option<Value<'js>>,
    ) -> rquickjs::Result<GrpcCall> {
        self.vu.not_in_init(ctx, "invoking RPC methods")?;
        let connection = self.connected(ctx)?;
        let method = self.defined(ctx, method, "")?;
        let params = CallParams::read(ctx, INVOKE, params)?;
        let message = encoded(ctx, &method, json)?.map_err(|error| {
            let message = format!("unable to serialise request object to protocol buffer: {error}");
            go_error(ctx, &message)
        })?;
        Ok(GrpcCall::new(Rc::clone(&self.vu), connection, method, &message, params))
    }

    fn stream<'js>(
        &self,
        ctx: &Ctx<'js>,
        method: &str,
        params: Option<Value<'js>>,
    ) -> rquickjs::Result<Rc<GrpcStream>> {
        let Some(connection) = self.connection.borrow().clone() else {
            return Err(go_error(ctx, &format!("invalid GRPC Stream's client: {UNCONNECTED}")));
        };
        let method = self.defined(ctx, method, "invalid GRPC Stream's method: ")?;
        let params = CallParams::read(ctx, "GRPC Stream's", params)?;
        GrpcStream::open(ctx, Rc::clone(&self.vu), connection, method, params)
    }

    /// The method of a script's name; `what` is the prefix of errors.
    fn defined(&self, ctx: &Ctx<'_>, method: &str, what: &str) -> rquickjs::Result<GrpcMethod> {
        if method.is_empty() {
            return Err(go_error(ctx, &format!("{what}method to invoke cannot be empty")));
        }
        let path = format!("/{}", method.strip_prefix('/').unwrap_or(method));
        self.method(&path).ok_or_else(|| {
            go_error(ctx, &format!("{what}method {path:?} not found in file descriptors"))
        })
    }

    fn health<'js>(&self, ctx: &Ctx<'js>, service: &str) -> rquickjs::Result<Value<'js>> {
        self.vu.not_in_init(ctx, "invoking RPC methods")?;
        let connection = self.connected(ctx)?;
        let params = CallParams::read(ctx, INVOKE, None)?;
        let schema = self.vu.test.definitions.get("health".to_owned(), || {
            GrpcSchema::compile(&["health.proto".to_owned()], |_| Some(HEALTH.to_owned()))
        });
        let method = schema.and_then(|schema| schema.method(HEALTH_CHECK));
        let method = method.map_err(|error| go_error(ctx, &error.to_string()))?;
        let json = json!({ "service": service }).to_string();
        let message = encoded(ctx, &method, &json)?;
        let message = message.map_err(|error| go_error(ctx, &error.to_string()))?;
        let call = GrpcCall::new(Rc::clone(&self.vu), connection, method, &message, params);
        let response = self.vu.wait(ctx, call.run())?;
        response.health(ctx)
    }
}

/// Opens the connection; loads definitions by server reflection if requested.
async fn open(
    vu: &Vu,
    connection: &GrpcConnection,
    params: &ConnectParams,
) -> Result<Option<GrpcSchema>, String> {
    let GrpcConnection { client, address, origin, .. } = connection;
    let blocked = &vu.test.settings().blocked;
    let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
    if let Some(blocked) = blocked.host(host) {
        return Err(blocked.log_message);
    }
    if let Some(why) = address_error(address) {
        return Err(why);
    }
    let request = HttpRequest::new("POST", format!("{origin}/"));
    let prepared = client.prepare(&request).await.map_err(|fault| go_text(fault, address))?;
    if let Some(blocked) = blocked.address(&client.network().addresses(&prepared)) {
        return Err(blocked.log_message);
    }
    let end = vu.now().saturating_add(nanos(params.timeout));
    let mut pause = RETRY;
    loop {
        let now = vu.now();
        let deadline = Deadline::within(now, Duration::from_nanos(end - now.min(end)));
        let Err(fault) = client.connect(&prepared, deadline).await else { break };
        // A server that is no HTTP/2 server may become one; one that cannot be reached does not.
        let Some(why) = preface_error(fault) else { return Err(go_text(fault, address)) };
        let until = vu.now().saturating_add(nanos(pause));
        vu.clock.sleep_until(until.min(end)).await;
        if until >= end {
            return Err(format!("context deadline exceeded: connection error: desc = \"{why}\""));
        }
        pause = pause.mul_f64(1.6);
    }
    if !params.reflects {
        return Ok(None);
    }
    let metadata = &params.reflection_metadata;
    let reflection = GrpcReflection::new(client, origin.clone(), metadata, params.timeout);
    let schema = reflection.schema(None).await;
    schema.map(Some).map_err(|error| format!("error using grpc reflection: {error}"))
}

/// The description of a method in the result of `load`.
fn information(method: &GrpcMethod) -> serde_json::Value {
    json!({
        "package": method.package(),
        "service": method.service(),
        "full_method": format!("/{}", method.path()),
        "name": method.name(),
        "is_client_stream": method.is_client_streaming(),
        "is_server_stream": method.is_server_streaming(),
    })
}
