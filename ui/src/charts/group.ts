/** Charts over the same x: one cursor and one zoom for all. */

/** What a group needs of a chart. */
export interface Member {
  /** Shows the cursor at an x, or takes it away. */
  point(x: number | null): void;
  /** Shows a span of x, or all of it. */
  zoom(span: Span | null): void;
}

/** From and to, on the x axis. */
export type Span = readonly [number, number];

/** Charts that share cursor and zoom. */
export class Group {
  private readonly members = new Set<Member>();
  private readonly watchers = new Set<(span: Span | null) => void>();
  private busy = false;
  /** The span shown; null is all. */
  span: Span | null = null;

  /** Takes a chart in. */
  add(member: Member): void {
    this.members.add(member);
  }

  /** Calls back when the span changes. */
  watch(watcher: (span: Span | null) => void): void {
    this.watchers.add(watcher);
  }

  /** Shows the cursor at an x on every chart but the one it came from. */
  point(x: number | null, from: Member): void {
    this.tell((member) => member !== from && member.point(x));
  }

  /** Shows a span on every chart. */
  zoom(span: Span | null): void {
    this.span = span;
    this.tell((member) => member.zoom(span));
    for (const watcher of this.watchers) watcher(span);
  }

  /** What a chart is told makes it tell again: that is not passed on. */
  private tell(what: (member: Member) => void): void {
    if (this.busy) return;
    this.busy = true;
    for (const member of this.members) what(member);
    this.busy = false;
  }
}
