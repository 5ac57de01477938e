// Elements without HTML text: whatever comes from outside becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";
const isThere = (child) => child !== null && child !== undefined && child !== false;

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (!isThere(value)) continue;
    if (key === "text") node.textContent = value;
    else if (key === "style") for (const [name, part] of Object.entries(value)) node.style.setProperty(name, part);
    else if (key === "data") Object.assign(node.dataset, value);
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter(isThere));
  return node;
}

export function fill(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter(isThere));
  return node;
}

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// Text is only touched when it changes: no needless layout sixty times a second.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const SIGNS = {
  play: "M5 3.2v9.600L13 8z",
  pause: "M4.500 3h2.600v10H4.500zM8.900 3h2.600v10H8.900z",
  back: "M11 3.500v9L5.200 8zM3.600 3.500h1.500v9H3.600z",
  forward: "M5 3.500v9L10.800 8zM10.900 3.500h1.500v9h-1.500z",
  again: "M8 3a5 5 0 1 1-4.700 3.300l1.400.5A3.500 3.500 0 1 0 8 4.500V7L4.300 3.800 8 .8z",
  loss: "M3 3.500v9L8 8zM8 3.500v9L13 8z",
  death: "M12.500 3.500v9L7.500 8zM7.500 3.500v9L2.500 8z",
  share: "M8 1.800 11.600 5.400 10.600 6.400 8.700 4.500V10H7.300V4.500L5.400 6.400 4.400 5.400zM3 8.500h1.400v4.100h7.200V8.500H13V14H3z",
};

export function sign(name) {
  const path = svg("path", { d: SIGNS[name], fill: "currentColor" });
  return svg("svg", { viewBox: "0 0 16 16", width: "18", height: "18", "aria-hidden": "true" }, path);
}

// A canvas as fine as the screen; calls back with its size in CSS pixels whenever that changes.
export function fitted(canvas, onSize) {
  const fit = () => {
    const { width, height } = canvas.getBoundingClientRect();
    const fine = Math.min(window.devicePixelRatio || 1, 2.5);
    if (!width || !height) return;
    const [w, h] = [Math.round(width * fine), Math.round(height * fine)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    canvas.getContext("2d").setTransform(fine, 0, 0, fine, 0, 0);
    onSize(width, height, fine);
  };
  const watcher = new ResizeObserver(fit);
  watcher.observe(canvas);
  fit();
  return () => watcher.disconnect();
}
