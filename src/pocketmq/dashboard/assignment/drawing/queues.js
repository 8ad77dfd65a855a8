// The meaning of the map's numbers: which queues are shown, in which order, which have a problem.

export const NO_OWNER = -1;
export const UNKNOWN_OWNER = -2;
export const SEVERAL = -3;

// The states of a hand-over by their numbers; 0 is none.
export const STATES = ["", "fenced", "filling hole", "behind barrier", "draining", "being taken", "claimed", "wanted"];
export const FENCED = 1;

export function stateOf(data, position) {
  return STATES[data.stage[position] ?? 0] ?? "";
}

export function hasProblem(data, position) {
  const owner = data.owner[position];
  const expected = data.expected[position];
  return data.stage[position] === FENCED || owner < 0 || (expected >= 0 && expected !== owner);
}

export function holds(data, position, seat) {
  const owner = data.owner[position];
  return owner === SEVERAL ? data.several[position].includes(seat) : owner === seat;
}

// The positions that match a filter, ordered by topic, broker and number.
export function shownPositions(data, filter) {
  const topic = filter.topic ? data.topics.indexOf(filter.topic) : -1;
  const broker = filter.broker ? data.brokers.indexOf(filter.broker) : -1;
  const member = filter.member ? data.members.find((each) => each.name === filter.member) : null;
  const shown = [];
  for (let position = 0; position < data.t.length; position++) {
    if (filter.topic && data.t[position] !== topic) continue;
    if (filter.broker && data.b[position] !== broker) continue;
    if (filter.member && !(member && holds(data, position, member.seat))) continue;
    if (filter.problems && !hasProblem(data, position)) continue;
    shown.push(position);
  }
  return shown;
}

// The same positions sorted for the table; unknown values come last.
export function ordered(data, shown, by, descending) {
  if (by === "queue") return descending ? [...shown].reverse() : shown;
  const names = new Map(data.members.map((each) => [each.seat, each.name]));
  const key = {
    lag: (position) => data.lag[position],
    owner: (position) => names.get(data.owner[position]) ?? null,
    since: (position) => data.since[position],
  }[by];
  const way = descending ? -1 : 1;
  return [...shown].sort((one, other) => {
    const [a, b] = [key(one), key(other)];
    if (a === null || b === null) return (a === null) - (b === null) || one - other;
    return a < b ? -way : a > b ? way : one - other;
  });
}

// A number in at most four characters.
export function short(number) {
  if (Math.abs(number) < 1000) return String(number);
  const steps = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const [size, letter] = steps.find(([step]) => Math.abs(number) >= step);
  const value = number / size;
  return (Math.abs(value) < 10 ? value.toFixed(1) : String(Math.round(value))) + letter;
}
