/** A chart: title, legend, and a uPlot canvas. */

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { el } from "../dom";
import { colour, onTheme, printing } from "../theme/theme";
import { NAMES_HEIGHT, faded, marks, stretches } from "./draw";
import type { Member, Span } from "./group";
import { Legend } from "./legend";
import type { ChartOptions, Line } from "./options";
import { range, rounds } from "./scales";

/** Width of the y axis, and on narrow screens. */
const AXIS = [64, 54] as const;

/** Narrower charts have a narrower axis. */
const NARROW = 460;

const PRINT_WIDTH = 700;

/** A chart in the page. */
export class Chart implements Member {
  readonly element: HTMLElement;
  private readonly holder = el("div", { class: "plot", tabindex: 0, role: "img" });
  private readonly place = el("span", { class: "place" });
  private readonly tip = el("div", { class: "tip", hidden: true });
  private legend: Legend;
  /** The line of each line of the baseline run. */
  private ghosts: number[] = [];
  private hidden = new Set<number>();
  private log: boolean;
  /** Whether the reader chose the scale. */
  private chosen = false;
  private readonly scale: HTMLElement | false;
  private plot: uPlot | undefined;
  private width = 0;

  constructor(private options: ChartOptions) {
    const { title, note, y, lines, small } = options;
    this.log = y.always === "log" || y.log === "start";
    this.legend = this.lines();
    this.scale = !!y.log && !small && this.scaleButton();
    const caption = el(
      "figcaption",
      {},
      el("h3", {}, title),
      this.scale,
      this.place,
      note && el("p", { class: "note" }, note),
    );
    // A single line without a name is read out beside the title.
    const alone = lines.length === 1 && lines[0]?.name === "" && !lines[0].ghost;
    if (alone) caption.insertBefore(this.legend.element, this.place);
    this.element = small
      ? el("figure", { class: "chart small" }, this.holder)
      : el("figure", { class: "chart" }, caption, alone ? null : this.legend.element, this.holder);
    this.holder.setAttribute("aria-label", `Chart: ${title}. ${note ?? ""} Arrow keys move the cursor.`);
    this.holder.addEventListener("keydown", (event) => this.key(event));
    this.holder.addEventListener("blur", () => this.show(null));
    options.group?.add(this);
    new ResizeObserver(() => this.fit()).observe(this.holder);
    onTheme(() => {
      this.fit();
      this.plot?.redraw(false, true);
    });
  }

  /** Replaces the data of the same lines; the reader's choices stay. */
  update(options: ChartOptions): void {
    const before = this.options;
    this.options = options;
    const { y } = options;
    const log = this.log;
    if (!this.chosen && (y.always === "log" || y.log === "start")) this.log = true;
    if (this.scale) this.scale.setAttribute("aria-pressed", String(this.log));
    const renamed = shape(before) !== shape(options);
    if (renamed) {
      const names = new Set([...this.hidden].map((line) => before.lines[line]?.name));
      this.hidden = new Set(options.lines.flatMap((line, i) => (names.has(line.name) ? [i] : [])));
      const old = this.legend.element;
      this.legend = this.lines();
      old.replaceWith(this.legend.element);
    }
    const plot = this.plot;
    if (!plot) return;
    const { left = -10, top = -10 } = plot.cursor;
    if (renamed || log !== this.log) {
      this.build();
      this.plot?.setCursor({ left, top }, false);
    } else {
      plot.setData(this.data());
      if (options.group?.span) this.zoom(options.group.span);
    }
    this.read(left < 0 ? null : this.indexAt(this.plot?.posToVal(left, "x") ?? 0));
  }

  /** Adds elements after the legend's keys. */
  explain(...elements: HTMLElement[]): void {
    this.legend.explain(elements);
  }

  /** The legend of the current lines. */
  private lines(): Legend {
    const { lines, ghost } = this.options;
    this.ghosts = lines.flatMap((line, i) => (line.ghost ? [i] : []));
    return new Legend(lines, ghost, this.hidden, (line, shown) => this.toggle(line, shown));
  }

  point(x: number | null): void {
    const plot = this.plot;
    if (!plot) return;
    const left = x === null ? -10 : plot.valToPos(x, "x");
    plot.setCursor({ left, top: x === null ? -10 : 0 }, false);
    this.read(x === null ? null : this.indexAt(x));
  }

  zoom(span: Span | null): void {
    const [min, max] = span ?? this.options.x.range;
    this.plot?.setScale("x", { min, max });
  }

  private scaleButton(): HTMLElement {
    const press = (): void => {
      this.log = !this.log;
      this.chosen = true;
      button.setAttribute("aria-pressed", String(this.log));
      this.build();
    };
    const button = el(
      "button",
      { class: "scale", type: "button", "aria-pressed": String(this.log), title: "Logarithmic scale", onclick: press },
      "log",
    );
    return button;
  }

  private toggle(line: number, shown: boolean): void {
    const lines = this.options.lines.length;
    const which = line < 0 ? this.ghosts.map((_, i) => lines + i) : [line];
    for (const one of which) {
      if (shown) this.hidden.delete(one);
      else this.hidden.add(one);
      this.plot?.setSeries(one + 1, { show: shown });
    }
  }

  /** Adapts to the available width. */
  private fit(): void {
    const width = printing() ? Math.min(PRINT_WIDTH, this.holder.clientWidth) : this.holder.clientWidth;
    if (width < 1 || (width === this.width && this.plot)) return;
    const redone = this.plot && width < NARROW === this.width < NARROW;
    this.width = width;
    if (redone) this.plot?.setSize({ width, height: this.height() });
    else this.build();
  }

  private height(): number {
    return this.options.height ?? 220;
  }

  private build(): void {
    this.plot?.destroy();
    const { group } = this.options;
    const plot = new uPlot(this.settings(), this.data(), this.holder);
    this.plot = plot;
    plot.over.append(this.tip);
    plot.over.addEventListener("dblclick", () => (group ? group.zoom(null) : this.zoom(null)));
    plot.over.addEventListener("mouseleave", () => this.show(null));
    if (group?.span) this.zoom(group.span);
  }

  private data(): uPlot.AlignedData {
    const { x, lines } = this.options;
    // A logarithmic scale cannot show zero.
    const clean = (value: number | null | undefined): number | null =>
      value === undefined || (this.log && value !== null && value <= 0) ? null : value;
    const stepped = this.options.stepped;
    // Points from the end of the axis on are invisible.
    const past = stepped ? x.values.findIndex((at, i) => i > 0 && at >= x.range[1]) : -1;
    const seen = past < 0 ? x.values.length : past;
    // A step is a line from its start to its end; the space between two steps is empty.
    const places = Array.from({ length: seen }, (_, i) => this.places(i, seen));
    const drawn = (list: (number | null)[]): (number | null)[] =>
      places.flatMap((at, i) => at.map((_, k) => (k < 2 ? clean(list[i]) : null)));
    const values = lines.map((line) => drawn(line.values));
    for (const i of this.ghosts) values.push(drawn(lines[i]?.ghost ?? []));
    const xs = places.flat();
    // A scale needs a series for its range.
    if (values.length === 0) values.push(xs.map(() => null));
    return [xs, ...values] as uPlot.AlignedData;
  }

  /** Where a value is drawn: at its x, or from the start of its step to the end, followed by a gap. */
  private places(i: number, seen: number): number[] {
    const { values, ends, range: [, last] } = this.options.x;
    const start = values[i] ?? 0;
    if (!this.options.stepped) return [start];
    const next = i + 1 < seen ? (values[i + 1] ?? last) : Math.max(last, start);
    const end = Math.min(ends?.[i] ?? next, next);
    return end < next - 1e-9 && i + 1 < seen ? [start, end, end] : [start, i + 1 < seen ? end : next];
  }

  private settings(): uPlot.Options {
    const { bands, cells, small, stretches: intervals, marks: bounds } = this.options;
    const log = this.log;
    const named = !small;
    return {
      width: this.width,
      height: this.height(),
      padding: [small ? 4 : intervals?.some(({ text }) => text !== "") ? NAMES_HEIGHT : 8, small ? 4 : 26, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false },
      },
      scales: {
        x: {
          time: false,
          distr: this.options.x.log ? 3 : 1,
          range: (_plot, min, max) => this.xRange(min, max),
        },
        y: {
          distr: log ? 3 : 1,
          range: (_plot, min, max) => range(this.options.y, this.options.marks ?? [], log, min, max),
        },
      },
      axes: this.axes(),
      series: this.series(),
      ...(bands && {
        bands: bands.map((band): uPlot.Band => ({
          series: [band.upper + 1, band.lower + 1],
          fill: () => faded(band.colour, band.fill),
        })),
      }),
      hooks: {
        setCursor: [(plot) => this.moved(plot)],
        setSelect: [(plot) => this.selected(plot)],
        drawClear: [
          (plot) => {
            const { stretches: intervals, under } = this.options;
            if (intervals) stretches(plot, intervals, named);
            under?.(plot);
          },
        ],
        ...(cells && { drawAxes: [(plot: uPlot) => this.options.cells?.(plot)] }),
        ...(bounds && { draw: [(plot: uPlot) => marks(plot, this.options.marks ?? [], named)] }),
      },
    };
  }

  private axes(): uPlot.Axis[] {
    const { x, y, small } = this.options;
    const shared = {
      stroke: (): string => colour("quiet"),
      font: `${small ? 10 : 11}px ${getComputedStyle(document.body).fontFamily}`,
      grid: { stroke: () => colour("grid"), width: 1 },
      ticks: { show: false },
    };
    const within = (plot: uPlot, at: number): boolean =>
      at >= (plot.scales["x"]?.min ?? 0) * 0.999 && at <= (plot.scales["x"]?.max ?? 0) * 1.001;
    return [
      {
        ...shared,
        size: small ? 22 : 26,
        gap: 6,
        space: small ? 60 : 70,
        filter: (_plot, splits) => splits,
        values: (_plot, splits) => splits.map((at) => x.tick(at)),
        ...(x.increments && { incrs: x.increments }),
        ...(x.splits && {
          splits: (plot: uPlot) => (this.options.x.splits ?? []).filter((at) => within(plot, at)),
        }),
      },
      {
        ...shared,
        size: small ? 50 : AXIS[this.width < NARROW ? 1 : 0],
        gap: small ? 4 : 8,
        space: small ? 24 : 36,
        values: (_plot, splits) => splits.map((at) => y.tick(at)),
        ...(this.log && {
          filter: (_plot: uPlot, splits: number[]) => splits,
          splits: (_plot: uPlot, _axis: number, min: number, max: number) => rounds(min, max, small ? 3 : 6),
        }),
      },
    ];
  }

  private series(): uPlot.Series[] {
    const { lines, stepped } = this.options;
    const plain = lines.map((line, i): uPlot.Series => ({
      label: line.name,
      show: !this.hidden.has(i),
      stroke: () => colour(line.colour),
      width: line.width ?? 1.5,
      ...(line.fill && { fill: () => faded(line.colour, line.fill ?? 0) }),
      ...(line.dash && { dash: line.dash }),
      spanGaps: line.span ?? false,
      ...(line.points && { paths: () => null }),
      points: dots(line, stepped ?? false),
    }));
    const ghosts = this.ghosts.map((at, i): uPlot.Series => ({
      show: !this.hidden.has(lines.length + i),
      stroke: () => faded(lines[at]?.colour ?? "grey", 0.75),
      width: 1.25,
      dash: [2, 3],
      points: { show: false },
    }));
    return [{}, ...(lines.length === 0 ? [{}] : []), ...plain, ...ghosts];
  }

  private xRange(min: number, max: number): [number, number] {
    const [from, to] = this.options.x.range;
    // Initially uPlot passes the range of the values, not of the axis.
    const first = this.options.x.values[0];
    const last = this.plot?.data[0]?.at(-1);
    if (min === null || max === null || (min === first && max === last)) return [from, to];
    return min < max ? [Math.max(min, from), Math.min(max, to)] : [from, to];
  }

  /** The pointer moved. */
  private moved(plot: uPlot): void {
    const { left = -10, top = -10 } = plot.cursor;
    if (left < 0 || plot !== this.plot) return;
    const x = plot.posToVal(left, "x");
    const index = this.indexAt(x);
    this.read(index);
    this.options.group?.point(x, this);
    const lines = index === null ? null : this.options.tip?.(index, plot.posToVal(top, "y"));
    this.tip.hidden = !lines;
    if (lines) {
      this.tip.replaceChildren(...lines.map((line) => el("div", {}, line)));
      const right = left > plot.over.clientWidth / 2;
      this.tip.style.transform = `translate(calc(${left + (right ? -12 : 12)}px${right ? " - 100%" : ""}), ${Math.min(top + 12, plot.over.clientHeight - 60)}px)`;
    }
  }

  /** A span was dragged over. */
  private selected(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < 4) return;
    const span: Span = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    if (this.options.group) this.options.group.zoom(span);
    else this.zoom(span);
  }

  private key(event: KeyboardEvent): void {
    const values = this.options.x.values;
    const plot = this.plot;
    if (event.key === "Escape") {
      if (this.options.group) this.options.group.zoom(null);
      else this.zoom(null);
    } else if (plot && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      event.preventDefault();
      const left = plot.cursor.left ?? -10;
      const step = event.key === "ArrowLeft" ? -1 : 1;
      const at = left < 0 ? null : this.indexAt(plot.posToVal(left, "x"));
      const next = at === null ? 0 : Math.min(Math.max(at + step, 0), values.length - 1);
      this.show(values[next] ?? null);
    }
  }

  /** Moves the cursor here and in the group. */
  private show(x: number | null): void {
    this.tip.hidden = true;
    this.point(x);
    this.options.group?.point(x, this);
  }

  /** The index of the point at an x. */
  private indexAt(x: number): number | null {
    const values = this.options.x.values;
    if (values.length === 0) return null;
    let [low, high] = [0, values.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((values[middle] as number) <= x + 1e-9) low = middle + 1;
      else high = middle;
    }
    const before = Math.max(low - 1, 0);
    if (this.options.stepped) {
      const end = this.options.x.ends?.[before];
      const gap = end !== undefined && x >= end && before + 1 < values.length;
      return gap ? null : before;
    }
    const after = Math.min(low, values.length - 1);
    const nearer = x - (values[before] as number) > (values[after] as number) - x;
    return nearer ? after : before;
  }

  /** Shows the values at a point in the legend. */
  private read(index: number | null): void {
    const { x, y, lines } = this.options;
    this.place.textContent = index === null ? "" : x.read(index, x.values[index] ?? 0);
    const shown = (value: number | null): string => (value === null ? "–" : y.read(value));
    this.legend.read(
      lines.map((line) => {
        if (index === null) return ["", ""];
        const ghost = line.ghost?.[index];
        return [shown(valueAt(line, index)), typeof ghost === "number" ? y.read(ghost) : ""];
      }),
    );
  }
}

/** The properties that an existing plot cannot change. */
function shape({ lines, x }: ChartOptions): string {
  return JSON.stringify([lines.map(({ name, colour, dash }) => [name, colour, dash]), x.increments]);
}

/** How the points of a line are drawn. */
function dots(line: Line, stepped: boolean): uPlot.Series.Points {
  const size = line.points ?? line.marks;
  if (size) return { show: true, size, width: 0, fill: () => colour(line.colour) };
  return stepped || line.dash ? { show: false } : { size: 4 };
}

/** The value at a point; for lines that span gaps, the last one before the gap. */
function valueAt(line: Line, index: number): number | null {
  for (let at = index; line.span && at >= 0; at--) {
    const value = line.values[at];
    if (value !== null && value !== undefined) return value;
  }
  return line.values[index] ?? null;
}
