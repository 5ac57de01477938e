// Ticks at round values, and how they are written.

import { isoDay, number } from "./format.js";

export function linearTicks(low, high, most) {
  const span = high - low;
  if (!(span > 0)) return { ticks: [low], step: 1 };
  const rough = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) ?? 10);
  return { ticks: multiples(low, high, step), step };
}

function multiples(low, high, step) {
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) ticks.push(i * step);
  return ticks;
}

// All labels of an axis in the same unit and with the same places, so that they line up.
export function axisLabels(ticks, step) {
  const largest = Math.max(...ticks.map(Math.abs), 0);
  const [unit, suffix] = [
    [1e9, " G"],
    [1e6, " M"],
    [1e3, " k"],
  ].find(([size]) => largest >= size * (size === 1e3 ? 10 : 1)) ?? [1, ""];
  if (largest > 0 && largest < 1e-3) return ticks.map((tick) => number(tick, 2));
  const places = Math.min(6, Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9)));
  const fits = Math.abs((step / unit) * 10 ** places - Math.round((step / unit) * 10 ** places)) < 1e-6;
  return ticks.map((tick) => (tick === 0 ? "0" : (tick / unit).toFixed(fits ? places : places + 1) + suffix));
}

export const shareLabels = (ticks, step) => {
  const places = [0, 1, 2].find((n) => Math.abs(100 * step * 10 ** n - Math.round(100 * step * 10 ** n)) < 1e-6) ?? 3;
  return ticks.map((tick) => `${(100 * tick).toFixed(places)} %`);
};

const SPANS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

const spanOf = (rough) => SPANS_S.find((span) => span >= rough) ?? 604800 * Math.ceil(rough / 604800);

function durationLabel(seconds, step) {
  const sign = seconds < 0 ? "-" : "";
  const s = Math.abs(Math.round(seconds));
  if (step < 60) return s < 60 ? `${sign}${s} s` : `${sign}${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
  if (step < 3600)
    return s < 3600 ? `${sign}${s / 60} min` : `${sign}${Math.floor(s / 3600)}:${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} h`;
  return step < 86400 ? `${sign}${s / 3600} h` : `${sign}${+(s / 86400).toFixed(1)} d`;
}

function dateLabel(seconds, step, previous) {
  const when = new Date(1000 * seconds);
  const day = isoDay(when).slice(5);
  if (step >= 86400) return day;
  const time = `${String(when.getHours()).padStart(2, "0")}:${String(when.getMinutes()).padStart(2, "0")}`;
  const full = step < 60 ? `${time}:${String(when.getSeconds()).padStart(2, "0")}` : time;
  const newDay = previous !== null && isoDay(new Date(1000 * previous)).slice(5) !== day;
  return newDay ? `${day} ${time}` : full;
}

export function xTicks(kind, low, high, most) {
  if (kind === "elapsed_s" || kind === "time") {
    const span = high - low;
    if (span > 0 && span / most < 1) {
      const { ticks, step } = linearTicks(low, high, most);
      const labels = kind === "time" ? ticks.map((tick) => dateLabel(tick, 1, null)) : ticks.map((t) => `${+t.toFixed(2)} s`);
      return { ticks, step, labels };
    }
    const step = spanOf(span / most);
    const offset = kind === "time" ? -60 * new Date(1000 * low).getTimezoneOffset() : 0; // round in local time
    const ticks = multiples(low + offset, high + offset, step).map((tick) => tick - offset);
    const label = kind === "time" ? (t, i) => dateLabel(t, step, i ? ticks[i - 1] : null) : (t) => durationLabel(t, step);
    return { ticks, step, labels: ticks.map(label) };
  }
  const { ticks, step } = linearTicks(low, high, most);
  return { ticks, step, labels: axisLabels(ticks, step) };
}

// First index whose value is not below.
export function lowerBound(values, value) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function nearest(values, value) {
  const i = lowerBound(values, value);
  if (i === 0) return values.length ? 0 : -1;
  return i === values.length || value - values[i - 1] <= values[i] - value ? i - 1 : i;
}

// Exponential average without the bias of its beginning; a hole stays a hole.
export function smoothed(values, weight) {
  if (!(weight > 0)) return values;
  let [sum, norm] = [0, 0];
  return values.map((value) => {
    if (value === null) return null;
    sum = weight * sum + (1 - weight) * value;
    norm = weight * norm + (1 - weight);
    return sum / norm;
  });
}
