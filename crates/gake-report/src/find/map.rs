//! What comes after the capacity, on the page.

use gake_judge::overload::{LoadLevel, Overload, OverloadClass, Recovery};
use gake_text::units;

use crate::formats::text::page::{INDENT, Page, Paint};

/// The class, the knee, the recovery, and the stairs.
pub(super) fn show(page: &mut Page, overload: &Overload) {
    page.gap();
    page.wrapped(INDENT, "beyond", meaning(overload.class).0, &class(overload));
    for line in details(overload) {
        page.wrapped(INDENT, "", Paint::Plain, &line);
    }
    let (paint, text) = recovery(overload);
    page.wrapped(INDENT, "recovery", paint, &text);
    if let Some(text) = hysteresis(overload) {
        page.wrapped(INDENT, "", Paint::Warn, &text);
    }
    stairs(page, overload);
}

/// The class, and what it means.
pub(crate) fn class(overload: &Overload) -> String {
    let doubt = if overload.sure { "" } else { " (the seconds do not exclude another class)" };
    format!("{}: {}{doubt}", overload.class.name(), meaning(overload.class).1)
}

/// How much is left, where it begins, and what became of the rest.
pub(crate) fn details(overload: &Overload) -> Vec<String> {
    let retained = overload.retained.as_ref().map(|retained| {
        format!(
            "{} of the best throughput is left on the highest stair (95 %: {} to {})",
            units::percent(retained.value),
            units::percent(retained.low),
            units::percent(retained.high)
        )
    });
    [retained, knee(overload), refusals(overload)].into_iter().flatten().collect()
}

/// Where the way down was worse than the way up.
pub(crate) fn hysteresis(overload: &Overload) -> Option<String> {
    let (level, up, down) = overload.hysteresis?;
    Some(format!(
        "at {} {} were good on the way up and {} on the way down: hysteresis",
        units::rate(level),
        units::percent(up),
        units::percent(down)
    ))
}

fn meaning(class: OverloadClass) -> (Paint, &'static str) {
    match class {
        OverloadClass::Graceful => (Paint::Good, "throughput stays, what is too much waits"),
        OverloadClass::Shedding => {
            (Paint::Good, "what is too much is refused, and the accepted are in time")
        }
        OverloadClass::Retrograde => (
            Paint::Warn,
            "more load makes less throughput: bound the concurrency (a pool, a limit at the \
             balancer)",
        ),
        OverloadClass::Collapsing => (
            Paint::Bad,
            "under overload most of the throughput is lost: refuse early what cannot be served",
        ),
        OverloadClass::Unknown => (Paint::Plain, "no overload was reached"),
    }
}

fn knee(overload: &Overload) -> Option<String> {
    let (low, high) = overload.knee?;
    let kind = if overload.cliff {
        "a cliff: most are late or refused from one stair to the next"
    } else {
        "a knee: requests get late bit by bit"
    };
    Some(format!("between {} and {} is {kind}", units::rate(low), units::rate(high)))
}

fn refusals(overload: &Overload) -> Option<String> {
    overload.retained?;
    if overload.refused == 0.0 {
        let in_time = units::percent(overload.in_time);
        return Some(format!("nothing of the overload was refused; {in_time} of it was in time"));
    }
    Some(format!(
        "of the overload {} was refused (after {} on average); of the accepted {} were in time",
        units::percent(overload.refused),
        units::duration(overload.refusal * 1e9),
        units::percent(overload.in_time)
    ))
}

/// Whether it was as before in the end.
pub(crate) fn recovery(overload: &Overload) -> (Paint, String) {
    match overload.recovery {
        Recovery::After(seconds) => {
            (Paint::Good, format!("as before {seconds:.0} s after the overload"))
        }
        Recovery::Draining => (
            Paint::Warn,
            "still working off its backlog at the end: bound the queue, or a short overload is a \
             long one"
                .to_owned(),
        ),
        Recovery::Metastable => (
            Paint::Bad,
            "none: metastable. It serves less than it can although the load is back to half of \
             the capacity; restarts or a pause of the load will bring it back"
                .to_owned(),
        ),
        Recovery::Unknown => (Paint::Plain, "not seen: there was no overload".to_owned()),
    }
}

fn stairs(page: &mut Page, overload: &Overload) {
    page.gap();
    let header = format!(
        "{:<8} {:>10} {:>10} {:>10} {:>10} {:>9}",
        "stair", "load", "ok", "in time", "refused", "response"
    );
    page.line(&page.paint(Paint::Heading, &header));
    for level in &overload.levels {
        page.line(&stair(level));
    }
}

fn stair(level: &LoadLevel) -> String {
    format!(
        "{:<8} {:>10} {:>10} {:>10} {:>10} {:>9}",
        level.step.direction.name(),
        units::rate(level.step.level),
        units::rate(level.ok),
        units::rate(level.good),
        units::rate(level.failed),
        units::duration(level.response * 1e9)
    )
}
