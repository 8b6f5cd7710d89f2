/** Charts as SVG that stand alone: readable on a light page and on a dark one, without a script or a font of their own. */

const WIDTH = 720;
const MARGIN = { top: 64, right: 24, bottom: 48, left: 132 };
const SERIES = ["a", "b", "c", "d"];

const STYLE = `
.page { fill: #ffffff; stroke: #d0d7de; }
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 15px; }
.faint { fill: #59636e; }
.grid { stroke: #d0d7de; }
.a { fill: #0b63c5; stroke: #0b63c5; } .b { fill: #b35900; stroke: #b35900; }
.c { fill: #1a7f4b; stroke: #1a7f4b; } .d { fill: #8250b8; stroke: #8250b8; }
.line { fill: none; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
.page { fill: #12161c; stroke: #3d444d; }
text { fill: #e6edf3; }
.faint { fill: #9ba6b2; }
.grid { stroke: #3d444d; }
.a { fill: #5aa9ff; stroke: #5aa9ff; } .b { fill: #f0933c; stroke: #f0933c; }
.c { fill: #4cc38a; stroke: #4cc38a; } .d { fill: #c297ff; stroke: #c297ff; }
}`;

interface Titles {
  readonly title: string;
  /** What the values are, with their unit. */
  readonly subtitle: string;
  readonly series: readonly string[];
}

export interface BarChart extends Titles {
  /** From the top down; a value for each series, null where there is none. */
  readonly groups: readonly { readonly name: string; readonly values: readonly (number | null)[] }[];
}

export interface LineChart extends Titles {
  /** What the positions are; they and the values are drawn on logarithmic scales. */
  readonly xName: string;
  readonly points: readonly (readonly { readonly x: number; readonly y: number }[])[];
}

/** Horizontal bars, each with its value. */
export function barChartSvg({ groups, ...titles }: BarChart): string {
  const [bar, gap] = [15, 14];
  const groupHeight = titles.series.length * bar + gap;
  const height = MARGIN.top + groups.length * groupHeight + 16;
  const most = Math.max(...groups.flatMap(({ values }) => values.map((value) => value ?? 0)));
  const scale = (WIDTH - MARGIN.left - MARGIN.right - 56) / most;
  const bars = groups.flatMap(({ name, values }, at) => {
    const top = MARGIN.top + at * groupHeight;
    const middle = top + (titles.series.length * bar) / 2 + 4;
    return [
      textAt(MARGIN.left - 10, middle, name, `text-anchor="end"`),
      ...values.flatMap((value, series) => {
        if (value === null) return [];
        const y = top + series * bar;
        const width = Math.max(1, value * scale);
        return [
          `<rect class="${SERIES[series]}" x="${MARGIN.left}" y="${y}" width="${round(width)}" height="${bar - 3}" rx="2"/>`,
          textAt(MARGIN.left + width + 6, y + bar - 4, short(value), `class="faint" style="font-size:11px"`),
        ];
      }),
    ];
  });
  return svgOf(height, titles, bars);
}

/** Lines over logarithmic scales, with a mark at each measured point. */
export function lineChartSvg({ points, xName, ...titles }: LineChart): string {
  const height = 400;
  const top = MARGIN.top + 18;
  const all = points.flat();
  const xs = [...new Set(all.map(({ x }) => x))].toSorted((a, b) => a - b);
  const [xMin = 1, xMax = 10] = [xs[0], xs.at(-1)];
  const ys = ticksFor(all.map(({ y }) => y));
  const [yMin = 1, yMax = 10] = [ys[0], ys.at(-1)];
  const left = 72;
  const xAt = (x: number) => left + share(x, xMin, xMax) * (WIDTH - left - MARGIN.right - 16);
  const yAt = (y: number) => height - MARGIN.bottom - share(y, yMin, yMax) * (height - top - MARGIN.bottom);
  const grid = ys.flatMap((y) => [
    `<line class="grid" x1="${left}" x2="${WIDTH - MARGIN.right}" y1="${round(yAt(y))}" y2="${round(yAt(y))}"/>`,
    textAt(left - 8, yAt(y) + 4, short(y), `text-anchor="end" class="faint"`),
  ]);
  const labels = xs.map((x) => textAt(xAt(x), height - 26, short(x), `text-anchor="middle" class="faint"`));
  const name = textAt(WIDTH / 2, height - 8, xName, `text-anchor="middle" class="faint"`);
  const lines = points.flatMap((line, series) => [
    `<polyline class="line ${SERIES[series]}" style="fill:none" points="${line.map(({ x, y }) => `${round(xAt(x))},${round(yAt(y))}`).join(" ")}"/>`,
    ...line.map(({ x, y }) => `<circle class="${SERIES[series]}" cx="${round(xAt(x))}" cy="${round(yAt(y))}" r="4"/>`),
  ]);
  return svgOf(height, titles, [...grid, ...labels, name, ...lines]);
}

function svgOf(height: number, { title, subtitle, series }: Titles, content: readonly string[]): string {
  let x = 20;
  const legend = series.flatMap((name, at) => {
    const parts = [
      `<rect class="${SERIES[at]}" x="${x}" y="44" width="11" height="11" rx="2"/>`,
      textAt(x + 16, 54, name, `class="faint"`),
    ];
    x += 34 + name.length * 7;
    return parts;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(title)}">`,
    `<style>${STYLE}\n</style>`,
    `<rect class="page" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>`,
    textAt(20, 24, title, `class="title"`),
    textAt(WIDTH - 20, 24, subtitle, `text-anchor="end" class="faint"`),
    ...legend,
    ...content,
    "</svg>\n",
  ].join("\n");
}

function textAt(x: number, y: number, text: string, attributes: string): string {
  return `<text x="${round(x)}" y="${round(y)}" ${attributes}>${escaped(text)}</text>`;
}

/** Where a value lies between two others, on a logarithmic scale. */
function share(value: number, from: number, to: number): number {
  return Math.log(value / from) / Math.log(to / from);
}

/** Numbers beginning with 1, 2 and 5 around all values. */
function ticksFor(values: readonly number[]): readonly number[] {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const decade = Math.floor(Math.log10(least));
  const ticks = Array.from({ length: 24 }, (_, n) => ([1, 2, 5][n % 3] ?? 1) * 10 ** (decade + Math.floor(n / 3)));
  const first = ticks.findLastIndex((tick) => tick <= least);
  return ticks.slice(first, ticks.findIndex((tick) => tick >= most) + 1);
}

function short(value: number): string {
  if (value >= 1_000_000) return `${round(value / 1_000_000)} M`;
  if (value >= 10_000) return `${round(value / 1_000)} k`;
  return String(value >= 100 ? Math.round(value) : Number(value.toPrecision(2)));
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
