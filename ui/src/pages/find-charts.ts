/** The charts of a capacity search. */

import { Chart } from "../charts/chart";
import { faded } from "../charts/draw";
import type { Band, ChartOptions, Line } from "../charts/options";
import { rounds } from "../charts/scales";
import { duration, durationTick, number, rate, tick } from "../format";
import { colour } from "../theme/theme";
import type { Find, Stair, Step } from "./find-data";

/** Values outside these ratios are drawn at the edge. */
const EDGES = [1e-3, 1e2] as const;

/** Points of a curve. */
const CURVE = 120;

/** A ratio of loads from which the axis is logarithmic. */
const SPREAD = 12;

const OUTCOMES: [Step["outcome"], string, string][] = [
  ["pass", "pass", "green"],
  ["fail", "fail", "red"],
  ["inconclusive", "inconclusive", "orange"],
  ["limited", "limited", "grey"],
  ["contaminated", "contaminated", "purple"],
  ["cold", "cold", "blue"],
];

/** Whether a step only explores where to measure. */
export function explores(step: Step): boolean {
  return ["ladder", "probe", "map"].includes(step.purpose);
}

/** `n` values in a geometric sequence. */
function ratios(from: number, to: number, n: number): number[] {
  return Array.from({ length: n + 1 }, (_, i) => from * (to / from) ** (i / n));
}

/** An axis of loads, logarithmic for a wide range. */
function axis(values: number[], read: (index: number, x: number) => string): ChartOptions["x"] {
  const seen = values.filter((value) => value > 0);
  const [low, high] = [Math.min(...seen), Math.max(...seen)];
  const log = high / low > SPREAD;
  const room = (high - low) * 0.06 || high * 0.1;
  const range = log ? ([low / 1.15, high * 1.15] as const) : ([Math.max(low - room, 0), high + room] as const);
  return { values, range, log, ...(log && { splits: rounds(range[0], range[1], 8) }), tick, read };
}

/** Each step: the missed share of the allowance over the load, with the fitted curve. */
export function steps(found: Find): Chart | null {
  const { answer, dimension } = found;
  // Streams are measured in users.
  const own = dimension === "streams" ? "users" : dimension;
  const load = dimension === "connect-rate" || dimension === "tls-handshakes" ? "rate" : own;
  const binding = answer.bound_by === null ? -1 : found.objectives.indexOf(answer.bound_by);
  const missed = (step: Step): number => {
    const own = binding < 0 ? step.of_allowed : step.of_allowed.slice(binding, binding + 1);
    return Math.max(0, ...own.map((ratio) => ratio ?? Infinity));
  };
  const counted = found.steps.filter(
    (step) => step.load === load && !explores(step) && step.level > 0 && step.of_allowed.length > 0,
  );
  if (counted.length === 0) return null;
  counted.sort((a, b) => a.level - b.level);
  const levels = counted.map((step) => step.level);
  const { capacity, low, high, safe, steepness } = answer;
  const known = capacity !== null && low !== null && high !== null && steepness !== null && low > 0;
  const grid = known ? ratios(Math.min(levels[0] ?? low, low), Math.max(levels.at(-1) ?? high, high), CURVE) : [];
  const places = [...counted.map((step) => ({ at: step.level, step })), ...grid.map((at) => ({ at, step: null }))];
  places.sort((a, b) => a.at - b.at);
  const within = (value: number): number => Math.min(Math.max(value, EDGES[0]), EDGES[1]);
  const curve = (name: string, end: number, rest: Partial<Line>): Line => ({
    name,
    values: places.map(({ at }) => {
      const value = (at / end) ** (steepness ?? 1);
      // The edges of the band must have a value wherever the other has one: nothing is filled beside a gap.
      return rest.width === 0 || (value >= EDGES[0] && value <= EDGES[1]) ? within(value) : null;
    }),
    colour: "blue",
    ...rest,
  });
  const points = OUTCOMES.filter(([outcome]) => counted.some((step) => step.outcome === outcome));
  const lines: Line[] = [
    { name: "allowed", values: places.map(() => 1), colour: "grey", dash: [5, 3], width: 1.5 },
    ...(known
      ? [curve("likely", capacity, { width: 2 }), curve("95 %, low", high, { width: 0 }), curve("95 %, high", low, { width: 0 })]
      : []),
    ...points.map(([outcome, name, hue]): Line => ({
      name,
      values: places.map(({ step }) => (step?.outcome === outcome ? within(missed(step)) : null)),
      colour: hue,
      points: 8,
    })),
  ];
  const bands: Band[] = known ? [{ upper: 3, lower: 2, colour: "blue", fill: 0.14 }] : [];
  const isRate = load === "rate";
  const read = (value: number): string => (isRate ? rate(value) : number(value));
  const shown = (step: Step): string => `${step.purpose}, ${OUTCOMES.find(([name]) => name === step.outcome)?.[1]}`;
  const objective = answer.bound_by ?? "the worst of the objectives";
  return new Chart({
    title: "Missed, as a share of the allowance",
    note: `Each point is a step; above 1 it misses ${objective}.${known ? " The band: 95 % confidence for the curve. Shaded: the interval of the capacity; the line: the level to plan with." : ""}`,
    x: axis(places.map((place) => place.at), (i, at) => {
      const step = places[i]?.step;
      return step ? `${read(at)}: ${shown(step)}` : read(at);
    }),
    y: {
      tick: (value) => `${Number(value.toPrecision(2))}`,
      read: (value) => (value <= EDGES[0] ? `≤ ${EDGES[0]}` : value >= EDGES[1] ? `≥ ${EDGES[1]}` : number(value)),
      always: "log",
    },
    lines,
    bands,
    height: 340,
    under: (plot) => {
      if (!known) return;
      const { ctx, bbox } = plot;
      const place = (value: number): number => Math.min(Math.max(plot.valToPos(value, "x", true), bbox.left), bbox.left + bbox.width);
      ctx.save();
      ctx.fillStyle = faded("green", 0.13);
      ctx.fillRect(place(low), bbox.top, Math.max(place(high) - place(low), 1), bbox.height);
      ctx.fillStyle = colour("green");
      if (safe !== null) ctx.fillRect(place(safe), bbox.top, devicePixelRatio, bbox.height);
      ctx.restore();
    },
  });
}

/** An axis of times, logarithmic for a wide range. */
function times(values: (number | null)[]): ChartOptions["y"] {
  const seen = values.filter((value) => value !== null && value > 0) as number[];
  const far = Math.max(...seen) > 30 * Math.min(...seen);
  return { tick: (s) => durationTick(s * 1e9), read: (s) => duration(s * 1e9), log: far ? "start" : "offer" };
}

/** The percentile that the objective bounds, over the load; null without such an objective. */
export function percentile(found: Find): Chart | null {
  const { answer, objectives, dimension } = found;
  const load = ["users", "streams"].includes(dimension) ? "users" : dimension === "connections" ? dimension : "rate";
  const measured = found.steps.filter((step) => step.load === load && !explores(step) && step.level > 0);
  const bound = answer.bound_by === null ? -1 : objectives.indexOf(answer.bound_by);
  const has = (number: number): boolean => measured.some((step) => typeof step.percentiles_s[number] === "number");
  const number = bound >= 0 && has(bound) ? bound : objectives.findIndex((_, i) => has(i));
  if (number < 0) return null;
  measured.sort((a, b) => a.level - b.level);
  const values = measured.map((step) => step.percentiles_s[number] ?? null);
  const objective = objectives[number] ?? "";
  const read = (value: number): string => (load === "rate" ? rate(value) : tick(value));
  return new Chart({
    title: objective.split(/[<=]/)[0] ?? objective,
    note: `The figure of ${objective} in each step, over all requests due.`,
    x: axis(measured.map((step) => step.level), (_i, at) => read(at)),
    y: times(values),
    lines: [{ name: "measured", values, colour: "purple", points: 8, span: true }],
    height: 260,
  });
}

/** Throughput and response time over the number in flight, with the scalability law. */
export function ladder(found: Find): Chart[] {
  const { scaling: law } = found;
  const rungs = found.answer.ladder.filter((rung) => rung.users > 0).sort((a, b) => a.users - b.users);
  const ends = [rungs[0]?.users ?? 1, rungs.at(-1)?.users ?? 1] as const;
  const grid = law && ends[1] > ends[0] ? ratios(ends[0], ends[1], CURVE) : [];
  const places = [...rungs.map((rung) => ({ at: rung.users, rung })), ...grid.map((at) => ({ at, rung: null }))];
  places.sort((a, b) => a.at - b.at);
  const x = axis(places.map((place) => place.at), (_i, at) => `${number(at)} in flight`);
  const fit = (n: number): number =>
    law ? (law.gamma.value * n) / (1 + law.sigma.value * (n - 1) + law.kappa.value * n * (n - 1)) : 0;
  const group = { x, height: 260 };
  return [
    new Chart({
      ...group,
      title: "Throughput",
      note: `Ok responses a second against users, or requests in flight${law ? "; the curve is the universal scalability law" : ""}.`,
      y: { tick, read: rate, log: "offer" },
      lines: [
        ...(law ? [{ name: "law", values: places.map(({ at }) => fit(at)), colour: "blue", width: 2 }] : []),
        { name: "measured", values: places.map(({ rung }) => rung?.throughput ?? null), colour: "orange", points: 8 },
      ],
    }),
    new Chart({
      ...group,
      title: "Mean response time",
      note: "Of ok responses.",
      y: times(rungs.map((rung) => rung.response_s)),
      lines: [{ name: "measured", values: places.map(({ rung }) => rung?.response_s ?? null), colour: "orange", points: 8, span: true }],
    }),
  ];
}

/** Goodput and response time over the load, on the way up and down. */
export function map(stairs: Stair[]): Chart[] {
  const levels = [...new Set(stairs.map((stair) => stair.level))].filter((level) => level > 0).sort((a, b) => a - b);
  if (levels.length === 0) return [];
  const x = axis(levels, (_i, at) => `${rate(at)} asked`);
  const leg = (name: Stair["leg"], of: (stair: Stair) => number | null): (number | null)[] =>
    levels.map((level) => {
      const stair = stairs.find((one) => one.leg === name && one.level === level);
      return stair ? of(stair) : null;
    });
  const good = (stair: Stair): number => stair.good;
  const took = (stair: Stair): number | null => (stair.response_s > 0 ? stair.response_s : null);
  const legs = (of: (stair: Stair) => number | null): Line[] => [
    { name: "up", values: leg("up", of), colour: "blue", width: 2, span: true, marks: 6 },
    { name: "down", values: leg("down", of), colour: "orange", width: 2, span: true, marks: 6 },
  ];
  return [
    new Chart({
      title: "Goodput",
      note: "Ended ok and in time, against the planned rate, on the way up and down.",
      x,
      y: { tick, read: rate },
      lines: [{ name: "asked", values: levels, colour: "grey", dash: [5, 3], width: 1.5 }, ...legs(good)],
      height: 260,
    }),
    new Chart({
      title: "Response time",
      note: "The mean of ok responses.",
      x,
      y: times(stairs.map(took)),
      lines: legs(took),
      height: 260,
    }),
  ];
}
