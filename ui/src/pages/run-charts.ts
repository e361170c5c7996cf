/** The sections of a run's page with its charts. */

import { bands, nanos } from "../charts/bands";
import { histogram, percentiles } from "../charts/distribution";
import { heat } from "../charts/heat";
import type { Timeline, TimeLine } from "../charts/time";
import { el } from "../dom";
import { bytes, bytesTick, count, duration, durationTick, percent, rate, tick } from "../format";
import { facts, pair, section } from "./elements";
import { bodies, faults, latencies, statuses } from "./run-tables";
import type { RunData, Target } from "./run-data";
import { marks } from "./run-marks";
import { gauges, levels, settings } from "./run-target";

const ERROR_COLOURS = ["red", "orange", "purple", "yellow", "blue", "sky", "green", "grey"];

/** Requests that ended in each interval. */
function completed({ series }: RunData): number[] {
  return series.ok.map((ok, i) => ok + (series.failed[i] ?? 0));
}

/** Requests per second. */
export function traffic(data: RunData, time: Timeline): HTMLElement {
  const { series } = data;
  const { intervals } = time;
  const over = data.over?.run;
  const asked = series.asked.some((value) => value !== null);
  const sent = series.fired.length > 0;
  const chart = time.chart({
    title: "Requests per second",
    note: "Asked: planned. Completed: with a response or an error. Goodput: with the expected response.",
    y: { tick, read: rate },
    lines: [
      ...(asked
        ? [{ name: "asked", values: intervals.asked(series.asked), colour: "grey", dash: [5, 3], width: 1.5 }]
        : []),
      ...(sent ? [{ name: "sent", values: intervals.rates(series.fired), colour: "orange" as const }] : []),
      { name: "completed", values: intervals.rates(completed(data)), colour: "purple" },
      {
        name: "goodput",
        values: intervals.rates(series.ok),
        behind: over && time.other?.rates(over.series.ok),
        colour: "blue",
        fill: 0.14,
        width: 1.75,
      },
    ],
    marks: ["rate", "goodput", "sent"].flatMap((metric) => marks(data, metric)),
    height: 250,
  });
  return section("Traffic", chart.element);
}

/** Latencies over time and over the whole run. */
export function latency(data: RunData, time: Timeline): HTMLElement {
  const { series } = data;
  const over = data.over?.run;
  if (!data.curves.some((curve) => curve.metric === "response")) {
    return section("Latency", el("p", { class: "empty" }, "There was no response, so there is no response time."), latencies(data));
  }
  const bounds = marks(data, "response");
  const response = bands(
    time,
    { title: "Response time", note: "From the instant a request was due to its last byte: what a user feels." },
    series.response,
    over?.series.response,
    bounds,
    270,
  );
  const spread = heat(
    time,
    { title: "Response times over time", note: "How many requests took how long, over time." },
    series.heat,
    series.heat_edges,
    bounds,
  );
  const service = bands(
    time,
    { title: "Service time", note: "From the first byte written to the last byte read: what the server did." },
    series.service,
    over?.series.service,
    marks(data, "service"),
    270,
  );
  const [own, other] = [data.latencies[0]?.count ?? 0, over?.latencies[0]?.count ?? 0];
  const name = data.over?.name ?? "";
  const behind = over && other > 0 ? { name, data: over.histogram, scale: own / other } : undefined;
  return section(
    "Latency",
    pair(response, service),
    spread.element,
    pair(
      histogram(data.histogram, behind, marks(data, "response", "x")),
      percentiles(data.curves, over && { name, curves: over.curves }, bounds),
    ),
    latencies(data),
  );
}

/** Errors by kind. */
export function errors(data: RunData, time: Timeline): HTMLElement {
  const kinds = data.series.errors;
  const over = data.over?.run;
  if (kinds.length === 0) {
    const text = data.figures.due > 0 ? "None: every request got a response that meets the expectation." : "None: nothing was sent.";
    return section("Errors", el("p", { class: "empty" }, text), statuses(data));
  }
  const { intervals } = time;
  const other = (kind: string): (number | null)[] | undefined => {
    const counts = over?.series.errors.find((one) => one.kind === kind)?.counts;
    return counts && time.other?.rates(counts);
  };
  const lines = kinds.map((kind, i): TimeLine => ({
    name: kind.kind,
    values: intervals.rates(kind.counts),
    behind: other(kind.kind),
    colour: ERROR_COLOURS[i % ERROR_COLOURS.length] ?? "red",
    fill: 0.08,
    ...(i >= ERROR_COLOURS.length && { dash: [4, 3] }),
  }));
  const chart = time.chart({
    title: "Errors per second",
    note: "By kind, when they ended: unexpected statuses, faults, unfinished and dropped requests.",
    y: { tick, read: rate, log: "offer" },
    lines: [...lines, ...allowed(data, time)],
  });
  const failedBodies = data.failed_bodies.length > 0 ? [bodies(data)] : [];
  return section("Errors", chart.element, el("div", { class: "pair" }, statuses(data), faults(data)), ...failedBodies);
}

/** The error rate that an objective on the share of errors allows: it follows the load. */
function allowed(data: RunData, time: Timeline): TimeLine[] {
  const { series } = data;
  const ended = completed(data).map((n, i) => n + (series.unfinished[i] ?? 0) + (series.dropped[i] ?? 0) + (series.unsent[i] ?? 0));
  return marks(data, "errors").map(({ at, text }) => ({
    name: `${text} allows`,
    values: time.intervals.rates(ended.map((n) => n * at)),
    colour: "ink",
    dash: [5, 4],
    width: 1.25,
  }));
}

/** Connections and bytes. */
export function connections(data: RunData, time: Timeline): HTMLElement {
  const { series, figures } = data;
  const { intervals, other } = time;
  const over = data.over?.run;
  const levels = time.chart({
    title: "In flight and open",
    note: "Requests in flight: the mean over each point. Connections open: at its end.",
    y: { tick, read: (value) => tick(Math.round(value * 100) / 100) },
    lines: [
      { name: "in flight", values: intervals.measured(series.in_flight), behind: over && other?.measured(over.series.in_flight), colour: "blue", fill: 0.14 },
      { name: "open connections", values: series.open, colour: "green" },
    ],
  });
  const transfer = time.chart({
    title: "Bytes per second",
    note: "Heads included, before TLS, counted when the request ended.",
    y: { tick: bytesTick, read: (value) => `${bytes(value)}/s`, top: 10 },
    lines: [
      { name: "in", values: intervals.rates(series.bytes_in), behind: over && other?.rates(over.series.bytes_in), colour: "blue" },
      { name: "out", values: intervals.rates(series.bytes_out), colour: "orange" },
    ],
  });
  const span = figures.span_ns / 1e9;
  const flow = (total: number): string => `${bytes(total)}${span > 0 ? ` (${bytes(total / span)}/s)` : ""}`;
  return section(
    "Connections",
    pair(levels, transfer),
    facts([
      ["opened", count(figures.opened)],
      ["open at most", count(figures.peak)],
      ["received", flow(figures.bytes_in)],
      ["sent", flow(figures.bytes_out)],
      ["stale, reopened", figures.stale_reconnects && count(figures.stale_reconnects)],
      ["TCP segments retransmitted", figures.retransmits && count(figures.retransmits)],
      ["closed for unsolicited bytes", figures.excess && count(figures.excess)],
      ["idle connections not opened", figures.idle_failed && count(figures.idle_failed)],
      ["idle connections lost", figures.idle_lost && count(figures.idle_lost)],
      ["redirects followed", figures.redirects && count(figures.redirects)],
      ["protocol", figures.protocol],
      ["streams", figures.streams && count(figures.streams)],
      ["sent again, unprocessed", figures.unhandled && count(figures.unhandled)],
      ["streams reset", figures.stream_resets && count(figures.stream_resets)],
      ["GOAWAYs", figures.goaways && count(figures.goaways)],
      ["packets lost", figures.quic_lost && count(figures.quic_lost)],
      ["waited for a stream", figures.stream_waits && count(figures.stream_waits)],
      ["bodies that waited for the window", figures.window_waits && count(figures.window_waits)],
    ]),
  );
}

/** The watched target. */
export function target(data: RunData, watched: Target, time: Timeline): HTMLElement {
  const drawn = time.intervals.starts.length > 0 && watched.gauges.some((gauge) => gauge.values);
  return section(
    "The target",
    drawn && pair(...levels(data, watched, time)),
    watched.gauges.length > 0 && gauges(watched),
    watched.settings.length > 0 && settings(watched),
  );
}

/** Whether gake itself was the limit. */
export function generator(data: RunData, time: Timeline): HTMLElement {
  const { series, figures } = data;
  const over = data.over?.run;
  const cpu = time.chart({
    title: "CPU of the generator",
    note: "Of the workers' cores. Near 100 % gake itself is the limit.",
    y: { tick: (value) => `${Math.round(value * 100)} %`, read: percent, top: 1 / 1.08 },
    lines: [{ name: "", values: series.cpu, behind: over?.series.cpu, colour: "green", fill: 0.14 }],
    height: 180,
  });
  // A closed loop fires at once: there is nothing to draw.
  const isLate = series.lateness.some((values) => values.some((value) => (value ?? 0) > 0));
  const late = isLate && time.chart({
    title: "Lateness",
    note: "From due to fired: the generator's own delay, without the wait for a free connection.",
    y: { tick: durationTick, read: duration, log: "start" },
    lines: [
      { name: "p99", values: nanos(series.lateness[0]), behind: over && nanos(over.series.lateness[0]), colour: "purple", width: 1.75 },
      { name: "max", values: nanos(series.lateness[1]), colour: "grey", width: 1 },
    ],
    marks: marks(data, "lateness"),
    height: 180,
  });
  return section(
    "Generator",
    late ? pair(cpu, late) : cpu.element,
    facts([
      ["CPU time", duration(figures.cpu_ns)],
      ["a request", figures.sent > 0 && duration(figures.cpu_ns / figures.sent)],
      ["of the workers' cores", percent(figures.cpu_share)],
      // Known only at the end.
      ["busiest worker", !data.live && percent(figures.busiest)],
      ["waited for a core", !data.live && duration(figures.run_delay_ns)],
      ["memory", figures.rss_bytes > 0 && bytes(figures.rss_bytes)],
      ["workers", `${figures.threads} on ${figures.cores} ${figures.cores === 1 ? "core" : "cores"}`],
    ]),
  );
}
