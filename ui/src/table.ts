/** Tables. On a narrow page a row becomes a block of named figures, so that nothing is cut off. */

import { el } from "./dom";

/** A column of a table of rows. */
export interface Column<Row> {
  name: string;
  title?: string;
  /** The text of a cell. */
  show: (row: Row) => string | Node;
  /** What rows are put in order by; without it the column cannot be. */
  key?: (row: Row) => number | string;
  /** A number: to the right. */
  number?: boolean;
  /** Whether the cell tells of something bad. */
  bad?: (row: Row) => boolean;
}

/** A table whose rows can be chosen. */
export interface Listing<Row> {
  element: HTMLElement;
  /** Shows the rows for which `keep` holds. */
  filter: (keep: (row: Row) => boolean) => void;
}

/** A table; a column with a key can be put in order by its heading. */
export function listing<Row>(rows: Row[], columns: Column<Row>[]): Listing<Row> {
  const body = el("tbody");
  let [order, keep] = [rows, (_row: Row): boolean => true];
  const heads = columns.map((column) => {
    const sort = column.key;
    const head = el("th", { scope: "col", class: column.number ? "number" : "", title: column.title });
    if (sort) head.append(el("button", { type: "button", onclick: () => arrange(head, sort) }, column.name));
    else head.append(column.name);
    return head;
  });
  const cell = (column: Column<Row>, row: Row): HTMLElement =>
    el(
      "td",
      {
        class: [column.number ? "number" : "", column.bad?.(row) ? "bad" : ""].join(" ").trim() || undefined,
        "data-name": column.name,
      },
      column.show(row),
    );
  const fill = (): void =>
    body.replaceChildren(...order.filter(keep).map((row) => el("tr", {}, ...columns.map((column) => cell(column, row)))));
  const arrange = (head: HTMLElement, key: (row: Row) => number | string): void => {
    // Numbers first from the largest, names from A.
    const before = head.getAttribute("aria-sort");
    const numbers = rows.length > 0 && typeof key(rows[0] as Row) === "number";
    const down = before ? before === "ascending" : numbers;
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const compare = (a: Row, b: Row): number => {
      const [x, y] = [key(a), key(b)];
      return typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
    };
    order = [...rows].sort((a, b) => (down ? compare(b, a) : compare(a, b)));
    fill();
  };
  fill();
  const sorts = columns.some((column) => column.key);
  const kind = [columns.length > 3 ? "wide" : "", sorts ? "sorts" : ""].join(" ").trim();
  const whole = el("table", { class: kind || undefined }, el("thead", {}, el("tr", {}, ...heads)), body);
  return {
    element: el("div", { class: "scroll" }, whole),
    filter: (wanted) => {
      keep = wanted;
      fill();
    },
  };
}

/** A table of all its rows. */
export function table<Row>(rows: Row[], columns: Column<Row>[]): HTMLElement {
  return listing(rows, columns).element;
}
