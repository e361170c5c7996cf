/** The tables of a run's page. */

import { el } from "../dom";
import { clock, count, duration, percent } from "../format";
import { table, type Column } from "../table";
import type { Label, Latency, RunData } from "./run-data";

/** What each latency is. */
const METRICS: Record<string, [string, string]> = {
  response: ["response", "due to last byte; time-outs, unfinished and dropped as having waited as long"],
  ok_response: ["response, ok", "the same, of requests that met the expectation"],
  service: ["service", "first byte written to last byte read"],
  first_byte: ["first byte", "first byte written to first byte read"],
  download: ["download", "first byte read to last byte read"],
  connect: ["connect", "opening a connection"],
  tls: ["TLS", "the handshake"],
  blocked: ["blocked", "waiting for a free connection, of requests that had to"],
  lateness: ["lateness", "due to fired, the generator's own delay"],
  fault_response: ["early faults", "due to end, of requests that a fault ended; in no other row"],
  rtt: ["round trip", "TCP's smoothed round-trip time, sampled"],
};

const QUANTILES = ["p50", "p90", "p95", "p99", "p99.9"];

function quantile(latency: Latency, i: number): string {
  if (latency.count === 0) return "–";
  return `${i < latency.trusted ? "" : "~"}${duration(latency.quantiles[i] ?? 0)}`;
}

/** Every latency that was seen. */
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

/** Each endpoint, in the order that the reader chooses. */
export function endpoints(data: RunData): HTMLElement {
  const by = (i: number) => (row: Label): number => row.response.quantiles[i] ?? 0;
  const columns: Column<Label>[] = [
    { name: "Endpoint", show: (row) => row.name, key: (row) => row.name },
    { name: "sent", show: (row) => count(row.sent), key: (row) => row.sent, number: true },
    { name: "not ok", title: "Failed or unfinished", show: (row) => count(row.failed), key: (row) => row.failed, number: true, bad: (row) => row.failed > 0 },
    { name: "share", title: "Failed or unfinished, of those sent", show: (row) => percent(row.sent > 0 ? row.failed / row.sent : 0), key: (row) => (row.sent > 0 ? row.failed / row.sent : 0), number: true },
    ...[0, 1, 3].map((i): Column<Label> => ({ name: QUANTILES[i] ?? "", title: "Response time", show: (row) => quantile(row.response, i), key: by(i), number: true })),
    { name: "max", title: "Response time", show: (row) => duration(row.response.max), key: (row) => row.response.max, number: true },
    { name: "mean", title: "Response time", show: (row) => duration(row.response.mean), key: (row) => row.response.mean, number: true },
    { name: "service p99", show: (row) => duration(row.service_p99), key: (row) => row.service_p99, number: true },
  ];
  const more = data.more_labels > 0 && el("p", { class: "note" }, `and ${count(data.more_labels)} more with fewer requests; JSON has them all`);
  return el("div", {}, table(data.labels, columns), more);
}

/** Responses by status. */
export function statuses(data: RunData): HTMLElement {
  const total = data.statuses.reduce((sum, row) => sum + row.count, 0);
  if (total === 0) return el("p", { class: "empty" }, "Nothing was answered.");
  return table(data.statuses, [
    { name: "Status", show: (row) => String(row.code), bad: (row) => !row.ok },
    { name: "responses", show: (row) => count(row.count), number: true },
    { name: "share", show: (row) => percent(row.count / total), number: true },
    { name: "", show: (row) => (row.ok ? "as expected" : "not expected"), bad: (row) => !row.ok },
  ]);
}

/** Faults, and what to do. */
export function faults(data: RunData): HTMLElement {
  if (data.faults.length === 0) return el("p", { class: "empty" }, "No faults: every request was answered.");
  return table(data.faults, [
    { name: "Fault", show: (row) => el("span", {}, el("b", {}, row.text), el("small", {}, row.advice)) },
    { name: "requests", show: (row) => count(row.count), number: true },
  ]);
}

/** What happened beside requests. */
export function events(data: RunData): HTMLElement {
  return table(data.events, [
    { name: "At", show: (row) => clock(row.s), number: true },
    { name: "What", show: (row) => row.text },
  ]);
}
