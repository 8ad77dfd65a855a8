// Quasar's table, which NiceGUI ships, with cells of ours. `ui.table` would do the same, but it
// compiles its slots anew with every update: a page that is live would take the keyboard's focus
// away every two seconds. Here the slots are part of the component. The server owns page and order:
// Quasar takes them from the property only if something listens for their change.
export default {
  template: `
    <section class="pm-table" :aria-label="label">
      <div class="pm-table-bar" v-if="searchable">
        <input class="pm-input" type="search" placeholder="Search" :aria-label="'Search ' + label"
          :value="query" @input="search($event.target.value)" />
        <span class="pm-table-count" role="status">{{ counted }}</span>
      </div>
      <q-table flat dense wrap-cells binary-state-sort hide-no-data row-key="key" :rows="rows" :columns="columns"
        :pagination="pagination" @update:pagination="() => {}" :rows-per-page-options="[pagination.rowsPerPage]" :pagination-label="pageLabel"
        :hide-pagination="pagination.rowsNumber <= pagination.rowsPerPage" @request="$emit('request', $event.pagination)"
        :selection="selectable ? 'multiple' : 'none'" :selected="selected" @update:selected="select">
        <template #header-cell="head">
          <q-th :props="head" scope="col" :aria-sort="order(head.col)">
            <button v-if="head.col.sortable" type="button">{{ head.col.label }}</button>
            <template v-else>{{ head.col.label }}</template>
          </q-th>
        </template>
        <template #body-cell="cell">
          <q-td :props="cell" :class="cell.value.tone ? 'pm-' + cell.value.tone : null"
            :data-label="cell.col.label" :title="cell.value.hint || null">
            <a v-if="cell.value.href" :href="cell.value.href">{{ cell.value.text }}</a>
            <span v-else class="pm-cell">{{ cell.value.text }}</span>
            <span v-if="cell.value.share != null" class="pm-bar" aria-hidden="true"
              ><span :style="{ width: 100 * cell.value.share + '%' }"></span></span>
          </q-td>
        </template>
        <template #header-selection="all"><q-checkbox v-model="all.selected" dense aria-label="Select all shown" /></template>
        <template #body-selection="one"><q-checkbox v-model="one.selected" dense :aria-label="'Select ' + one.key" /></template>
        <template #bottom-row v-if="!rows.length"><tr><td class="pm-empty" colspan="100%">{{ empty }}</td></tr></template>
      </q-table>
    </section>
  `,
  props: {
    label: String,
    columns: Array,
    rows: Array,
    pagination: Object,
    all: Number,
    searchable: Boolean,
    selectable: Boolean,
    empty: String,
  },
  emits: ["request", "search", "select"],
  data: () => ({ query: "", waiting: null, selected: [] }),
  computed: {
    counted() {
      const [found, all] = [this.pagination.rowsNumber.toLocaleString("en"), this.all.toLocaleString("en")];
      return found === all ? all : `${found} of ${all}`;
    },
  },
  methods: {
    // Quasar's header cells take clicks alone; the button makes sorting work by keyboard.
    order(column) {
      if (column.name !== this.pagination.sortBy) return null;
      return this.pagination.descending ? "descending" : "ascending";
    },
    pageLabel: (first, last, all) => `${first}–${last} of ${all.toLocaleString("en")}`,
    search(text) {
      this.query = text;
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.$emit("search", text), 150);
    },
    select(rows) {
      this.selected = rows;
      this.$emit("select", rows.map((row) => row.key));
    },
  },
};
