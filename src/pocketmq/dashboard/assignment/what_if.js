// Events to try on a group, and their consequences. Nothing here changes the cluster.

export default {
  template: `
    <div class="wi">
      <p class="pm-note">Nothing on the cluster changes: this is computed from the group as it is now.</p>
      <form class="wi-form" @submit.prevent="add">
        <label><span>What if</span>
          <select v-model="kind"><option v-for="[value, name] in kinds" :key="value" :value="value">{{ name }}</option></select>
        </label>
        <label v-if="kind === 'join'"><span>Client id</span><input v-model.trim="joining" maxlength="255" placeholder="a new member" autocomplete="off"></label>
        <label v-else><span>Which</span>
          <select v-model="subject"><option v-for="value in subjects" :key="value" :value="value">{{ value }}</option></select>
        </label>
        <button type="submit" class="pm-button" :disabled="kind !== 'join' && !subject">Add</button>
      </form>
      <ol v-if="events.length" class="wi-events" aria-label="Events, in this order">
        <li v-for="(event, number) in events" :key="number">
          <span>{{ words(event) }}</span>
          <button type="button" class="wi-drop" :aria-label="'Remove: ' + words(event)" @click="drop(number)">×</button>
        </li>
      </ol>
      <p v-if="problem" class="pm-bad" role="alert">{{ problem }}</p>
      <div v-if="result && events.length" class="wi-result" role="status">
        <p class="wi-sum">{{ result.sum }}</p>
        <p v-for="line in result.lines" :key="line">{{ line }}</p>
        <div class="wi-wide">
        <table>
          <caption>Every strategy after these events</caption>
          <thead><tr><th>strategy</th><th class="number" title="most minus fewest queues of a member, over all topics">max−min</th>
            <th class="number" title="the same within the worst topic">per topic</th>
            <th class="number" title="members without a queue">idle</th>
            <th class="number" title="queues that move if the group uses it already; in brackets the minimum">moved</th>
            <th class="number" title="queues that move if the group switches to it as well">switched</th></tr></thead>
          <tbody>
            <tr v-for="row in result.compared" :key="row.strategy" :class="{ 'wi-used': row.in_use }">
              <td>{{ breakable(row.strategy) }}<small v-if="row.in_use"> in use</small></td>
              <td v-if="row.refused" colspan="5" class="pm-note">{{ row.refused }}</td>
              <template v-else>
                <td class="number">{{ row.spread }}</td><td class="number">{{ row.worst_topic }}</td>
                <td class="number">{{ row.idle }}</td>
                <td class="number">{{ row.moved }} ({{ row.minimum }})</td><td class="number">{{ row.moved_from_now }}</td>
              </template>
            </tr>
          </tbody>
        </table>
        </div>
        <details v-if="result.moves.length"><summary>{{ result.movesTitle }}</summary>
          <table>
            <thead><tr><th>from</th><th>to</th><th class="number">count</th><th>queues</th></tr></thead>
            <tbody><tr v-for="move in result.moves" :key="move.join()"><td>{{ move[0] }}</td><td>{{ move[1] }}</td><td class="number">{{ move[2] }}</td><td>{{ move[3] }}</td></tr></tbody>
          </table>
        </details>
      </div>
    </div>
  `,
  props: { members: Array, brokers: Array, strategies: Array, result: Object, problem: String },
  emits: ["try"],
  data: () => ({
    kind: "join", joining: "", subject: "", events: [],
    kinds: [["join", "a member joins"], ["leave", "a member leaves"], ["broker_down", "a broker fails"], ["switch_to", "the strategy changes"]],
  }),
  computed: {
    subjects() {
      return { leave: this.members, broker_down: this.brokers, switch_to: this.strategies }[this.kind] ?? [];
    },
  },
  watch: {
    kind() { this.subject = this.subjects[0] ?? ""; },
    subjects(now) { if (!now.includes(this.subject)) this.subject = now[0] ?? ""; },
  },
  methods: {
    breakable: (name) => name.replaceAll(/[_-]/g, "$&\u200b"),
    words([kind, subject]) {
      return { join: `${subject} joins`, leave: `${subject} leaves`, broker_down: `${subject} fails`, switch_to: `strategy ${subject}` }[kind];
    },
    add() {
      const count = this.events.filter(([kind]) => kind === "join").length + 1;
      const subject = this.kind === "join" ? this.joining || `new-member-${count}` : this.subject;
      if (!subject) return;
      this.events = [...this.events, [this.kind, subject]];
      this.joining = "";
      this.$emit("try", this.events);
    },
    drop(number) {
      this.events = this.events.filter((_, index) => index !== number);
      this.$emit("try", this.events);
    },
  },
};
