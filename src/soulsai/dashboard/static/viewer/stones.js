// Slabs of stone for the ground: a tile that goes on seamlessly in all directions.

const TILE_PX = 512;
export const TILE_M = 8;
const ROWS = 8;

export function stoneTile() {
  const tile = document.createElement("canvas");
  tile.width = tile.height = TILE_PX;
  const context = tile.getContext("2d");
  const draw = numbers(7);
  const height = TILE_PX / ROWS;
  for (let row = 0; row < ROWS; row++) {
    const cuts = slabCuts(draw);
    for (let i = 0; i < cuts.length - 1; i++) drawSlab(context, draw, cuts[i], row * height, cuts[i + 1] - cuts[i], height);
  }
  return tile;
}

// From edge to edge of the tile, and one slab beyond, which comes again at the other side.
function slabCuts(draw) {
  const cuts = [Math.round(draw() * 60)];
  while (cuts[cuts.length - 1] < TILE_PX - 70) cuts.push(cuts[cuts.length - 1] + Math.round(56 + draw() * 78));
  const last = cuts[cuts.length - 1];
  if (TILE_PX + cuts[0] - last < 36) cuts.pop();
  return [...cuts, TILE_PX + cuts[0]];
}

function drawSlab(context, draw, x, y, width, height) {
  const shade = draw();
  const lit = shade > 0.5 ? `rgba(255,244,222,${(0.09 * (shade - 0.5)).toFixed(3)})` : `rgba(0,0,0,${(0.34 * (0.5 - shade)).toFixed(3)})`;
  const specks = Array.from({ length: 9 }, () => [draw() * width, draw() * height, 0.6 + draw() * 1.6, draw()]);
  for (const left of [x, x - TILE_PX]) {
    if (left + width < 0) continue;
    context.fillStyle = lit;
    context.fillRect(left, y, width, height);
    for (const [dx, dy, size, tone] of specks) {
      context.fillStyle = tone > 0.6 ? "rgba(255,244,222,0.05)" : "rgba(0,0,0,0.16)";
      context.fillRect(left + dx, y + dy, size * 2, size);
    }
    context.strokeStyle = "rgba(0,0,0,0.34)";
    context.lineWidth = 2;
    context.strokeRect(left + 0.5, y + 0.5, width, height);
    context.fillStyle = "rgba(255,244,222,0.05)";
    context.fillRect(left + 2, y + 2, width - 3, 1.5);
  }
}

// Always the same: a picture that is shared looks like the one that was seen.
function numbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  };
}
