// How the ticks of an axis are written, and curves made smoother.

import { isoDay, number } from "./format.js";

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

export const SPANS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

export function durationLabel(seconds, step) {
  const sign = seconds < 0 ? "-" : "";
  if (step < 1) return `${+seconds.toFixed(2)} s`;
  const s = Math.abs(Math.round(seconds));
  if (step < 60) return s < 60 ? `${sign}${s} s` : `${sign}${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
  if (step < 3600)
    return s < 3600 ? `${sign}${s / 60} min` : `${sign}${Math.floor(s / 3600)}:${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} h`;
  return step < 86400 ? `${sign}${s / 3600} h` : `${sign}${+(s / 86400).toFixed(1)} d`;
}

export function dateLabel(seconds, step, previous) {
  const when = new Date(1000 * seconds);
  const day = isoDay(when).slice(5);
  if (step >= 86400) return day;
  const time = `${String(when.getHours()).padStart(2, "0")}:${String(when.getMinutes()).padStart(2, "0")}`;
  const full = step < 60 ? `${time}:${String(when.getSeconds()).padStart(2, "0")}` : time;
  const newDay = previous !== null && isoDay(new Date(1000 * previous)).slice(5) !== day;
  return newDay ? `${day} ${time}` : full;
}

// The place nearest to this one that has a value.
export function nearestFilled(values, place) {
  const filled = (i) => values[i] !== null && values[i] !== undefined;
  for (let away = 0; away < values.length; away++) {
    if (filled(place - away)) return place - away;
    if (filled(place + away)) return place + away;
  }
  return place;
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
