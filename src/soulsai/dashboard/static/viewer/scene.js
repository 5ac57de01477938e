// A scene as it comes from the server, made ready to be drawn: metres, radians, seconds, and lookups by time.

const SCENE_FORMAT = 1;
const STEP_S = 0.1;

export class Scene {
  constructor(raw) {
    if (raw?.format !== SCENE_FORMAT) throw new Error("This fight was written by another version; reload the page.");
    this.raw = raw;
    this.count = raw.time_ms.length;
    this.time = rising(raw.time_ms);
    this.duration = this.time[this.count - 1];
    this.player = walker(raw.player);
    this.boss = walker(raw.boss_pose);
    this.outlines = raw.outlines.map(pointsOf);
    this.paths = new Map();
    this.thoughts = raw.thoughts ? new Thinking(raw.thoughts, this.count) : null;
    this.events = raw.events.map(([record, text, kind]) => ({ record, text, kind, at: this.time[record] }));
    this.lost = raw.outcome !== "won";
    this.phaseChanges = raw.phase.flatMap((phase, i) => (i && phase > raw.phase[i - 1] ? [i] : []));
  }

  // The record that stands at a time.
  at(time) {
    let [low, high] = [0, this.count - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.time[middle] <= time + 1e-6) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  // Where somebody is between two records.
  pose(who, time) {
    const i = this.at(time);
    const j = Math.min(i + 1, this.count - 1);
    const span = this.time[j] - this.time[i];
    const share = span > 0 ? Math.min(Math.max((time - this.time[i]) / span, 0), 1) : 0;
    const mix = (values) => values[i] + (values[j] - values[i]) * share;
    return { x: mix(who.x), y: mix(who.y), heading: mix(who.heading) };
  }

  path(outline) {
    let path = this.paths.get(outline);
    if (!path) {
      path = new Path2D();
      const points = this.outlines[outline];
      for (let i = 0; i < points.length; i += 2) path.lineTo(points[i], points[i + 1]);
      this.paths.set(outline, path);
    }
    return path;
  }

  // What is pressed in the step that begins with a record.
  actionAfter(record) {
    return record + 1 < this.count ? this.raw.action[record + 1] : -1;
  }

  isOpen(record, action) {
    return Boolean((this.raw.mask[record] >> action) & 1);
  }
}

class Thinking {
  constructor(raw, count) {
    Object.assign(this, raw);
    this.of = new Int32Array(count).fill(-1);
    for (let k = 0; k < raw.records.length; k++) {
      const end = k + 1 < raw.records.length ? raw.records[k + 1] : count;
      this.of.fill(k, raw.records[k], end);
    }
    this.layers = raw.layers.map((layer) => ({ ...layer, shades: bytesOf(layer.shades) }));
    const shown = raw.scores.flatMap((row, k) => row.filter((_, a) => (raw.open[k] >> a) & 1));
    this.least = raw.kind === "q" && shown.length ? shown.reduce((a, b) => Math.min(a, b)) : 0;
    this.most = raw.kind === "q" && shown.length ? shown.reduce((a, b) => Math.max(a, b)) : 1;
  }

  // Was it asked at this very record, or is this what it thought when it last had a choice?
  isNow(record) {
    return this.of[record] >= 0 && this.records[this.of[record]] === record;
  }
}

// Times in seconds; a recording whose clock stands still is shown by its steps.
function rising(milliseconds) {
  const times = Float64Array.from(milliseconds, (value) => (value - milliseconds[0]) / 1000);
  for (let i = 1; i < times.length; i++) if (times[i] <= times[i - 1]) return times.map((_, k) => k * STEP_S);
  return times;
}

function walker(pose) {
  const heading = Float64Array.from(pose.heading, (value) => value / 1000);
  for (let i = 1; i < heading.length; i++) {
    const turn = heading[i] - heading[i - 1];
    heading[i] -= Math.round(turn / (2 * Math.PI)) * 2 * Math.PI; // the short way round
  }
  return {
    x: Float64Array.from(pose.x, (value) => value / 100),
    y: Float64Array.from(pose.y, (value) => value / 100),
    heading,
  };
}

// Outlines are written from point to point.
function pointsOf(steps) {
  const points = Float32Array.from(steps);
  for (let i = 2; i < points.length; i++) points[i] += points[i - 2];
  return points.map((value) => value / 100);
}

function bytesOf(text) {
  const binary = atob(text);
  return Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
}
