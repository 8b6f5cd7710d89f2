/**
 * Draws the charts of bench/README.md from the figures that the other benches kept with `--json`.
 *
 *   bun bench/charts.ts
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { readFigures } from "./parts/figures.ts";
import { barChartSvg, lineChartSvg } from "./parts/svg.ts";

const CHARTS = join(import.meta.dir, "charts");

interface PeerFigure {
  readonly name: string;
  readonly scheme: string;
  readonly completedPerS: number;
  readonly share: number;
}

interface SizeFigure {
  readonly name: string;
  readonly rows: number;
  readonly cpuUs: number;
}

interface RateFigure {
  readonly name: string;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

draw("peers", peers());
draw("growth", growth());
draw("latency", latency());

function draw(name: string, svg: string): void {
  writeFileSync(join(CHARTS, `${name}.svg`), svg);
  console.log(`bench/charts/${name}.svg`);
}

/** Shares of Outgate's own rate over the same scheme, those of http first. */
function peers(): string {
  const figures = readFigures("results/peers.json") as readonly PeerFigure[];
  const names = [...new Set(figures.map(({ name }) => name))];
  const shareOf = (name: string, scheme: string) =>
    figures.find((figure) => figure.name === name && figure.scheme === scheme)?.share ?? null;
  const groups = names
    .map((name) => ({ name, values: [shareOf(name, "http"), shareOf(name, "https")] }))
    .toSorted((a, b) => (b.values[0] ?? 0) - (a.values[0] ?? 0));
  return barChartSvg({
    title: "Throughput beside others",
    subtitle: "completed calls per second, Outgate = 1",
    series: ["http", "https"],
    groups,
  });
}

function growth(): string {
  const figures = readFigures("results/growth.json") as readonly SizeFigure[];
  const series = [...new Set(figures.map(({ name }) => name))];
  const points = series.map((name) =>
    figures.filter((figure) => figure.name === name).map(({ rows, cpuUs }) => ({ x: rows, y: cpuUs })),
  );
  return lineChartSvg({
    title: "Cost against the size of the table",
    subtitle: "microseconds of the processor each",
    xName: "rows of the table",
    series,
    points,
  });
}

function latency(): string {
  const figures = readFigures("results/latency.json") as readonly RateFigure[];
  const near = figures.filter(({ name }) => name === "http" || name === "https");
  const schemes = ["http", "https"];
  const points = schemes.flatMap((scheme) => {
    const line = near.filter(({ name }) => name === scheme);
    return [
      line.map(({ perSecond, p50Ms }) => ({ x: perSecond, y: p50Ms })),
      line.map(({ perSecond, p99Ms }) => ({ x: perSecond, y: p99Ms })),
    ];
  });
  return lineChartSvg({
    title: "From the caller to the target",
    subtitle: "milliseconds",
    xName: "actions created per second",
    series: schemes.flatMap((scheme) => [`${scheme} p50`, `${scheme} p99`]),
    points,
  });
}
