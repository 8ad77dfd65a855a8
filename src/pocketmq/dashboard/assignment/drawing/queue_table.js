// Queues as rows of a table, of which only the visible ones exist: ten thousand scroll as ten do.

const ROW = 34;
const AROUND = 6;
const AT_ONCE = 40;

export const QueueTable = {
  template: `
    <div class="qm-table" role="table" :aria-label="label" :aria-rowcount="order.length + 1">
      <div class="qm-row qm-head" role="row" aria-rowindex="1">
        <span v-for="[name, title, sortable] in columns" :key="name" role="columnheader" :class="'qm-' + name"
          :aria-sort="by === name ? (descending ? 'descending' : 'ascending') : null">
          <button v-if="sortable" type="button" @click="$emit('sort', name)">{{ title }}<span v-if="by === name" aria-hidden="true">{{ descending ? " ↓" : " ↑" }}</span></button>
          <template v-else>{{ title }}</template>
        </span>
      </div>
      <div ref="rows" class="qm-rows" tabindex="0" role="rowgroup" aria-label="Rows; arrow keys scroll" @scroll="top = $refs.rows.scrollTop">
        <div :style="{ height: order.length * 34 + 'px', position: 'relative' }">
          <div v-for="row in rows" :key="row.position" class="qm-row" :class="{ 'qm-problem': row.problem }" role="row"
            :aria-rowindex="row.number + 2" :style="{ top: row.number * 34 + 'px' }">
            <span role="cell" class="qm-queue" :title="row.topic + ' ' + row.broker">{{ row.topic }} <span class="pm-note">{{ row.broker }} · {{ row.q }}</span></span>
            <span role="cell" class="qm-owner" :title="row.owner">{{ row.owner }}<template v-if="row.state">, {{ row.state }}</template><template v-if="row.wrong">, expected {{ row.expected }}</template></span>
            <span role="cell" class="qm-lag">{{ row.lag }}</span>
            <span role="cell" class="qm-since">{{ row.clock }}</span>
            <span role="cell" class="qm-why" :title="row.why">{{ row.why }}</span>
          </div>
        </div>
      </div>
    </div>
  `,
  // `tell` returns the data of a position; `seen` changes whenever that data has changed.
  props: { label: String, order: Array, tell: Function, seen: Number, by: String, descending: Boolean },
  emits: ["ask", "sort"],
  data: () => ({
    top: 0,
    columns: [
      ["queue", "Queue", true], ["owner", "Owner", true], ["lag", "Lag", true], ["since", "Since", true], ["why", "Why", false],
    ],
  }),
  computed: {
    rows() {
      const first = Math.max(0, Math.floor(this.top / ROW) - AROUND);
      return this.order.slice(first, first + AT_ONCE).map((position, index) => ({ number: first + index, ...this.tell(position, this.seen) }));
    },
  },
  watch: {
    rows: { immediate: true, handler(rows) { this.$emit("ask", rows.map((row) => row.position)); } },
  },
};
