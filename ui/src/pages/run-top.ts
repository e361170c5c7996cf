/** The top of a run's page: verdict, objectives, findings, headline figures. */

import type { Figure, Pill } from "../charts/bar";
import { el } from "../dom";
import { clock, count, duration, percent, rate } from "../format";
import { card, change, tile } from "./elements";
import type { Latency, Objective, RunData } from "./run-data";

const WORDS = {
  valid: ["✔", "Measurement valid", "the figures are believable"],
  suspect: ["▲", "Measurement suspect", "read the reasons before trusting the figures"],
  invalid: ["✘", "Measurement invalid", "the figures are not believable"],
} as const;

/** Whether requests were due and none of them ended ok. */
function failed(data: RunData): boolean {
  return data.figures.due > 0 && data.figures.ok === 0;
}

/** The share of errors as text. */
function errorShare(data: RunData): string {
  const { due, ok } = data.figures;
  return due > 0 ? percent((due - ok) / due) : "–";
}

/** A quantile, marked if few samples lie beyond it. */
export function quantile(latency: Latency | undefined, i: number): string {
  if (!latency || latency.count === 0) return "–";
  return `${i < latency.trusted ? "" : "~"}${duration(latency.quantiles[i] ?? 0)}`;
}

/** The progress of a live run. */
function progress({ live, elapsed_ns }: RunData): string {
  const length = live?.length_s ? ` of ${clock(live.length_s)}` : "";
  return `${clock(elapsed_ns / 1e9)}${length}`;
}

/** The pill of a live run. */
function running(data: RunData): Pill {
  return { text: `● Running ${progress(data)}`, state: "running", title: "Everything on this page covers the run so far" };
}

/** One statement of the verdict. */
interface Statement extends Pill {
  state: "valid" | "suspect" | "invalid";
  /** Its meaning, or the reason. */
  meaning: string;
  advice?: string;
}

/**
 * The statements of the verdict, the worst first: nothing succeeded, objectives missed or met, the
 * state of the target, whether the figures are believable. The order is that of the text format.
 */
function statements(data: RunData): Statement[] {
  const [mark, word, meaning] = WORDS[data.validity];
  const none = failed(data);
  const all: Statement[] = [];
  if (none) all.push({ text: "✘ Nothing succeeded", state: "invalid", ...cause(data) });
  for (const { text, state, meaning } of data.target_news) {
    all.push({ text: `${WORDS[state][0]} ${text.charAt(0).toUpperCase()}${text.slice(1)}`, state, meaning });
  }
  // Without a response a believable measurement says nothing.
  if (!none || data.validity !== "valid") all.push({ text: `${mark} ${word}`, state: data.validity, title: `${word}: ${meaning}`, meaning });
  const judged = objectivesPill(data);
  // An invalid measurement does not decide objectives.
  const first = judged?.state === "invalid" && data.validity !== "invalid" && !none;
  if (judged) all.splice(first ? 0 : all.length, 0, judged);
  const order = ["invalid", "suspect", "valid"];
  return all.sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state));
}

/** Why nothing succeeded. */
function cause({ faults, statuses }: RunData): { meaning: string; advice?: string } {
  const [fault] = faults;
  const bad = statuses.filter((status) => !status.ok).sort((a, b) => b.count - a.count)[0];
  if (fault && fault.count >= (bad?.count ?? 0)) return { meaning: fault.text, advice: fault.advice };
  return { meaning: bad ? `status ${bad.code}` : "no response", advice: fault?.advice };
}

/** Whether the objectives were met; null without objectives. */
function objectivesPill({ objectives }: RunData): Statement | null {
  const all = objectives.length;
  if (all === 0) return null;
  const failing = objectives.filter((objective) => !objective.met);
  const missed = failing.length;
  const many = all === 1 ? "Objective" : missed === 0 ? `${all} objectives` : `${missed} of ${all} objectives`;
  return {
    text: missed === 0 ? `✔ ${many} met` : `✘ ${many} missed`,
    state: missed === 0 ? "valid" : "invalid",
    link: "objectives",
    meaning: failing.map((objective) => `${objective.text} (${objective.shown})`).join(", "),
  };
}

/** The pills of the sticky bar. */
export function pills(data: RunData): Pill[] {
  if (!data.live) return statements(data);
  const nothing: Pill[] = failed(data) ? [{ text: "✘ Nothing succeeded", state: "invalid" }] : [];
  const judged = objectivesPill(data);
  return [...nothing, running(data), ...(judged ? [judged] : [])];
}

/** The figures of the sticky bar. */
export function headline(data: RunData): Figure[] {
  const response = data.latencies[0];
  const errors = data.figures.due > data.figures.ok;
  return [
    { name: "p50", value: quantile(response, 0) },
    { name: "p99", value: quantile(response, 3) },
    { name: "errors", value: errorShare(data), bad: errors },
    { name: "goodput", value: rate(data.figures.goodput) },
  ];
}

/** The plan, when it ran, and the baseline run. */
export function plan(data: RunData): HTMLElement {
  const started = data.started.replace("T", " ").replace("Z", " UTC");
  return el(
    "div",
    { class: "plan" },
    el("p", {}, data.plan),
    el("p", { class: "note" }, data.live ? `since ${started}` : `${started}, took ${duration(data.elapsed_ns)}`),
    data.over && el("p", { class: "note" }, el("i", { class: "swatch ghost" }), ` behind it, dotted: ${data.over.name}, ${data.over.run.plan}`),
  );
}

/** The verdict and its reasons, the worst news first. */
export function verdict(data: RunData): HTMLElement {
  return data.live ? verdictSoFar(data) : finalVerdict(data);
}

/** The verdict of a finished run: its first statement decides the colour. */
function finalVerdict(data: RunData): HTMLElement {
  const [worst, ...others] = statements(data);
  const say = ({ text, meaning }: Statement): string => (meaning === "" ? text : `${text}: ${meaning}`);
  const line = el("p", { class: "line" });
  if (worst) line.append(el("strong", {}, worst.text), worst.meaning === "" ? "" : `: ${worst.meaning}`);
  if (worst?.advice) line.append(el("span", { class: "advice" }, worst.advice));
  if (data.ended) line.append(` · ${data.ended}`);
  return verdictBox(worst?.state ?? data.validity, line, ...others.map((other) => el("p", { class: "note" }, say(other))), reasons(data));
}

/** The verdict of a live run. */
function verdictSoFar(data: RunData): HTMLElement {
  const [mark, word, meaning] = WORDS[data.validity];
  const line = el("p", { class: "line" }, el("strong", {}, "● Running"), `: ${progress(data)}`, data.ended && ` · ${data.ended}`);
  if (data.series.second.length === 0) return verdictBox("running", line);
  const state = failed(data) ? `nothing succeeded: ${cause(data).meaning}` : `${mark} ${word}: ${meaning}`;
  return verdictBox("running", line, el("p", { class: "note" }, `so far ${state}`), reasons(data));
}

function verdictBox(state: Pill["state"], ...children: (HTMLElement | false)[]): HTMLElement {
  return el("section", { class: "verdict", id: "verdict", "data-verdict": state, "aria-label": "Verdict" }, ...children);
}

/** Why the figures are doubtful. */
function reasons(data: RunData): HTMLElement | false {
  return data.reasons.length > 0 && el("ul", {}, ...data.reasons.map((reason) => el("li", {}, reason)));
}

/** Each objective with a meter: the used share of its allowance. */
export function objectives(data: RunData): HTMLElement | null {
  const { objectives: all } = data;
  if (all.length === 0) return null;
  const missed = all.filter((objective) => !objective.met).length;
  const some = missed < all.length ? `${missed} of ${all.length} missed` : "missed";
  const words = missed > 0 ? some : all.length === 1 ? "met" : `all ${all.length} met`;
  const row = (objective: Objective): HTMLElement =>
    el(
      "li",
      { class: objective.met ? "met" : "missed" },
      el("code", {}, objective.text),
      el("span", { class: "measured" }, objective.shown),
      el("span", { class: objective.met ? "good" : "bad" }, objective.met ? "✔ met" : "✘ missed"),
      meter(objective),
    );
  return el(
    "section",
    { class: "objectives", id: "objectives" },
    el("h2", {}, "Objectives", el("span", { class: missed === 0 ? "good" : "bad" }, ` ${words}${data.live ? " so far" : ""}`)),
    el("ul", {}, ...all.map(row)),
  );
}

/** A bar from zero to twice the bound, which is a line in its middle. */
function meter({ limit, met, used: share }: Objective): HTMLElement | null {
  if (!limit || share === null) return null;
  const fill = el("i");
  fill.style.width = `${Math.min(share, 2) * 50}%`;
  const text = share >= 9.95 ? `${share.toFixed(0)} ×` : share >= 1.995 ? `${share.toFixed(1)} ×` : `${(share * 100).toFixed(0)} %`;
  return el(
    "div",
    { class: `meter ${met ? "" : "over"} ${limit.upper ? "" : "least"}`.trim(), title: `${text} of the bound` },
    el("div", {}, fill, el("b")),
    el("small", {}, `${text} of the bound`),
  );
}

/** What limited the run, with advice. */
export function findings(data: RunData): HTMLElement | null {
  if (data.findings.length === 0) return null;
  const items = data.findings.map((finding) =>
    el(
      "li",
      {},
      el("code", {}, finding.id),
      el("p", {}, finding.evidence),
      el("p", { class: "advice" }, finding.advice),
      el("p", { class: "check" }, `check: ${finding.check}`),
    ),
  );
  return el("section", { class: "findings", id: "findings" }, el("h2", {}, "Findings"), el("ul", {}, ...items));
}

/** The headline figures. */
export function tiles(data: RunData): HTMLElement {
  const { figures } = data;
  const over = data.over?.run;
  const before = (now: number, then: number | undefined | null, read: (value: number) => string): Node | null => {
    if (!over || then === undefined || then === null) return null;
    const moved = change(now, then);
    return el("span", {}, moved === "" ? "" : el("b", {}, moved), ` was ${read(then)}`);
  };
  const bad = (n: number): string => (n > 0 ? "bad" : "");
  const part = (name: "sent" | "ok" | "failed" | "unfinished"): HTMLElement =>
    tile(name, count(figures[name]), name === "failed" || name === "unfinished" ? bad(figures[name]) : "", undefined, before(0, over?.figures[name], count));
  const sign = (text: string): HTMLElement => el("span", { class: "operator" }, text);
  const flow = (name: string, now: number, then: number | undefined | null): HTMLElement =>
    tile(name, rate(now), "", undefined, before(now, then, rate));
  const rates = [
    ...(figures.asked_rate === null ? [] : [flow("asked", figures.asked_rate, over?.figures.asked_rate)]),
    flow("sent", figures.sent_rate, over?.figures.sent_rate),
    flow("completed", figures.completed_rate, over?.figures.completed_rate),
    flow("goodput", figures.goodput, over?.figures.goodput),
  ];
  return el(
    "section",
    { class: "tiles", "aria-label": "Headline figures" },
    times(data, before),
    card(
      "Requests",
      el("div", { class: "row identity" }, part("sent"), sign("="), part("ok"), sign("+"), part("failed"), sign("+"), part("unfinished")),
      proportions(data),
      el("p", { class: "note" }, `${count(figures.due)} due = ${count(figures.sent)} sent + ${count(figures.dropped)} dropped${figures.unsent > 0 ? ` + ${count(figures.unsent)} unsent` : ""}`),
    ),
    card("Rate", el("div", { class: "row" }, ...rates)),
  );
}

type Before = (now: number, then: number | undefined, read: (value: number) => string) => Node | null;

/** The percentiles of response time. */
function times(data: RunData, before: Before): HTMLElement {
  const response = data.latencies[0];
  const behind = data.over?.run.latencies[0];
  const seen = response && response.count > 0;
  const all = ["p50", "p90", "p95", "p99", "p99.9"].map((name, i) => {
    const guess = seen && i >= response.trusted;
    const then = behind && behind.count > 0 ? behind.quantiles[i] : undefined;
    return tile(name, quantile(response, i), guess ? "guess" : "", guess ? "Fewer than 10 samples lie beyond it" : undefined, before(response?.quantiles[i] ?? 0, then, duration));
  });
  const most = behind && behind.count > 0 ? behind.max : undefined;
  all.push(tile("max", seen ? duration(response.max) : "–", "", undefined, before(response?.max ?? 0, most, duration)));
  const box = card("Response time", el("div", { class: "row" }, ...all));
  box.classList.add("times");
  return box;
}

/** A bar of the outcomes of the requests. */
function proportions(data: RunData): HTMLElement {
  const { ok, failed: bad, unfinished, dropped, unsent } = data.figures;
  const bar = el("div", { class: "proportions", "aria-hidden": "true" });
  for (const [name, n] of [["ok", ok], ["failed", bad], ["unfinished", unfinished], ["dropped", dropped + unsent]] as const) {
    if (n === 0) continue;
    const part = el("i", { class: name });
    part.style.flexGrow = String(n);
    bar.append(part);
  }
  return bar;
}
