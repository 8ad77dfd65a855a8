// Queues and their owners: drawn on a canvas, or as a table; the same numbers for both. A canvas of
// our own, since ten thousand queues must be drawn, filtered and hovered without a stutter; a table
// or chart of the library makes elements or objects of each.
//
// The server sends everything once (`load`), then what has changed (`patch`). Names are shown as text
// only. Everything the mouse shows, the keyboard shows, too.

import { FilterBar, NO_OWNER, UNKNOWN_OWNER, QueueTable, SEVERAL, at, codeOf, colourOf, hasProblem, ordered, paint, placeOf, plan, readTheme, shownPositions, stateOf } from "pocketmq-assignment";

const GLOW = 4000;

export default {
  components: { FilterBar, QueueTable },
  template: `
    <div class="qm" :data-view="drawnView" :data-shown="shown.length" :data-version="version">
      <filter-bar v-if="bar && total" :view="view" :filter="filter" :topics="topics" :brokers="brokers" :members="members"
        :shown="shown.length" :total="total" @view="view = $event" @filter="filter = $event"></filter-bar>
      <div v-if="members.length && (bar || drawnView !== 'matrix')" class="qm-legend" role="toolbar"
        aria-label="Members; arrow keys move between them, Enter shows only the queues of one" @keydown="stepMember">
        <button v-for="(each, number) in members" :key="each.seat" type="button" class="qm-member" :tabindex="number ? -1 : 0" :class="{ 'qm-untold': each.untold }"
          :aria-pressed="lit === each.seat" :title="each.untold || each.name" @click="light(each.seat)">
          <span class="qm-swatch" :style="swatch(each.seat)" aria-hidden="true">{{ code(each.seat) }}</span>
          <span class="qm-name">{{ each.name }}</span>
          <span class="qm-count">{{ each.untold ? "?" : each.queues }}</span>
        </button>
      </div>
      <p v-if="loaded && !shown.length" class="pm-note">{{ total ? "No queue matches the filter." : empty }}</p>
      <div v-show="view !== 'table' && shown.length" ref="scroll" class="qm-scroll" tabindex="0" role="group"
        :aria-label="label + '. Arrow keys move between queues; the table view shows the same.'"
        @scroll="later" @keydown="key" @pointermove="point" @pointerleave="leave" @click="tap" @focus="focus" @blur="leave">
        <div class="qm-window"><canvas ref="canvas" aria-hidden="true"></canvas></div>
        <div :style="{ height: sceneHeight + 'px' }"></div>
      </div>
      <queue-table v-if="view === 'table' && shown.length" :label="label" :order="order" :tell="tell" :seen="seen" :by="by"
        :descending="descending" @ask="ask" @sort="sortBy"></queue-table>
      <div v-if="told" class="qm-tip" :style="tipStyle" aria-hidden="true">
        <strong>{{ told.topic }} <span class="pm-note">{{ told.broker }} · {{ told.q }}</span></strong>
        <span>Owner <b>{{ told.owner }}</b></span>
        <span v-if="told.state">State <b>{{ told.state }}</b></span>
        <span v-if="told.wrong" class="pm-bad">Expected owner: {{ told.expected }}</span>
        <span v-if="told.why" class="pm-note">{{ told.why }}</span>
        <span>Lag {{ told.lag }} · {{ told.since }}</span>
      </div>
      <p class="pm-hidden" aria-live="polite">{{ spoken }}</p>
    </div>
  `,
  props: { label: String, bar: Boolean, empty: String },
  emits: ["ready", "ask"],
  data: () => ({
    view: "auto", filter: { topic: "", broker: "", member: "", problems: false }, topics: [], brokers: [],
    loaded: false, members: [], total: 0, shown: [], order: [], sceneHeight: 0, drawnView: "", version: 0, lit: null,
    current: null, tip: null, spoken: "", by: "queue", descending: false, seen: 0, whys: {},
  }),
  computed: {
    told() {
      const position = this.tip ? this.tip.position : this.current;
      return position === null || position >= this.total ? null : this.tell(position, this.seen);
    },
    tipStyle() {
      return this.tip ? { left: `${this.tip.x}px`, top: `${this.tip.y}px` } : {};
    },
  },
  watch: {
    filter() { this.refresh(); },
    view() { this.$nextTick(() => this.refresh()); },
    told(told) { if (told && this.view !== "table") this.ask([told.position]); },
  },
  created() {
    this.picture = null; // not reactive: ten thousand queues are only drawn, never watched
    this.fresh = new Map();
    this.asked = new Set();
  },
  mounted() {
    this.sizes = new ResizeObserver(() => this.refresh());
    this.sizes.observe(this.$refs.scroll);
    this.themes = new MutationObserver(() => this.later());
    this.themes.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    this.$emit("ready");
  },
  unmounted() {
    this.sizes.disconnect();
    this.themes.disconnect();
    cancelAnimationFrame(this.frame);
  },
  methods: {
    code: codeOf,
    swatch: (seat) => ({ background: colourOf(seat) }),
    load(picture) {
      this.picture = picture;
      this.fresh.clear();
      this.forgetWhys();
      this.loaded = true;
      this.refresh();
    },
    patch(changes) {
      if (!this.picture) return;
      const now = performance.now();
      for (const name of ["owner", "expected", "lag", "since", "was", "stage"]) {
        const column = changes[name] ?? [];
        for (let index = 0; index < column.length; index += 2) this.picture[name][column[index]] = column[index + 1];
      }
      const owners = changes.owner ?? [];
      for (let index = 0; index < owners.length; index += 2) this.fresh.set(owners[index], now);
      for (const name of ["members", "several", "moved"]) if (name in changes) this.picture[name] = changes[name];
      if (changes.owner || changes.expected || changes.members || changes.stage) this.forgetWhys();
      this.refresh();
    },
    explain(sentences) {
      for (const [position, why] of sentences) this.whys[position] = why;
      this.seen++;
      if (this.current !== null && document.activeElement === this.$refs.scroll) this.say();
    },
    forgetWhys() {
      this.whys = {};
      this.asked.clear();
    },
    ask(positions) {
      const unknown = positions.filter((position) => !this.asked.has(position));
      if (!unknown.length) return;
      unknown.forEach((position) => this.asked.add(position));
      this.$emit("ask", unknown);
    },
    refresh() {
      const data = this.picture;
      if (!data) return;
      this.members = data.members;
      this.topics = data.topics;
      this.brokers = data.brokers;
      this.total = data.t.length;
      if (!data.members.some((each) => each.seat === this.lit)) this.lit = null;
      this.shown = Object.freeze(shownPositions(data, this.filter));
      this.order = Object.freeze(ordered(data, this.shown, this.by, this.descending));
      const width = this.$refs.scroll.clientWidth;
      if (width > 0 && this.view !== "table") {
        this.scene = plan(data, this.shown, width, this.view);
        this.sceneHeight = this.scene.height;
      }
      this.drawnView = this.view === "table" ? "table" : (this.scene?.view ?? "");
      if (this.current !== null && !this.shown.includes(this.current)) this.current = null;
      this.seen++;
      this.$nextTick(() => this.draw());
    },
    later() {
      cancelAnimationFrame(this.frame);
      this.frame = requestAnimationFrame(() => this.draw());
    },
    draw() {
      const { canvas, scroll } = this.$refs;
      if (!this.scene || !canvas || this.view === "table" || !scroll.clientWidth) return;
      const [width, height, scale] = [scroll.clientWidth, scroll.clientHeight, window.devicePixelRatio || 1];
      if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
        canvas.width = Math.round(width * scale);
        canvas.height = Math.round(height * scale);
        canvas.style.width = `${width}px`;
        canvas.style.height = `${height}px`;
      }
      const ctx = canvas.getContext("2d");
      ctx.setTransform(scale, 0, 0, scale, 0, 0);
      const number = this.current === null ? undefined : this.scene.index.get(this.current);
      const glowing = this.glows();
      const drawn = paint(ctx, this.scene, this.picture, {
        top: scroll.scrollTop, height, theme: readTheme(this.$el), lit: this.lit, fresh: glowing,
        current: number === undefined ? null : this.current,
        currentPlace: number === undefined ? null : placeOf(this.scene, number),
      });
      canvas.dataset.drawn = drawn;
      this.version++;
      if (glowing.size) this.later();
    },
    glows() {
      const glowing = new Map();
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) return glowing;
      for (const [position, since] of this.fresh) {
        const left = 1 - (performance.now() - since) / GLOW;
        if (left > 0) glowing.set(position, left);
        else this.fresh.delete(position);
      }
      return glowing;
    },
    // `seen` makes Vue ask again: the picture itself is not watched.
    tell(position, seen) {
      const data = this.picture;
      const names = new Map(data.members.map((each) => [each.seat, each.name]));
      const name = (seat) => names.get(seat) ?? "?";
      const owner = data.owner[position];
      const was = data.was[position] >= 0 ? `, last owner ${name(data.was[position])}` : "";
      const words = {
        [NO_OWNER]: "no owner",
        [UNKNOWN_OWNER]: `unknown${was}`,
        [SEVERAL]: (data.several[position] ?? []).map(name).join(" and "),
      };
      const lag = data.lag[position];
      const since = data.since[position];
      return {
        position, topic: data.topics[data.t[position]], broker: data.brokers[data.b[position]], q: data.q[position],
        owner: words[owner] ?? name(owner),
        state: stateOf(data, position),
        expected: data.expected[position] >= 0 ? name(data.expected[position]) : "–",
        lag: lag === null ? "?" : lag.toLocaleString("en"),
        clock: since === null ? "–" : new Date(since * 1000).toLocaleTimeString("en-GB"),
        since: since === null ? "since polling began" : `since ${new Date(since * 1000).toLocaleTimeString("en-GB")}`,
        wrong: data.expected[position] >= 0 && data.expected[position] !== owner,
        why: this.whys[position] ?? "",
        problem: hasProblem(data, position),
      };
    },
    light(seat) {
      this.lit = this.lit === seat ? null : seat;
      this.later();
    },
    stepMember(event) {
      const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!way) return;
      event.preventDefault();
      const buttons = [...event.currentTarget.children];
      buttons[buttons.indexOf(document.activeElement) + way]?.focus();
    },
    positionAt(event) {
      const box = this.$refs.scroll.getBoundingClientRect();
      return this.scene ? at(this.scene, event.clientX - box.left, event.clientY - box.top + this.$refs.scroll.scrollTop) : null;
    },
    point(event) {
      if (event.pointerType === "touch") return;
      const position = this.positionAt(event);
      const box = this.$el.getBoundingClientRect();
      const left = Math.min(event.clientX - box.left + 14, Math.max(0, box.width - 330));
      this.tip = position === null ? null : { position, x: left, y: event.clientY - box.top + 18 };
    },
    tap(event) {
      const position = this.positionAt(event);
      if (event.pointerType === "touch") this.tip = null;
      this.current = position;
      this.later();
    },
    leave() {
      this.tip = null;
    },
    focus() {
      if (this.current === null && this.shown.length && this.$refs.scroll.matches(":focus-visible")) this.go(0);
    },
    key(event) {
      if (!this.scene || !this.shown.length) return;
      const here = this.current === null ? -1 : this.scene.index.get(this.current);
      const columns = here >= 0 ? (placeOf(this.scene, here)?.columns ?? 1) : 1;
      const last = this.shown.length - 1;
      const page = columns * 10;
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, PageDown: page, PageUp: -page }[event.key];
      if (event.key === "Escape") this.current = null;
      else if (event.key === "Home") this.go(0);
      else if (event.key === "End") this.go(last);
      else if (step !== undefined) this.go(Math.max(0, Math.min(last, here + step)));
      else return;
      event.preventDefault();
      this.later();
    },
    go(number) {
      this.current = this.shown[number];
      const place = placeOf(this.scene, number);
      const scroll = this.$refs.scroll;
      if (place.y < scroll.scrollTop) scroll.scrollTop = Math.max(0, place.y - 40);
      else if (place.y + place.h > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = place.y + place.h - scroll.clientHeight + 8;
      this.tip = null;
      this.say();
      this.later();
    },
    say() {
      const told = this.tell(this.current, this.seen);
      const right = told.wrong ? `, expected owner ${told.expected}` : "";
      const state = told.state ? `, ${told.state}` : "";
      this.spoken = `${told.topic}, ${told.broker}, queue ${told.q}: owner ${told.owner}${state}${right}; lag ${told.lag}; ${told.why}`;
    },
    sortBy(by) {
      this.descending = this.by === by ? !this.descending : by === "lag" || by === "since";
      this.by = by;
      this.refresh();
    },
  },
};
