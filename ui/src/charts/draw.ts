/** Draws stages and bounds on a chart. */

import type uPlot from "uplot";
import { colour } from "../theme/theme";
import type { Mark, Stretch } from "./options";

/** A colour of the theme with an opacity. */
export function faded(name: string, opacity: number): string {
  return `color-mix(in srgb, ${colour(name)} ${Math.round(opacity * 100)}%, transparent)`;
}

function font(size: number, weight = ""): string {
  return `${weight} ${size * devicePixelRatio}px ${getComputedStyle(document.body).fontFamily}`;
}

/** Space above a chart for the names of its stretches. */
export const NAMES_HEIGHT = 16;

/** Shades intervals of time, with their names above where they fit. */
export function stretches(plot: uPlot, all: Stretch[], named: boolean): void {
  const { ctx, bbox } = plot;
  const right = bbox.left + bbox.width;
  const place = (at: number): number => Math.min(Math.max(plot.valToPos(at, "x", true), bbox.left), right);
  const inset = 2 * devicePixelRatio;
  ctx.save();
  ctx.font = font(11);
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  for (const { from, to, text, shade } of all) {
    const [left, end] = [place(from), place(to)];
    if (end - left < 1) continue;
    if (shade !== "even") {
      ctx.fillStyle = shade === "warm-up" ? colour("shade-2") : colour("shade");
      ctx.fillRect(left, bbox.top, end - left, bbox.height);
    }
    if (named && end - left > ctx.measureText(text).width + 2 * inset) {
      ctx.fillStyle = colour("quiet");
      ctx.fillText(text, left + inset, bbox.top - 2 * devicePixelRatio);
    }
  }
  ctx.restore();
}

/** Draws the bounds of objectives: a line, or a word at the edge if the bound is outside the chart. */
export function marks(plot: uPlot, all: Mark[], named: boolean): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.font = font(11, "600");
  for (const { at, axis, text, met } of all) {
    const ink = colour(met ? "good" : "bad");
    const along = axis === "y";
    const [low, high] = along ? [bbox.top, bbox.top + bbox.height] : [bbox.left, bbox.left + bbox.width];
    const place = plot.valToPos(at, axis, true);
    if (!Number.isFinite(place)) continue;
    const inside = place >= low - 1 && place <= high + 1;
    if (inside) {
      ctx.strokeStyle = ink;
      ctx.lineWidth = 1.25 * ratio;
      ctx.setLineDash([5 * ratio, 4 * ratio]);
      ctx.beginPath();
      if (along) {
        ctx.moveTo(bbox.left, place);
        ctx.lineTo(bbox.left + bbox.width, place);
      } else {
        ctx.moveTo(place, bbox.top);
        ctx.lineTo(place, bbox.top + bbox.height);
      }
      ctx.stroke();
    }
    if (!named) continue;
    const beyond = inside ? "" : along ? (place < low ? " ↑" : " ↓") : place < low ? " ←" : " →";
    const label = `${text}${beyond}`;
    const [width, height, inset] = [ctx.measureText(label).width + 8 * ratio, 16 * ratio, 4 * ratio];
    const limit = (value: number, from: number, to: number): number => Math.min(Math.max(value, from), to);
    const x = along
      ? bbox.left + bbox.width - width - inset
      : limit(place + inset, bbox.left, bbox.left + bbox.width - width);
    const y = along
      ? limit(place - height - 1, bbox.top, bbox.top + bbox.height - height)
      : bbox.top + inset;
    ctx.fillStyle = faded("card", 0.86);
    ctx.fillRect(x, y, width, height);
    ctx.fillStyle = ink;
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    ctx.fillText(label, x + 4 * ratio, y + height / 2);
  }
  ctx.restore();
}
