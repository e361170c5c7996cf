//! An experiment as one self-contained HTML page without scripts.

use std::fmt::Write;
use std::iter;

use gake_text::units;

use super::charts::escaped;
use super::{BODIES_MAX, DISTURBED, ExperimentReport, ExperimentStep, FIGURES, charts};
use crate::formats::text::{figures, target};

/// In the colours of a run's page.
const STYLE: &str = "\
:root{color-scheme:light dark;--page:#f4f6f8;--panel:#fff;--line:#dde3e9;--ink:#18202a;\
--quiet:#596676;--good:#00734f;--bad:#b3330f;--blue:#0b6cb3;--orange:#c97600;--purple:#9a4d8f}\
@media(prefers-color-scheme:dark){:root{--page:#0d1116;--panel:#151a21;--line:#2a323c;\
--ink:#e4e9ee;--quiet:#9aa6b3;--good:#37c496;--bad:#f37247;--blue:#5aabec;--orange:#e9a440;\
--purple:#d993c6}}\
body{font:14px/1.5 system-ui,sans-serif;margin:0;background:var(--page);color:var(--ink)}\
header{background:var(--panel);border-bottom:1px solid var(--line)}\
header>div,main{max-width:76rem;margin:auto;padding:.8rem 1rem}\
h1{font-size:1.2rem;margin:0}h2{font-size:1.05rem;margin:0 0 .4rem}\
section,.table{background:var(--panel);border:1px solid var(--line);border-radius:8px;\
padding:1rem;margin:1rem 0;overflow-x:auto}\
table{border-collapse:collapse;width:100%}\
th,td{padding:.3rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}\
th:nth-child(-n+2),td:nth-child(-n+2),th:last-child,td:last-child{text-align:left}\
.good{color:var(--good)}.bad{color:var(--bad);font-weight:600}.quiet{color:var(--quiet)}\
code{font-size:.9em;overflow-wrap:anywhere}ul{margin:.3rem 0;padding-left:1.2rem}\
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(19rem,1fr));gap:1rem}\
figure{margin:0}figcaption{font-weight:600;margin:.4rem 0}svg{width:100%;height:auto;display:block}\
svg text{font:11px system-ui,sans-serif;fill:var(--quiet)}.grid{stroke:var(--line)}\
.blue{stroke:var(--blue);fill:var(--blue)}.orange{stroke:var(--orange);fill:var(--orange)}\
.purple{stroke:var(--purple);fill:var(--purple)}.grey{stroke:var(--quiet);fill:var(--quiet);\
stroke-dasharray:4 3}.grey circle{display:none}.key.grey{color:var(--quiet)}polyline{fill:none!important;stroke-width:2}\
.key{font-weight:400;margin-left:.8rem}.key.blue{color:var(--blue)}.key.orange{color:var(--orange)}\
.key.purple{color:var(--purple)}";

/// The experiment as a page, with a final newline.
#[must_use]
pub fn html(report: &ExperimentReport) -> String {
    let mut page = String::new();
    let (name, about) = (escaped(&report.name), escaped(&report.about));
    let (mark, class) = mark(report.is_as_expected());
    // Writing to a String cannot fail.
    let _ = write!(
        page,
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>gake experiment {name}\
         </title><meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style>\
         <header><div><h1>{name}</h1><p>{about}</p><p class=\"quiet\">Target: {}</p>\
         <p class=\"{class}\">{mark} {}</p></div></header><main>",
        escaped(&report.target),
        escaped(&report.verdict())
    );
    for note in &report.notes {
        let _ = write!(page, "<p class=\"quiet\">{}</p>", escaped(note));
    }
    charts::over_steps(&mut page, &report.steps);
    let headings = FIGURES.map(|name| format!("<th>{name}")).concat();
    let _ = write!(page, "<div class=\"table\"><table><tr><th><th>step{headings}</tr>");
    report.steps.iter().zip(1..).for_each(|(step, number)| row(&mut page, step, number));
    page.push_str("</table></div>");
    let before = iter::once(None).chain(report.steps.iter().map(Some));
    for ((step, before), number) in report.steps.iter().zip(before).zip(1..) {
        section(&mut page, (step, before), number);
    }
    page.push_str("</main></html>\n");
    page
}

/// The sign and class of a verdict.
fn mark(is_as_expected: Option<bool>) -> (&'static str, &'static str) {
    match is_as_expected {
        None => ("·", "quiet"),
        Some(true) => ("✔", "good"),
        Some(false) => ("✘", "bad"),
    }
}

fn row(page: &mut String, step: &ExperimentStep, number: usize) {
    let figures = step.figures().map(|figure| format!("<td>{figure}")).concat();
    let (mark, class) = mark(step.is_as_expected());
    let name = escaped(&step.name);
    let _ = write!(page, "<tr><td class=\"{class}\">{mark}<td>{number}. {name}{figures}</tr>");
}

fn section(
    page: &mut String,
    (step, before): (&ExperimentStep, Option<&ExperimentStep>),
    number: usize,
) {
    let _ = write!(page, "<section><h2>{number}. {}</h2>", escaped(&step.name));
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
    for (what, count) in step.problems(|fault| fault.in_words()).into_iter().take(6) {
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
    charts::over_time(page, step);
    if !step.server.is_empty() {
        let _ = write!(page, "<p class=\"quiet\"><code>{}</code></p>", escaped(&step.server));
    }
    page.push_str("</section>");
}
