//! Threads and addresses as scripts see them.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use mlua::{
    FromLua, Function, Lua, MetaMethod, UserData, UserDataFields, UserDataMethods, UserDataRef,
    Value,
};

/// Nesting of tables that [`transfer`] follows, so that a table within itself is an error.
const DEPTH_MAX: usize = 100;

/// The state of one thread.
#[derive(Debug)]
pub(super) struct ThreadState {
    pub(super) lua: Lua,
    request: Function,
    pub(super) response: Function,
    address: Mutex<SocketAddr>,
    stopped: AtomicBool,
}

impl ThreadState {
    /// `functions` are the prelude's.
    pub(super) fn new(lua: Lua, functions: [Function; 2], address: SocketAddr) -> Self {
        let [request, response] = functions;
        let (address, stopped) = (Mutex::new(address), AtomicBool::new(false));
        Self { lua, request, response, address, stopped }
    }

    pub(super) fn address(&self) -> SocketAddr {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the script has stopped the thread.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// The bytes of the next request.
    pub(super) fn request(&self) -> mlua::Result<Vec<u8>> {
        let bytes: mlua::String = self.request.call(())?;
        Ok(bytes.as_bytes().to_vec())
    }

    /// The milliseconds before the next request.
    pub(super) fn delay(&self) -> mlua::Result<f64> {
        self.lua.globals().get::<Function>("delay")?.call(())
    }
}

/// `wrk.thread`, and the argument of `setup`.
pub(super) struct ThreadHandle(pub(super) Arc<ThreadState>);

impl UserData for ThreadHandle {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("addr", |_, this| Ok(LuaAddress(this.0.address())));
        fields.add_field_method_set("addr", |_, this, address: LuaAddress| {
            *this.0.address.lock().unwrap_or_else(PoisonError::into_inner) = address.0;
            Ok(())
        });
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("get", |lua, this, name: String| {
            transfer(this.0.lua.globals().get(name)?, lua, 0)
        });
        methods.add_method("set", |_, this, (name, value): (String, Value)| {
            this.0.lua.globals().set(name, transfer(value, &this.0.lua, 0)?)
        });
        methods.add_method("stop", |_, this, ()| {
            this.0.stopped.store(true, Relaxed);
            Ok(())
        });
    }
}

/// A copy of a value in another state.
fn transfer(value: Value, to: &Lua, depth: usize) -> mlua::Result<Value> {
    Ok(match value {
        Value::Nil | Value::Boolean(_) | Value::Integer(_) | Value::Number(_) => value,
        Value::String(text) => Value::String(to.create_string(text.as_bytes())?),
        Value::Table(table) if depth < DEPTH_MAX => {
            let copy = to.create_table()?;
            for pair in table.pairs::<Value, Value>() {
                let (key, value) = pair?;
                copy.raw_set(transfer(key, to, depth + 1)?, transfer(value, to, depth + 1)?)?;
            }
            Value::Table(copy)
        }
        other => {
            let why = format!("cannot transfer '{}' to thread", other.type_name());
            return Err(mlua::Error::runtime(why));
        }
    })
}

/// An address of `wrk.lookup`.
#[derive(Clone, Copy)]
pub(super) struct LuaAddress(pub(super) SocketAddr);

impl LuaAddress {
    pub(super) fn connects(self) -> bool {
        TcpStream::connect(self.0).is_ok()
    }
}

impl UserData for LuaAddress {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::ToString, |_, this, ()| {
            Ok(format!("{}:{}", this.0.ip(), this.0.port()))
        });
    }
}

impl FromLua for LuaAddress {
    fn from_lua(value: Value, lua: &Lua) -> mlua::Result<Self> {
        Ok(*UserDataRef::<Self>::from_lua(value, lua)?)
    }
}
