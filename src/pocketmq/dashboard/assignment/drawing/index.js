// The map's parts, for the components beside this folder.
export { FilterBar } from "./filter_bar.js";
export { codeOf, colourOf, readTheme } from "./colours.js";
export { at, placeOf, plan } from "./layout.js";
export { paint } from "./paint.js";
export { QueueTable } from "./queue_table.js";
export { NO_OWNER, UNKNOWN_OWNER, SEVERAL, hasProblem, ordered, shownPositions, short, stateOf } from "./queues.js";
