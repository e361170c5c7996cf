//! The modules `k6/x/redis` and `k6/experimental/redis`: a client of Redis.

mod client;
mod commands;
mod connection;
mod options;
mod read;
mod reply;
mod url;

use std::rc::Rc;

use gake_js::errors::{go_error, go_value};
use gake_js::value::{evaluate, number_argument, text};
use gake_k6::user::vu::{Vu, VuStage};
use gake_script::user::{HeapCharge, poll};
use rquickjs::function::{Func, Rest};
use rquickjs::{Array, Ctx, Function, Object, Promise, Value};

use self::client::RedisClient;
use self::commands::{COMMANDS, Command, Parameter, ResultType, SEND};
use self::connection::CommandError;
use self::reply::{Reply, encoded};
use crate::later::{Rejection, promise, rejected};

/// Creates the class from a function that creates a client.
const CLASS: &str = "(make) => class Client {
    constructor(...options) { return make(options.length, options[0]); }
}";

/// The error of init code.
const IN_INIT: &str = "connecting to a redis server in the init context is not supported";

/// The error of a reply without a value.
const ABSENT: &str = "redis: nil";

pub(crate) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let vu = &Vu::of(ctx)?;
    let user = Rc::clone(vu);
    let make = move |ctx: Ctx<'js>, count: usize, options: Value<'js>| {
        let options = read::options(&ctx, count, options)?;
        let options = options.map_err(|why| go_error(&ctx, &why))?;
        shown(&ctx, &RedisClient::new(&user, options))
    };
    let class: Function<'js> = evaluate(ctx, CLASS)?;
    let client: Value<'js> = class.call((Func::from(make),))?;
    let module = Object::new(ctx.clone())?;
    module.set("Client", client)?;
    Ok(module)
}

/// A client with its methods. As in k6 they are its own, so that they can be taken out of it.
fn shown<'js>(ctx: &Ctx<'js>, client: &Rc<RedisClient>) -> rquickjs::Result<Object<'js>> {
    let shown = Object::new(ctx.clone())?;
    for command in COMMANDS {
        let client = Rc::clone(client);
        let call = move |ctx: Ctx<'js>, arguments: Rest<Value<'js>>| {
            send(&ctx, &client, command, arguments.0)
        };
        shown.set(command.method, Func::from(call))?;
    }
    let client = Rc::clone(client);
    shown.set("isConnected", Func::from(move || client.is_connected.get()))?;
    Ok(shown)
}

/// Sends a command; returns a promise for its result.
fn send<'js>(
    ctx: &Ctx<'js>,
    client: &Rc<RedisClient>,
    command: &'static Command,
    arguments: Vec<Value<'js>>,
) -> rquickjs::Result<Promise<'js>> {
    if client.vu.stage.get() == VuStage::Init {
        return rejected(ctx, &Rejection::Error(IN_INIT.to_owned()));
    }
    client.is_connected.set(true);
    let mut fields = match command.method {
        SEND => Vec::new(),
        method => vec![method.to_lowercase()],
    };
    if let Err(why) = read_arguments(ctx, command, &arguments, &mut fields)? {
        return rejected(ctx, &Rejection::Error(why));
    }
    let bytes = encoded(&fields);
    let mut charge = HeapCharge::new(ctx, bytes.len())?;
    let (running, vu) = (Rc::clone(client), Rc::clone(&client.vu));
    let reply = async move {
        match running.run(&bytes, &mut charge).await {
            Ok(Reply::Error(error)) => Err(Rejection::Error(error)),
            Ok(Reply::Absent) if !matches!(command.result, ResultType::Optional) => {
                Err(Rejection::Error(ABSENT.to_owned()))
            }
            Ok(reply) => Ok((reply, charge)),
            Err(CommandError::Lost(why) | CommandError::Final(why)) => Err(Rejection::Error(why)),
            Err(CommandError::NoMemory) => Err(Rejection::NoMemory),
        }
    };
    promise(ctx, &vu, reply, move |ctx, (reply, _charge)| result(ctx, command.result, reply))
}

/// The fields of a command, or why an argument is not valid.
fn read_arguments<'js>(
    ctx: &Ctx<'js>,
    command: &Command,
    arguments: &[Value<'js>],
    fields: &mut Vec<String>,
) -> rquickjs::Result<Result<(), String>> {
    let of = |index: usize| arguments.get(index);
    for (index, parameter) in command.parameters.iter().enumerate() {
        match parameter {
            Parameter::Text => {
                fields.push(of(index).map_or(Ok(String::new()), |value| text(ctx, value))?);
            }
            Parameter::Integer => fields.push(integer(ctx, of(index))?.to_string()),
            Parameter::Expiry => {
                let seconds = integer(ctx, of(index))?;
                if seconds > 0 {
                    fields.extend(["ex".to_owned(), seconds.to_string()]);
                }
            }
            Parameter::Value => {
                match of(index).map(|value| field(ctx, value)).transpose()?.flatten() {
                    Some(text) => fields.push(text),
                    None => return Ok(Err(unsupported(index))),
                }
            }
            Parameter::Texts => {
                for value in arguments.iter().skip(index) {
                    poll(ctx)?;
                    fields.push(text(ctx, value)?);
                }
            }
            Parameter::Values => {
                for (at, value) in arguments.iter().enumerate().skip(index) {
                    poll(ctx)?;
                    match field(ctx, value)? {
                        Some(text) => fields.push(text),
                        None => return Ok(Err(unsupported(at))),
                    }
                }
            }
        }
    }
    Ok(Ok(()))
}

fn integer<'js>(ctx: &Ctx<'js>, value: Option<&Value<'js>>) -> rquickjs::Result<i64> {
    // A cast of NaN is 0, as in k6.
    Ok(number_argument(ctx, value.cloned())? as i64)
}

/// A string, number or boolean as the client of k6 writes it.
fn field<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> rquickjs::Result<Option<String>> {
    Ok(match value.as_number() {
        Some(number) => Some(number.to_string()),
        None if value.is_string() => Some(text(ctx, value)?),
        None => value.as_bool().map(|truth| u8::from(truth).to_string()),
    })
}

fn unsupported(index: usize) -> String {
    format!(
        "unsupported type provided for argument at index {index}, supported types are string, \
         number, and boolean"
    )
}

/// A reply as the result of a method.
fn result<'js>(ctx: &Ctx<'js>, result: ResultType, reply: Reply) -> rquickjs::Result<Value<'js>> {
    use rquickjs::IntoJs;
    match (result, reply) {
        (ResultType::Boolean, Reply::Integer(number)) => (number == 1).into_js(ctx),
        // As in k6: these are nanoseconds of Go's, which it shows in seconds.
        (ResultType::Seconds, Reply::Integer(special @ (-2 | -1))) => {
            (special as f64 / 1e9).into_js(ctx)
        }
        (ResultType::Texts, Reply::Array(elements)) => {
            let texts = elements.into_iter().map(|element| match element {
                Reply::Absent => Reply::Text(Vec::new()),
                other => other,
            });
            array(ctx, texts)
        }
        (ResultType::Object, Reply::Array(elements)) => {
            let object = Object::new(ctx.clone())?;
            for pair in elements.chunks_exact(2) {
                poll(ctx)?;
                let [Reply::Text(name), value] = pair else { continue };
                let name = String::from_utf8_lossy(name).into_owned();
                // Defined, for a property `__proto__`.
                let value = any(ctx, value.clone())?;
                let value = rquickjs::object::Property::from(value);
                object.prop(name, value.writable().enumerable().configurable())?;
            }
            Ok(object.into_value())
        }
        (_, Reply::Text(bytes)) => String::from_utf8_lossy(&bytes).into_js(ctx),
        (_, reply) => any(ctx, reply),
    }
}

/// A reply of any type.
fn any<'js>(ctx: &Ctx<'js>, reply: Reply) -> rquickjs::Result<Value<'js>> {
    use rquickjs::IntoJs;
    match reply {
        Reply::Text(bytes) => String::from_utf8_lossy(&bytes).into_js(ctx),
        Reply::Integer(number) => (number as f64).into_js(ctx),
        Reply::Absent => Ok(Value::new_null(ctx.clone())),
        Reply::Error(error) => go_value(ctx, &error),
        Reply::Array(elements) => array(ctx, elements.into_iter()),
    }
}

fn array<'js>(
    ctx: &Ctx<'js>,
    elements: impl Iterator<Item = Reply>,
) -> rquickjs::Result<Value<'js>> {
    let array = Array::new(ctx.clone())?;
    for (index, element) in elements.enumerate() {
        poll(ctx)?;
        array.set(index, any(ctx, element)?)?;
    }
    Ok(array.into_value())
}
