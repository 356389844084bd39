// Small drawings, of strokes.
import { svg } from "./dom.js";

const paths = {
  group: "M12 4a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM5.5 15a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM18.5 15a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM10.7 8.7 6.8 15.2M13.3 8.7l3.9 6.5M8 17.5h8",
  activity: "M3 12h4l2.5-7 5 14 2.5-7h4",
  statements: "M4 6h16M4 12h11M4 18h7",
  storage: "M4 6c0-1.7 3.6-3 8-3s8 1.3 8 3-3.6 3-8 3-8-1.3-8-3zM4 6v12c0 1.7 3.6 3 8 3s8-1.3 8-3V6M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M14 7a2 2 0 1 0 4 0 2 2 0 0 0-4 0zM6 17a2 2 0 1 0 4 0 2 2 0 0 0-4 0z",
  tables: "M4 5h16v14H4zM4 10h16M10 10v9",
  sql: "M5 7l5 5-5 5M12 18h7",
  light: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.6l1.1 1.1M17.3 17.3l1.1 1.1M18.4 5.6l-1.1 1.1M6.7 17.3l-1.1 1.1",
  dark: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z",
  leave: "M14 4H6v16h8M11 12h10M18 8.5l3.5 3.5-3.5 3.5",
};

export const icon = (name) => svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: paths[name] }));
