//! `console`: writes to the log.

use gake_js::native::named;
use std::ffi::CStr;

use gake_js::value::shown;
use gake_script::user::{LazyList, lazily};
use rquickjs::function::Rest;
use rquickjs::{Ctx, Object, Value};

use super::vu::{Vu, VuStage};
use crate::test::{LogLevel, READ_MAX};

pub(crate) static LIST: LazyList =
    LazyList::new(&[c"log", c"info", c"debug", c"warn", c"error"], make_property);

pub(super) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let console = Object::new(ctx.clone())?;
    lazily(&console, &LIST)?;
    Ok(console)
}

fn make_property<'js>(console: &Object<'js>, name: &'static CStr) -> rquickjs::Result<()> {
    let vu = Vu::of(console.ctx())?;
    let name = name.to_str()?;
    let level = match name {
        "debug" => LogLevel::Debug,
        "warn" => LogLevel::Warning,
        "error" => LogLevel::Error,
        _ => LogLevel::Info,
    };
    let write = move |ctx: Ctx<'js>, values: Rest<Value<'js>>| {
        if vu.stage.get() == VuStage::Init && !vu.test.init_lines.begin(vu.number_in_test) {
            return;
        }
        let mut line = String::new();
        for (index, value) in values.0.iter().enumerate() {
            if index > 0 {
                line.push(' ');
            }
            line += &shown(&ctx, value);
            if line.len() > READ_MAX {
                break;
            }
        }
        vu.test.log(level, &line, &[("source", "console")]);
    };
    console.set(name, named("console", name, write))
}
