/** The page of a comparison: the differences and their confidence, then B's charts with A behind. */

import { Bar } from "../charts/bar";
import { Group } from "../charts/group";
import { header } from "../charts/header";
import { el } from "../dom";
import { bytes, duration, number, percent, rate } from "../format";
import { table } from "../table";
import type { CompareData, Figure } from "./compare-data";
import { section } from "./elements";
import { charts, footer } from "./run";
import { source } from "./run-source";
import { quantile } from "./run-top";

const OUTCOMES = {
  better: ["✔", "B is better", "valid"],
  no_difference: ["✔", "No difference", "valid"],
  worse: ["✘", "B is worse", "invalid"],
  different: ["≠", "B differs", "suspect"],
  inconclusive: ["?", "Inconclusive", "suspect"],
} as const;

const VERDICTS = { better: "better", no_difference: "no difference", worse: "worse", different: "different", inconclusive: "inconclusive" } as const;

/** Draws the page. */
export function compare(root: HTMLElement, data: CompareData): void {
  const { comparison, run } = data;
  const [mark, word, state] = OUTCOMES[comparison.outcome];
  document.title = `gake compare: ${comparison.a.name} and ${comparison.b.name}`;
  const group = new Group();
  const before = run.over?.run.latencies[0];
  const top = new Bar(
    [{ text: `${mark} ${word}`, state, title: comparison.conclusion }],
    [
      { name: "p50", value: `${quantile(before, 0)} → ${quantile(run.latencies[0], 0)}` },
      { name: "p99", value: `${quantile(before, 3)} → ${quantile(run.latencies[0], 3)}` },
      { name: "goodput", value: `${rate(run.over?.run.figures.goodput ?? 0)} → ${rate(run.figures.goodput)}` },
    ],
    group,
  );
  root.before(top.element);
  root.append(
    header({ brand: "gake compare", title: `${comparison.b.name} against ${comparison.a.name}` }),
    el("div", { class: "first" }, sides(data), verdict(data, mark, word, state)),
    section("Figures", figures(data), el("p", { class: "note" }, sentence(data.legend))),
    ...charts(run, group),
    section("About B", source(run)),
    ...(run.over ? [section("About A", source(run.over.run))] : []),
    footer(data.gake),
  );
  top.link(root);
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** What A and B are. */
function sides({ comparison, run }: CompareData): HTMLElement {
  const line = (letter: string, name: string, plan: string, dotted: boolean): HTMLElement =>
    el("p", {}, el("strong", {}, letter), ` ${name}: ${plan}`, dotted && el("span", { class: "note" }, " (dotted in the charts) ", el("i", { class: "swatch ghost" })));
  return el(
    "div",
    { class: "plan" },
    line("A", comparison.a.name, run.over?.run.plan ?? "", true),
    line("B", comparison.b.name, run.plan, false),
  );
}

function verdict({ comparison }: CompareData, mark: string, word: string, state: string): HTMLElement {
  const reasons = [
    ...comparison.invalid.map(({ run, reason }) => `${run} is invalid: ${reason}`),
    ...comparison.warnings,
  ];
  return el(
    "section",
    { class: "verdict", id: "verdict", "data-verdict": state, "aria-label": "Verdict" },
    el("p", { class: "line" }, el("strong", {}, `${mark} ${word}`), `: ${comparison.conclusion.replace(/^(B (is worse|is better|differs)|inconclusive): /, "")}`),
    reasons.length > 0 && el("ul", {}, ...reasons.map((reason) => el("li", {}, reason))),
  );
}

function value(figure: Figure, of: number | null): string {
  if (of === null) return "–";
  return { per_second: rate, share: percent, ns: duration, bytes, number }[figure.unit](of);
}

/** A change in percent, or in percentage points for error ratios. */
function moved(of: number | null, unit: string): string {
  if (of === null) return "∞";
  const size = Math.abs(of) * 100;
  const text = size >= 99.95 ? size.toFixed(0) : size >= 0.995 || size === 0 ? size.toFixed(1) : size.toFixed(2);
  return `${of < 0 ? "−" : "+"}${text}${unit}`;
}

/** Each figure with its change, the interval, and the verdict. */
function figures({ comparison }: CompareData): HTMLElement {
  const unit = (figure: Figure): string => (figure.unit === "share" ? " pt" : " %");
  const seen = comparison.figures.flatMap(({ change }) => (change ? [Math.abs(change.low ?? 0), Math.abs(change.high ?? 0)] : []));
  const widest = Math.min(Math.max(2 * comparison.tolerance, ...seen), 1);
  const problems = [...new Set(comparison.figures.flatMap(({ problem }) => problem ?? []))];
  const named = (problem: string): string => {
    const rows = comparison.figures.filter((row) => row.problem === problem);
    return rows.length === comparison.figures.length ? "No figure has" : `${rows.map((row) => row.name).join(", ")}: no`;
  };
  const notes = problems.map((problem) => el("p", { class: "note" }, `${named(problem)} interval: ${problem}`));
  const rows = table(comparison.figures, [
    { name: "Figure", show: (row) => (row.headline ? el("b", {}, row.name) : row.name) },
    { name: "A", show: (row) => value(row, row.a), number: true },
    { name: "B", show: (row) => value(row, row.b), number: true },
    { name: "change", show: (row) => (row.change ? moved(row.change.estimate, unit(row)) : "–"), number: true },
    {
      name: "interval",
      title: `The interval of the change at the level at which it was tested; the grey band is the tolerance of ${percent(comparison.tolerance)}`,
      show: (row) => (row.change ? `${moved(row.change.low, "")} … ${moved(row.change.high, unit(row))}` : "–"),
      number: true,
    },
    { name: "", show: (row) => forest(row, widest, comparison.tolerance) },
    { name: "detects", title: "The smallest change with an 80 % chance of detection", show: (row) => (row.change?.detectable == null ? "–" : moved(row.change.detectable, unit(row)).slice(1)), number: true },
    { name: "verdict", show: (row) => el("span", { class: row.verdict === "better" ? "good" : "" }, VERDICTS[row.verdict]), bad: (row) => row.beyond_tolerance },
  ]);
  return el("div", {}, rows, ...notes);
}

/** The interval on a line whose middle is no change. */
function forest(figure: Figure, widest: number, tolerance: number): HTMLElement {
  const line = el("div", { class: "forest broad", "aria-hidden": "true", "data-pace": figure.beyond_tolerance ? "worse" : figure.verdict === "better" ? "better" : "" });
  const { change } = figure;
  if (!change) return line;
  const place = (at: number): number => 50 + 50 * Math.min(Math.max(at / widest, -1), 1);
  const band = el("u");
  band.style.left = `${place(-tolerance)}%`;
  band.style.width = `${place(tolerance) - place(-tolerance)}%`;
  const [low, high] = [place(change.low ?? -widest), place(change.high ?? widest)];
  const bar = el("i");
  bar.style.left = `${low}%`;
  bar.style.width = `${Math.max(high - low, 0.5)}%`;
  const point = el("b");
  point.style.left = `${place(change.estimate)}%`;
  line.append(band, bar, point);
  return line;
}
