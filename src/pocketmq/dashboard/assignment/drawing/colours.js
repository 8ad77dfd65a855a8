// Colours that people who see colours differently can tell apart, on light and on dark. Red is kept
// for queues with several owners, grey for those without. After nine members the same colours come
// again, darker and then lighter; each member's letter tells them apart for certain.

const HUES = ["#3577d4", "#e08e00", "#00946c", "#c9679d", "#46a9e0", "#8467cf", "#a89400", "#009c9c", "#a3653a"];

export function colourOf(seat) {
  const hue = HUES[seat % HUES.length];
  const round = Math.floor(seat / HUES.length) % 3;
  return round === 0 ? hue : mixed(hue, round === 1 ? 0 : 255, 0.38);
}

// A, B, … Z, AA, AB, …
export function codeOf(seat) {
  let code = "";
  for (let rest = seat + 1; rest > 0; rest = Math.floor((rest - 1) / 26)) {
    code = String.fromCharCode(65 + ((rest - 1) % 26)) + code;
  }
  return code;
}

// Black or white, whichever is easier to read on a colour.
export function inkOn(colour) {
  const [red, green, blue] = parts(colour);
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#10131c" : "#ffffff";
}

export function readTheme(element) {
  const style = getComputedStyle(element);
  const value = (name) => style.getPropertyValue(name).trim();
  return {
    card: value("--pm-card"),
    line: value("--pm-line"),
    text: value("--pm-text"),
    faint: value("--pm-faint"),
    accent: value("--pm-accent"),
    bad: value("--pm-bad"),
    font: style.fontFamily,
  };
}

function mixed(colour, towards, share) {
  return `#${parts(colour).map((part) => hex(part + (towards - part) * share)).join("")}`;
}

function parts(colour) {
  return [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16));
}

function hex(value) {
  return Math.round(value).toString(16).padStart(2, "0");
}
