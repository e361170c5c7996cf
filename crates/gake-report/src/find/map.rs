//! The behaviour beyond the capacity.

use gake_judge::overload::{LoadLevel, Overload, OverloadClass, Recovery};
use gake_text::units;

use crate::formats::text::page::{INDENT, Paint, TextPage};

/// Shows the class, the knee, the recovery, and the stairs.
pub(super) fn show(page: &mut TextPage, overload: &Overload) {
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

/// The class and its meaning.
pub(crate) fn class(overload: &Overload) -> String {
    let doubt = if overload.sure { "" } else { " (the data do not exclude another class)" };
    format!("{}: {}{doubt}", overload.class.name(), meaning(overload.class).1)
}

/// The retained throughput, the knee, and the fate of the excess.
pub(crate) fn details(overload: &Overload) -> Vec<String> {
    let retained = overload.retained.as_ref().map(|retained| {
        format!(
            "{} of the best throughput remains on the highest stair (95 %: {} to {})",
            units::percent(retained.value),
            units::percent(retained.low),
            units::percent(retained.high)
        )
    });
    [retained, knee(overload), refusals(overload)].into_iter().flatten().collect()
}

/// A level that was worse on the way down than on the way up.
pub(crate) fn hysteresis(overload: &Overload) -> Option<String> {
    let (level, up, down) = overload.hysteresis?;
    Some(format!(
        "hysteresis: at {}, {} were good on the way up and {} on the way down",
        units::rate(level),
        units::percent(up),
        units::percent(down)
    ))
}

fn meaning(class: OverloadClass) -> (Paint, &'static str) {
    match class {
        OverloadClass::Graceful => (Paint::Good, "throughput holds; excess requests queue"),
        OverloadClass::Shedding => {
            (Paint::Good, "excess requests are refused; accepted ones are in time")
        }
        OverloadClass::Retrograde => (
            Paint::Warn,
            "more load reduces throughput: bound the concurrency (a pool, a limit at the balancer)",
        ),
        OverloadClass::Collapsing => (
            Paint::Bad,
            "under overload most of the throughput is lost: reject early what cannot be served",
        ),
        OverloadClass::Unknown => (Paint::Plain, "no overload was reached"),
    }
}

fn knee(overload: &Overload) -> Option<String> {
    let (low, high) = overload.knee?;
    let kind = if overload.cliff {
        "a cliff: within one step most requests become late or are refused"
    } else {
        "a knee: requests gradually become late"
    };
    Some(format!("between {} and {} is {kind}", units::rate(low), units::rate(high)))
}

fn refusals(overload: &Overload) -> Option<String> {
    overload.retained?;
    if overload.refused == 0.0 {
        let in_time = units::percent(overload.in_time);
        return Some(format!("none of the overload was refused; {in_time} of it was in time"));
    }
    Some(format!(
        "of the overload {} was refused (after {} on average); of the accepted {} were in time",
        units::percent(overload.refused),
        units::duration(overload.refusal * 1e9),
        units::percent(overload.in_time)
    ))
}

/// Whether the target recovered.
pub(crate) fn recovery(overload: &Overload) -> (Paint, String) {
    match overload.recovery {
        Recovery::After(seconds) => {
            (Paint::Good, format!("recovered {seconds:.0} s after the overload"))
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
        Recovery::Unknown => (Paint::Plain, "unknown: there was no overload".to_owned()),
    }
}

fn stairs(page: &mut TextPage, overload: &Overload) {
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
