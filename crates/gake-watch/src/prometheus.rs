//! Levels from the Prometheus text format.

use std::time::Instant;

use gake_core::record::LevelUnit;

use crate::fetch::Fetch;
use crate::level::Level;
use crate::rates::CounterRates;

/// Maximum number of chosen series.
const SERIES_MAX: usize = 64;

/// Known metrics: the endpoint's name, ours, and the unit. Counters become rates.
const KNOWN: &[(&str, &str, LevelUnit)] = &[
    ("process_resident_memory_bytes", "rss", LevelUnit::Bytes),
    ("process_open_fds", "descriptors_open", LevelUnit::Count),
    ("go_goroutines", "goroutines", LevelUnit::Count),
    ("go_threads", "threads", LevelUnit::Count),
    ("process_cpu_seconds_total", "cores", LevelUnit::Count),
    ("jvm_threads_live_threads", "threads", LevelUnit::Count),
    ("process_cpu_usage", "cpu", LevelUnit::Share),
    ("tomcat_threads_busy_threads", "pool_busy", LevelUnit::Count),
    ("tomcat_connections_current_connections", "established", LevelUnit::Count),
    ("hikaricp_connections_active", "db_pool_busy", LevelUnit::Count),
    ("hikaricp_connections_pending", "db_pool_pending", LevelUnit::Count),
    ("hikaricp_connections_creation_seconds_count", "db_connects", LevelUnit::PerSecond),
    ("go_sql_in_use_connections", "db_pool_busy", LevelUnit::Count),
    ("go_sql_open_connections", "db_pool_open", LevelUnit::Count),
    ("go_sql_max_idle_closed_total", "db_pool_closed", LevelUnit::PerSecond),
    // Seconds waited by all, per second: the number waiting.
    ("go_sql_wait_duration_seconds_total", "db_pool_pending", LevelUnit::Count),
    ("go_sync_mutex_wait_total_seconds_total", "lock_waiting", LevelUnit::Count),
    ("jvm_gc_pause_seconds_sum", "gc", LevelUnit::Share),
    ("go_cpu_classes_gc_total_cpu_seconds_total", "gc_cores", LevelUnit::Count),
    ("mysql_global_status_threads_connected", "db_open", LevelUnit::Count),
    ("mysql_global_variables_max_connections", "db_max_connections", LevelUnit::Count),
    ("mysql_global_status_connections", "db_connects", LevelUnit::PerSecond),
    ("mysql_global_status_innodb_row_lock_current_waits", "db_lock_waits", LevelUnit::Count),
    ("pg_stat_activity_count", "db_open", LevelUnit::Count),
    ("pg_settings_max_connections", "db_max_connections", LevelUnit::Count),
    ("node_memory_MemAvailable_bytes", "memory_available", LevelUnit::Bytes),
    ("node_load1", "load1", LevelUnit::Count),
    ("node_sockstat_TCP_alloc", "tcp_sockets", LevelUnit::Count),
    ("node_sockstat_TCP_tw", "time_wait", LevelUnit::Count),
    ("node_netstat_TcpExt_ListenOverflows", "listen_overflows", LevelUnit::PerSecond),
    ("node_netstat_TcpExt_ListenDrops", "listen_drops", LevelUnit::PerSecond),
    ("node_netstat_Tcp_RetransSegs", "retransmits", LevelUnit::PerSecond),
    ("node_context_switches_total", "context_switches", LevelUnit::PerSecond),
    ("gake_lab_threads_busy", "pool_busy", LevelUnit::Count),
    ("gake_lab_queue", "pool_queue", LevelUnit::Count),
    ("gake_lab_in_flight", "in_flight", LevelUnit::Count),
    ("gake_lab_connections_open", "established", LevelUnit::Count),
    ("gake_lab_stalled_seconds_total", "gc", LevelUnit::Share),
];

/// Shares of a whole: our name, the part, and the whole.
const SHARES: &[(&str, &str, &str)] = &[
    ("descriptors", "process_open_fds", "process_max_fds"),
    ("pool", "tomcat_threads_busy_threads", "tomcat_threads_config_max_threads"),
    ("pool", "gake_lab_threads_busy", "gake_lab_threads"),
    ("connections", "gake_lab_connections_open", "gake_lab_connections_max"),
    (
        "connections",
        "tomcat_connections_current_connections",
        "tomcat_connections_config_max_connections",
    ),
    ("db_pool", "hikaricp_connections_active", "hikaricp_connections_max"),
    ("db_pool", "go_sql_in_use_connections", "go_sql_max_open_connections"),
    (
        "db_connections",
        "mysql_global_status_threads_connected",
        "mysql_global_variables_max_connections",
    ),
    ("db_connections", "pg_stat_activity_count", "pg_settings_max_connections"),
];

/// Counters reported as totals, one series each: name, label, our name.
const TOTALS: &[(&str, &str, &str)] =
    &[("mysql_global_status_connection_errors_total", "error=\"max_connection", "db_refused")];

/// Metrics of which one series is taken, by a label.
const LABELLED: &[(&str, &str, &str, LevelUnit)] =
    &[("jvm_threads_states_threads", "state=\"blocked\"", "lock_waiting", LevelUnit::Count)];

/// Counters without the usual suffix.
const COUNTERS: &[&str] =
    &["jvm_gc_pause_seconds_sum", "hikaricp_connections_creation_seconds_count"];

#[derive(Debug)]
pub(crate) struct Prometheus {
    fetch: Fetch,
    chosen: Vec<String>,
    rates: CounterRates,
}

impl Prometheus {
    pub(crate) fn new(url: &str, chosen: Vec<String>) -> Result<Self, String> {
        Ok(Self { fetch: Fetch::new(&[url.to_owned()])?, chosen, rates: CounterRates::default() })
    }

    pub(crate) async fn read(&mut self) -> Result<Vec<Level>, String> {
        let text = self.fetch.get(0).await?;
        let page = MetricsPage::parse(&text);
        if page.samples.is_empty() {
            return Err("its response has no Prometheus metrics".to_owned());
        }
        let now = Instant::now();
        if !self.chosen.is_empty() {
            return page.chosen(&self.chosen, now, &mut self.rates);
        }
        Ok(page.known(now, &mut self.rates))
    }
}

/// A sample: name, raw labels, value.
type MetricSample<'a> = (&'a str, &'a str, f64);

#[derive(Debug, Default)]
struct MetricsPage<'a> {
    counters: Vec<&'a str>,
    samples: Vec<MetricSample<'a>>,
}

impl<'a> MetricsPage<'a> {
    fn parse(text: &'a str) -> Self {
        let mut page = Self::default();
        for line in text.lines().map(str::trim) {
            if let Some(kind) = line.strip_prefix("# TYPE ") {
                if let Some((name, "counter")) = kind.split_once(' ') {
                    page.counters.push(name);
                }
            } else if !line.starts_with('#') {
                page.samples.extend(sample(line));
            }
        }
        page
    }

    fn sum(&self, name: &str) -> Option<f64> {
        let values = self.samples.iter().filter(|(known, ..)| *known == name).map(|(.., v)| *v);
        values.reduce(|a, b| a + b)
    }

    fn is_counter(&self, name: &str) -> bool {
        name.ends_with("_total") || self.counters.contains(&name) || COUNTERS.contains(&name)
    }

    fn known(&self, now: Instant, rates: &mut CounterRates) -> Vec<Level> {
        let mut levels = Vec::new();
        for (theirs, ours, unit) in KNOWN {
            let Some(value) = self.sum(theirs) else { continue };
            let counts = *unit == LevelUnit::PerSecond || self.is_counter(theirs);
            let value = if counts { rates.rate(theirs, now, value) } else { Some(value) };
            levels.extend(value.map(|value| Level::new(*ours, *unit, value)));
        }
        for (ours, part, whole) in SHARES {
            if let (Some(part), Some(whole)) = (self.sum(part), self.sum(whole))
                && whole > 0.0
            {
                levels.push(Level::new(*ours, LevelUnit::Share, part / whole));
            }
        }
        let labelled = |name: &str, label: &str| {
            let series = self.samples.iter().filter(|s| s.0 == name && s.1.contains(label));
            series.map(|sample| sample.2).reduce(|a, b| a + b)
        };
        for (theirs, label, ours) in TOTALS {
            levels.extend(labelled(theirs, label).map(|v| Level::new(*ours, LevelUnit::Count, v)));
        }
        for (theirs, label, ours, unit) in LABELLED {
            levels.extend(labelled(theirs, label).map(|v| Level::new(*ours, *unit, v)));
        }
        levels.extend(self.node_cpu(now, rates));
        levels
    }

    /// The share of its cores that a machine uses, from node_exporter's seconds by mode.
    fn node_cpu(&self, now: Instant, rates: &mut CounterRates) -> Option<Level> {
        let (mut idle, mut all) = (0.0, 0.0);
        for (_, labels, value) in
            self.samples.iter().filter(|(name, ..)| *name == "node_cpu_seconds_total")
        {
            all += value;
            let resting = ["mode=\"idle\"", "mode=\"iowait\""];
            if resting.iter().any(|mode| labels.contains(mode)) {
                idle += value;
            }
        }
        // Record both, even while there is no rate yet.
        let all = rates.rate("node_cpu all", now, all);
        let idle = rates.rate("node_cpu idle", now, idle);
        let (all, idle) = all.zip(idle)?;
        (all > 0.0).then(|| Level::new("cpu", LevelUnit::Share, 1.0 - idle / all))
    }

    fn chosen(
        &self,
        chosen: &[String],
        now: Instant,
        rates: &mut CounterRates,
    ) -> Result<Vec<Level>, String> {
        let mut levels = Vec::new();
        for wanted in chosen {
            let (name, filter) = wanted.split_once('{').unwrap_or((wanted, ""));
            let filters: Vec<_> =
                filter.trim_end_matches('}').split(',').filter(|f| !f.is_empty()).collect();
            let fits = |(known, labels, _): &&MetricSample<'_>| {
                *known == name && filters.iter().all(|filter| labels.contains(filter.trim()))
            };
            let series: Vec<_> = self.samples.iter().filter(fits).take(SERIES_MAX).collect();
            if series.is_empty() {
                return Err(format!("it has no metric {wanted}"));
            }
            levels.extend(series.into_iter().filter_map(|sample| self.level(sample, now, rates)));
        }
        Ok(levels)
    }

    /// A series under its own name; a counter as its rate.
    fn level(
        &self,
        sample: &MetricSample<'_>,
        now: Instant,
        rates: &mut CounterRates,
    ) -> Option<Level> {
        let (name, labels, value) = *sample;
        let full = if labels.is_empty() { name.to_owned() } else { format!("{name}{{{labels}}}") };
        if self.is_counter(name) {
            return rates
                .rate(&full, now, value)
                .map(|r| Level::new(full, LevelUnit::PerSecond, r));
        }
        Some(Level::new(full, unit_of(name), value))
    }
}

/// The unit suffix of a metric's name, by Prometheus's naming rules.
fn unit_of(name: &str) -> LevelUnit {
    match name.rsplit('_').next() {
        Some("bytes") => LevelUnit::Bytes,
        Some("seconds") => LevelUnit::Seconds,
        Some("ratio") => LevelUnit::Share,
        _ => LevelUnit::Count,
    }
}

/// `name{labels} value [timestamp]`; a label's value may contain any character.
fn sample(line: &str) -> Option<MetricSample<'_>> {
    let end = line.find(|c: char| c == '{' || c.is_whitespace())?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        None => ("", rest),
        Some(inner) => {
            let close = closing(inner)?;
            (&inner[..close], &inner[close + 1..])
        }
    };
    let value = rest.split_whitespace().next()?.parse().ok()?;
    (!name.is_empty()).then_some((name, labels, value))
}

/// The position of the closing brace, outside of quotes.
fn closing(labels: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    labels.char_indices().find_map(|(at, c)| {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '}' if !quoted => return Some(at),
            _ => {}
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const TEXT: &str = "\
# HELP process_open_fds Open.
# TYPE process_open_fds gauge
process_open_fds 40
process_max_fds 80
# TYPE odd counter
odd{path=\"/a}b\",q=\"\\\"\"} 5 1700000000
odd{path=\"/c\"} 7
process_resident_memory_bytes 1e6
broken
";

    fn value(levels: &[Level], name: &str) -> Option<f64> {
        levels.iter().find(|level| level.name == name).map(|level| level.value)
    }

    #[test]
    fn known_metrics_are_renamed() {
        let levels = MetricsPage::parse(TEXT).known(Instant::now(), &mut CounterRates::default());
        assert_eq!(value(&levels, "descriptors"), Some(0.5));
        assert_eq!(value(&levels, "rss"), Some(1e6));
    }

    #[test]
    fn databases_pools_and_collectors_are_known() {
        let text = |closed: u32, pause: f64| {
            format!(
                "go_sql_max_idle_closed_total{{db=\"a\"}} {closed}\n\
                 jvm_gc_pause_seconds_sum{{action=\"minor\"}} {pause}\n\
                 jvm_threads_states_threads{{state=\"blocked\"}} 17\n\
                 jvm_threads_states_threads{{state=\"runnable\"}} 90\n\
                 mysql_global_status_threads_connected 150\n\
                 mysql_global_variables_max_connections 151\n\
                 mysql_global_status_connection_errors_total{{error=\"max_connections\"}} 44\n\
                 mysql_global_status_connection_errors_total{{error=\"accept\"}} 9\n"
            )
        };
        let (now, mut rates) = (Instant::now(), CounterRates::default());
        MetricsPage::parse(&text(100, 1.0)).known(now, &mut rates);
        let levels =
            MetricsPage::parse(&text(900, 1.5)).known(now + Duration::from_secs(2), &mut rates);
        for (name, expected) in [
            ("db_pool_closed", 400.0),
            ("gc", 0.25),
            ("lock_waiting", 17.0),
            ("db_open", 150.0),
            ("db_max_connections", 151.0),
            ("db_connections", 150.0 / 151.0),
            ("db_refused", 44.0),
        ] {
            assert_eq!(value(&levels, name), Some(expected), "{name}");
        }
    }

    #[test]
    fn chosen_series_by_label_and_counters_as_rates() {
        let (now, mut rates) = (Instant::now(), CounterRates::default());
        let page = MetricsPage::parse(TEXT);
        let wanted = ["odd{path=\"/c\"}".to_owned(), "process_open_fds".to_owned()];
        let first = page.chosen(&wanted, now, &mut rates).unwrap();
        assert_eq!(first.len(), 1, "{first:?}");
        let grown = TEXT.replace("\"/c\"} 7", "\"/c\"} 27");
        let later = now + Duration::from_secs(2);
        let levels = MetricsPage::parse(&grown).chosen(&wanted, later, &mut rates).unwrap();
        assert_eq!(value(&levels, "odd{path=\"/c\"}"), Some(10.0));
        assert_eq!(value(&levels, "process_open_fds"), Some(40.0));
        let absent = page.chosen(&["nothing".to_owned()], now, &mut rates).unwrap_err();
        assert!(absent.contains("nothing"));
    }

    #[test]
    fn cpu_of_a_node() {
        let text = |idle: u32, user: u32| {
            format!(
                "node_cpu_seconds_total{{cpu=\"0\",mode=\"idle\"}} {idle}\n\
                 node_cpu_seconds_total{{cpu=\"0\",mode=\"user\"}} {user}\n"
            )
        };
        let (now, mut rates) = (Instant::now(), CounterRates::default());
        assert_eq!(value(&MetricsPage::parse(&text(10, 10)).known(now, &mut rates), "cpu"), None);
        let later = now + Duration::from_secs(4);
        let levels = MetricsPage::parse(&text(11, 13)).known(later, &mut rates);
        assert_eq!(value(&levels, "cpu"), Some(0.75));
    }
}
