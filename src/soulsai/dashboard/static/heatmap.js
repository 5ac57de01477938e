// Where something happens around the boss, who is in the middle looking up.

import { colours } from "./charts.js";
import { el } from "./dom.js";
import { count, share } from "./format.js";

const RINGS_M = [2, 4, 6, 8];

export class HeatMap {
  // colour: name of a CSS variable; grid rows from behind the boss to ahead, columns from left to right.
  constructor(host, { colour, label, unit }) {
    this.options = { colour, label, unit };
    this.host = host;
    this.canvas = el("canvas", { class: "heat", role: "img", "aria-label": label });
    this.tip = el("p", { class: "heat-tip muted" });
    host.append(this.canvas, this.tip);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.tell(null));
    this.resizer = new ResizeObserver(() => this.draw());
    this.resizer.observe(host);
    this.onTheme = () => this.draw();
    window.addEventListener("themechange", this.onTheme);
  }

  set(grid, reachM) {
    this.grid = grid;
    this.reachM = reachM;
    this.total = grid.flat().reduce((sum, value) => sum + value, 0);
    this.tell(null);
    this.draw();
  }

  draw() {
    const size = Math.min(this.host.clientWidth, 420);
    if (!this.grid || !size) return;
    const ratio = window.devicePixelRatio || 1;
    this.size = size;
    this.canvas.style.setProperty("width", `${size}px`);
    this.canvas.style.setProperty("height", `${size}px`);
    this.canvas.width = this.canvas.height = Math.round(size * ratio);
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.cells(context, size);
    this.frame(context, size);
  }

  cells(context, size) {
    const rows = this.grid.length;
    const cell = size / rows;
    const colour = getComputedStyle(document.documentElement).getPropertyValue(this.options.colour).trim();
    const largest = Math.max(...this.grid.flat(), 1);
    context.fillStyle = colour;
    this.grid.forEach((line, row) =>
      line.forEach((value, column) => {
        if (!value) return;
        // The root, so that rare places are seen beside the usual one.
        context.globalAlpha = 0.06 + 0.94 * Math.sqrt(value / largest);
        context.fillRect(column * cell, (rows - 1 - row) * cell, cell + 0.3, cell + 0.3);
      }),
    );
    context.globalAlpha = 1;
  }

  frame(context, size) {
    const palette = colours();
    const middle = size / 2;
    context.strokeStyle = palette.line;
    context.fillStyle = palette.muted;
    context.font = "10px ui-sans-serif, system-ui, sans-serif";
    for (const metres of RINGS_M.filter((ring) => ring < this.reachM)) {
      const radius = (metres / this.reachM) * middle;
      context.globalAlpha = 0.8;
      context.beginPath();
      context.arc(middle, middle, radius, 0, 7);
      context.stroke();
      context.globalAlpha = 1;
      context.fillText(`${metres} m`, middle + 3 + radius * Math.SQRT1_2, middle + radius * Math.SQRT1_2 + 9);
    }
    context.fillStyle = palette.text;
    context.beginPath();
    context.moveTo(middle, middle - 9);
    context.lineTo(middle + 7, middle + 7);
    context.lineTo(middle, middle + 3);
    context.lineTo(middle - 7, middle + 7);
    context.closePath();
    context.fill();
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const cells = this.grid.length;
    const column = Math.floor(((event.clientX - box.left) / this.size) * cells);
    const row = cells - 1 - Math.floor(((event.clientY - box.top) / this.size) * cells);
    this.tell(this.grid[row]?.[column] === undefined ? null : { row, column });
  }

  tell(place) {
    if (!place) {
      this.tip.textContent = this.total ? `${count(this.total)} ${this.options.unit} in all; the boss looks up` : `no ${this.options.unit}`;
      return;
    }
    const metre = (i) => (((i + 0.5) / this.grid.length) * 2 - 1) * this.reachM;
    const [ahead, right] = [metre(place.row), metre(place.column)];
    const where = `${Math.abs(ahead).toFixed(1)} m ${ahead < 0 ? "behind" : "ahead"}, ${Math.abs(right).toFixed(1)} m ${right < 0 ? "left" : "right"}`;
    const value = this.grid[place.row][place.column];
    this.tip.textContent = `${where}: ${count(value)} ${this.options.unit} (${share(this.total ? value / this.total : 0, 2)})`;
  }

  destroy() {
    this.resizer.disconnect();
    window.removeEventListener("themechange", this.onTheme);
    this.canvas.width = this.canvas.height = 0;
    this.host.replaceChildren();
  }
}
