//! `console`: lines of the log.

use std::rc::Rc;

use rquickjs::function::{Func, Rest};
use rquickjs::{Ctx, Object, Value};

use super::vu::Vu;
use crate::modules::shown;
use crate::test::LogLevel;

/// Gives a script its `console`.
pub(crate) fn install<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<()> {
    let console = Object::new(ctx.clone())?;
    for (name, level) in [
        ("log", LogLevel::Info),
        ("info", LogLevel::Info),
        ("debug", LogLevel::Debug),
        ("warn", LogLevel::Warning),
        ("error", LogLevel::Error),
    ] {
        let vu = Rc::clone(vu);
        let write = move |ctx: Ctx<'js>, values: Rest<Value<'js>>| {
            let mut line = String::new();
            for (place, value) in values.0.iter().enumerate() {
                if place > 0 {
                    line.push(' ');
                }
                line += &shown(&ctx, value);
            }
            vu.test.log(level, &line, &[("source", "console")]);
        };
        console.set(name, Func::from(write))?;
    }
    ctx.globals().set("console", console)
}
