/** The watched target: levels over time, all levels in a table, settings. */

import type { ChartOptions, Mark } from "../charts/options";
import type { Placed } from "../charts/redraw";
import type { Timeline, TimeLine } from "../charts/time";
import { el } from "../dom";
import { bytes, bytesTick, count, duration, durationTick, number, percent, rate, tick } from "../format";
import { table } from "../table";
import type { Gauge, RunData, Target } from "./run-data";
import { marks } from "./run-marks";

type Unit = Gauge["unit"];

/** The formats of the units. */
const UNITS: Record<Unit, ChartOptions["y"]> = {
  share: { tick: (value) => `${Math.round(value * 100)} %`, read: percent, top: 1 / 1.08 },
  count: { tick, read: number },
  per_second: { tick, read: rate },
  bytes: { tick: bytesTick, read: bytes },
  seconds: { tick: (s) => durationTick(s * 1e9), read: (s) => duration(s * 1e9) },
};

/** The name of a level, and of the group that it is shown with. */
const WORDS: Record<string, [string, string]> = {
  cpu: ["CPU, of all cores", "Processor"],
  cores: ["CPU, in cores", "Processor"],
  context_switches: ["context switches", "Scheduling"],
  load1: ["load average", "Scheduling"],
  rss: ["resident memory", "Memory"],
  jvm_memory: ["JVM memory", "Memory"],
  memory_available: ["memory available", "Memory"],
  threads: ["threads", "Threads"],
  goroutines: ["goroutines", "Threads"],
  descriptors: ["file descriptors, of the limit", "Use of limits"],
  descriptors_open: ["open file descriptors", "Connections and descriptors"],
  connections: ["connections, of the limit", "Use of limits"],
  established: ["established connections", "Connections and descriptors"],
  time_wait: ["connections in TIME_WAIT", "Connections and descriptors"],
  close_wait: ["connections in CLOSE_WAIT", "Connections and descriptors"],
  syn_recv: ["connections in SYN_RECV", "Connections and descriptors"],
  tcp_sockets: ["TCP sockets", "Connections and descriptors"],
  accept_queue: ["accept queue", "Queues"],
  in_flight: ["requests in flight", "Queues"],
  pool_queue: ["requests waiting for a thread", "Queues"],
  db_pool_pending: ["requests waiting for a database connection", "Queues"],
  pool: ["worker threads busy, of all", "Use of limits"],
  db_pool: ["database connections in use, of all", "Use of limits"],
  pool_busy: ["busy worker threads", "Workers"],
  db_connections: ["connections to the database, of those allowed", "Use of limits"],
  db_open: ["connections to the database", "Connections and descriptors"],
  db_running: ["active database connections", "Workers"],
  db_lock_waits: ["database connections waiting for a lock", "Queues"],
  db_io_waits: ["database connections waiting for a disk", "Queues"],
  db_pool_busy: ["database connections in use", "Workers"],
  listen_overflows: ["accept queue overflows", "Refused by the kernel"],
  listen_drops: ["dropped connection attempts", "Refused by the kernel"],
  retransmits: ["TCP segments retransmitted", "Refused by the kernel"],
};

const COLOURS = ["blue", "orange", "green", "purple", "red", "sky"];

/** A ratio of levels from which they do not share a scale. */
const SPREAD = 25;

/** The name of a level. */
function words(name: string): string {
  return WORDS[name]?.[0] ?? name.replaceAll("_", " ");
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Gauges that fit one scale: same theme, same unit, similar size. */
function groups(gauges: Gauge[]): Gauge[][] {
  const theme = (gauge: Gauge): string => WORDS[gauge.name]?.[1] ?? "";
  const drawn = gauges.filter((gauge) => gauge.values);
  const made: Gauge[][] = [];
  for (const gauge of drawn.sort((a, b) => b.max - a.max)) {
    const fits = (group: Gauge[]): boolean => {
      const [top] = group;
      if (!top || top.unit !== gauge.unit || theme(top) !== theme(gauge) || group.length >= COLOURS.length) return false;
      return gauge.unit === "share" || gauge.max > top.max / SPREAD;
    };
    const group = made.find(fits);
    if (group) group.push(gauge);
    else made.push([gauge]);
  }
  const order = Object.values(WORDS).map(([, name]) => name);
  const place = ([first]: Gauge[]): number => (first && theme(first) ? order.indexOf(theme(first)) : order.length);
  return made.sort((a, b) => place(a) - place(b));
}

/** The charts, titled by their level or their group. */
export function levels(data: RunData, target: Target, time: Timeline): Placed[] {
  const behind = data.over?.run.target_levels?.gauges ?? [];
  return groups(target.gauges).map((group) => {
    const [first] = group as [Gauge];
    const alone = group.length === 1;
    // The source distinguishes levels of the same name.
    const twice = (gauge: Gauge): boolean => group.some((other) => other !== gauge && other.name === gauge.name);
    const lines = group.map((gauge, i): TimeLine => ({
      name: alone ? "" : twice(gauge) ? `${words(gauge.name)}, ${target.sources[gauge.source]}` : words(gauge.name),
      values: gauge.values ?? [],
      behind: behind.find((other) => other.name === gauge.name && other.unit === gauge.unit)?.values ?? undefined,
      colour: COLOURS[i] ?? "grey",
      ...(alone && { fill: 0.14 }),
    }));
    const title = alone ? capital(words(first.name)) : (WORDS[first.name]?.[1] ?? "Other levels");
    const bounds = group.flatMap((gauge): Mark[] => marks(data, `target:${gauge.name}`));
    return time.chart({ title, y: UNITS[first.unit], lines, marks: bounds, height: 170 });
  });
}

/** Every level of the target in figures. */
export function gauges(target: Target): HTMLElement {
  const read = (row: Gauge, value: number): string => UNITS[row.unit].read(value);
  const source = (row: Gauge): string => target.sources[row.source] ?? "";
  const list = table(target.gauges, [
    { name: "Level", show: (row) => capital(words(row.name)), key: (row) => words(row.name) },
    { name: "mean", title: "After the warm-up", show: (row) => read(row, row.mean), number: true },
    { name: "max", show: (row) => read(row, row.max), number: true },
    { name: "Source", show: source, key: (row) => row.source },
  ]);
  const parts = [
    target.gauges.some((gauge) => !gauge.values) && "Constant levels are not drawn; at most 40 charts are.",
    target.more_gauges > 0 && `${count(target.more_gauges)} more levels are in the JSON output.`,
    target.lost && "The target has more levels than gake keeps.",
  ];
  const note = parts.filter((part) => part !== false).join(" ");
  return el("div", {}, list, note !== "" && el("p", { class: "note" }, note));
}

/** The settings of the target. */
export function settings(target: Target): HTMLElement {
  return el(
    "div",
    {},
    table(target.settings, [
      { name: "Setting in force", show: (row) => el("code", {}, row.name), key: (row) => row.name },
      { name: "value", show: (row) => row.value, number: true },
      { name: "Source", show: (row) => target.sources[row.source] ?? "" },
    ]),
    target.more_settings > 0 &&
      el("p", { class: "note" }, `${count(target.more_settings)} more settings are in the JSON output.`),
  );
}
