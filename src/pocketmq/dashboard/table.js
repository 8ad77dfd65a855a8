// A table that shows one page of rows. Sorting, searching and turning pages happen on the server,
// which has all rows; text is always text, never HTML.
export default {
  template: `
    <section class="pm-table" :aria-label="label">
      <div class="pm-table-bar" v-if="searchable || total > rows.length">
        <input v-if="searchable" type="search" :aria-label="'Search ' + label" placeholder="Search"
          :value="query" @input="search($event.target.value)" />
        <span class="pm-table-count" role="status">{{ counted }}</span>
        <span class="pm-table-pages" v-if="pages > 1">
          <button type="button" aria-label="Previous page" :disabled="page <= 0"
            @click="$emit('turn', page - 1)">‹</button>
          <span>{{ page + 1 }} / {{ pages }}</span>
          <button type="button" aria-label="Next page" :disabled="page + 1 >= pages"
            @click="$emit('turn', page + 1)">›</button>
        </span>
      </div>
      <div class="pm-table-scroll">
      <table>
        <thead><tr>
          <th v-if="selectable" scope="col"><span class="pm-hidden">Chosen</span></th>
          <th v-for="(column, i) in columns" :key="i" scope="col" :class="column.kind"
            :aria-sort="sorted === i ? (descending ? 'descending' : 'ascending') : null">
            <button v-if="column.sortable" type="button" @click="$emit('sort', i)">
              {{ column.label }}<span aria-hidden="true" class="pm-arrow">{{
                sorted === i ? (descending ? "▾" : "▴") : "" }}</span>
            </button>
            <template v-else>{{ column.label }}</template>
          </th>
        </tr></thead>
        <tbody>
          <tr v-for="row in rows" :key="row.key">
            <td v-if="selectable" class="pm-choice">
              <input type="checkbox" :aria-label="'Choose ' + row.key" :checked="chosen.includes(row.key)"
                @change="$emit('choose', [row.key, $event.target.checked])" />
            </td>
            <td v-for="(cell, i) in row.cells" :key="i" :data-label="columns[i].label"
              :class="[columns[i].kind, cell.tone ? 'pm-' + cell.tone : '']" :title="cell.hint || null">
              <a v-if="cell.href" :href="cell.href">{{ cell.text }}</a>
              <span v-else class="pm-cell">{{ cell.text }}</span>
              <span v-if="cell.share != null" class="pm-bar" aria-hidden="true"
                ><span :style="{ width: 100 * cell.share + '%' }"></span></span>
            </td>
          </tr>
          <tr v-if="!rows.length"><td class="pm-empty" :colspan="columns.length + selectable">{{ empty }}</td></tr>
        </tbody>
      </table>
      </div>
    </section>
  `,
  props: {
    label: String,
    columns: Array,
    rows: Array,
    total: Number,
    all: Number,
    page: Number,
    pages: Number,
    sorted: Number,
    descending: Boolean,
    searchable: Boolean,
    selectable: Boolean,
    chosen: Array,
    empty: String,
  },
  emits: ["sort", "turn", "search", "choose"],
  data: () => ({ query: "", waiting: null }),
  computed: {
    counted() {
      const total = this.total.toLocaleString("en");
      return this.total === this.all ? total : `${total} of ${this.all.toLocaleString("en")}`;
    },
  },
  methods: {
    search(text) {
      this.query = text;
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.$emit("search", text), 150);
    },
  },
};
