// The fight seen from above. Areas of blows come drawn from the server, the same as in windows and videos.

import { Camera } from "./camera.js";
import { fitted } from "./elements.js";
import { stoneTile, TILE_M } from "./stones.js";

const [POLYGON, LINE, CLOSED, DASHES, DISC, RING] = [0, 1, 2, 3, 4, 5];
const [INVULNERABLE, ROLLING, PARRYING, FALLING, OPENED, LOCKED] = [1, 2, 4, 8, 16, 32];
const TRAIL_S = 0.9;
const WORD_S = 1.15;
const RING_S = 0.55;
const FLASH_S = 0.4;
const GLOW_S = 0.22;
const FULL = 2 * Math.PI;
const INK = {
  abyss: "#07070a",
  grid: "rgba(148, 142, 132, 0.16)",
  player: "84,156,255",
  playerEdge: "#cee4ff",
  safe: "96,230,130",
  boss: "#a82a24",
  bossDark: "#5c1512",
  bossEdge: "#f4846c",
  bossEdgeNumbers: "244,132,108",
  open: "#d8b046",
  danger: "255,74,30",
  dealt: "255,226,140",
  hurt: "255,104,84",
};

export class Stage {
  constructor(canvas, scene) {
    this.canvas = canvas;
    this.scene = scene;
    this.context = canvas.getContext("2d");
    this.rim = scene.raw.arena.outlines.map((outline) => pathOf(outline));
    this.floor = pathOf(scene.raw.arena.ring.flat());
    const tile = stoneTile();
    this.stones = this.context.createPattern(tile, "repeat");
    this.stones.setTransform(new DOMMatrix([TILE_M / tile.width, 0, 0, TILE_M / tile.width, 0, 0]));
    this.ground = new Image();
    this.ground.addEventListener("load", () => this.again?.());
    this.ground.src = scene.raw.arena.picture;
    this.time = 0;
    this.unfit = fitted(canvas, (width, height, fine) => this.resize(width, height, fine));
  }

  resize(width, height, fine) {
    Object.assign(this, { width, height, fine });
    this.camera = new Camera(this.scene, width / Math.max(height - this.margins(), 1));
    this.again?.();
  }

  // Room that the bars take at the top and the bottom.
  margins() {
    return this.height < 420 ? 84 : 124;
  }

  destroy() {
    this.unfit();
  }

  draw(time) {
    if (!this.camera) return;
    this.time = time;
    const { context, scene } = this;
    const record = scene.at(time);
    const [player, boss] = [scene.pose(scene.player, time), scene.pose(scene.boss, time)];
    const look = this.camera.at(time);
    this.scale = (this.height - this.margins()) / look.height;
    context.setTransform(this.fine, 0, 0, this.fine, 0, 0);
    context.fillStyle = INK.abyss;
    context.fillRect(0, 0, this.width, this.height);
    this.enter(look);
    this.drawGround();
    this.drawTrails(time, record);
    this.drawAfterglow(time, record);
    this.drawOperations(scene.raw.blows[record], boss);
    this.drawOperations(scene.raw.strikes[record], player);
    this.drawDistance(player, boss);
    this.drawBoss(boss, record, time);
    this.drawIntent(player, record);
    this.drawPlayer(player, record, time);
    this.drawRings(time, record);
    this.leave();
    this.drawWords(time, record, look);
    this.drawEdges(time, record);
    this.drawOverview(player, boss);
  }

  // From here on in metres, y upwards.
  enter(look) {
    const { context, scale } = this;
    context.save();
    const top = this.height < 420 ? 46 : 64;
    const [x, y] = [this.width / 2, top + (this.height - this.margins()) / 2];
    this.origin = { x: x - look.x * scale, y: y + look.y * scale };
    context.transform(scale, 0, 0, -scale, this.origin.x, this.origin.y);
  }

  leave() {
    this.context.restore();
  }

  px(count) {
    return count / this.scale;
  }

  // Into the frame of a fighter, whose heading a looks along (-sin a, -cos a).
  turn({ x, y, heading }) {
    const [sine, cosine] = [Math.sin(heading), Math.cos(heading)];
    this.context.transform(cosine, -sine, sine, cosine, x, y);
  }

  drawGround() {
    const { context, scene } = this;
    const { low, high, grid, rim, colours } = scene.raw.arena;
    if (this.ground.complete && this.ground.naturalWidth) {
      context.save();
      context.translate(low[0] / 100, high[1] / 100);
      context.scale(1, -1);
      context.imageSmoothingQuality = "high";
      context.drawImage(this.ground, 0, 0, (high[0] - low[0]) / 100, (high[1] - low[1]) / 100);
      context.restore();
    }
    context.fillStyle = this.stones;
    context.fill(this.floor);
    context.lineWidth = this.px(1);
    context.strokeStyle = INK.grid;
    context.beginPath();
    for (const [x0, y0, x1, y1] of grid) {
      context.moveTo(x0 / 100, y0 / 100);
      context.lineTo(x1 / 100, y1 / 100);
    }
    context.stroke();
    for (const operation of rim) this.drawOperation(operation, this.rim, colours, scene.raw.arena.outlines);
  }

  drawOperations(operations, pose) {
    if (!operations) return;
    const { context, scene } = this;
    context.save();
    this.turn(pose);
    for (const operation of operations) this.drawOperation(operation, null, scene.raw.colours);
    context.restore();
  }

  drawOperation([kind, outline, colour, alpha, width], paths, colours, outlines) {
    const { context } = this;
    const style = `rgba(${colours[colour]},${alpha / 100})`;
    if (kind === DISC || kind === RING) {
      const [x, y, radius] = outlines ? outlines[outline].map((value) => value / 100) : this.scene.outlines[outline];
      this.disc(x, y, radius, kind === DISC ? style : null, kind === RING ? style : null, width / 10);
      return;
    }
    const path = paths ? paths[outline] : this.scene.path(outline);
    if (kind === POLYGON) {
      context.fillStyle = style;
      context.fill(path);
      return;
    }
    context.strokeStyle = style;
    context.lineWidth = this.px(width / 10);
    context.lineCap = context.lineJoin = kind === DASHES ? "butt" : "round";
    context.setLineDash(kind === DASHES ? [this.px(10), this.px(9)] : []);
    if (kind === CLOSED) {
      const closed = new Path2D(path);
      closed.closePath();
      context.stroke(closed);
    } else context.stroke(path);
    context.setLineDash([]);
  }

  disc(x, y, radius, fill, stroke = null, width = 1) {
    const { context } = this;
    context.beginPath();
    context.arc(x, y, radius, 0, FULL);
    if (fill) {
      context.fillStyle = fill;
      context.fill();
    }
    if (stroke) {
      context.strokeStyle = stroke;
      context.lineWidth = this.px(width);
      context.stroke();
    }
  }

  // A blow that landed a moment ago fades away where it landed.
  drawAfterglow(time, record) {
    const { context, scene } = this;
    for (let i = record - 1; i >= 0 && time - scene.time[i] < GLOW_S + 0.1; i--) {
      const operations = (scene.raw.blows[i] ?? []).filter(([kind, , , alpha]) => kind === POLYGON && alpha > 55);
      if (!operations.length) continue;
      context.save();
      context.globalAlpha = Math.max(0, 1 - (time - scene.time[i] - 0.1) / GLOW_S) * 0.5;
      this.turn({ x: scene.boss.x[i], y: scene.boss.y[i], heading: scene.boss.heading[i] });
      for (const operation of operations) this.drawOperation(operation, null, scene.raw.colours);
      context.restore();
    }
  }

  drawTrails(time, record) {
    const { context, scene } = this;
    const flags = scene.raw.flags;
    context.lineCap = "round";
    for (let i = record; i > 0 && time - scene.time[i - 1] < TRAIL_S; i--) {
      const fade = 1 - (time - scene.time[i - 1]) / TRAIL_S;
      for (const [who, colour, width] of [[scene.boss, INK.bossEdgeNumbers, 5], [scene.player, INK.player, 4]]) {
        const to = i === record ? scene.pose(who, time) : { x: who.x[i], y: who.y[i] };
        context.strokeStyle = `rgba(${colour},${0.4 * fade})`;
        context.lineWidth = this.px(width * fade + 0.5);
        context.beginPath();
        context.moveTo(who.x[i - 1], who.y[i - 1]);
        context.lineTo(to.x, to.y);
        context.stroke();
      }
      if (flags[i - 1] & ROLLING) {
        const colour = flags[i - 1] & INVULNERABLE ? INK.safe : INK.player;
        this.disc(scene.player.x[i - 1], scene.player.y[i - 1], 0.42, `rgba(${colour},${0.4 * fade})`);
      }
    }
  }

  drawDistance(player, boss) {
    const { context } = this;
    context.strokeStyle = "rgba(255,255,255,0.22)";
    context.lineWidth = this.px(1);
    context.setLineDash([this.px(4), this.px(6)]);
    context.beginPath();
    context.moveTo(player.x, player.y);
    context.lineTo(boss.x, boss.y);
    context.stroke();
    context.setLineDash([]);
  }

  // How long ago something of a kind happened, as a share of `span` that is left.
  since(kind, time, record, span) {
    for (let k = this.scene.events.length - 1; k >= 0; k--) {
      const event = this.scene.events[k];
      if (event.record > record || event.kind !== kind) continue;
      return Math.max(0, 1 - (time - event.at) / span);
    }
    return 0;
  }

  drawBoss(boss, record, time) {
    const { context, scene } = this;
    const radius = scene.raw.radius[1] / 100;
    const flags = scene.raw.flags[record];
    const edge = flags & OPENED ? INK.open : INK.bossEdge;
    if (scene.raw.phase[record] > 1) this.drawTendrils(boss, radius, time);
    this.disc(boss.x + 0.1, boss.y - 0.16, radius * 1.12, "rgba(0,0,0,0.4)");
    context.save();
    this.turn(boss);
    this.nose(radius, edge);
    const body = context.createRadialGradient(-radius * 0.3, radius * 0.3, radius * 0.1, 0, 0, radius);
    body.addColorStop(0, "#d0463a");
    body.addColorStop(0.55, INK.boss);
    body.addColorStop(1, INK.bossDark);
    this.disc(0, 0, radius, body, edge, 2.5);
    context.beginPath();
    context.moveTo(0, 0);
    context.arc(0, 0, radius * 0.86, -Math.PI / 2 - 0.66, -Math.PI / 2 + 0.66);
    context.closePath();
    context.fillStyle = "rgba(255,190,160,0.16)";
    context.fill();
    const hurt = this.since("dealt", time, record, FLASH_S);
    if (hurt > 0) this.disc(0, 0, radius, `rgba(255,240,210,${0.8 * hurt})`);
    context.restore();
    if (flags & LOCKED) this.disc(boss.x, boss.y, radius * 0.13, "#fff", "rgba(0,0,0,0.6)", 1.5);
  }

  // The growth of the second phase, restless behind the body.
  drawTendrils(boss, radius, time) {
    const { context } = this;
    const step = time * 10;
    context.save();
    this.turn(boss);
    for (let i = 0; i < 11; i++) {
      const bearing = (Math.PI / 180) * (60 + 24 * i) + 0.12 * Math.sin(0.9 * step + 1.7 * i);
      const length = radius * (1.8 + 0.4 * Math.sin(0.7 * step + 2.4 * i));
      const at = (angle, far) => [-Math.sin(angle) * far, -Math.cos(angle) * far];
      context.beginPath();
      context.moveTo(...at(bearing - 0.35, radius * 0.8));
      context.quadraticCurveTo(...at(bearing + 0.22, length * 0.72), ...at(bearing, length));
      context.quadraticCurveTo(...at(bearing + 0.05, length * 0.6), ...at(bearing + 0.35, radius * 0.8));
      context.closePath();
      context.fillStyle = "#120a10";
      context.fill();
      context.strokeStyle = "rgba(120,40,60,0.5)";
      context.lineWidth = this.px(1);
      context.stroke();
    }
    context.restore();
  }

  nose(radius, colour) {
    const { context } = this;
    context.beginPath();
    context.moveTo(radius * 0.62, -radius * 0.7);
    context.lineTo(0, -radius * 1.65);
    context.lineTo(-radius * 0.62, -radius * 0.7);
    context.closePath();
    context.fillStyle = colour;
    context.fill();
  }

  drawPlayer(player, record, time) {
    const { context, scene } = this;
    const flags = scene.raw.flags[record];
    const radius = (scene.raw.radius[0] / 100) * 1.15 * (flags & FALLING ? 0.6 : 1);
    if (flags & INVULNERABLE) this.disc(player.x, player.y, 1, `rgba(${INK.safe},0.25)`, `rgba(${INK.safe},0.95)`, 2);
    const hurt = this.since("hurt", time, record, FLASH_S);
    if (hurt > 0) this.disc(player.x, player.y, 0.9 + 0.5 * (1 - hurt), `rgba(${INK.danger},${0.6 * hurt})`);
    this.disc(player.x + 0.06, player.y - 0.1, radius * 1.15, "rgba(0,0,0,0.4)");
    context.save();
    this.turn(player);
    if (flags & PARRYING) {
      context.beginPath();
      context.arc(0, 0, 0.85, -Math.PI / 2 - 1, -Math.PI / 2 + 1);
      context.strokeStyle = "#ffd65c";
      context.lineWidth = this.px(3);
      context.stroke();
    }
    this.nose(radius, INK.playerEdge);
    const body = context.createRadialGradient(-radius * 0.3, radius * 0.3, radius * 0.1, 0, 0, radius);
    body.addColorStop(0, "#8fc0ff");
    body.addColorStop(1, "#2f6fd0");
    this.disc(0, 0, radius, body, INK.playerEdge, 2);
    context.restore();
  }

  // Where the pressed direction points.
  drawIntent(player, record) {
    const { context, scene } = this;
    const heading = scene.raw.intent[record + 1];
    if (heading === null || heading === undefined) return;
    const isRoll = scene.raw.actions[scene.actionAfter(record)]?.startsWith("roll");
    context.save();
    this.turn({ ...player, heading: heading / 1000 });
    context.strokeStyle = isRoll ? `rgb(${INK.safe})` : INK.playerEdge;
    context.lineWidth = this.px(2.4);
    context.lineCap = context.lineJoin = "round";
    context.beginPath();
    context.moveTo(0.24, -1.12);
    context.lineTo(0, -1.4);
    context.lineTo(-0.24, -1.12);
    context.stroke();
    context.restore();
  }

  drawRings(time, record) {
    const { scene } = this;
    for (const event of this.recent(time, record, RING_S)) {
      if (event.kind !== "dodged") continue;
      const age = (time - event.at) / RING_S;
      const [x, y] = [scene.player.x[event.record], scene.player.y[event.record]];
      this.disc(x, y, 0.9 + 1.5 * age, null, `rgba(${INK.safe},${0.9 * (1 - age)})`, 3 * (1 - age) + 0.5);
    }
  }

  recent(time, record, span) {
    return this.scene.events.filter((event) => event.record <= record && time - event.at < span);
  }

  drawWords(time, record) {
    const { context, scene } = this;
    context.textBaseline = "middle";
    context.lineJoin = "round";
    for (const event of this.recent(time, record, WORD_S)) {
      const age = (time - event.at) / WORD_S;
      const [own, other] = event.kind === "dealt" ? [scene.boss, scene.player] : [scene.player, scene.boss];
      const away = own.x[event.record] > other.x[event.record] ? 1 : -1;
      const x = this.origin.x + own.x[event.record] * this.scale + away * 30;
      const y = this.origin.y - own.y[event.record] * this.scale - 24 - 46 * (1 - (1 - age) ** 2);
      const large = 1 + 0.5 * Math.max(0, 1 - age * 8);
      context.globalAlpha = Math.min(1, 2.2 * (1 - age));
      context.font = `800 ${Math.round((event.kind === "dodged" ? 17 : 23) * large)}px system-ui, sans-serif`;
      context.textAlign = away > 0 ? "left" : "right";
      context.lineWidth = 4;
      context.strokeStyle = "rgba(0,0,0,0.75)";
      context.strokeText(event.text, x, y);
      context.fillStyle = `rgb(${{ dodged: INK.safe, dealt: INK.dealt }[event.kind] ?? INK.hurt})`;
      context.fillText(event.text, x, y);
    }
    context.globalAlpha = 1;
  }

  // The rim of the picture is dark, and red for a moment after a hit.
  drawEdges(time, record) {
    const { context, width, height } = this;
    const hurt = this.since("hurt", time, record, FLASH_S);
    const shade = context.createRadialGradient(width / 2, height / 2, height * 0.42, width / 2, height / 2, Math.hypot(width, height) * 0.58);
    shade.addColorStop(0, "rgba(0,0,0,0)");
    shade.addColorStop(1, hurt > 0 ? `rgba(${Math.round(150 * hurt)},0,0,${0.5 + 0.25 * hurt})` : "rgba(0,0,0,0.5)");
    context.fillStyle = shade;
    context.fillRect(0, 0, width, height);
  }

  drawOverview(player, boss) {
    if (this.width < 520) return;
    const { context, scene } = this;
    const { ring, cliffs } = scene.raw.arena;
    const [xs, ys] = [ring.map((corner) => corner[0] / 100), ring.map((corner) => corner[1] / 100)];
    const scale = 74 / (Math.max(...ys) - Math.min(...ys));
    const left = this.width - 16 - (Math.max(...xs) - Math.min(...xs)) * scale;
    const place = (x, y) => [left + (x - Math.min(...xs)) * scale, 16 + (Math.max(...ys) - y) * scale];
    context.beginPath();
    for (let i = 0; i < xs.length; i++) context.lineTo(...place(xs[i], ys[i]));
    context.closePath();
    context.fillStyle = "rgba(20,20,24,0.6)";
    context.fill();
    for (let i = 0; i < xs.length; i++) {
      const j = (i + 1) % xs.length;
      context.beginPath();
      context.moveTo(...place(xs[i], ys[i]));
      context.lineTo(...place(xs[j], ys[j]));
      context.strokeStyle = cliffs[i] ? "rgba(214,84,62,0.9)" : "rgba(190,178,158,0.75)";
      context.lineWidth = 1.5;
      context.stroke();
    }
    for (const [who, colour, radius] of [[boss, INK.bossEdge, 3.6], [player, "#549cff", 3]]) {
      const [x, y] = place(who.x, who.y);
      context.beginPath();
      context.arc(x, y, radius, 0, FULL);
      context.fillStyle = colour;
      context.fill();
    }
  }
}

function pathOf(outline) {
  const path = new Path2D();
  for (let i = 0; i + 1 < outline.length; i += 2) path.lineTo(outline[i] / 100, outline[i + 1] / 100);
  return path;
}
