/** The tables of a run's page. */

import { el } from "../dom";
import { clock, count, duration, percent } from "../format";
import { table, type Column } from "../table";
import { section } from "./elements";
import type { Agent, Latency, MetricRow, RunData } from "./run-data";
import { quantile } from "./run-top";

/** Names and explanations of the latencies. */
const METRICS: Record<string, [string, string]> = {
  response: ["response", "due to last byte; timeouts, unfinished and dropped requests count as lower bounds"],
  ok_response: ["response, ok", "the same, of requests that met the expectation"],
  service: ["service", "first byte written to last byte read"],
  first_byte: ["first byte", "first byte written to first byte read"],
  download: ["download", "first byte read to last byte read"],
  connect: ["connect", "opening a connection"],
  tls: ["TLS", "the handshake"],
  blocked: ["blocked", "waiting for a free connection, of requests that waited"],
  lateness: ["lateness", "due to fired, the generator's own delay"],
  fault_response: ["early faults", "due to end, of requests that a fault ended; in no other row"],
  rtt: ["round trip", "TCP's smoothed estimate, sampled; includes delayed acknowledgements"],
};

const QUANTILES = ["p50", "p90", "p95", "p99", "p99.9"];

/** Every latency with samples. */
export function latencies(data: RunData): HTMLElement {
  const columns: Column<Latency>[] = [
    {
      name: "Latency",
      show: (row) => {
        const [name, note] = METRICS[row.metric] ?? [row.metric, ""];
        return el("span", {}, el("b", {}, name), el("small", {}, note));
      },
    },
    { name: "count", show: (row) => count(row.count), number: true },
    ...QUANTILES.map((name, i): Column<Latency> => ({ name, show: (row) => quantile(row, i), number: true })),
    { name: "max", show: (row) => (row.count > 0 ? duration(row.max) : "–"), number: true },
    { name: "mean", show: (row) => (row.count > 0 ? duration(row.mean) : "–"), number: true },
  ];
  const guessed = data.latencies.some((row) => row.trusted < QUANTILES.length && row.count > 0);
  return el("div", {}, table(data.latencies, columns), guessed && el("p", { class: "note" }, "~ fewer than 10 samples lie beyond it"));
}

/** Responses by status. */
export function statuses(data: RunData): HTMLElement {
  const total = data.statuses.reduce((sum, row) => sum + row.count, 0);
  if (total === 0) return el("p", { class: "empty" }, "There was no response.");
  return table(data.statuses, [
    { name: "Status", show: (row) => String(row.code), bad: (row) => !row.ok },
    { name: "responses", show: (row) => count(row.count), number: true },
    { name: "share", show: (row) => percent(row.count / total), number: true },
    { name: "", show: (row) => (row.ok ? "as expected" : "not expected"), bad: (row) => !row.ok },
  ]);
}

/** Faults with advice. */
export function faults(data: RunData): HTMLElement {
  if (data.faults.length === 0) return el("p", { class: "empty" }, "No faults: every request got a response.");
  return table(data.faults, [
    { name: "Fault", show: (row) => el("span", {}, el("b", {}, row.text), el("small", {}, row.advice)) },
    { name: "requests", show: (row) => count(row.count), number: true },
  ]);
}

/** Bodies of failed responses. */
export function bodies(data: RunData): HTMLElement {
  return table(data.failed_bodies, [
    { name: "Body of failed responses", show: (row) => el("code", {}, row.text === "" ? "(empty)" : row.text) },
    { name: "status", show: (row) => String(row.status), number: true },
    { name: "responses", show: (row) => count(row.count), number: true },
  ]);
}

/** A section per heading of checks and custom metrics. */
export function metrics(data: RunData): HTMLElement[] {
  const headings = [...new Set(data.metrics.map((row) => row.section))];
  const sections = headings.map((heading) => {
    const rows = data.metrics.filter((row) => row.section === heading);
    return section(heading.charAt(0).toUpperCase() + heading.slice(1), metricTable(heading, rows));
  });
  const more = data.more_metrics > 0 && el("p", { class: "note" }, `and ${count(data.more_metrics)} more; JSON has them all`);
  if (more) sections.at(-1)?.append(more);
  return sections;
}

/** The heading of the first column. */
const SUBJECTS: Record<string, string> = { checks: "Check", "requests by name": "Name", groups: "Group", iterations: "Iterations" };

/** The rows of a section; failed checks come first. */
function metricTable(heading: string, rows: MetricRow[]): HTMLElement {
  const name = (row: MetricRow): string => (row.name === "" ? "(no name)" : row.name);
  const mark = ({ passed }: MetricRow): string => (passed === undefined ? "" : passed ? "✔ " : "✘ ");
  const failed = ({ passed }: MetricRow): boolean => passed === false;
  // The figures of checks and requests start with their counts.
  const counted = heading === "checks" || heading === "requests by name";
  const samples: Column<MetricRow> = { name: "samples", show: (row) => count(row.samples), number: true };
  return table([...rows].sort((a, b) => Number(failed(b)) - Number(failed(a))), [
    { name: SUBJECTS[heading] ?? "Metric", show: (row) => `${mark(row)}${name(row)}`, bad: failed },
    ...(counted ? [] : [samples]),
    { name: "", show: (row) => row.figures.split(/ {2,}/).join(" · "), bad: failed },
  ]);
}

/** The agents of a fleet. */
export function agents(data: RunData): HTMLElement {
  const late = (row: Agent): string => (row.sent > 0 ? duration(row.lateness_p99_ns) : "–");
  const list = table(data.agents, [
    { name: "Agent", show: (row) => row.name },
    {
      name: "verdict",
      show: (row) => el("span", {}, el("b", {}, row.validity), el("small", {}, row.reasons.join("; "))),
      bad: (row) => row.validity !== "valid",
    },
    { name: "sent", show: (row) => count(row.sent), number: true },
    { name: "p99 lateness", show: late, number: true },
    { name: "lost at", show: (row) => (row.lost_s === null ? "" : clock(row.lost_s)), number: true, bad: () => true },
  ]);
  const more = data.more_agents > 0 && el("p", { class: "note" }, `and ${count(data.more_agents)} more; JSON has them all`);
  return el("div", {}, list, more);
}

/** Events other than requests. */
export function events(data: RunData): HTMLElement {
  return table(data.events, [
    { name: "At", show: (row) => clock(row.s), number: true },
    { name: "What", show: (row) => row.text },
  ]);
}
