/** The data of a run's page, `gake.page/1`: written by gake-report/src/html/run/. */

export interface RunData {
  kind: "run";
  gake: string;
  target: string;
  plan: string;
  origin: { commands: string[]; hosts: string[]; versions: string[] };
  /** The stages of an open loop with several: start and end in seconds of the run, with their rates. */
  stages: { start: number; end: number; from: number; to: number }[];
  started: string;
  elapsed_ns: number;
  warmup_s: number;
  ended: string | null;
  validity: "valid" | "suspect" | "invalid";
  reasons: string[];
  objectives: Objective[];
  /** Bad news about the target. */
  target_news: { text: string; state: "suspect" | "invalid"; meaning: string }[];
  findings: { id: string; evidence: string; advice: string; check: string }[];
  figures: Figures;
  latencies: Latency[];
  statuses: { code: number; count: number; ok: boolean }[];
  faults: { text: string; count: number; advice: string }[];
  failed_bodies: { status: number; text: string; count: number }[];
  labels: Label[];
  more_labels: number;
  label_series: LabelSeries | null;
  /** Checks and custom metrics, grouped by section. */
  metrics: MetricRow[];
  more_metrics: number;
  agents: Agent[];
  more_agents: number;
  events: { s: number; text: string }[];
  series: Series;
  histogram: { edges: number[]; response: number[]; service: number[] };
  curves: Curve[];
  target_levels: Target | null;
  /** The baseline run, drawn behind, and its name. */
  over: { name: string; run: RunData } | null;
  /**
   * Of a live run: how long requests are sent, whether the page may stop it, and the rate in percent
   * of the plan's if the page may change it.
   */
  live?: { length_s: number | null; control: boolean; rate_percent?: number };
}

/** A metric under one set of tags, with its aggregate. */
export interface MetricRow {
  /** `checks`, `requests by name`, `groups`, `iterations` or `metrics`. */
  section: string;
  name: string;
  samples: number;
  /** Figures separated by two spaces. */
  figures: string;
  /** Whether a check always passed. */
  passed?: boolean;
}

export interface Objective {
  text: string;
  shown: string;
  met: boolean;
  /** The measured value as a share of the bound. */
  used: number | null;
  limit: Limit | null;
}

/** The bound of an objective. */
export interface Limit {
  /** A latency, `errors`, `rate`, `goodput`, `sent`, `count`, or `target:` and a level. */
  metric: string;
  /** `p99`, `mean`, `min` or `max` of a latency. */
  statistic: string | null;
  /** Nanoseconds, a share, a number, a rate, or the unit of the level. */
  bound: number;
  upper: boolean;
  label: string | null;
}

export interface Figures {
  due: number;
  sent: number;
  ok: number;
  failed: number;
  unfinished: number;
  dropped: number;
  /** Fired and never sent: no local port or descriptor left. */
  unsent: number;
  asked_rate: number | null;
  sent_rate: number;
  completed_rate: number;
  goodput: number;
  bytes_in: number;
  bytes_out: number;
  span_ns: number;
  opened: number;
  peak: number;
  stale_reconnects: number;
  retransmits: number;
  excess: number;
  idle_failed: number;
  idle_lost: number;
  redirects: number;
  /** The protocols of the connections. */
  protocol: string;
  streams: number;
  unhandled: number;
  stream_resets: number;
  goaways: number;
  quic_lost: number;
  stream_waits: number;
  window_waits: number;
  cpu_ns: number;
  cpu_share: number;
  busiest: number;
  run_delay_ns: number;
  rss_bytes: number;
  threads: number;
  cores: number;
}

/** An agent of a fleet. */
export interface Agent {
  name: string;
  validity: string;
  reasons: string[];
  sent: number;
  lateness_p99_ns: number;
  lost_s: number | null;
}

/** Nanoseconds. */
export interface Latency {
  metric: string;
  count: number;
  mean: number;
  max: number;
  /** p50, p90, p95, p99, p99.9. */
  quantiles: number[];
  /** The number of these quantiles with enough samples. */
  trusted: number;
}

export interface Label {
  /** Its index in the plan and in the series of labels. */
  index: number;
  name: string;
  sent: number;
  failed: number;
  response: Latency;
  service_p99: number;
}

/** The first labels of the plan over time, with points of their own; times in microseconds. */
export interface LabelSeries {
  second: number[];
  seconds: number[];
  labels: {
    sent: number[];
    failed: number[];
    p50: (number | null)[];
    p99: (number | null)[];
  }[];
}

/** A column per figure; times in microseconds. */
export interface Series {
  second: number[];
  seconds: number[];
  asked: (number | null)[];
  fired: number[];
  ok: number[];
  failed: number[];
  unfinished: number[];
  dropped: number[];
  unsent: number[];
  bytes_in: number[];
  bytes_out: number[];
  /** p50, p90, p99, max. */
  response: (number | null)[][];
  service: (number | null)[][];
  /** p99, max. */
  lateness: (number | null)[][];
  in_flight: number[];
  open: number[];
  cpu: number[];
  errors: { kind: string; counts: number[] }[];
  /** Alternating distances to the next cell and counts. */
  heat: number[][];
  heat_edges: number[];
}

/** Microseconds at the quantiles 1 - 10^(-n/16), and the maximum. */
export interface Curve {
  metric: string;
  count: number;
  values: number[];
}

/** The watched target. */
export interface Target {
  sources: string[];
  gauges: Gauge[];
  more_gauges: number;
  lost: boolean;
  settings: { source: number; name: string; value: string }[];
  more_settings: number;
}

export interface Gauge {
  /** An index into `sources`. */
  source: number;
  name: string;
  unit: "share" | "bytes" | "count" | "per_second" | "seconds";
  mean: number;
  max: number;
  /** At each point of the series; null if it is not drawn. */
  values: (number | null)[] | null;
}
