//! What a script threw, with its stack as k6 writes it.

use std::borrow::Cow;

use gake_script::Exception as Caught;
use gake_script::user::take_frames;
use rquickjs::{Coerced, Ctx, FromJs, Object};

use super::loader::Modules;
use crate::modules;
use crate::paths::{FILE, file_url};

/// The exception that a script threw, or an error of the engine.
pub(crate) fn caught(ctx: &Ctx<'_>, error: rquickjs::Error) -> Caught {
    if error.is_exception() {
        let mut caught = Caught::caught(ctx);
        let last = take_frames(ctx);
        let frames = if caught.is_error { &caught.stack } else { &last };
        caught.stack = shown(ctx, frames).join("\n");
        return caught;
    }
    let _ = ctx.catch();
    Caught { message: error.to_string(), ..Caught::default() }
}

/// As [`caught`], of init code or a rejected promise: only an error has a stack.
pub(super) fn rejected(ctx: &Ctx<'_>, error: rquickjs::Error) -> Caught {
    let _ = take_frames(ctx);
    caught(ctx, error)
}

/// `error.stack` as k6 has it, but for the offsets of instructions.
pub(super) fn stack(error: &Object<'_>, frames: &str) -> String {
    let ctx = error.ctx();
    let text = Coerced::<String>::from_js(ctx, error.clone().into_value());
    let mut stack = text.map_or_else(
        |_| {
            // Its toString threw.
            let _ = ctx.catch();
            String::new()
        },
        |text| text.0,
    );
    stack.push('\n');
    for frame in shown(ctx, frames) {
        stack.extend(["\t", frame.as_str(), "\n"]);
    }
    stack
}

/// The frames of a stack as k6 writes them.
fn shown(ctx: &Ctx<'_>, frames: &str) -> Vec<String> {
    let modules = Modules::of(ctx).ok();
    frames.lines().filter_map(|line| frame(&original(modules.as_ref(), line))).collect()
}

/// A stack frame as k6 writes it: an anonymous function is only its location, an accessor has the
/// name of its property, a method of a gRPC client is one of Go. Other functions of k6's own
/// modules have no frame.
fn frame(line: &str) -> Option<String> {
    const CLIENT: [&str; 5] = ["load", "loadProtoset", "connect", "invoke", "healthCheck"];
    if line.contains("(eval_script:") {
        return None;
    }
    if let Some((function, _)) = line.split_once(modules::GRPC_FRAMES) {
        let is_method = CLIENT.iter().any(|name| function.trim() == format!("at {name} ("));
        return is_method.then(|| "at reflect.methodValueCall (native)".to_owned());
    }
    let line = &escaped_frame(line);
    let mut nameless = ["at <anonymous> (", "at <eval> ("].into_iter();
    let location = nameless.find_map(|start| line.trim().strip_prefix(start));
    let location = location.and_then(|at| at.strip_suffix(')'));
    Some(match location.filter(|location| location.contains(':')) {
        Some(location) => format!("at {location}"),
        None => line.trim().replacen("at get ", "at ", 1).replacen("at set ", "at ", 1),
    })
}

/// A frame with the URL of its file as k6 writes it.
fn escaped_frame(line: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"%?#\"<>\\^`{|}".contains(&byte);
    let Some(at) = line.find(FILE).map(|at| at + FILE.len()) else { return line.into() };
    let end = line.rsplitn(3, ':').nth(2).map_or(line.len(), str::len);
    match line.get(at..end).filter(|path| !path.bytes().all(is_plain)) {
        Some(path) => {
            let url = file_url(path.as_ref());
            format!("{}{}{}", &line[..at], url.strip_prefix(FILE).unwrap_or(&url), &line[end..])
                .into()
        }
        None => line.into(),
    }
}

/// A frame with the place in the source of a bundled module.
fn original<'a>(modules: Option<&Modules>, line: &'a str) -> Cow<'a, str> {
    let original = || {
        let (start, place) = line.strip_suffix(')')?.rsplit_once('(')?;
        let mut parts = place.rsplitn(3, ':');
        let (column, row) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let (file, row, column) = modules?.origin(parts.next()?, row, column)?;
        Some(format!("{start}({file}:{row}:{column})"))
    };
    original().map_or(Cow::Borrowed(line), Cow::Owned)
}
