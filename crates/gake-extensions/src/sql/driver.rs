//! The modules of drivers: a symbol each, and MySQL's settings of TLS.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use gake_js::errors::go_error;
use gake_js::value::evaluate;
use gake_k6::user::vu::Vu;
use gake_wire::{StreamTlsOptions, TlsIdentity};
use rquickjs::function::{Func, Opt};
use rquickjs::{Ctx, Function, Object, Symbol, Value};

use super::mysql_dsn::CUSTOM;

/// A driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SqlDriver {
    MySql,
    Postgres,
    Sqlite,
}

/// The versions of TLS by their names.
const VERSIONS: [(&str, &str); 4] =
    [("TLS_1_0", "tls1.0"), ("TLS_1_1", "tls1.1"), ("TLS_1_2", "tls1.2"), ("TLS_1_3", "tls1.3")];

/// What a user's modules share: the settings of `loadTLS`.
type SharedTls = RefCell<Option<StreamTlsOptions>>;

impl SqlDriver {
    fn name(self) -> &'static str {
        match self {
            Self::MySql => "mysql",
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite3",
        }
    }

    /// The driver of a symbol; throws if it is none.
    pub(super) fn of<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> rquickjs::Result<Self> {
        if !value.is_symbol() {
            return Err(go_error(ctx, "unsupported database: invalid driver parameter type"));
        }
        let name: Function<'js> = evaluate(ctx, "(symbol) => Symbol.keyFor(symbol)")?;
        let name: Option<String> = name.call((value.clone(),))?;
        let name = name.unwrap_or_default();
        let mut all = [Self::MySql, Self::Postgres, Self::Sqlite].into_iter();
        let driver = all.find(|driver| driver.name() == name);
        driver.ok_or_else(|| go_error(ctx, "unsupported database: "))
    }

    fn module<'js>(self, ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
        let symbol: Function<'js> = evaluate(ctx, "(name) => Symbol.for(name)")?;
        let module = Object::new(ctx.clone())?;
        module.set("default", symbol.call::<_, Symbol<'js>>((self.name(),))?)?;
        Ok(module)
    }
}

pub(crate) fn make_postgres<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    SqlDriver::Postgres.module(ctx)
}

pub(crate) fn make_sqlite<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    SqlDriver::Sqlite.module(ctx)
}

pub(crate) fn make_mysql<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let vu = &Vu::of(ctx)?;
    let module = SqlDriver::MySql.module(ctx)?;
    for (name, version) in VERSIONS {
        module.set(name, version)?;
    }
    let user = Rc::clone(vu);
    let load = move |ctx: Ctx<'js>, options: Opt<Value<'js>>| load_tls(&ctx, &user, options.0);
    module.set("loadTLS", Func::from(load))?;
    let user = Rc::clone(vu);
    let add = move |name: String| match shared_tls(&user).borrow().is_some() {
        true => with_tls(name),
        false => name,
    };
    module.set("addTLS", Func::from(add))?;
    Ok(module)
}

fn with_tls(name: String) -> String {
    let parameter = format!("tls={CUSTOM}");
    match name.contains(&parameter) {
        true => name,
        false => format!("{name}{}{parameter}", if name.contains('?') { '&' } else { '?' }),
    }
}

/// The settings of a user's `loadTLS`.
pub(super) fn shared_tls(vu: &Vu) -> Rc<SharedTls> {
    vu.shared::<SharedTls>("k6/x/sql/driver/mysql")
}

fn load_tls<'js>(ctx: &Ctx<'js>, vu: &Vu, options: Option<Value<'js>>) -> rquickjs::Result<()> {
    let options = options.and_then(Value::into_object);
    let options = options.map_or_else(|| Object::new(ctx.clone()), Ok)?;
    let get = |name: &str| options.get::<_, Option<String>>(name).map(Option::unwrap_or_default);
    let is = |name: &str| options.get::<_, Option<bool>>(name).map(|is| is == Some(true));
    let version = get("minVersion")?;
    if !VERSIONS.iter().any(|(_, known)| *known == version) {
        return Err(go_error(ctx, &format!("unsupported TLS version: {version}")));
    }
    if !is("enableTLS")? {
        shared_tls(vu).replace(None);
        return Ok(());
    }
    let read = |path: String| read_pem(vu, &path).map_err(|why| go_error(ctx, &why));
    let mut tls = StreamTlsOptions {
        authorities: vec![read(get("caCertFile")?)?],
        insecure: is("insecureSkipTLSverify")?,
        identity: None,
    };
    let (certificates, key) = (get("clientCertFile")?, get("clientKeyFile")?);
    if !certificates.is_empty() || !key.is_empty() {
        let (certificates, key) = (read(certificates)?, read(key)?);
        tls.identity = Some(TlsIdentity { certificates, key });
    }
    shared_tls(vu).replace(Some(tls));
    Ok(())
}

/// Reads a file of PEM, relative to the working directory.
pub(super) fn read_pem(vu: &Vu, path: &str) -> Result<String, String> {
    let absolute = std::path::absolute(Path::new(path)).map_err(|error| error.to_string())?;
    match vu.test.file(&absolute) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(format!("open {path}: no such file or directory"))
        }
        Err(error) => Err(format!("open {path}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_is_added_once() {
        assert_eq!(with_tls("a@tcp(h)/d".to_owned()), "a@tcp(h)/d?tls=custom");
        assert_eq!(with_tls("a@tcp(h)/d?x=1".to_owned()), "a@tcp(h)/d?x=1&tls=custom");
        assert_eq!(with_tls("/d?tls=custom".to_owned()), "/d?tls=custom");
    }
}
