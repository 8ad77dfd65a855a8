// The controls above the map: how it is drawn, and which queues are shown.

export const FilterBar = {
  template: `
    <div class="qm-bar">
      <div class="qm-views" role="radiogroup" aria-label="View">
        <label v-for="[value, name] in views" :key="value"><input type="radio" :name="group" :value="value" :checked="view === value"
          @change="$emit('view', value)"><span>{{ name }}</span></label>
      </div>
      <label v-for="[name, title, values] in choices" :key="name" class="qm-choice">
        <span>{{ title }}</span>
        <select :value="filter[name]" @change="$emit('filter', { ...filter, [name]: $event.target.value })">
          <option value="">all</option>
          <option v-for="value in values" :key="value" :value="value">{{ value }}</option>
        </select>
      </label>
      <label class="qm-check"><input type="checkbox" :checked="filter.problems"
        @change="$emit('filter', { ...filter, problems: $event.target.checked })"> only problems</label>
      <span class="qm-shown" role="status">{{ shown.toLocaleString("en") }}<template v-if="shown !== total"> of {{ total.toLocaleString("en") }}</template> queues</span>
    </div>
  `,
  props: { view: String, filter: Object, topics: Array, brokers: Array, members: Array, shown: Number, total: Number },
  emits: ["view", "filter"],
  data: () => ({
    group: `qm-view-${Math.random().toString(36).slice(2)}`,
    views: [["auto", "Auto"], ["matrix", "Matrix"], ["tiles", "Tiles"], ["table", "Table"]],
  }),
  computed: {
    choices() {
      return [
        ["topic", "Topic", this.topics],
        ["broker", "Broker", this.brokers],
        ["member", "Member", this.members.map((each) => each.name)],
      ];
    },
  },
};
