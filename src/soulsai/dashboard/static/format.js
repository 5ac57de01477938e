// Numbers, shares, times and dates as people read them.

const THIN = "\u202f"; // narrow, and never at the end of a line

export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return scaled(value / 1e9, digits) + THIN + "G";
  if (size >= 1e6) return scaled(value / 1e6, digits) + THIN + "M";
  if (size >= 1e4) return scaled(value / 1e3, digits) + THIN + "k";
  if (size === 0) return "0";
  if (size < 1e-3) return value.toExponential(1);
  if (Number.isInteger(value)) return count(value);
  return scaled(value, size >= 1000 ? 4 : digits);
}

function scaled(value, digits) {
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.max(Math.abs(value), 1e-12))));
  const text = value.toFixed(Math.min(places, 6));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

// Every digit: for what is counted and compared by eye.
export function count(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return Math.round(value).toLocaleString("en-US");
}

export function share(value, places = 1) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return (100 * value).toFixed(places) + THIN + "%";
}

export function interval(low, high) {
  if (!Number.isFinite(low ?? NaN) || !Number.isFinite(high ?? NaN)) return "";
  return `${(100 * low).toFixed(1)}–${(100 * high).toFixed(1)}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const s = Math.max(0, seconds);
  if (s < 10) return s.toFixed(1).replace(/\.0$/, "") + THIN + "s";
  if (s < 60) return Math.round(s) + THIN + "s";
  const minutes = Math.floor(s / 60);
  if (minutes < 60) return `${minutes}${THIN}min` + (minutes < 10 && s % 60 >= 1 ? ` ${Math.floor(s % 60)}${THIN}s` : "");
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours}${THIN}h` + (minutes % 60 ? ` ${minutes % 60}${THIN}min` : "");
  return `${Math.floor(hours / 24)}${THIN}d` + (hours % 24 ? ` ${hours % 24}${THIN}h` : "");
}

export function ago(stamp, now = Date.now()) {
  const then = Date.parse(stamp ?? "");
  if (Number.isNaN(then)) return "–";
  const seconds = (now - then) / 1000;
  return seconds < 3 ? "now" : `${duration(Math.floor(seconds)).split(" ")[0]} ago`;
}

export function clock(stamp) {
  const when = new Date(stamp);
  return Number.isNaN(when.getTime()) ? "–" : when.toLocaleTimeString("en-GB");
}

export function dateTime(seconds) {
  const when = new Date(1000 * seconds);
  return Number.isNaN(when.getTime()) ? "–" : `${isoDay(when)} ${when.toLocaleTimeString("en-GB")}`;
}

export const isoDay = (when) =>
  `${when.getFullYear()}-${String(when.getMonth() + 1).padStart(2, "0")}-${String(when.getDate()).padStart(2, "0")}`;

export const plural = (n, word, many = `${word}s`) => `${count(n)} ${n === 1 ? word : many}`;

// Of an axis: how a value of it is told in full.
export const X_AXES = {
  step: { label: "Steps", title: "steps", tell: (value) => `step ${count(value)}` },
  game_hours: { label: "Game hours", title: "hours of game time", tell: (value) => `${number(value)} game hours` },
  elapsed_s: { label: "Wall-clock", title: "time spent training", tell: (value) => `after ${duration(value)}` },
  time: { label: "Date", title: "date", tell: (value) => dateTime(value) },
};
