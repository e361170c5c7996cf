/** The page of a shadow: whether it responds as the master does, the differences, and its speed. */

import { themeButton } from "../charts/bar";
import { header } from "../charts/header";
import { el } from "../dom";
import { count, duration, percent } from "../format";
import { table, type Column } from "../table";
import { copier, facts, section } from "./elements";
import type { Difference, Endpoint, Report, ShadowData, Verdict } from "./shadow-data";

const VERDICTS: [Verdict, string, string][] = [
  ["real", "Real differences", "The shadow differs from the master more often than two masters do."],
  ["untested", "Differences", "Not tested against noise: there was no second instance of the master."],
  ["unproven", "Unproven", "Two masters never differ here, but there are too few to exclude chance."],
  ["noise", "Noise", "Two masters differ in these as well."],
];

/** Draws the page. */
export function shadow(root: HTMLElement, data: ShadowData): void {
  const titles = data.reports.map((report) => `${report.shadow} against ${report.master}`);
  const title = titles.length === 1 ? (titles[0] ?? "") : `${titles.length} comparisons`;
  document.title = `gake: ${title}`;
  root.append(header({ brand: "gake shadow", title }, themeButton()));
  data.reports.forEach((report, i) => {
    const parts = one(report);
    if (data.reports.length > 1) parts.unshift(el("h2", { class: "which" }, titles[i]));
    root.append(el("article", {}, ...parts));
  });
  root.append(el("footer", {}, `gake ${data.gake}. Click a heading of a table to sort by it.`));
}

function one(report: Report): HTMLElement[] {
  const parts = [verdict(report), ledger(report)];
  for (const [kind, title, meaning] of VERDICTS) {
    const rows = report.differences.filter((difference) => difference.verdict === kind);
    if (rows.length > 0) parts.push(section(title, el("p", { class: "note" }, meaning), differences(rows, kind)));
  }
  if (report.more_differences > 0) {
    parts.push(el("p", { class: "note" }, `${count(report.more_differences)} more fields, the last of this order, are in the JSON output.`));
  }
  if (report.endpoints.length > 0) parts.push(endpoints(report));
  if (report.statuses.length > 0) parts.push(section("Status", statuses(report)));
  if (report.suggestions !== "") parts.push(rules(report.suggestions));
  return parts;
}

function verdict(report: Report): HTMLElement {
  const { fields, slower, differs, exchanges } = report;
  const some = (n: number, noun: string): string => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
  const found = [fields > 0 && some(fields, "difference"), slower > 0 && `${some(slower, "endpoint")} slower`].filter((part) => part !== false);
  const [state, mark, text] =
    exchanges === 0
      ? (["suspect", "▲", "Nothing was compared"] as const)
      : differs
        ? (["invalid", "✘", found.join(", ")] as const)
        : found.length > 0
          ? (["suspect", "▲", `${found.join(", ")}, within the tolerance`] as const)
          : (["valid", "✔", "No difference found"] as const);
  const { false_discoveries, tolerance, latency } = report.terms;
  const terms = [
    report.secondary !== null && `at most ${percent(false_discoveries)} of the real differences are expected to be chance`,
    tolerance > 0 && `${percent(tolerance)} of an endpoint's responses may differ in a field`,
    `${percent(latency)} slower is tolerated`,
  ].filter((part) => part !== false);
  const line = terms.join("; ");
  return el(
    "section",
    { class: "verdict", "data-verdict": state, "aria-label": "Verdict" },
    el("p", { class: "line" }, el("strong", {}, `${mark} ${text}`)),
    el("p", { class: "note" }, `${line.charAt(0).toUpperCase()}${line.slice(1)}.`),
  );
}

/** The outcomes of the requests. */
function ledger(report: Report): HTMLElement {
  const list = facts([
    ["requests compared", count(report.exchanges)],
    ...(report.secondary === null ? [] : [[`also with ${report.secondary}`, count(report.paired)] as [string, string]]),
    ["endpoints", count(report.all_endpoints)],
    ["not sent, or client left", report.skipped && count(report.skipped)],
    ["differences left out by rules", report.ignored && count(report.ignored)],
    ["differences in fields beyond the bound", report.fields_lost && count(report.fields_lost)],
    ["bodies too long to compare", report.bodies_cut && count(report.bodies_cut)],
  ]);
  list.classList.add("ledger");
  return list;
}

function differences(rows: Difference[], kind: Verdict): HTMLElement {
  const paired = rows.some((row) => row.paired > 0);
  const part = (n: number, of: number): number => (of > 0 ? n / of : 0);
  const differing = (row: Difference): number => part(row.shadow, row.exchanges);
  const noise = (row: Difference): number => part(row.secondary, row.paired);
  const columns: Column<Difference>[] = [
    { name: "Endpoint", show: (row) => row.endpoint, key: (row) => row.endpoint },
    { name: "Field", show: field, key: (row) => row.path },
    {
      name: "differs",
      title: "Exchanges in which the shadow differed from the master",
      show: (row) => share(differing(row), row.shadow, row.exchanges),
      key: differing,
      number: true,
      bad: () => kind === "real" || kind === "untested",
    },
  ];
  if (paired) {
    columns.push(
      { name: "noise", title: "Exchanges in which the second instance differed from the master", show: (row) => share(noise(row), row.secondary, row.paired), key: noise, number: true },
      { name: "beyond noise", title: "The share of responses that differ beyond noise", show: (row) => percent(row.rate), key: (row) => row.rate, number: true },
      { name: "chance", title: "False discovery rate (q-value): of the differences up to this one, the share that chance explains", show: (row) => small(row.q), key: (row) => row.q ?? 1, number: true },
    );
  }
  const list = table(rows, columns);
  list.classList.add("differences");
  return list;
}

function share(value: number, n: number, of: number): HTMLElement {
  return el("span", {}, percent(value), el("small", {}, `${count(n)} of ${count(of)}`));
}

/** The field, the kind of difference, and an example. */
function field(row: Difference): HTMLElement {
  const { example, looks_like } = row;
  return el(
    "span",
    {},
    el("code", {}, row.path),
    ` ${row.kind}`,
    looks_like !== null && el("small", {}, `looks like ${looks_like}`),
    example && el("small", { class: "example" }, "expected ", value(example.expected), ", got ", value(example.actual)),
    example && el("small", { class: "example" }, example.request),
  );
}

function value(text: string): HTMLElement | string {
  return text === "" ? "nothing" : el("code", {}, text);
}

function small(q: number | null): string {
  if (q === null) return "–";
  return q < 0.001 ? "< 0.001" : q.toFixed(3);
}

const PACES = { slower: "✘ slower", faster: "faster", alike: "", too_few: "too few to judge", untested: "not judged without --noise" } as const;

function endpoints(report: Report): HTMLElement {
  const seen = report.endpoints.map((endpoint) => endpoint.latency.ratio).filter((ratio) => ratio !== null);
  // All intervals on one scale that is symmetric around 1.
  const widest = Math.max(1.05, ...seen.map((ratio) => Math.max(ratio.high, ratio.low > 0 ? 1 / ratio.low : 1)));
  const time = (name: string, of: (latency: Endpoint["latency"]) => number): Column<Endpoint> => ({
    name,
    show: (row) => (of(row.latency) > 0 ? duration(of(row.latency)) : "–"),
    key: (row) => of(row.latency),
    number: true,
  });
  const ratio = (row: Endpoint): number => row.latency.ratio?.middle ?? 0;
  const second = report.endpoints.some((endpoint) => endpoint.latency.against_secondary);
  const other = (second ? report.secondary : null) ?? report.master;
  const list = table(report.endpoints, [
    { name: "Endpoint", show: (row) => row.name, key: (row) => row.name },
    { name: "requests", show: (row) => count(row.exchanges), key: (row) => row.exchanges, number: true },
    time("master p50", (latency) => latency.master_p50),
    time("shadow p50", (latency) => latency.shadow_p50),
    time("master p99", (latency) => latency.master_p99),
    time("shadow p99", (latency) => latency.shadow_p99),
    {
      name: "shadow / other",
      title: "The median ratio, request by request, with its 95 % interval",
      show: (row) => interval(row.latency.ratio),
      key: ratio,
      number: true,
    },
    { name: "", show: (row) => forest(row.latency, widest) },
    { name: "", show: (row) => PACES[row.latency.pace], bad: (row) => row.latency.pace === "slower" },
  ]);
  const more = report.all_endpoints - report.endpoints.length;
  return section(
    "Endpoints",
    el("p", { class: "note" }, `Time to the response head. The ratio is the shadow's time divided by that of ${other}, request by request: its median, with the 95 % interval.`),
    list,
    more > 0 && el("p", { class: "note" }, `${count(more)} more endpoints, those with fewest requests, are in the JSON output.`),
  );
}

type Ratio = Endpoint["latency"]["ratio"];

function interval(ratio: Ratio): string {
  if (!ratio) return "–";
  return `${ratio.middle.toFixed(2)} (${ratio.low.toFixed(2)} to ${ratio.high.toFixed(2)})`;
}

/** The interval on a line whose middle is 1. */
function forest({ ratio, pace }: Endpoint["latency"], widest: number): HTMLElement {
  const line = el("div", { class: "forest", "aria-hidden": "true", "data-pace": pace });
  if (!ratio) return line;
  const place = (value: number): number => 50 + (50 * Math.log(Math.max(value, 1 / widest))) / Math.log(widest);
  const bar = el("i");
  bar.style.left = `${place(ratio.low)}%`;
  bar.style.width = `${Math.max(place(ratio.high) - place(ratio.low), 0.5)}%`;
  const point = el("b");
  point.style.left = `${place(ratio.middle)}%`;
  line.append(bar, point);
  return line;
}

/** How often each pair of status codes of master and shadow occurred. */
function statuses(report: Report): HTMLElement {
  const order = (a: string, b: string): number => a.localeCompare(b);
  const masters = [...new Set(report.statuses.map(([master]) => master))].sort(order);
  const shadows = [...new Set(report.statuses.map(([, shadow]) => shadow))].sort(order);
  const counts = new Map(report.statuses.map(([master, shadow, n]) => [JSON.stringify([master, shadow]), n]));
  const cell = (master: string, shadow: string): HTMLElement => {
    const n = counts.get(JSON.stringify([master, shadow])) ?? 0;
    const bad = n > 0 && master !== shadow;
    return el("td", { class: bad ? "number bad" : "number" }, n > 0 ? count(n) : "·");
  };
  const heads = shadows.map((shadow) => el("th", { scope: "col", class: "number" }, shadow));
  const rows = masters.map((master) => el("tr", {}, el("th", { scope: "row" }, master), ...shadows.map((shadow) => cell(master, shadow))));
  return el(
    "div",
    {},
    el("p", { class: "note" }, `Rows: ${report.master}. Columns: ${report.shadow}.`),
    el("div", { class: "scroll" }, el("table", { class: "matrix" }, el("thead", {}, el("tr", {}, el("th", {}, "master \\ shadow"), ...heads)), el("tbody", {}, ...rows))),
  );
}

/** Rules to copy. */
function rules(text: string): HTMLElement {
  const block = el("pre", { tabindex: 0, "aria-label": "Rules" }, text);
  return section(
    "Suggested rules",
    el("div", { class: "between" }, el("p", { class: "note" }, "For noise and what looks like it: save them to a file and pass it with --rules FILE."), copier(text, block)),
    block,
  );
}
