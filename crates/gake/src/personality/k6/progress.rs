//! What people see of a run before its summary: what it is about to do, and how far it is.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use gake_k6::options::{Options, described};
use gake_k6::test::Test;

use super::flags::RunFlags;
use crate::console::Console;
use crate::moving::Moving;

/// Tells on standard error what is about to run, as k6 does before it starts.
pub(super) fn head(flags: &RunFlags, options: &Options, execution: &str, console: &Console) {
    if flags.quiet {
        return;
    }
    let outputs = match flags.out.as_slice() {
        [] => "-".to_owned(),
        outputs => outputs.join(", "),
    };
    console.note("");
    for (what, text) in
        [("execution", execution), ("script", flags.script.as_str()), ("output", outputs.as_str())]
    {
        console.note(&format!("{what:>14}: {text}"));
    }
    console.note("");
    for (number, line) in described(options).iter().flat_map(|text| text.lines()).enumerate() {
        console.note(&format!("{:1$}{line}", "", if number == 0 { 5 } else { 14 }));
    }
    console.note("");
}

/// The line that moves on a terminal while users are made and run.
pub(super) fn line(
    flags: &RunFlags,
    test: &Arc<Test>,
    users: u64,
    console: &Console,
) -> Option<Moving> {
    let test = Arc::downgrade(test);
    let began = OnceLock::new();
    let text = move || test.upgrade().map_or_else(String::new, |test| said(&test, users, &began));
    if flags.quiet { None } else { console.moving_with(text) }
}

/// How far it is: `users` are made before the first of them runs, which sets when it `began`.
fn said(test: &Test, users: u64, began: &OnceLock<Instant>) -> String {
    let levels = &test.levels;
    let (ready, completed, interrupted) =
        (levels.ready(), levels.completed(), levels.interrupted());
    let has_begun = levels.iterating() + completed + interrupted > 0;
    if ready < users && !has_begun {
        return format!("init  {ready}/{users} VUs initialized");
    }
    let elapsed = began.get_or_init(Instant::now).elapsed();
    let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
    format!(
        "running ({:.1}s), {}/{ready} VUs, {completed} complete and {interrupted} interrupted \
         iterations",
        elapsed.as_secs_f64(),
        test.active(nanos)
    )
}
