/** The bounds of objectives on the charts of their metrics. */

import type { Mark } from "../charts/options";
import type { RunData } from "./run-data";

/** Bounds on a metric of the whole run; for a latency, of the charted statistics only. */
export function marks(data: RunData, metric: string, axis: Mark["axis"] = "y"): Mark[] {
  return bounds(data, metric, null, axis);
}

/** Bounds on a metric of one label. */
export function marksOf(data: RunData, metric: string, label: string): Mark[] {
  return bounds(data, metric, label, "y");
}

function bounds(data: RunData, metric: string, label: string | null, axis: Mark["axis"]): Mark[] {
  return data.objectives.flatMap(({ text, met, limit }) =>
    limit && limit.metric === metric && limit.label === label ? [{ at: limit.bound, axis, text, met }] : [],
  );
}
