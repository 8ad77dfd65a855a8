// Drawing: the blocks in sight, on one canvas of the size of the window into the picture.

import { codeOf, colourOf, inkOn } from "./colours.js";
import { mark } from "./marks.js";
import { NO_OWNER, UNKNOWN_OWNER, SEVERAL, hasProblem, holds, short } from "./queues.js";

export function paint(ctx, scene, data, look) {
  const { top, height, theme } = look;
  ctx.clearRect(0, 0, scene.width, height);
  ctx.save();
  ctx.translate(0, -top);
  const painter = { ctx, scene, data, ...look, most: mostLag(data), moved: new Set(data.moved) };
  let drawn = 0;
  for (const block of scene.blocks) {
    if (block.y + block.h < top || block.y > top + height) continue;
    if (block.kind === "heading") heading(painter, block);
    else if (block.kind === "tiles") drawn += tiles(painter, block);
    else drawn += matrix(painter, block);
  }
  if (look.current !== null) ring(ctx, look.currentPlace, theme.accent, 3);
  ctx.restore();
  return drawn;
}

function heading({ ctx, theme }, block) {
  let x = 1;
  const base = block.y + block.h - 8;
  if (block.first) {
    ctx.font = `600 14px ${theme.font}`;
    ctx.fillStyle = theme.text;
    ctx.fillText(block.name, x, base);
    x += ctx.measureText(block.name).width + 10;
  }
  ctx.font = `12px ${theme.font}`;
  ctx.fillStyle = theme.faint;
  const count = `${block.count} ${block.count === 1 ? "queue" : "queues"}`;
  ctx.fillText(block.broker ? `${block.broker} · ${count}` : count, x, base);
}

function tiles(painter, block) {
  const { scene, top, height } = painter;
  const firstRow = Math.max(0, Math.floor((top - block.y) / block.pitch));
  const lastRow = Math.ceil((top + height - block.y) / block.pitch);
  const begin = block.from + firstRow * block.columns;
  const end = Math.min(block.to, block.from + lastRow * block.columns);
  for (let number = begin; number < end; number++) {
    const x = block.x + ((number - block.from) % block.columns) * block.pitch;
    const y = block.y + Math.floor((number - block.from) / block.columns) * block.pitch;
    cell(painter, scene.shown[number], x, y, block.size, block.size, null);
  }
  return end - begin;
}

function matrix(painter, block) {
  const { ctx, scene, data, theme } = painter;
  const seats = data.members;
  brokers(painter, block);
  ctx.textBaseline = "middle";
  seats.forEach((member, row) => label(painter, block, member, row));
  if (block.open) {
    ctx.fillStyle = theme.faint;
    ctx.font = `italic 12px ${theme.font}`;
    ctx.fillText(clipped(ctx, "no owner, or unknown", block.label - 12), 6, rowTop(block, seats.length) + block.row / 2 - 1);
  }
  ctx.textBaseline = "alphabetic";
  for (let number = block.from; number < block.to; number++) {
    const position = scene.shown[number];
    const x = block.x + (number - block.from) * block.pitch;
    ctx.fillStyle = theme.faint;
    ctx.font = `11px ${theme.font}`;
    ctx.textAlign = "center";
    ctx.fillText(String(data.q[position]), x + block.size / 2, block.y + 29);
    ctx.textAlign = "left";
    seats.forEach((member, row) => {
      const y = rowTop(block, row);
      ctx.fillStyle = theme.line;
      ctx.globalAlpha = 0.45;
      box(ctx, x, y, block.size, block.row - 2, 4);
      ctx.globalAlpha = 1;
      if (holds(data, position, member.seat)) cell(painter, position, x, y, block.size, block.row - 2, member.seat);
      else if (data.expected[position] === member.seat) expected(ctx, x, y, block, colourOf(member.seat));
    });
    if (data.owner[position] === NO_OWNER || data.owner[position] === UNKNOWN_OWNER) {
      cell(painter, position, x, rowTop(block, seats.length), block.size, block.row - 2, null);
    }
  }
  return block.to - block.from;
}

function rowTop(block, row) {
  return block.y + block.head + row * block.row;
}

// A line over the queues of each broker, with its name.
function brokers({ ctx, scene, data, theme }, block) {
  ctx.font = `11px ${theme.font}`;
  let start = block.from;
  for (let number = block.from + 1; number <= block.to; number++) {
    if (number < block.to && data.b[scene.shown[number]] === data.b[scene.shown[start]]) continue;
    const x = block.x + (start - block.from) * block.pitch;
    const width = (number - start) * block.pitch - 4;
    ctx.fillStyle = theme.faint;
    ctx.fillText(clipped(ctx, data.brokers[data.b[scene.shown[start]]], width), x, block.y + 10);
    ctx.fillStyle = theme.line;
    ctx.fillRect(x, block.y + 14, width, 2);
    start = number;
  }
}

function label({ ctx, theme, lit }, block, member, row) {
  const y = rowTop(block, row) + block.row / 2 - 1;
  const faded = lit !== null && lit !== member.seat;
  ctx.globalAlpha = faded ? 0.4 : 1;
  ctx.fillStyle = colourOf(member.seat);
  box(ctx, 0, y - 9, 22, 18, 4);
  ctx.fillStyle = inkOn(colourOf(member.seat));
  ctx.font = `700 11px ${theme.font}`;
  ctx.textAlign = "center";
  ctx.fillText(codeOf(member.seat), 11, y + 1);
  ctx.textAlign = "left";
  ctx.fillStyle = member.untold ? theme.faint : theme.text;
  ctx.font = `${member.untold ? "italic " : ""}13px ${theme.font}`;
  ctx.fillText(clipped(ctx, member.name, block.label - 36), 28, y + 1);
  ctx.globalAlpha = 1;
}

// One queue. `seat` is whose cell it is in a matrix; in tiles it is null.
function cell(painter, position, x, y, w, h, seat) {
  const { ctx, data, theme, lit, moved, fresh } = painter;
  const owner = data.owner[position];
  const radius = w < 16 ? 2 : 4;
  ctx.globalAlpha = lit !== null && !holds(data, position, lit) ? 0.13 : 1;
  if (owner === NO_OWNER) hatched(ctx, x, y, w, h, theme);
  else if (owner === UNKNOWN_OWNER) unknown(painter, position, x, y, w, h);
  else if (owner === SEVERAL && seat === null) halves(ctx, data.several[position], x, y, w, h);
  else {
    ctx.fillStyle = colourOf(seat ?? owner);
    box(ctx, x, y, w, h, radius);
  }
  if (owner >= 0 || owner === SEVERAL) inside(painter, position, x, y, w, h, seat);
  if (owner === SEVERAL) ring(ctx, { x, y, w, h }, theme.bad, w < 16 ? 2 : 3);
  else if (owner >= 0 && hasProblem(data, position)) corner(ctx, x, y, w, theme);
  if (data.stage[position]) mark(ctx, data.stage[position], x, y, w, h, theme);
  if (moved.has(position)) ring(ctx, { x, y, w, h }, theme.text, 2);
  const glow = fresh.get(position);
  if (glow) {
    ctx.globalAlpha = glow;
    ring(ctx, { x: x - 1, y: y - 1, w: w + 2, h: h + 2 }, theme.accent, w < 16 ? 2 : 3);
  }
  ctx.globalAlpha = 1;
}

// The member's letter and the queue's number, or its lag in a matrix; a bar for the lag below.
function inside({ ctx, data, theme, most }, position, x, y, w, h, seat) {
  const owner = seat ?? (data.owner[position] >= 0 ? data.owner[position] : data.several[position][0]);
  const ink = inkOn(colourOf(owner));
  const lag = data.lag[position];
  ctx.fillStyle = ink;
  ctx.textAlign = "center";
  if (seat !== null && lag !== null && w >= 22) {
    ctx.font = `600 11px ${theme.font}`;
    ctx.fillText(short(lag), x + w / 2, y + h / 2 + 3);
  } else if (seat === null && w >= 28) {
    ctx.font = `700 12px ${theme.font}`;
    ctx.fillText(codeOf(owner), x + w / 2, y + h / 2);
    ctx.font = `10px ${theme.font}`;
    ctx.fillText(String(data.q[position]), x + w / 2, y + h / 2 + 11);
  } else if (seat === null && w >= 18) {
    ctx.font = `700 9px ${theme.font}`;
    ctx.fillText(codeOf(owner), x + w / 2, y + h / 2 + 2);
  }
  ctx.textAlign = "left";
  if (lag > 0) {
    const share = Math.log1p(lag) / Math.log1p(most);
    const before = ctx.globalAlpha;
    ctx.globalAlpha = before * 0.8;
    ctx.fillRect(x + 1, y + h - (w < 16 ? 3 : 4), Math.max(2, (w - 2) * share), w < 16 ? 2 : 3);
    ctx.globalAlpha = before;
  }
}

function hatched(ctx, x, y, w, h, theme) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, w, h);
  ctx.clip();
  ctx.strokeStyle = theme.faint;
  ctx.lineWidth = w < 16 ? 1 : 1.5;
  ctx.beginPath();
  for (let start = -h; start < w; start += w < 16 ? 4 : 6) {
    ctx.moveTo(x + start, y + h);
    ctx.lineTo(x + start + h, y);
  }
  ctx.stroke();
  ctx.restore();
  ctx.strokeStyle = theme.faint;
  ctx.lineWidth = 1;
  ctx.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
}

// Not known: a question mark, in the faded colour of whoever held it last.
function unknown({ ctx, data, theme }, position, x, y, w, h) {
  const before = ctx.globalAlpha;
  ctx.globalAlpha = before * 0.3;
  ctx.fillStyle = data.was[position] >= 0 ? colourOf(data.was[position]) : theme.line;
  box(ctx, x, y, w, h, w < 16 ? 2 : 4);
  ctx.globalAlpha = before;
  ctx.strokeStyle = theme.faint;
  ctx.setLineDash([2, 2]);
  ctx.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
  ctx.setLineDash([]);
  ctx.fillStyle = theme.text;
  ctx.font = `600 ${w < 16 ? 9 : 12}px ${theme.font}`;
  ctx.textAlign = "center";
  ctx.fillText("?", x + w / 2, y + h / 2 + 4);
  ctx.textAlign = "left";
}

function halves(ctx, seats, x, y, w, h) {
  const width = w / seats.length;
  seats.forEach((seat, number) => {
    ctx.fillStyle = colourOf(seat);
    ctx.fillRect(x + number * width, y, width, h);
  });
}

// Where the strategy would have it.
function expected(ctx, x, y, block, colour) {
  ctx.strokeStyle = colour;
  ctx.lineWidth = 2;
  ctx.setLineDash([4, 3]);
  ctx.strokeRect(x + 1.5, y + 1.5, block.size - 3, block.row - 5);
  ctx.setLineDash([]);
}

function corner(ctx, x, y, w, theme) {
  const side = Math.max(5, w / 3.5);
  ctx.fillStyle = theme.card;
  ctx.beginPath();
  ctx.moveTo(x + w - side, y);
  ctx.lineTo(x + w, y);
  ctx.lineTo(x + w, y + side);
  ctx.fill();
}

function ring(ctx, place, colour, width) {
  if (!place) return;
  ctx.strokeStyle = colour;
  ctx.lineWidth = width;
  ctx.strokeRect(place.x + width / 2 - 1, place.y + width / 2 - 1, place.w - width + 2, place.h - width + 2);
}

function box(ctx, x, y, w, h, radius) {
  ctx.beginPath();
  ctx.roundRect(x, y, w, h, radius);
  ctx.fill();
}

// Text that is too long loses its middle: client ids differ at their ends.
function clipped(ctx, text, width) {
  if (ctx.measureText(text).width <= width) return text;
  const cut = (kept) => `${text.slice(0, Math.ceil(kept / 3))}…${text.slice(text.length - Math.floor((2 * kept) / 3))}`;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (ctx.measureText(cut(middle)).width <= width) low = middle;
    else high = middle - 1;
  }
  return low ? cut(low) : "";
}

function mostLag(data) {
  let most = 1;
  for (const lag of data.lag) if (lag !== null && lag > most) most = lag;
  return most;
}
