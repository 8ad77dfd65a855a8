// Where everything stands: blocks from top to bottom, so that only those in sight are drawn.
//
// A matrix has a row for each member and a column for each queue; tiles are one small square for
// each queue. Headings name topics, and brokers where there are several.

const LARGEST_MATRIX = { queues: 160, members: 24 };
const GAP = 2;

export function plan(data, shown, width, wish) {
  const members = data.members.length;
  const fits = shown.length <= LARGEST_MATRIX.queues && members <= LARGEST_MATRIX.members && members > 0;
  const view = wish === "auto" ? (fits ? "matrix" : "tiles") : wish;
  const scene = { view, width, blocks: [], height: 0, shown, index: new Map() };
  shown.forEach((position, number) => scene.index.set(position, number));
  const size = view === "matrix" ? matrixCell(data, shown, width) : tile(shown.length, width);
  for (const [topic, broker, from, to] of parts(data, shown, view)) {
    heading(scene, data, topic, broker, to - from);
    if (view === "matrix") matrix(scene, data, from, to, size);
    else tiles(scene, from, to, size);
  }
  scene.height += 6;
  return scene;
}

// Which queue is at a point; null if none is.
export function at(scene, x, y) {
  const block = scene.blocks.find((each) => y >= each.y && y < each.y + each.h);
  if (!block || block.kind === "heading") return null;
  const column = Math.floor((x - block.x) / block.pitch);
  if (x < block.x || column < 0 || column >= block.columns) return null;
  const row = block.kind === "tiles" ? Math.floor((y - block.y) / block.pitch) : 0;
  const number = block.from + row * block.columns + column;
  return number < block.to ? scene.shown[number] : null;
}

// Where the queue with this number among those shown is: x, y, size, and how many stand in a row.
export function placeOf(scene, number) {
  const block = scene.blocks.find((each) => each.kind !== "heading" && number >= each.from && number < each.to);
  if (!block) return null;
  const column = (number - block.from) % block.columns;
  const row = block.kind === "tiles" ? Math.floor((number - block.from) / block.columns) : 0;
  return {
    x: block.x + column * block.pitch,
    y: block.kind === "tiles" ? block.y + row * block.pitch : block.y,
    w: block.size,
    h: block.kind === "tiles" ? block.size : block.h - GAP,
    columns: block.columns,
  };
}

// Runs of queues under one heading: a topic in a matrix, a broker's part of a topic in tiles.
function parts(data, shown, view) {
  const found = [];
  let from = 0;
  for (let number = 1; number <= shown.length; number++) {
    const [before, now] = [shown[number - 1], shown[number]];
    const same =
      number < shown.length &&
      data.t[before] === data.t[now] &&
      (view === "matrix" || data.brokers.length > 64 || data.b[before] === data.b[now]);
    if (same) continue;
    const oneBroker = view === "tiles" && data.brokers.length <= 64;
    found.push([data.t[before], oneBroker ? data.b[before] : null, from, number]);
    from = number;
  }
  return found;
}

function heading(scene, data, topic, broker, count) {
  const first = !scene.blocks.some((each) => each.kind === "heading" && each.topic === topic);
  const h = first ? 30 : 20;
  scene.blocks.push({
    kind: "heading", y: scene.height, h, topic, first,
    name: data.topics[topic], broker: broker === null ? "" : data.brokers[broker], count,
  });
  scene.height += h;
}

function tile(count, width) {
  if (count <= 240) return width < 500 ? 30 : 38;
  if (count <= 2000) return 20;
  return 12;
}

function tiles(scene, from, to, size) {
  const pitch = size + GAP;
  const columns = Math.max(1, Math.floor((scene.width - 2) / pitch));
  const rows = Math.ceil((to - from) / columns);
  scene.blocks.push({ kind: "tiles", y: scene.height, h: rows * pitch, x: 1, from, to, size, pitch, columns });
  scene.height += rows * pitch + 4;
}

function matrixCell(data, shown, width) {
  const longest = Math.max(13, ...data.members.map((each) => each.name.length));
  const label = Math.min(longest * 7.7 + 44, width * (width < 500 ? 0.36 : 0.24));
  const counts = new Map();
  for (const position of shown) counts.set(data.t[position], (counts.get(data.t[position]) ?? 0) + 1);
  const widest = Math.max(1, ...counts.values());
  const cell = Math.max(width < 500 ? 22 : 26, Math.min(46, Math.floor((width - label - 4) / widest) - GAP));
  return { label, cell, row: width < 500 ? 26 : 32 };
}

function matrix(scene, data, from, to, { label, cell, row }) {
  const pitch = cell + GAP;
  const columns = Math.max(1, Math.floor((scene.width - label - 2) / pitch));
  for (let start = from; start < to; start += columns) {
    const end = Math.min(start + columns, to);
    const open = scene.shown.slice(start, end).some((position) => data.owner[position] === -1 || data.owner[position] === -2);
    const h = 34 + (data.members.length + open) * row + 8;
    scene.blocks.push({
      kind: "matrix", y: scene.height, h, x: label, from: start, to: end, size: cell, pitch,
      columns: end - start, label, row, head: 34, open,
    });
    scene.height += h;
  }
}
