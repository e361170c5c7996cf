/** The page of a search: the capacity, its confidence, and the evidence. */

import { Bar } from "../charts/bar";
import { header } from "../charts/header";
import { el } from "../dom";
import { count, duration, number, rate } from "../format";
import { table } from "../table";
import { explores, ladder, map, percentile, steps } from "./find-charts";
import type { Find, FindData, Step } from "./find-data";
import { card, facts, pair, section, slug, tile } from "./elements";

/** The outcomes in words. */
const OUTCOMES: Record<Step["outcome"], string> = {
  pass: "✔ pass",
  fail: "✘ fail",
  inconclusive: "inconclusive",
  limited: "limited",
  contaminated: "contaminated",
  cold: "cold",
};

/** Draws the page. */
export function find(root: HTMLElement, data: FindData): void {
  const { find: found } = data;
  document.title = `gake find: ${found.target}`;
  const top = bar(found);
  root.before(top.element);
  root.append(
    header({ brand: "gake find", title: found.target }),
    el("div", { class: "first" }, plan(data), verdict(data), tiles(found)),
  );
  if (data.next.length > 0) root.append(list("What to do next", data.next));
  if (found.overloaded_steps > 0) root.append(causes(data));
  if (data.notes.length > 0) root.append(list("Findings", data.notes));
  const evidence = steps(found);
  const figure = percentile(found);
  if (evidence) root.append(section("Objective over load", figure && figure.element, evidence.element));
  if (found.answer.ladder.length > 0) root.append(scaling(found));
  if (found.map) {
    const lines = data.beyond.map(({ good, text }) => el("li", { class: good ? "" : "bad" }, text));
    root.append(section("Beyond the capacity", el("ul", { class: "said" }, ...lines), pair(...map(found.map.stairs))));
  }
  root.append(section("Steps", all(found), data.more_steps > 0 && el("p", { class: "note" }, `The first ${count(data.more_steps)} steps are in the JSON output.`)));
  root.append(el("footer", {}, `gake ${data.gake}. Drag over a chart to zoom, double-click to reset.`));
  top.link(root);
}

const STATES = {
  capacity: ["valid", "✔ Capacity found"],
  at_least: ["suspect", "▲ At least"],
  infeasible: ["invalid", "✘ No capacity"],
  unknown: ["invalid", "✘ Unknown"],
} as const;

/** The sticky bar. */
function bar({ answer, dimension, objectives }: Find): Bar {
  const [state, text] = STATES[answer.found];
  const shown = (value: number | null): string => (value === null ? "–" : level(dimension, value));
  const interval = answer.low !== null && answer.high !== null ? [{ name: "95 %", value: `${shown(answer.low)} – ${shown(answer.high)}` }] : [];
  return new Bar(
    [{ text, state, title: objectives.join(", ") }],
    [
      { name: "capacity", value: answer.found === "infeasible" ? "none" : shown(answer.capacity) },
      ...interval,
      ...(answer.safe === null ? [] : [{ name: "plan with", value: shown(answer.safe) }]),
    ],
  );
}

/** A level of the dimension, in words. */
function level(dimension: Find["dimension"], value: number): string {
  if (dimension === "rate") return rate(value);
  if (dimension === "connect-rate") return `${rate(value)} connections`;
  if (dimension === "tls-handshakes") return `${rate(value)} TLS handshakes`;
  const whole = Math.round(value);
  return `${count(whole)} ${whole === 1 ? dimension.slice(0, -1) : dimension}`;
}

function plan(data: FindData): HTMLElement {
  const { objectives, arrivals, budget_s, precision } = data.find;
  const started = data.started.replace("T", " ").replace("Z", " UTC");
  return el(
    "div",
    { class: "plan" },
    el("p", {}, `The highest load with ${objectives.join(" and ")}, to ${number(precision * 100)} % in ${duration(budget_s * 1e9)}, ${arrivals} arrivals`),
    el("p", { class: "note" }, `${started}, ended ${data.ended}`),
  );
}

function verdict({ find: found }: FindData): HTMLElement {
  const { answer, dimension } = found;
  const at = answer.capacity === null ? "" : level(dimension, answer.capacity);
  const [state, head, tail] = {
    capacity: ["valid", `✔ Holds ${at} with ${found.objectives.join(" and ")}`, answer.low !== null && answer.high !== null ? ` (95 %: ${level(dimension, answer.low)} to ${level(dimension, answer.high)})` : ""],
    at_least: ["suspect", `▲ At least ${at}`, answer.why ? `: ${answer.why}` : ""],
    infeasible: ["invalid", "✘ No capacity", `: the objectives do not hold at ${at} either`],
    unknown: ["invalid", "✘ Unknown", answer.why ? `: ${answer.why}` : ""],
  }[answer.found] as [string, string, string];
  return el(
    "section",
    { class: "verdict", id: "verdict", "data-verdict": state, "aria-label": "Verdict" },
    el("p", { class: "line" }, el("strong", {}, head), tail),
  );
}

function tiles({ answer, dimension }: Find): HTMLElement {
  const shown = (value: number | null): string => (value === null ? "–" : level(dimension, value));
  const [low, high] = [answer.low, answer.high];
  const half = low !== null && high !== null && low > 0 ? Math.sqrt(high / low) - 1 : null;
  return el(
    "section",
    { class: "tiles three", "aria-label": "Headline figures" },
    card(
      "Capacity",
      el("div", { class: "row" }, tile("median", answer.found === "infeasible" ? "none" : shown(answer.capacity)), tile("95 % from", shown(low)), tile("to", shown(high)), tile("±", half === null ? "–" : `${(half * 100).toFixed(1)} %`)),
    ),
    card("Plan with", el("div", { class: "row" }, tile("the true capacity is higher with 95 % confidence", shown(answer.safe)))),
    card(
      "Target",
      el(
        "div",
        { class: "row" },
        tile("response without load", answer.unloaded_s > 0 ? duration(answer.unloaded_s * 1e9) : "–"),
        tile("most in a closed loop", answer.throughput_max > 0 ? rate(answer.throughput_max) : "–"),
        tile("bound by", answer.bound_by ?? "–"),
      ),
    ),
  );
}

/** The causes that limited the target, with advice. */
function causes({ pool, find: { causes: all, overloaded_steps: steps } }: FindData): HTMLElement {
  const items = [...all, ...(pool ? [pool] : [])].map((cause) =>
    el(
      "li",
      {},
      el("code", {}, cause.id),
      cause === pool ? " by the ladder of users" : ` in ${count(cause.steps)} of ${count(steps)} steps at the limit`,
      el("p", {}, cause.evidence),
      el("p", { class: "advice" }, cause.advice),
      el("p", { class: "check" }, `check: ${cause.check}`),
    ),
  );
  const none = el("p", { class: "empty" }, "No known cause matched; --watch the target to see more.");
  return el("section", { class: "findings", id: "what-limits-it" }, el("h2", {}, "What limits it"), items.length > 0 ? el("ul", {}, ...items) : none);
}

function list(title: string, texts: string[]): HTMLElement {
  return el("section", { class: "findings", id: slug(title) }, el("h2", {}, title), el("ul", {}, ...texts.map((text) => el("li", {}, text))));
}

/** The ladder and the fitted models. */
function scaling(found: Find): HTMLElement {
  const { scaling: law, pool } = found;
  const ranged = (value: { value: number; low: number; high: number | null }, show: (n: number) => string): string =>
    `${show(value.value)} (${show(value.low)} to ${value.high === null ? "∞" : show(value.high)})`;
  const small = (n: number): string => Number(n.toPrecision(3)).toString();
  return section(
    "Scaling",
    pair(...ladder(found)),
    law &&
      facts([
        ["λ, of one user", ranged(law.gamma, rate)],
        ["σ, contention", ranged(law.sigma, small)],
        ["κ, coherency", ranged(law.kappa, small)],
        ["peak", law.peak_determined && law.peak_users && law.peak_throughput ? `${rate(law.peak_throughput.value)} with ${ranged(law.peak_users, number)} in flight` : "not determined by the steps"],
      ]) || false,
    pool &&
      el(
        "p",
        { class: "note" },
        `Throughput peaks at ${rate(pool.throughput)} while one request takes ${duration(pool.service_s * 1e9)}: about ${ranged(pool.slots, number)} are served concurrently. A pool of that size (threads, connections to a database) would be the limit.`,
      ) || false,
  );
}

/** Every step. */
function all(found: Find): HTMLElement {
  const worst = (row: Step): number => Math.max(0, ...row.of_allowed.map((ratio) => ratio ?? Infinity));
  return table(
    found.steps.map((step, i) => ({ ...step, i: i + 1 })),
    [
      { name: "Step", show: (row) => `${row.i} ${row.purpose}`, key: (row) => row.i },
      { name: "load", show: (row) => (row.load === "rate" ? rate(row.asked) : level(row.load, row.asked)), key: (row) => row.asked, number: true },
      { name: "measured", show: (row) => duration(row.measured_s * 1e9), number: true },
      { name: "requests", show: (row) => count(row.due), key: (row) => row.due, number: true },
      { name: "errors", show: (row) => count(row.errors), key: (row) => row.errors, number: true },
      { name: "ok", show: (row) => rate(row.throughput), key: (row) => row.throughput, number: true },
      { name: "response", title: "Mean of ok responses", show: (row) => (row.response_s > 0 ? duration(row.response_s * 1e9) : "–"), key: (row) => row.response_s, number: true },
      { name: "of allowed", title: "The missed share of what the objectives allow; above 1 they are missed", show: (row) => (explores(row) || row.of_allowed.length === 0 ? "–" : Number.isFinite(worst(row)) ? number(worst(row)) : "∞"), key: worst, number: true },
      {
        name: "",
        show: (row) => el("span", { title: row.limited ?? undefined, class: row.outcome === "pass" ? "good" : "" }, explores(row) ? "" : OUTCOMES[row.outcome]),
        bad: (row) => !explores(row) && row.outcome === "fail",
      },
    ],
  );
}
