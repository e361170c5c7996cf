/** Parses the inlined page data and draws the page of its kind. */

import "./theme/theme.css";
import { el } from "./dom";
import { compare } from "./pages/compare";
import type { CompareData } from "./pages/compare-data";
import { find } from "./pages/find";
import type { FindData } from "./pages/find-data";
import { live } from "./pages/live";
import { plot, type PlotData } from "./pages/plot";
import { run } from "./pages/run";
import type { RunData } from "./pages/run-data";
import { shadow } from "./pages/shadow";
import type { ShadowData } from "./pages/shadow-data";
import { trend, type TrendData } from "./pages/trend";
import { watchTheme } from "./theme/theme";

/** The pages by the `kind` of the inlined JSON. */
const pages: Record<string, (root: HTMLElement, data: never) => void> = {
  compare: (root, data: CompareData) => compare(root, data),
  find: (root, data: FindData) => find(root, data),
  plot: (root, data: PlotData) => plot(root, data),
  run: (root, data: RunData) => (data.live ? live(root, data) : run(root, data)),
  shadow: (root, data: ShadowData) => shadow(root, data),
  trend: (root, data: TrendData) => trend(root, data),
};

function main(): void {
  const root = document.getElementById("root");
  const text = document.getElementById("page")?.textContent;
  if (!root || !text) return;
  const data = JSON.parse(text) as { kind?: string } | string;
  const page = typeof data === "object" ? pages[data.kind ?? ""] : undefined;
  watchTheme();
  if (page) page(root, data as never);
  else root.append(el("p", { class: "empty" }, "This page holds no data that it can show."));
}

main();
