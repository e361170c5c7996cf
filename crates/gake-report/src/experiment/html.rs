//! An experiment as one HTML page that needs neither network nor scripts.

use std::fmt::Write;
use std::iter;

use gake_core::record::SeriesPoint;
use gake_text::foreign;
use gake_text::units;

use super::{BODIES_MAX, DISTURBED, ExperimentReport, ExperimentStep, FIGURES};
use crate::formats::text::{figures, target};

const STYLE: &str = "\
:root{color-scheme:light dark}body{font:15px/1.45 system-ui,sans-serif;max-width:70rem;\
margin:2rem auto;padding:0 1rem}table{border-collapse:collapse;width:100%}\
th,td{padding:.3rem .6rem;text-align:right;border-bottom:1px solid #8884}\
th:first-child,td:first-child,th:last-child,td:last-child{text-align:left}\
.good{color:#2a8a3e}.bad{color:#d1242f;font-weight:600}.quiet{opacity:.7}\
code{font-size:.9em}svg{width:100%;height:110px;background:#8881}\
section{margin:2rem 0}ul{margin:.3rem 0}";

/// The width and height of a chart.
const CHART: (f64, f64) = (800.0, 100.0);

/// The page.
#[must_use]
pub fn html(report: &ExperimentReport) -> String {
    let mut page = String::new();
    let (name, about) = (escaped(&report.name), escaped(&report.about));
    let class = match report.is_as_expected() {
        None => "quiet",
        Some(true) => "good",
        Some(false) => "bad",
    };
    // Writing to a String cannot fail.
    let _ = write!(
        page,
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>gake experiment {name}\
         </title><meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style>\
         <h1>{name}</h1><p>{about}</p><p>Target: {}</p><p class=\"{class}\">{}</p>",
        escaped(&report.target),
        escaped(&report.verdict())
    );
    for note in &report.notes {
        let _ = write!(page, "<p class=\"quiet\">{}</p>", escaped(note));
    }
    let headings = FIGURES.map(|name| format!("<th>{name}")).concat();
    let _ = write!(page, "<table><tr><th>step{headings}</tr>");
    report.steps.iter().for_each(|step| row(&mut page, step));
    page.push_str("</table>");
    let before = iter::once(None).chain(report.steps.iter().map(Some));
    for (step, before) in report.steps.iter().zip(before) {
        section(&mut page, step, before);
    }
    page.push_str("</html>\n");
    page
}

fn row(page: &mut String, step: &ExperimentStep) {
    let figures = step.figures().map(|figure| format!("<td>{figure}")).concat();
    let _ = write!(page, "<tr><td>{}{figures}</tr>", escaped(&step.name));
}

fn section(page: &mut String, step: &ExperimentStep, before: Option<&ExperimentStep>) {
    let _ = write!(page, "<section><h2>{}</h2>", escaped(&step.name));
    page.push_str("<ul>");
    for one in &step.expectations {
        let (class, text) = match one.met {
            true => ("good", format!("{}; theory: {}", one.seen, one.theory)),
            false if step.is_disturbed() => {
                let text = format!("not judged: {}; theory: {}", one.seen, one.theory);
                ("quiet", format!("{text} ({DISTURBED})"))
            }
            false => ("bad", format!("saw {}, but theory says {}", one.seen, one.theory)),
        };
        let _ = write!(page, "<li class=\"{class}\">{}: {}", one.what, escaped(&text));
    }
    if let Some(before) = before {
        let _ = write!(page, "<li class=\"quiet\">change: {}", escaped(&step.change(before)));
    }
    for (what, count) in step.problems().into_iter().take(6) {
        let _ = write!(page, "<li>not ok: {} × {}", escaped(&what), units::count(count));
    }
    for body in step.summary.run.bodies.by_count().into_iter().take(BODIES_MAX) {
        let (count, text) = (units::count(body.count), escaped(body.text.trim()));
        let _ = write!(page, "<li>failed body: {count} × {} <code>{text}</code>", body.status);
    }
    for cause in step.causes() {
        let _ = write!(page, "<li><b>{}</b>: {}", cause.id, escaped(&cause.evidence));
        let _ = write!(page, "<br><span class=\"quiet\">{}</span>", escaped(&cause.advice));
    }
    let (levels, settings) = target::brief(&step.summary.run);
    let generator = vec![figures::generator(&step.summary.run).replace("   ", ", ")];
    let sockets = step.sockets().into_iter().collect();
    for (what, texts) in
        [("target", levels), ("settings", settings), ("sockets", sockets), ("generator", generator)]
    {
        if !texts.is_empty() {
            let _ = write!(page, "<li class=\"quiet\">{what}: {}", escaped(&texts.join(", ")));
        }
    }
    page.push_str("</ul>");
    let points = step.summary.run.series.points();
    if points.len() > 1 {
        chart(page, "connections open", points, |point| point.open as f64);
        chart(page, "ok a second", points, |p| p.counts.ok as f64 / p.seconds.max(1) as f64);
    }
    if !step.server.is_empty() {
        let _ = write!(page, "<p class=\"quiet\"><code>{}</code></p>", escaped(&step.server));
    }
    page.push_str("</section>");
}

/// A line over the seconds of a run, from zero up.
fn chart(page: &mut String, name: &str, points: &[SeriesPoint], of: impl Fn(&SeriesPoint) -> f64) {
    let (width, height) = CHART;
    let most = points.iter().map(&of).fold(0.0, f64::max);
    let end = points.last().map_or(1, |point| point.second.max(1)) as f64;
    let _ = write!(
        page,
        "<p class=\"quiet\">{name}, at most {}</p><svg viewBox=\"0 0 {width} {height}\" \
         preserveAspectRatio=\"none\"><polyline fill=\"none\" stroke=\"#3b7dd8\" \
         stroke-width=\"2\" vector-effect=\"non-scaling-stroke\" points=\"",
        units::number(most)
    );
    for point in points {
        let x = width * point.second as f64 / end;
        let y = height * (1.0 - of(point) / most.max(f64::MIN_POSITIVE));
        let _ = write!(page, "{x:.1},{y:.1} ");
    }
    page.push_str("\"/></svg>");
}

/// A text as HTML shows it: nothing in it is markup, and nothing is hidden.
fn escaped(text: &str) -> String {
    let text = foreign::line(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
