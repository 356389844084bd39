// Numbers as people read them, with their units.

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const dash = "–";

/** count is a whole number. */
export const count = (n) => (known(n) ? grouped.format(Number(n)) : dash);

function known(n) {
  return n !== null && n !== undefined && n !== "" && Number.isFinite(Number(n)) && Number(n) >= 0;
}

/** digits writes a number with about three digits. */
function digits(n) {
  if (n === 0) return "0";
  if (n >= 99.95) return grouped.format(n);
  return n >= 9.995 ? n.toFixed(1) : n.toFixed(2);
}

/** bytes is a size: 3.20 MiB. Negative ones are unknown. */
export function bytes(n) {
  if (!known(n)) return dash;
  n = Number(n);
  if (n < 1024) return `${grouped.format(n)} B`;
  let unit = -1;
  do {
    n /= 1024;
    unit++;
  } while (n >= 1024 && unit < 4);
  return `${digits(n)} ${["KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
}

/** seconds is a short time: 340 µs, 12.1 ms, 3.40 s; null is unknown. */
export function seconds(s) {
  if (!known(s)) return dash;
  s = Number(s);
  if (s === 0) return "0 ms";
  if (s < 0.0009995) return `${digits(s * 1e6)} µs`;
  if (s < 0.9995) return `${digits(s * 1e3)} ms`;
  return s < 99.95 ? `${digits(s)} s` : age(s);
}

/** age is a long time: 42 s, 5 min 12 s, 3 h 20 min, 12 d 4 h. */
export function age(s) {
  if (!known(s)) return dash;
  s = Math.floor(Number(s));
  if (s < 60) return `${s} s`;
  const pair = (a, ua, b, ub) => (b ? `${a} ${ua} ${b} ${ub}` : `${a} ${ua}`);
  if (s < 3600) return pair(Math.floor(s / 60), "min", s % 60, "s");
  if (s < 86400) return pair(Math.floor(s / 3600), "h", Math.floor((s % 3600) / 60), "min");
  return pair(Math.floor(s / 86400), "d", Math.floor((s % 86400) / 3600), "h");
}

/** rate is so many each second. */
export const rate = (n) => (known(n) ? `${digits(Number(n))}/s` : dash);

/** percent is a part of a whole. */
export const percent = (part, whole) => (whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : dash);

/** clock is when something was, from microseconds since 1970: the time of day, after a day with the date. */
export function clock(us) {
  const t = Number(us);
  if (t <= 0) return dash;
  const at = new Date(t / 1000);
  return Date.now() - at < 86400e3 ? at.toLocaleTimeString() : at.toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" });
}
