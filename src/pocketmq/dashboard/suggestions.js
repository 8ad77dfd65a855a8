// Suggestions of an input: one element for all of them, however many.
export default {
  template: `<datalist><option v-for="word in words" :key="word" :value="word"></option></datalist>`,
  props: { words: Array },
};
