/** The top of a run's page: verdict, plan, objectives, findings, headline figures. */

import { el } from "../dom";
import { count, duration, rate } from "../format";
import { table } from "../table";
import { card, tile } from "./parts";
import type { RunData } from "./run-data";

const WORDS = {
  valid: ["✔", "Valid", "the figures can be believed"],
  suspect: ["▲", "Suspect", "look at the reasons before believing the figures"],
  invalid: ["✘", "Invalid", "the figures cannot be believed"],
} as const;

/** Plan, verdict with its reasons, objectives. */
export function verdict(data: RunData): HTMLElement[] {
  const [mark, word, meaning] = WORDS[data.validity];
  const met = data.objectives.filter((objective) => objective.met).length;
  const total = data.objectives.length;
  const started = data.started.replace("T", " ").replace("Z", " UTC");
  const line = el("p", { class: "line" }, el("strong", {}, `${mark} ${word}`), `: ${meaning}`);
  if (data.ended) line.append(` · ${data.ended}`);
  const parts = [
    el("div", { class: "plan" }, el("p", {}, data.plan), el("p", { class: "note" }, `${started}, took ${duration(data.elapsed_ns)}`)),
    el(
      "section",
      { class: "verdict", "data-verdict": data.validity, "aria-label": "Verdict" },
      line,
      data.reasons.length > 0 && el("ul", {}, ...data.reasons.map((reason) => el("li", {}, reason))),
    ),
  ];
  if (total > 0) {
    const words = met === total ? (total === 1 ? "met" : `all ${total} met`) : `${total - met} of ${total} missed`;
    parts.push(
      el(
        "section",
        { class: "objectives" },
        el("h2", {}, `Objectives: ${words}`),
        table(data.objectives, [
          { name: "Objective", show: (row) => el("code", {}, row.text) },
          { name: "Measured", show: (row) => row.shown, number: true },
          { name: "", show: (row) => el("span", { class: row.met ? "good" : "bad" }, row.met ? "✔ met" : "✘ missed") },
        ]),
      ),
    );
  }
  return parts;
}

/** What limited the run, and what to try. */
export function findings(data: RunData): HTMLElement[] {
  if (data.findings.length === 0) return [];
  const items = data.findings.map((finding) =>
    el(
      "li",
      {},
      el("code", {}, finding.id),
      el("p", {}, finding.evidence),
      el("p", { class: "advice" }, finding.advice),
    ),
  );
  return [el("section", { class: "findings" }, el("h2", {}, "Findings"), el("ul", {}, ...items))];
}

/** The headline figures. */
export function tiles(data: RunData): HTMLElement {
  const figures = data.figures;
  const bad = (n: number): string => (n > 0 ? "bad" : "");
  const parts: [string, string, string][] = [
    ["sent", count(figures.sent), ""],
    ["=", "", ""],
    ["ok", count(figures.ok), ""],
    ["+", "", ""],
    ["failed", count(figures.failed), bad(figures.failed)],
    ["+", "", ""],
    ["unfinished", count(figures.unfinished), bad(figures.unfinished)],
  ];
  const identity = parts.map(([name, value, kind]) =>
    value === "" ? el("span", { class: "operator" }, name) : tile(name, value, kind),
  );
  const rates = [
    ...(figures.asked_rate === null ? [] : [tile("asked", rate(figures.asked_rate))]),
    tile("sent", rate(figures.sent_rate)),
    tile("completed", rate(figures.completed_rate)),
    tile("goodput", rate(figures.goodput)),
  ];
  const response = data.latencies[0];
  const names = ["p50", "p90", "p95", "p99", "p99.9"];
  const seen = response && response.count > 0;
  const times = names.map((name, i) => {
    const guess = seen && i >= response.trusted;
    const value = seen ? `${guess ? "~" : ""}${duration(response.quantiles[i] ?? 0)}` : "–";
    return tile(name, value, guess ? "guess" : "", guess ? "Fewer than 10 samples lie beyond it" : undefined);
  });
  times.push(tile("max", seen ? duration(response.max) : "–"));
  return el(
    "section",
    { class: "tiles", "aria-label": "Headline figures" },
    card(
      "Requests",
      el("div", { class: "row identity" }, ...identity),
      proportions(data),
      el("p", { class: "note" }, `${count(figures.due)} due = ${count(figures.sent)} sent + ${count(figures.dropped)} dropped`),
    ),
    card("Rate", el("div", { class: "row" }, ...rates)),
    card("Response time", el("div", { class: "row" }, ...times)),
  );
}

/** A bar of what became of the requests. */
function proportions(data: RunData): HTMLElement {
  const { ok, failed, unfinished, dropped } = data.figures;
  const bar = el("div", { class: "proportions", "aria-hidden": "true" });
  for (const [name, n] of [["ok", ok], ["failed", failed], ["unfinished", unfinished], ["dropped", dropped]] as const) {
    if (n === 0) continue;
    const part = el("i", { class: name });
    part.style.flexGrow = String(n);
    bar.append(part);
  }
  return bar;
}
