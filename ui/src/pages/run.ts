/** The report of a run: can it be believed, what came, how fast, what went wrong, and why. */

import { bands } from "../charts/bands";
import { histogram, percentiles } from "../charts/distribution";
import { Group } from "../charts/group";
import { header } from "../charts/header";
import { heat } from "../charts/heat";
import { Timeline } from "../charts/time";
import { el } from "../dom";
import { bytes, bytesTick, count, duration, durationTick, percent, rate, tick } from "../format";
import { facts, pair, section } from "./parts";
import { endpoints, events, faults, latencies, statuses } from "./run-tables";
import type { RunData, Target } from "./run-data";
import { gauges, levels, settings } from "./run-target";
import { findings, tiles, verdict } from "./run-top";

const ERROR_COLOURS = ["red", "orange", "purple", "yellow", "blue", "sky", "green", "grey"];

/** Draws the page. */
export function run(root: HTMLElement, data: RunData): void {
  document.title = `gake: ${data.target}`;
  const group = new Group();
  const series = data.series;
  const last = series.second.length - 1;
  const trouble = [series.failed, series.unfinished, series.dropped].some((counts) => (counts[last] ?? 0) > 0);
  const time = new Timeline(series.second, series.seconds, data.elapsed_ns / 1e9, data.warmup_s, group, trouble);
  const reset = el("button", { class: "tool", type: "button", hidden: true, onclick: () => group.zoom(null) }, "Reset zoom");
  group.watch((span) => (reset.hidden = span === null));
  root.append(
    header({ brand: "gake run", title: data.target }, reset),
    ...verdict(data),
    ...findings(data),
    tiles(data),
  );
  if (series.second.length > 0) root.append(traffic(data, time), latency(data, time));
  root.append(errors(data, time));
  if (data.labels.length > 0) {
    root.append(section("Endpoints", endpoints(data)));
  }
  if (series.second.length > 0) root.append(connections(data, time));
  if (data.target_levels) root.append(target(data.target_levels, time));
  if (series.second.length > 0) root.append(generator(data, time));
  if (data.events.length > 0) root.append(section("Events", events(data)));
  root.append(el("footer", {}, `gake ${data.gake}. Drag over a chart to zoom, double-click to see all of it again.`));
}

function traffic(data: RunData, time: Timeline): HTMLElement {
  const { series } = data;
  const asked = series.asked.some((value) => value !== null);
  const completed = series.ok.map((ok, i) => ok + (series.failed[i] ?? 0));
  const chart = time.chart({
    title: "Requests a second",
    note: "Asked: due by the plan. Sent: left in that second. Completed: ended in it, with a response or a fault. Goodput: ended ok.",
    y: { tick, read: rate },
    lines: [
      ...(asked
        ? [{ name: "asked", values: time.asked(series.asked), colour: "grey", dash: [5, 3], width: 1.5 }]
        : []),
      { name: "sent", values: time.rates(series.fired), colour: "orange" },
      { name: "completed", values: time.rates(completed), colour: "purple" },
      { name: "goodput", values: time.rates(series.ok), colour: "blue", fill: 0.14, width: 1.75 },
    ],
    height: 240,
  });
  return section("Traffic", chart.element);
}

function latency(data: RunData, time: Timeline): HTMLElement {
  const { series } = data;
  if (!data.curves.some((curve) => curve.metric === "response")) {
    return section("Latency", el("p", { class: "empty" }, "Nothing was answered, so there is no response time."), latencies(data));
  }
  const response = bands(
    time,
    { title: "Response time", note: "From the instant a request was due to its last byte: what a user feels." },
    series.response,
    "blue",
  );
  const service = bands(
    time,
    { title: "Service time", note: "From the first byte written to the last byte read: what the server did." },
    series.service,
    "orange",
  );
  const spread = heat(
    time,
    { title: "Response times over time", note: "Requests by response time, second by second." },
    series.heat,
    series.heat_edges,
  );
  return section(
    "Latency",
    pair(response, service),
    spread.element,
    pair(histogram(data.histogram), percentiles(data.curves)),
    latencies(data),
  );
}

function errors(data: RunData, time: Timeline): HTMLElement {
  const kinds = data.series.errors;
  if (kinds.length === 0) {
    const text = data.figures.due > 0 ? "None: every request got a response that meets the expectation." : "None: nothing was sent.";
    return section("Errors", el("p", { class: "empty" }, text), statuses(data));
  }
  const chart = time.chart({
    title: "Errors a second",
    note: "By kind, in the second in which they ended: statuses that are not expected, faults, unfinished and dropped requests.",
    y: { tick, read: rate, log: "offer" },
    lines: kinds.map((kind, i) => ({
      name: kind.kind,
      values: time.rates(kind.counts),
      colour: ERROR_COLOURS[i % ERROR_COLOURS.length] ?? "red",
      fill: 0.08,
      ...(i >= ERROR_COLOURS.length && { dash: [4, 3] }),
    })),
  });
  return section("Errors", chart.element, el("div", { class: "pair" }, statuses(data), faults(data)));
}

function connections(data: RunData, time: Timeline): HTMLElement {
  const { series, figures } = data;
  const levels = time.chart({
    title: "In flight and open",
    note: "Requests in flight, the mean of each second; connections open at its end.",
    y: { tick, read: (value) => tick(Math.round(value * 100) / 100) },
    lines: [
      { name: "in flight", values: time.measured(series.in_flight), colour: "blue", fill: 0.14 },
      { name: "open connections", values: series.open, colour: "green" },
    ],
  });
  const transfer = time.chart({
    title: "Bytes a second",
    note: "Heads included, before TLS, in the second in which the request ended.",
    y: { tick: bytesTick, read: (value) => `${bytes(value)}/s`, top: 10 },
    lines: [
      { name: "in", values: time.rates(series.bytes_in), colour: "blue" },
      { name: "out", values: time.rates(series.bytes_out), colour: "orange" },
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
      ["stale, opened again", figures.stale_reconnects && count(figures.stale_reconnects)],
      ["TCP segments sent again", figures.retransmits && count(figures.retransmits)],
      ["closed for bytes nobody asked for", figures.excess && count(figures.excess)],
      ["idle ones not opened", figures.idle_failed && count(figures.idle_failed)],
      ["idle ones lost", figures.idle_lost && count(figures.idle_lost)],
      ["redirects followed", figures.redirects && count(figures.redirects)],
    ]),
  );
}

function target(said: Target, time: Timeline): HTMLElement {
  return section(
    "The target",
    time.starts.length > 0 && pair(...levels(said, time)),
    said.gauges.length > 0 && gauges(said),
    said.settings.length > 0 && settings(said),
  );
}

function generator(data: RunData, time: Timeline): HTMLElement {
  const { series, figures } = data;
  const cpu = time.chart({
    title: "CPU of the generator",
    note: "Of the workers' cores. Near 100 % gake itself is the limit.",
    y: { tick: (value) => `${Math.round(value * 100)} %`, read: percent, top: 1 / 1.08 },
    lines: [{ name: "CPU", values: series.cpu, colour: "green", fill: 0.14 }],
    height: 180,
  });
  const nano = (values: (number | null)[] | undefined): (number | null)[] =>
    (values ?? []).map((value) => (value === null ? null : value * 1e3));
  const late = time.chart({
    title: "Lateness",
    note: "From due to fired: the generator's own delay, without the wait for a free connection.",
    y: { tick: durationTick, read: duration, log: "start" },
    lines: [
      { name: "p99", values: nano(series.lateness[0]), colour: "purple", width: 1.75 },
      { name: "max", values: nano(series.lateness[1]), colour: "grey", width: 1 },
    ],
    height: 180,
  });
  return section(
    "Generator",
    pair(cpu, late),
    facts([
      ["CPU time", duration(figures.cpu_ns)],
      ["a request", figures.sent > 0 && duration(figures.cpu_ns / figures.sent)],
      ["of the workers' cores", percent(figures.cpu_share)],
      ["busiest worker", percent(figures.busiest)],
      ["waited for a core", duration(figures.run_delay_ns)],
      ["memory", figures.rss_bytes > 0 && bytes(figures.rss_bytes)],
      ["workers", `${figures.threads} on ${figures.cores} ${figures.cores === 1 ? "core" : "cores"}`],
    ]),
  );
}

