/** The data of a search's page, written by gake-report/src/html/find.rs. */

export interface FindData {
  kind: "find";
  gake: string;
  started: string;
  /** Why it ended, in words. */
  ended: string;
  /** Further facts needed to read the number. */
  notes: string[];
  /** What to do without a result, or with one that is less precise than requested. */
  next: string[];
  /** The behaviour beyond the capacity; the first entry is the class. */
  beyond: { good: boolean; text: string }[];
  /** The pool that the ladder of users shows, if no step names a cause. */
  pool: Cause | null;
  /** Omitted steps: the first ones. */
  more_steps: number;
  find: Find;
}

/** What limited the target, with advice. */
export interface Cause {
  id: string;
  evidence: string;
  advice: string;
  check: string;
  /** The steps at the limit with this cause. */
  steps: number;
}

/** Schema gake.find/1, documented in docs/gake.find.1.schema.json. */
export interface Find {
  target: string;
  dimension: "rate" | "users" | "connections" | "connect-rate" | "tls-handshakes" | "streams";
  arrivals: string;
  objectives: string[];
  budget_s: number;
  precision: number;
  answer: {
    found: "capacity" | "at_least" | "infeasible" | "unknown";
    capacity: number | null;
    low: number | null;
    high: number | null;
    safe: number | null;
    why: string | null;
    bound_by: string | null;
    steepness: number | null;
    throughput_max: number;
    unloaded_s: number;
    ladder: { users: number; throughput: number; response_s: number }[];
  };
  steps: Step[];
  scaling: {
    gamma: Ranged;
    sigma: Ranged;
    kappa: Ranged;
    peak_users: Ranged | null;
    peak_throughput: Ranged | null;
    peak_determined: boolean;
  } | null;
  pool: { throughput: number; service_s: number; slots: Ranged } | null;
  map: { stairs: Stair[] } | null;
  /** Causes found in the steps in which the target was at its limit. */
  causes: Cause[];
  overloaded_steps: number;
}

export interface Ranged {
  value: number;
  low: number;
  high: number | null;
}

export interface Step {
  purpose: string;
  load: "rate" | "users" | "connections";
  asked: number;
  level: number;
  measured_s: number;
  due: number;
  errors: number;
  throughput: number;
  response_s: number;
  /** One ratio per objective; above 1 it failed. */
  of_allowed: (number | null)[];
  /** For each objective on a percentile, its value in seconds. */
  percentiles_s: (number | null)[];
  outcome: "pass" | "fail" | "inconclusive" | "limited" | "contaminated" | "cold";
  limited: string | null;
}

export interface Stair {
  leg: "up" | "down";
  level: number;
  ok: number;
  good: number;
  failed: number;
  response_s: number;
}
