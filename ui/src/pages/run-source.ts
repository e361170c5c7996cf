/** The origin of a run, and its data for download. */

import { el } from "../dom";
import { count } from "../format";
import { copier, facts } from "./elements";
import type { RunData } from "./run-data";

/** The command, the machine, and downloads. */
export function source(data: RunData): HTMLElement {
  const { commands, hosts, versions } = data.origin;
  const text = commands.join("\n");
  const block = el("pre", { tabindex: 0, "aria-label": "Command" }, text);
  const name = `gake-${data.started.slice(0, 19).replace(/[:T]/g, "-")}`;
  const download = (label: string, file: string, type: string, make: () => string): HTMLElement =>
    el("button", { class: "tool", type: "button", onclick: () => save(`${name}.${file}`, type, make()) }, label);
  return el(
    "div",
    { class: "source" },
    text !== "" && el("div", { class: "between" }, el("p", { class: "note" }, commands.length === 1 ? "The command" : "The commands"), copier(text, block)),
    text !== "" && block,
    facts([
      [hosts.length === 1 ? "machine" : "machines", hosts.join("; ")],
      ["gake", versions.join(", ") || data.gake],
      ["started", data.started],
    ]),
    data.series.second.length > 0 &&
      el(
        "div",
        { class: "downloads" },
        download(`Series (CSV, ${count(data.series.second.length)} rows)`, "csv", "text/csv", () => csv(data)),
        download("All data of this page (JSON)", "json", "application/json", () => JSON.stringify(data, null, 1)),
      ),
  );
}

/** Offers a text as a download. */
export function save(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** The series, one row per point; times in microseconds. */
function csv(data: RunData): string {
  const { series } = data;
  const times = (name: string, parts: string[], values: (number | null)[][]): [string, (number | null)[]][] =>
    parts.map((part, i) => [`${name}_${part}_us`, values[i] ?? []]);
  const bands = ["p50", "p90", "p99", "max"];
  const columns: [string, (number | null)[]][] = [
    ["second", series.second],
    ["seconds", series.seconds],
    ["asked", series.asked],
    ["sent", series.fired],
    ["ok", series.ok],
    ["failed", series.failed],
    ["unfinished", series.unfinished],
    ["dropped", series.dropped],
    ["unsent", series.unsent],
    ["bytes_in", series.bytes_in],
    ["bytes_out", series.bytes_out],
    ...times("response", bands, series.response),
    ...times("service", bands, series.service),
    ...times("lateness", ["p99", "max"], series.lateness),
    ["in_flight", series.in_flight],
    ["open", series.open],
    ["cpu_share", series.cpu],
  ];
  const rows = series.second.map((_, i) => columns.map(([, values]) => values[i] ?? "").join(","));
  return [columns.map(([name]) => name).join(","), ...rows].join("\n") + "\n";
}
