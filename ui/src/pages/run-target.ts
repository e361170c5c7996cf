/** What the watched target said of itself: levels over time, all of them, settings in force. */

import type { Chart, ChartOptions, Line } from "../charts/chart";
import type { Timeline } from "../charts/time";
import { el } from "../dom";
import { bytes, bytesTick, count, duration, durationTick, number, percent, rate, tick } from "../format";
import { table } from "../table";
import type { Gauge, Target } from "./run-data";

type Unit = Gauge["unit"];

/** What a chart of a unit is called, and how its values read. */
const UNITS: Record<Unit, { title: string; y: ChartOptions["y"] }> = {
  share: { title: "Shares", y: { tick: (value) => `${Math.round(value * 100)} %`, read: percent, top: 1 / 1.08 } },
  count: { title: "Counts", y: { tick, read: number } },
  per_second: { title: "Rates", y: { tick, read: rate } },
  bytes: { title: "Bytes", y: { tick: bytesTick, read: bytes } },
  seconds: { title: "Times", y: { tick: (s) => durationTick(s * 1e9), read: (s) => duration(s * 1e9) } },
};

const COLOURS = ["blue", "orange", "green", "purple", "red", "sky"];

/** Levels this far apart do not share a scale. */
const SPREAD = 25;

function title(name: string): string {
  return name.replaceAll("_", " ");
}

/** Gauges that read well on one scale: of a unit, and of like size. */
function groups(gauges: Gauge[], unit: Unit): Gauge[][] {
  const mine = gauges.filter((gauge) => gauge.unit === unit && gauge.values);
  if (unit !== "share") mine.sort((a, b) => b.max - a.max);
  const made: Gauge[][] = [];
  for (const gauge of mine) {
    const group = made.at(-1);
    const top = group?.[0];
    const near = top && (unit === "share" || gauge.max > top.max / SPREAD);
    if (group && near && group.length < COLOURS.length) group.push(gauge);
    else made.push([gauge]);
  }
  return made;
}

/** The charts. */
export function levels(target: Target, time: Timeline): Chart[] {
  const units = Object.keys(UNITS) as Unit[];
  return units.flatMap((unit) => {
    const made = groups(target.gauges, unit);
    return made.map((group, at) => {
      const [only] = group;
      const { title: called, y } = UNITS[unit];
      // The source tells apart what has one name.
      const twice = (gauge: Gauge): boolean => group.some((other) => other !== gauge && other.name === gauge.name);
      const lines = group.map((gauge, i): Line => ({
        name: twice(gauge) ? `${title(gauge.name)}, ${target.sources[gauge.source]}` : title(gauge.name),
        values: gauge.values ?? [],
        colour: COLOURS[i] ?? "grey",
        ...(group.length === 1 && { fill: 0.14 }),
      }));
      const several = made.length > 1 ? `${called}, ${at + 1}` : called;
      return time.chart({ title: group.length === 1 && only ? title(only.name) : several, y, lines, height: 170 });
    });
  });
}

/** Every level of the target in figures. */
export function gauges(target: Target): HTMLElement {
  const read = (row: Gauge, value: number): string => UNITS[row.unit].y.read(value);
  const source = (row: Gauge): string => target.sources[row.source] ?? "";
  const list = table(target.gauges, [
    { name: "Level", show: (row) => title(row.name), key: (row) => row.name },
    { name: "mean", title: "After the warm-up", show: (row) => read(row, row.mean), number: true },
    { name: "max", show: (row) => read(row, row.max), number: true },
    { name: "Source", show: source, key: (row) => row.source },
  ]);
  const parts = [
    target.gauges.some((gauge) => !gauge.values) && "Levels that never changed are not drawn, nor more than 40.",
    target.more_gauges > 0 && `${count(target.more_gauges)} more levels are in the JSON output.`,
    target.lost && "The target has more levels than gake keeps.",
  ];
  const note = parts.filter((part) => part !== false).join(" ");
  return el("div", {}, list, note !== "" && el("p", { class: "note" }, note));
}

/** The settings in force. */
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
