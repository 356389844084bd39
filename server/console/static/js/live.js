// What the node tells by itself each second: how the group stands, and its numbers. The last ten
// minutes of the numbers are kept here, in the page.

import { session } from "./api.js";

const kept = 600; // samples
const silence = 3500; // milliseconds without a word after which the connection counts as lost

export const live = {
  state: "connecting", // live, lost, refused
  problem: null, // of the last answer that was none
  group: null,
  groupAt: 0, // when it came, by this page's clock
  numbers: null,
  samples: [],
  seen: new Map(), // what members have said last, and when
};

const listeners = new Set();
let source = null;
let timer = 0;
let signedOut = () => {};
let again = 0;

/** watch calls fn whenever there is something new, and once at the beginning; what it returns ends that. */
export function watch(fn) {
  listeners.add(fn);
  fn(live);
  return () => listeners.delete(fn);
}

function tell() {
  for (const fn of [...listeners]) fn(live);
}

/** start opens the stream. ended is called when the sign-in is over. */
export function start(ended) {
  signedOut = ended;
  stop();
  open();
  timer = setInterval(() => {
    if (live.state !== "refused" && performance.now() - live.groupAt > silence && live.state !== "lost") {
      live.state = "lost";
    }
    if (live.state === "lost") tell(); // its age shows
  }, 1000);
}

/** stop closes it and forgets everything. */
export function stop() {
  clearInterval(timer);
  clearTimeout(again);
  source?.close();
  source = null;
  Object.assign(live, { state: "connecting", problem: null, group: null, groupAt: performance.now(), numbers: null, samples: [] });
  live.seen.clear();
}

function open() {
  source?.close();
  source = new EventSource("api/events");
  source.addEventListener("group", (e) => {
    live.group = JSON.parse(e.data);
    live.groupAt = performance.now();
    live.state = "live";
    live.problem = null;
    for (const m of live.group.members) {
      if (m.state !== "ADMIN_MEMBER_STATE_UNREACHABLE") live.seen.set(m.id, { at: live.groupAt, member: m });
    }
    tell();
  });
  source.addEventListener("numbers", (e) => {
    take(JSON.parse(e.data));
    tell();
  });
  source.addEventListener("refused", (e) => {
    live.problem = JSON.parse(e.data);
    if ([1227, 1044].includes(live.problem.number)) {
      live.state = "refused";
      live.group = null; // what it said last is true no more
      source.close();
    }
    tell();
  });
  source.addEventListener("signed-out", () => {
    source.close();
    signedOut();
  });
  const mine = source;
  mine.onerror = () => {
    if (mine !== source || mine.readyState !== EventSource.CLOSED) return; // the browser tries again
    clearTimeout(again);
    again = setTimeout(async () => {
      try {
        await session();
        if (mine === source) open();
      } catch (e) {
        if (mine !== source) return;
        if (e.status === 401) signedOut();
        else mine.onerror();
      }
    }, 2000);
  };
}

/** take makes a sample of the node's numbers and those before. */
function take(now) {
  const before = live.numbers;
  live.numbers = now;
  if (!before || now.time_us <= before.time_us || total(now.statements) < total(before.statements)) {
    return; // the first ones, or those of a node that was started again
  }
  const time = (now.time_us - before.time_us) / 1e6;
  const counter = (name) => Math.max(0, (now.counters[name] ?? 0) - (before.counters[name] ?? 0)) / time;
  live.samples.push({
    at: now.time_us / 1e6,
    statements: difference(before.statements, now.statements),
    commits: difference(before.commits, now.commits),
    time,
    statementRate: (total(now.statements) - total(before.statements)) / time,
    commitRate: (total(now.commits) - total(before.commits)) / time,
    appliedRate: counter("Replica_transactions_applied"),
    reads: counter("Innodb_buffer_pool_reads"),
    writes: counter("Innodb_pages_written"),
    logBytes: counter("Binlog_bytes_written"),
  });
  if (live.samples.length > kept) live.samples.shift();
}

export const total = (l) => l.counts.reduce((a, b) => a + b, 0);

function difference(before, now) {
  return now.counts.map((n, i) => Math.max(0, n - (before.counts[i] ?? 0)));
}

/** percentile is the time below which a part of what was counted stays; null if nothing was. */
export function percentile(limits, counts, part) {
  const all = counts.reduce((a, b) => a + b, 0);
  if (all === 0) return null;
  let rest = all * part;
  for (let i = 0; i < counts.length; i++) {
    if (rest <= counts[i]) {
      const from = i === 0 ? 0 : limits[i - 1];
      const to = limits[i] ?? limits[limits.length - 1];
      return from + (to - from) * (rest / counts[i]);
    }
    rest -= counts[i];
  }
  return limits[limits.length - 1];
}

/** percentiles of a kind of times (statements, commits) over the last samples up to i. */
export function percentiles(kind, i, parts, width = 5) {
  const from = Math.max(0, i - width + 1);
  const sum = live.samples[i][kind].map(() => 0);
  for (let k = from; k <= i; k++) live.samples[k][kind].forEach((n, b) => (sum[b] += n));
  return parts.map((p) => percentile(live.numbers[kind].limits, sum, p));
}
