// The history on one time axis: lag above, rebalances below, pauses shaded through both. Not a chart
// of the library: each rebalance is a button that the keyboard and screen readers reach, and opens
// its entry in the list below.

import { colourOf, short } from "pocketmq-assignment";

const LAG = 120;
const BARS = 62;
const LEFT = 44;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400];
const FEW = 6;
const ARROWS = 12;
const LONGEST = 26;

// Client ids differ at their ends.
const tail = (name) => (name.length <= LONGEST ? name : `…${name.slice(1 - LONGEST)}`);

export default {
  template: `
    <div class="tl" :data-entries="entries.length">
      <svg ref="svg" :viewBox="'0 0 ' + width + ' 214'" :height="214" width="100%" role="group" aria-label="Lag and rebalances over time">
        <g class="tl-axis">
          <template v-for="tick in ticks" :key="tick.x">
            <line :x1="tick.x" :x2="tick.x" y1="6" :y2="196"></line>
            <text :x="tick.x" y="210" text-anchor="middle">{{ tick.name }}</text>
          </template>
          <template v-if="told"><text x="0" y="16">{{ peak }}</text><text x="0" y="124">0</text></template>
          <text v-else :x="width / 2" y="70" text-anchor="middle">the lag is unknown</text>
          <text x="0" y="158">moves</text>
        </g>
        <rect v-for="(span, number) in unseen" :key="'u' + number" class="tl-unseen" :x="span.x" y="6" :width="span.w" height="186">
          <title>{{ span.text }}</title>
        </rect>
        <rect v-for="(span, number) in shades" :key="'p' + number" class="tl-pause" :x="span.x" y="6" :width="span.w" height="186">
          <title>{{ span.text }}</title>
        </rect>
        <path v-for="line in lines" :key="line.name" :d="line.d" fill="none" :stroke="line.colour" :stroke-width="line.main ? 2.5 : 1.5"></path>
        <g v-for="bar in bars" :key="bar.number" class="tl-event" :class="['tl-' + bar.kind, { 'tl-chosen': bar.number === chosen }]"
          :tabindex="bar.last ? 0 : -1" role="button" :aria-pressed="bar.number === chosen" :aria-label="bar.spoken"
          @click="pick(bar.number)" @keydown.left.prevent="step($event, -1)" @keydown.right.prevent="step($event, 1)" @keydown.enter.prevent="pick(bar.number)" @keydown.space.prevent="pick(bar.number)">
          <title>{{ bar.spoken }}</title>
          <rect class="tl-hit" :x="bar.x - 6" y="130" :width="bar.w + 12" height="66"></rect>
          <rect class="tl-bar" :x="bar.x" :y="194 - bar.h" :width="bar.w" :height="bar.h" rx="2"></rect>
          <text v-if="bar.moved && bar.room" class="tl-moves" :x="bar.x + bar.w / 2" :y="194 - bar.h - 4" text-anchor="middle">{{ bar.moved }}</text>
          <circle v-else-if="!bar.moved" class="tl-dot" :cx="bar.x + bar.w / 2" :cy="194 - bar.h - 4" r="3.5"></circle>
        </g>
      </svg>
      <div class="tl-key">
        <span v-for="line in lines" :key="line.name"><i :style="{ background: line.colour }" aria-hidden="true"></i>{{ line.name }}: {{ line.now }}</span>
        <span v-if="shades.length"><i class="tl-pause-key" aria-hidden="true"></i>a queue had no owner</span>
        <span v-if="unseen.length"><i class="tl-unseen-key" aria-hidden="true"></i>not observed</span>
      </div>
      <p v-if="told && gaps" class="pm-note">Lines have gaps where the lag was unknown.</p>
      <p v-if="!entries.length" class="pm-note">{{ nothing }}</p>
      <ol class="tl-list" reversed>
        <li v-for="entry in listed" :key="entry.number">
          <button type="button" class="tl-entry" :class="'tl-' + entry.kind" :aria-expanded="entry.number === chosen" @click="pick(entry.number)">
            <time>{{ clock(entry.began) }}</time>
            <span class="tl-why">{{ entry.why }}</span>
            <span class="tl-sum">{{ entry.sum }}</span>
          </button>
          <div v-if="entry.number === chosen && detail && detail.number === chosen" class="tl-detail">
            <p v-for="line in detail.lines" :key="line">{{ line }}</p>
            <svg v-if="arrows.length" class="tl-arrows" :viewBox="'0 0 600 ' + arrowsHeight" :height="arrowsHeight" role="img" :aria-label="'Hand-overs: ' + arrows.map((each) => each.spoken).join('; ')">
              <g v-for="each in arrows" :key="each.spoken">
                <title>{{ each.spoken }}</title>
                <path class="tl-arrow" :d="each.path" :stroke-width="each.width"></path>
                <path class="tl-head" :d="each.head"></path>
                <text x="300" :y="each.label" text-anchor="middle">{{ each.count }}</text>
              </g>
              <text v-for="each in ends" :key="each.key" :x="each.x" :y="each.y + 4" :text-anchor="each.anchor"><title>{{ each.name }}</title>{{ each.shown }}</text>
            </svg>
            <table v-if="detail.moves.length">
              <thead><tr><th>from</th><th>to</th><th class="number">count</th><th>queues</th></tr></thead>
              <tbody><tr v-for="move in detail.moves" :key="move.join()"><td>{{ move[0] }}</td><td>{{ move[1] }}</td><td class="number">{{ move[2] }}</td><td>{{ move[3] }}</td></tr></tbody>
            </table>
          </div>
        </li>
      </ol>
      <button v-if="entries.length > 6" type="button" class="pm-button" :aria-expanded="all" @click="all = !all">
        {{ all ? "Show fewer" : "Show all " + entries.length }}
      </button>
    </div>
  `,
  props: { entries: Array, from: Number, to: Number, total: Array, top: Array, pauses: Array, unobserved: Array, detail: Object, nothing: String },
  emits: ["pick"],
  data: () => ({ width: 600, chosen: null, all: false }),
  mounted() {
    this.sizes = new ResizeObserver(() => { this.width = Math.max(240, this.$refs.svg.clientWidth); });
    this.sizes.observe(this.$refs.svg);
  },
  unmounted() {
    this.sizes.disconnect();
  },
  computed: {
    scale() {
      const span = Math.max(this.to - this.from, 10);
      return (time) => LEFT + ((time - (this.to - span)) / span) * (this.width - LEFT - 10);
    },
    most() {
      const values = [this.total, ...this.top.map((each) => each.points)].flatMap((points) => points.map((point) => point[1] ?? 0));
      return Math.max(1, ...values);
    },
    told() { return [this.total, ...this.top.map((each) => each.points)].some((points) => points.some((point) => point[1] !== null)); },
    peak() { return short(this.most); },
    lines() {
      const named = [{ name: "all queues", points: this.total, main: true }, ...this.top];
      return named.map((line, number) => {
        const last = line.points.at(-1)?.[1] ?? null;
        return {
          ...line, d: this.path(line.points), now: last === null ? "?" : last.toLocaleString("en"),
          colour: line.main ? "var(--pm-text)" : colourOf(number - 1),
        };
      });
    },
    gaps() { return [this.total, ...this.top.map((each) => each.points)].some((points) => points.some((point) => point[1] === null)); },
    ticks() {
      const span = Math.max(this.to - this.from, 10);
      const room = Math.max(2, Math.floor(this.width / 90));
      const step = STEPS.find((each) => span / each <= room) ?? 86400;
      const ticks = [];
      for (let time = Math.ceil((this.to - span) / step) * step; time <= this.to; time += step) {
        const x = this.scale(time);
        if (x > LEFT + 20 && x < this.width - 24) ticks.push({ x, name: this.clock(time) });
      }
      return ticks;
    },
    unseen() {
      return this.unobserved.map(([began, ended]) => {
        const [x, end] = [Math.max(LEFT, this.scale(began)), this.scale(ended)];
        return { x, w: Math.max(2, end - x), text: `not observed from ${this.clock(began)} to ${this.clock(ended)}` };
      });
    },
    shades() {
      return this.pauses.map(([began, ended]) => {
        const [x, end] = [this.scale(began), this.scale(ended)];
        return { x, w: Math.max(2, end - x), text: `a queue had no owner from ${this.clock(began)} to ${this.clock(ended)}` };
      });
    },
    bars() {
      const most = Math.max(1, ...this.entries.map((entry) => entry.moved));
      let free = -Infinity; // where the last number ends: numbers never overlap
      return this.entries.filter((entry) => (entry.ended ?? this.to) >= this.from).map((entry, number, all) => {
        const x = this.scale(entry.began);
        const end = this.scale(entry.ended ?? this.to);
        const h = entry.moved ? Math.max(5, Math.sqrt(entry.moved / most) * (BARS - 12)) : 2;
        const w = Math.max(5, end - x);
        const [middle, half] = [x + w / 2, 4 * String(entry.moved).length];
        const room = middle - half >= free;
        if (entry.moved && room) free = middle + half + 2;
        return { ...entry, last: number === all.length - 1, x, w, h, room, spoken: `${this.clock(entry.began)}: ${entry.why}. ${entry.sum}` };
      });
    },
    // Members on both sides, an arrow for each pair of the largest: from whom, to whom, how many.
    pairs() {
      const moves = (this.detail?.moves ?? []).slice(0, ARROWS);
      const side = (index) => new Map([...new Set(moves.map((move) => move[index]))].map((name, row) => [name, 16 + row * 26]));
      return { moves, from: side(0), to: side(1) };
    },
    arrowsHeight() { return 10 + 26 * Math.max(this.pairs.from.size, this.pairs.to.size); },
    ends() {
      const end = (side, x, anchor) => ([name, y]) => ({ key: side + name, name, shown: tail(name), x, y, anchor });
      return [...[...this.pairs.from].map(end("from ", 196, "end")), ...[...this.pairs.to].map(end("to ", 404, "start"))];
    },
    arrows() {
      const { moves, from, to } = this.pairs;
      const most = Math.max(1, ...moves.map((move) => move[2]));
      return moves.map(([giver, heir, count]) => {
        const [y1, y2] = [from.get(giver), to.get(heir)];
        return {
          count, width: 1 + (3 * count) / most, label: (y1 + y2) / 2 - 4,
          path: `M202 ${y1}C270 ${y1} 330 ${y2} 390 ${y2}`, head: `M400 ${y2}l-11 -5v10z`,
          spoken: `${giver} → ${heir}: ${count} ${count === 1 ? "queue" : "queues"}`,
        };
      });
    },
    listed() {
      const newest = [...this.entries].reverse();
      return this.all ? newest : newest.slice(0, FEW);
    },
  },
  methods: {
    clock: (time) => new Date(time * 1000).toLocaleTimeString("en-GB"),
    path(points) {
      let line = "";
      let gap = true;
      for (const [time, value] of points) {
        if (value === null) gap = true;
        else {
          const y = LAG + 2 - (Math.max(0, value) / this.most) * (LAG - 12);
          line += `${gap ? "M" : "L"}${this.scale(time).toFixed(1)} ${y.toFixed(1)}`;
          if (gap) line += "h0.1"; // a point alone shows, too
          gap = false;
        }
      }
      return line;
    },
    step(event, way) {
      const events = [...this.$el.querySelectorAll(".tl-event")];
      events[events.indexOf(event.currentTarget) + way]?.focus();
    },
    pick(number) {
      this.chosen = this.chosen === number ? null : number;
      if (this.chosen !== null) {
        if (!this.listed.some((entry) => entry.number === number)) this.all = true;
        this.$emit("pick", number);
      }
    },
  },
};
