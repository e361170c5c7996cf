//! The charts of an experiment's page: figures over its steps, and over the seconds of a step.

use std::fmt::Write;

use gake_core::record::SeriesPoint;
use gake_text::{foreign, units};

use super::ExperimentStep;

/// The size of a chart, and its margins: left of the lines, and above and below them.
const SIZE: (f64, f64) = (420.0, 190.0);
const LEFT: f64 = 62.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 26.0;

/// Most numbers below the steps, and most points that are marked.
const NAMES_MAX: usize = 20;

/// A line: its name, colour and points, each from 0 to 1 across and in its own unit upwards.
struct ChartLine {
    name: &'static str,
    colour: &'static str,
    points: Vec<(f64, f64)>,
}

/// Throughput and response times over the steps: what the experiment shows.
pub(super) fn over_steps(page: &mut String, steps: &[ExperimentStep]) {
    if steps.len() < 2 {
        return;
    }
    let last = (steps.len() - 1) as f64;
    let line = |name, colour, of: &dyn Fn(&ExperimentStep) -> f64| ChartLine {
        name,
        colour,
        points: steps.iter().enumerate().map(|(i, step)| (i as f64 / last, of(step))).collect(),
    };
    let quantile = |quantile: f64| {
        move |step: &ExperimentStep| step.tally().latency.response().quantile(quantile) as f64
    };
    let every = steps.len().div_ceil(NAMES_MAX);
    let names: Vec<_> = steps
        .iter()
        .enumerate()
        .step_by(every)
        .map(|(i, _)| (i as f64 / last, (i + 1).to_string()))
        .collect();
    page.push_str("<section><div class=\"charts\">");
    let mut goodput = vec![line("measured", "blue", &ExperimentStep::goodput)];
    let expected: Option<Vec<_>> = steps.iter().map(ExperimentStep::expected_rate).collect();
    for (name, at) in [("theory", 0), ("", 1)] {
        let points = expected.iter().flatten().enumerate();
        let points: Vec<_> =
            points.map(|(i, range)| (i as f64 / last, [range.0, range.1][at])).collect();
        if !points.is_empty() {
            goodput.push(ChartLine { name, colour: "grey", points });
        }
    }
    chart(page, "ok a second, by step", &goodput, &names, units::rate);
    let times = [line("p50", "blue", &quantile(0.5)), line("p99", "purple", &quantile(0.99))];
    chart(page, "response time, by step", &times, &names, units::duration);
    page.push_str("</div></section>");
}

/// Connections and throughput over the seconds of a step, without the last, partial second.
pub(super) fn over_time(page: &mut String, step: &ExperimentStep) {
    let points = step.summary.run.series.points();
    let points = &points[..points.len().saturating_sub(1)];
    let end = points.last().map_or(0, |point| point.second) as f64;
    if end < 1.0 {
        return;
    }
    let line = |name, colour, of: &dyn Fn(&SeriesPoint) -> f64| ChartLine {
        name,
        colour,
        points: points.iter().map(|point| (point.second as f64 / end, of(point))).collect(),
    };
    let ticks = [0.0, 0.5, 1.0].map(|at| (at, units::duration(at * end * 1e9)));
    page.push_str("<div class=\"charts\">");
    let rate = |point: &SeriesPoint| point.counts.ok as f64 / point.seconds.max(1) as f64;
    chart(page, "ok a second", &[line("", "blue", &rate)], &ticks, units::rate);
    let open = [line("", "orange", &|point| point.open as f64)];
    chart(page, "connections open", &open, &ticks, units::number);
    page.push_str("</div>");
}

/// A line chart from zero up, with ticks on both axes.
fn chart(
    page: &mut String,
    title: &str,
    lines: &[ChartLine],
    ticks: &[(f64, String)],
    shown: fn(f64) -> String,
) {
    let values = lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let most = values.fold(0.0, f64::max);
    if most <= 0.0 {
        return;
    }
    let (width, height) = SIZE;
    let x = |at: f64| LEFT + at * (width - LEFT - 30.0);
    let y = |value: f64| TOP + (height - TOP - BOTTOM) * (1.0 - value / most);
    // Writing to a String cannot fail.
    let _ = write!(page, "<figure><figcaption>{title}");
    for line in lines.iter().filter(|line| !line.name.is_empty()) {
        let _ = write!(page, "<span class=\"key {}\">{}</span>", line.colour, line.name);
    }
    let _ = write!(page, "</figcaption><svg viewBox=\"0 0 {width} {height}\" role=\"img\">");
    for value in [0.0, most / 2.0, most] {
        let (at, text) = (y(value), shown(value));
        let (from, to) = (x(0.0), x(1.0));
        let _ = write!(
            page,
            "<line class=\"grid\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
    for (at, text) in ticks {
        let _ = write!(
            page,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x(*at),
            height - 8.0,
            escaped(text)
        );
    }
    for line in lines {
        let _ = write!(page, "<g class=\"{}\"><polyline points=\"", line.colour);
        for (at, value) in &line.points {
            let _ = write!(page, "{:.1},{:.1} ", x(*at), y(*value));
        }
        page.push_str("\"/>");
        // Few points are steps, which a line alone does not show.
        if line.points.len() <= NAMES_MAX {
            for (at, value) in &line.points {
                let _ =
                    write!(page, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>", x(*at), y(*value));
            }
        }
        page.push_str("</g>");
    }
    page.push_str("</svg></figure>");
}

/// Escapes a text for HTML, and control characters in it.
pub(super) fn escaped(text: &str) -> String {
    let text = foreign::line(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_its_ticks_and_no_point_outside() {
        let points = (0..=20).map(|i| (f64::from(i) / 20.0, f64::from(i * i))).collect();
        let line = ChartLine { name: "p99", colour: "blue", points };
        let mut page = String::new();
        chart(&mut page, "a title", &[line], &[(0.0, "<0".to_owned())], units::number);
        for part in [">400</text>", ">200</text>", "&lt;0", "a title", "p99"] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let line = page.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        for point in line.split_whitespace() {
            let (x, y) = point.split_once(',').unwrap();
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((0.0..=SIZE.0).contains(&x) && (0.0..=SIZE.1).contains(&y), "{point}");
        }
    }

    #[test]
    fn an_empty_chart_is_left_out() {
        let mut page = String::new();
        let line = ChartLine { name: "", colour: "blue", points: vec![(0.0, 0.0)] };
        chart(&mut page, "nothing", &[line], &[], units::number);
        assert_eq!(page, "");
    }
}
