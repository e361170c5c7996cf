//! Drawing the full-screen view.

use std::time::Duration;

use gake_judge::stats::share;
use gake_text::units::{count, duration, percent, rate};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Paragraph};

use super::state::{ChartPoint, HistogramBar, TuiState};

/// Minimum lines and columns for charts, and minimum columns for two of them side by side.
const CHARTS: (u16, u16) = (18, 50);
const SIDE_BY_SIDE: u16 = 100;

pub(super) fn draw(frame: &mut Frame<'_>, state: &TuiState) {
    let area = frame.area();
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(2), Constraint::Min(0), Constraint::Length(1)])
            .areas(area);
    header(frame, head, state);
    let keys = match state.is_stopping {
        true => " stopping: waiting for requests in flight; q again to stop at once",
        false => " q or Ctrl-C ends the run; its summary follows",
    };
    frame.render_widget(Paragraph::new(keys).style(quiet(state)), foot);
    if body.height < CHARTS.0 || body.width < CHARTS.1 {
        return figures(frame, body, state);
    }
    let [top, charts, bottom] =
        Layout::vertical([Constraint::Length(8), Constraint::Fill(3), Constraint::Fill(2)])
            .areas(body);
    figures(frame, top, state);
    let halves = match charts.width >= SIDE_BY_SIDE {
        true => Layout::horizontal([Constraint::Fill(1); 2]).areas::<2>(charts),
        false => Layout::vertical([Constraint::Fill(1); 2]).areas::<2>(charts),
    };
    rates(frame, halves[0], state);
    latencies(frame, halves[1], state);
    let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).areas(bottom);
    histogram(frame, left, state);
    trouble(frame, right, state);
}

fn header(frame: &mut Frame<'_>, area: Rect, state: &TuiState) {
    let elapsed = state.elapsed();
    let time = match state.length {
        Some(length) if elapsed > length => {
            format!("{}, draining", duration(length.as_nanos() as f64))
        }
        Some(length) => {
            format!("{:.0}/{}", elapsed.as_secs_f64(), duration(length.as_nanos() as f64))
        }
        None => format!("{:.0} s", elapsed.as_secs_f64()),
    };
    let title = Line::from(vec![
        Span::styled(format!(" {} ", state.target), Style::new().add_modifier(Modifier::BOLD)),
        Span::raw(state.plan.clone()),
    ]);
    let lines = vec![title, progress(state, elapsed, area.width, &time)];
    frame.render_widget(Paragraph::new(lines), area);
}

/// The elapsed time, with a bar if the length is known.
fn progress(state: &TuiState, elapsed: Duration, width: u16, time: &str) -> Line<'static> {
    let Some(length) = state.length else { return Line::from(format!(" {time}")) };
    let columns = usize::from(width).saturating_sub(time.len() + 3);
    let share = elapsed.as_secs_f64() / length.as_secs_f64().max(f64::MIN_POSITIVE);
    let filled = (share.min(1.0) * columns as f64) as usize;
    Line::from(vec![
        Span::raw(format!(" {time} ")),
        Span::styled("━".repeat(filled), paint(state, Color::Cyan)),
        Span::styled("─".repeat(columns - filled), quiet(state)),
    ])
}

/// The figures so far: counts, rates, percentiles, objectives.
fn figures(frame: &mut Frame<'_>, area: Rect, state: &TuiState) {
    let has_ok = state.quantiles.iter().any(|(_, _, ok)| ok.is_some());
    let middle = Constraint::Length(if has_ok { 29 } else { 20 });
    let [left, middle, right] =
        Layout::horizontal([Constraint::Min(26), middle, Constraint::Fill(1)]).areas(area);
    let counts = &state.counts;
    let last = state.seconds.back().copied().unwrap_or_default();
    let lost = counts.due().saturating_sub(counts.ok + counts.unfinished);
    let row = |name: &str, text: String| Line::from(format!("{name:<10}{text}"));
    let failed = Line::from(vec![
        Span::raw(format!("{:<10}", "failed")),
        Span::styled(
            format!("{} ({})", count(lost), percent(share(lost, counts.due()))),
            if lost > 0 { bad(state) } else { Style::new() },
        ),
    ]);
    let mut lines = vec![row("sent", count(counts.sent)), row("ok", count(counts.ok)), failed];
    lines.push(row("now", rates_of(&last)));
    lines.push(row("in flight", format!("{:.1}", state.in_flight)));
    lines.push(row("open", format!("{} connections", count(state.open))));
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" requests ")), left);
    let lines: Vec<_> = state.quantiles.iter().map(quantile).collect();
    let title = if has_ok { " response        ok only " } else { " response " };
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), middle);
    frame.render_widget(
        Paragraph::new(objectives(state)).block(Block::bordered().title(" objectives ")),
        right,
    );
}

/// A percentile of all responses, and of the ok ones if they differ.
fn quantile((name, all, ok): &(&str, u64, Option<u64>)) -> Line<'static> {
    let ok = ok.map_or(String::new(), |ok| format!("{:>9}", time_of(ok)));
    Line::from(format!("{name:<7}{:>9}{ok}", time_of(*all)))
}

fn rates_of(last: &ChartPoint) -> String {
    match last.asked {
        Some(asked) => format!("{} of {}", rate(last.sent as f64), rate(asked)),
        None => rate(last.sent as f64),
    }
}

fn objectives(state: &TuiState) -> Vec<Line<'static>> {
    if state.objectives.is_empty() {
        return vec![Line::styled("none: --slo 'p99<50ms'", quiet(state))];
    }
    let line = |objective: &super::state::ObjectiveState| {
        let (mark, style) = match objective.is_met {
            Some(true) => ("✔", paint(state, Color::Green)),
            Some(false) => ("✘", bad(state)),
            None => ("·", quiet(state)),
        };
        Line::styled(format!("{mark} {}  {}", objective.text, objective.shown), style)
    };
    state.objectives.iter().map(line).collect()
}

/// Requests a second: asked, sent, ok, failed.
fn rates(frame: &mut Frame<'_>, area: Rect, state: &TuiState) {
    let series = |of: fn(&ChartPoint) -> Option<f64>| -> Vec<(f64, f64)> {
        let points = state.seconds.iter();
        points.filter_map(|second| Some((second.at as f64, of(second)?))).collect()
    };
    let asked = series(|second| second.asked);
    let sent = series(|second| Some(second.sent as f64));
    let ok = series(|second| Some(second.ok as f64));
    let failed = series(|second| (second.failed > 0).then_some(second.failed as f64));
    let lines = [
        ("asked", &asked, Color::DarkGray),
        ("sent", &sent, Color::Cyan),
        ("ok", &ok, Color::Green),
        ("failed", &failed, Color::Red),
    ];
    chart(frame, area, state, "requests a second", &lines, |value| format!("{value:.0}"));
}

/// Percentiles of each second's response times.
fn latencies(frame: &mut Frame<'_>, area: Rect, state: &TuiState) {
    let series = |of: fn(&ChartPoint) -> u64| -> Vec<(f64, f64)> {
        let points = state.seconds.iter().filter(|second| second.p99 > 0);
        points.map(|second| (second.at as f64, of(second) as f64)).collect()
    };
    let (p50, p99) = (series(|second| second.p50), series(|second| second.p99));
    let lines = [("p50", &p50, Color::Green), ("p99", &p99, Color::Yellow)];
    chart(frame, area, state, "response", &lines, |value| time_of(value as u64));
}

/// Name, points and colour of a line.
type ChartLine<'a> = (&'a str, &'a Vec<(f64, f64)>, Color);

fn chart(
    frame: &mut Frame<'_>,
    area: Rect,
    state: &TuiState,
    title: &'static str,
    lines: &[ChartLine<'_>],
    label: impl Fn(f64) -> String,
) {
    let points = || lines.iter().flat_map(|(_, points, _)| points.iter());
    let most = points().map(|point| point.1).fold(0.0, f64::max);
    let top = if most > 0.0 { 1.1 * most } else { 1.0 };
    let first = state.seconds.front().map_or(0.0, |second| second.at as f64);
    let last = state.seconds.back().map_or(1.0, |second| second.at as f64).max(first + 1.0);
    let drawn = lines.iter().filter(|(_, points, _)| !points.is_empty());
    let datasets = drawn.map(|(name, points, colour)| {
        Dataset::default()
            .name(*name)
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(paint(state, *colour))
            .data(points)
    });
    let x = Axis::default()
        .bounds([first, last])
        .labels([format!("{first:.0}s"), format!("{last:.0}s")])
        .style(quiet(state));
    let y = Axis::default()
        .bounds([0.0, top])
        .labels(["0".to_owned(), label(top / 2.0), label(top)])
        .style(quiet(state));
    let chart = Chart::new(datasets.collect()).x_axis(x).y_axis(y).legend_position(None);
    let block = Block::bordered().title(legend(state, title, lines));
    frame.render_widget(chart.block(block), area);
}

/// The title of a chart with the names of its lines in their colours: a legend for any size.
fn legend(state: &TuiState, title: &str, lines: &[ChartLine<'_>]) -> Line<'static> {
    let mut spans = vec![Span::raw(format!(" {title}:"))];
    let drawn = lines.iter().filter(|(_, points, _)| !points.is_empty());
    spans.extend(
        drawn.map(|(name, _, colour)| Span::styled(format!(" {name}"), paint(state, *colour))),
    );
    spans.push(Span::raw(" "));
    Line::from(spans)
}

/// Histogram of response times so far, in bars of equal ratio.
fn histogram(frame: &mut Frame<'_>, area: Rect, state: &TuiState) {
    let bars = merged(&state.bars, usize::from(area.height).saturating_sub(2));
    let most = bars.iter().map(|bar| bar.count).max().unwrap_or(0).max(1);
    let width = usize::from(area.width).saturating_sub(22);
    let lines: Vec<_> = bars
        .iter()
        .map(|bar| {
            let filled = (bar.count as f64 / most as f64 * width as f64).round() as usize;
            Line::from(vec![
                Span::raw(format!("≤{:>9} {:>8} ", time_of(bar.to), count(bar.count))),
                Span::styled("█".repeat(filled), paint(state, Color::Cyan)),
            ])
        })
        .collect();
    let block = Block::bordered().title(" histogram of responses ");
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// At most `rows` bars with every response, the slow tail included: neighbours are merged.
fn merged(bars: &[HistogramBar], rows: usize) -> Vec<HistogramBar> {
    let each = bars.len().div_ceil(rows.max(1)).max(1);
    let merge = |part: &[HistogramBar]| HistogramBar {
        to: part.last().map_or(0, |bar| bar.to),
        count: part.iter().map(|bar| bar.count).sum(),
    };
    bars.chunks(each).map(merge).collect()
}

/// Statuses and faults.
fn trouble(frame: &mut Frame<'_>, area: Rect, state: &TuiState) {
    let statuses = state.statuses.iter().map(|(code, n, is_expected)| {
        let style = if *is_expected { Style::new() } else { bad(state) };
        Line::styled(format!("{:>12}  status {code}", count(*n)), style)
    });
    let faults = state
        .faults
        .iter()
        .map(|(fault, n)| Line::styled(format!("{:>12}  {fault}", count(*n)), bad(state)));
    let statuses: Vec<_> = statuses.collect();
    // What is not expected first; the rest is counted.
    let (expected, unexpected): (Vec<_>, Vec<_>) = statuses
        .into_iter()
        .zip(&state.statuses)
        .partition(|(_, (_, _, is_expected))| *is_expected);
    let statuses = unexpected.into_iter().chain(expected).map(|(line, _)| line);
    let mut lines: Vec<_> = statuses.chain(faults).collect();
    let rows = usize::from(area.height).saturating_sub(2);
    if lines.len() > rows && rows > 0 {
        let more = lines.len() - rows + 1;
        lines.truncate(rows - 1);
        lines.push(Line::styled(format!("{more:>12}  more kinds"), quiet(state)));
    }
    let block = Block::bordered().title(" responses and faults ");
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn time_of(ns: u64) -> String {
    duration(ns as f64)
}

fn paint(state: &TuiState, colour: Color) -> Style {
    if state.has_colours { Style::new().fg(colour) } else { Style::new() }
}

fn bad(state: &TuiState) -> Style {
    paint(state, Color::Red).add_modifier(Modifier::BOLD)
}

fn quiet(state: &TuiState) -> Style {
    paint(state, Color::DarkGray)
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::state::tests::state;
    use super::*;

    fn drawn(width: u16, height: u16, state: &TuiState) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn everything_is_on_a_wide_screen() {
        let text = drawn(120, 40, &state());
        for part in [
            "http://localhost:8080/",
            "50 users",
            "9,900",
            "900 (9.1 %)",
            "990/s of 1,000/s",
            "50 connections",
            "response        ok only",
            "max      90.0 ms  90.0 ms",
            "✘ p99<50ms  90.0 ms",
            "✔ rate>900/s  990/s",
            "· cpu<80%",
            "requests a second",
            "histogram of responses",
            "800  status 503",
            "100  reset",
            "q or Ctrl-C ends the run",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
    }

    #[test]
    fn few_rows_still_show_every_response() {
        let state = state();
        let all: u64 = state.bars.iter().map(|bar| bar.count).sum();
        for rows in 0..20 {
            let bars = merged(&state.bars, rows);
            assert!(bars.len() <= rows.max(1));
            assert_eq!(bars.iter().map(|bar| bar.count).sum::<u64>(), all);
            assert_eq!(bars.last().map(|bar| bar.to), state.bars.last().map(|bar| bar.to));
        }
    }

    #[test]
    fn any_size_is_drawn() {
        let mut state = state();
        for (width, height) in [(1, 1), (20, 5), (60, 16), (80, 24), (100, 20), (250, 80)] {
            drawn(width, height, &state);
        }
        let usual = drawn(80, 24, &state);
        for part in ["requests a second: asked sent ok failed", "response: p50 p99", "90.0 ms"] {
            assert!(usual.contains(part), "{part}:\n{usual}");
        }
        let small = drawn(70, 12, &state);
        assert!(small.contains("p99") && !small.contains("histogram"), "{small}");
        // Before the first second, and while it ends.
        state.seconds.clear();
        state.is_stopping = true;
        assert!(drawn(100, 30, &state).contains("q again to stop at once"));
    }
}
