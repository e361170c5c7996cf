/** Tables. */

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

/** A table; a column with a key can be put in order by its heading. */
export function table<Row>(rows: Row[], columns: Column<Row>[]): HTMLElement {
  const body = el("tbody");
  const heads = columns.map((column) => {
    const sort = column.key;
    const head = el("th", { scope: "col", class: column.number ? "number" : "", title: column.title });
    if (sort) head.append(el("button", { type: "button", onclick: () => order(head, sort) }, column.name));
    else head.append(column.name);
    return head;
  });
  const fill = (sorted: Row[]): void => {
    const line = (row: Row): HTMLElement =>
      el(
        "tr",
        {},
        ...columns.map((column) =>
          el(
            "td",
            { class: [column.number ? "number" : "", column.bad?.(row) ? "bad" : ""].join(" ").trim() || undefined },
            column.show(row),
          ),
        ),
      );
    body.replaceChildren(...sorted.map(line));
  };
  const order = (head: HTMLElement, key: (row: Row) => number | string): void => {
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
    fill([...rows].sort((a, b) => (down ? compare(b, a) : compare(a, b))));
  };
  fill(rows);
  return el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ...heads)), body));
}
