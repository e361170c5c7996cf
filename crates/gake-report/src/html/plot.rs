//! Latency over time, one point per request: the page of `vegeta plot`.

use serde::Serialize;

use super::{lttb, page};

/// Latencies over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// The title of the page.
    pub title: String,
    /// Most points kept per series; 0 keeps all.
    pub threshold: usize,
    /// The series, in the order of the legend.
    pub series: Vec<PlotSeries>,
}

impl Default for Plot {
    /// An empty plot that keeps 4,000 points per series, as vegeta does.
    fn default() -> Self {
        Self { title: String::new(), threshold: 4_000, series: Vec::new() }
    }
}

/// One line of a [`Plot`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlotSeries {
    /// The series' name. A suffix of `ERROR` selects the colour of errors.
    pub name: String,
    /// Seconds since the start and milliseconds, in ascending order of the seconds.
    pub points: Vec<(f64, f64)>,
}

#[derive(Serialize)]
struct PlotJson<'a> {
    schema: &'static str,
    kind: &'static str,
    title: &'a str,
    series: Vec<PlotSeriesJson<'a>>,
}

#[derive(Serialize)]
struct PlotSeriesJson<'a> {
    name: &'a str,
    s: Vec<f64>,
    ms: Vec<f64>,
}

/// The page of a plot.
#[must_use]
pub fn plot(plot: &Plot) -> String {
    let series = plot.series.iter().map(|series| {
        let points = lttb(&series.points, plot.threshold);
        PlotSeriesJson {
            name: &series.name,
            // Rounded to microseconds and nanoseconds.
            s: points.iter().map(|point| (point.0 * 1e6).round() / 1e6).collect(),
            ms: points.iter().map(|point| (point.1 * 1e6).round() / 1e6).collect(),
        }
    });
    let series = series.collect();
    page(&PlotJson { schema: super::SCHEMA, kind: "plot", title: &plot.title, series })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_plot_is_a_small_page() {
        let name = |n: usize| ["attack: OK", "</script>: ERROR"][n].to_owned();
        let points = |n: usize| {
            (0..200_000).map(|i| (i as f64 / 1e3, ((i * 7919 + n) % 1_000) as f64 / 3.0)).collect()
        };
        let series = (0..2).map(|n| PlotSeries { name: name(n), points: points(n) }).collect();
        let html = plot(&Plot { title: "a <b>".to_owned(), series, ..Plot::default() });
        assert!(html.len() < 500_000, "{}", html.len());
        assert_eq!(html.matches("</script").count(), 2);
        assert!(html.contains("\"title\":\"a \\u003cb>\""));
    }
}
