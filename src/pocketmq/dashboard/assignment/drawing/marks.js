// Marks of queues that are handed over, in the lower right corner of their cells. Shapes, not colours,
// tell them apart: a cross is fenced, a dot fills a hole, a bar waits behind a barrier, a triangle
// down drains, one up is on its way to its next owner.

const SHAPES = [null, cross, dot, bar, down, up, up, up];

export function mark(ctx, state, x, y, w, h, theme) {
  const shape = SHAPES[state];
  if (!shape) return;
  const size = Math.max(5, Math.min(11, w / 2.6));
  const [left, top] = [x + w - size, y + h - size];
  ctx.fillStyle = theme.card;
  ctx.fillRect(left - 1, top - 1, size + 1, size + 1);
  ctx.fillStyle = ctx.strokeStyle = state === 1 ? theme.bad : theme.text;
  ctx.lineWidth = w < 16 ? 1 : 2;
  ctx.beginPath();
  shape(ctx, left + 1, top + 1, size - 2);
}

function cross(ctx, x, y, size) {
  ctx.moveTo(x, y);
  ctx.lineTo(x + size, y + size);
  ctx.moveTo(x + size, y);
  ctx.lineTo(x, y + size);
  ctx.stroke();
}

function dot(ctx, x, y, size) {
  ctx.arc(x + size / 2, y + size / 2, size / 2, 0, 2 * Math.PI);
  ctx.fill();
}

function bar(ctx, x, y, size) {
  ctx.fillRect(x + size / 2 - 1, y, 2, size);
}

function down(ctx, x, y, size) {
  ctx.moveTo(x, y);
  ctx.lineTo(x + size, y);
  ctx.lineTo(x + size / 2, y + size);
  ctx.fill();
}

function up(ctx, x, y, size) {
  ctx.moveTo(x, y + size);
  ctx.lineTo(x + size, y + size);
  ctx.lineTo(x + size / 2, y);
  ctx.fill();
}
