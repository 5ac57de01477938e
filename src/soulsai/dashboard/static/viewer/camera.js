// The stretch of the arena that is shown: known beforehand for the whole fight, so it is as smooth backwards.

const NEAREST_M = 12;
const NARROWEST_M = 10;
const FARTHEST_M = 46;
const AROUND_M = 5;
const SMOOTH_S = 1.1;
const CENTRE_PULL = 0.1;

export class Camera {
  constructor(scene, aspect) {
    const { player, boss, count } = scene;
    const [low, high] = [scene.raw.arena.low, scene.raw.arena.high];
    const middle = [(low[0] + high[0]) / 200, (low[1] + high[1]) / 200];
    const wanted = { x: new Float64Array(count), y: new Float64Array(count), height: new Float64Array(count) };
    for (let i = 0; i < count; i++) {
      const mix = (a, b, m) => ((a + b) / 2) * (1 - CENTRE_PULL) + m * CENTRE_PULL;
      const [x, y] = [mix(player.x[i], boss.x[i], middle[0]), mix(player.y[i], boss.y[i], middle[1])];
      const halfX = Math.max(Math.abs(player.x[i] - x), Math.abs(boss.x[i] - x)) + AROUND_M;
      const halfY = Math.max(Math.abs(player.y[i] - y), Math.abs(boss.y[i] - y)) + AROUND_M;
      const height = Math.max(2 * halfY, (2 * halfX) / aspect);
      [wanted.x[i], wanted.y[i]] = [x, y];
      wanted.height[i] = Math.log(Math.min(Math.max(height, NEAREST_M, NARROWEST_M / aspect), FARTHEST_M));
    }
    this.scene = scene;
    this.x = smoothed(wanted.x, scene.time);
    this.y = smoothed(wanted.y, scene.time);
    this.height = smoothed(wanted.height, scene.time).map(Math.exp);
  }

  at(time) {
    const i = this.scene.at(time);
    const j = Math.min(i + 1, this.scene.count - 1);
    const span = this.scene.time[j] - this.scene.time[i];
    const share = span > 0 ? Math.min(Math.max((time - this.scene.time[i]) / span, 0), 1) : 0;
    const mix = (values) => values[i] + (values[j] - values[i]) * share;
    return { x: mix(this.x), y: mix(this.y), height: mix(this.height) };
  }
}

// Every value as a mean of those around it in time, the nearer the more.
function smoothed(values, time) {
  const found = new Float64Array(values.length);
  for (let i = 0; i < values.length; i++) {
    let [sum, weights] = [0, 0];
    const add = (j) => {
      const away = (time[j] - time[i]) / SMOOTH_S;
      const weight = Math.exp(-2 * away * away);
      sum += weight * values[j];
      weights += weight;
    };
    for (let j = i; j < values.length && time[j] - time[i] <= SMOOTH_S; j++) add(j);
    for (let j = i - 1; j >= 0 && time[i] - time[j] <= SMOOTH_S; j--) add(j);
    found[i] = sum / weights;
  }
  return found;
}
