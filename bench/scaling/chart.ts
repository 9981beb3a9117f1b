import { escapeXml, formatCaption } from "../chart.ts"
import { edgeLocations, edgeRates } from "./edge.ts"
import { findProcesses, findStandby, type Report } from "./report.ts"
import { processCounts, requestKinds } from "./instances.ts"

interface Series {
  readonly name: string
  readonly values: ReadonlyArray<number>
}

/** One diagram: lines over categories at equal distances. */
interface Panel {
  readonly title: string
  /** The name of the categories. */
  readonly axis: string
  readonly categories: ReadonlyArray<string>
  readonly series: ReadonlyArray<Series>
  /** A linear scale begins at 0. */
  readonly scale: "linear" | "logarithmic"
}

const [panelWidth, panelHeight] = [370, 290]
const [plotLeft, plotTop, plotWidth, plotHeight] = [52, 34, 300, 150]
const columns = 3
const top = 56
const colors = ["#1565c0", "#c62828", "#2e7d32", "#ef6c00", "#6a1b9a"]

const formatValue = (value: number): string => Number(value.toPrecision(2)).toLocaleString("en")

/** Returns the marks of a scale that contains all values, the least one first. */
const makeMarks = (values: ReadonlyArray<number>, scale: Panel["scale"]): ReadonlyArray<number> => {
  const greatest = Math.max(...values)
  if (scale === "logarithmic") {
    const first = Math.floor(Math.log10(Math.min(...values)))
    const last = Math.ceil(Math.log10(greatest))
    return Array.from({ length: Math.max(1, last - first) + 1 }, (_, index) => 10 ** (first + index))
  }
  const power = 10 ** Math.floor(Math.log10(greatest))
  const step = [0.2, 0.5, 1, 2].map((factor) => factor * power).find((step) => greatest / step <= 5)!
  return Array.from({ length: Math.ceil(greatest / step) + 1 }, (_, index) => index * step)
}

const drawPanel = ({ title, axis, categories, series, scale }: Panel, index: number): string => {
  const marks = makeMarks(
    series.flatMap(({ values }) => values),
    scale
  )
  const toScale = (value: number) => (scale === "linear" ? value : Math.log10(value))
  const [least, greatest] = [toScale(marks[0]!), toScale(marks.at(-1)!)]
  const toY = (value: number) =>
    Math.round(plotTop + plotHeight * (1 - (toScale(value) - least) / (greatest - least)))
  const toX = (category: number) => Math.round(plotLeft + (plotWidth * (category + 0.5)) / categories.length)
  const grid = marks.map(
    (mark) =>
      `<path d="M${plotLeft} ${toY(mark)}h${plotWidth}" stroke="#ddd"/><text x="${plotLeft - 6}" y="${toY(mark) + 4}" text-anchor="end">${formatValue(mark)}</text>`
  )
  const labels = categories.map(
    (category, place) =>
      `<text x="${toX(place)}" y="${plotTop + plotHeight + 16}" text-anchor="middle">${escapeXml(category)}</text>`
  )
  const lines = series.map(({ name, values }, place) => {
    const color = colors[place]!
    const points = values.map((value, category) => `${toX(category)} ${toY(value)}`)
    const dots = points.map((point) => {
      const [x, y] = point.split(" ")
      return `<circle cx="${x}" cy="${y}" r="3" fill="${color}"/>`
    })
    const y = plotTop + plotHeight + 50 + 14 * place
    return `<path d="M${points.join("L")}" fill="none" stroke="${color}" stroke-width="1.5"/>${dots.join("")}<rect x="${plotLeft}" y="${y - 9}" width="10" height="10" fill="${color}"/><text x="${plotLeft + 16}" y="${y}">${escapeXml(name)}</text>`
  })
  const [x, y] = [(index % columns) * panelWidth, top + Math.floor(index / columns) * panelHeight]
  return `<g transform="translate(${x} ${y})">
<text x="${plotLeft}" y="${plotTop - 14}" font-weight="bold">${escapeXml(title)}</text>
${grid.join("")}
${labels.join("")}<text x="${plotLeft + plotWidth / 2}" y="${plotTop + plotHeight + 32}" text-anchor="middle" fill="#555">${escapeXml(axis)}</text>
${lines.join("\n")}
</g>`
}

const formatCount = (value: number): string => value.toLocaleString("en")

/** Returns the diagrams that a report has the measurements for. */
const makePanels = (report: Report): ReadonlyArray<Panel> => {
  const { processes, standby, workspaces, prompts, edge } = report
  const panels: Array<Panel> = []
  if (processes.length > 0)
    panels.push({
      title: "CPU time of the services per request, µs",
      axis: "processes",
      categories: processCounts.map(String),
      series: requestKinds.map((kind) => ({
        name: `${kind} requests`,
        values: processCounts.map((count) => findProcesses(report, kind, count).steady.serviceCpu)
      })),
      scale: "linear"
    })
  if (standby.length > 0) {
    const rows = [findStandby(report, "uncached", false), findStandby(report, "uncached", true)]
    panels.push({
      title: "CPU time per uncached request, µs",
      axis: "PostgreSQL servers",
      categories: ["primary", "primary + standby"],
      series: [
        { name: "primary", values: rows.map(({ databaseCpu }) => databaseCpu[0]!) },
        { name: "standby", values: rows.map(({ databaseCpu }) => databaseCpu[1]!) },
        { name: "service", values: rows.map(({ serviceCpu }) => serviceCpu) }
      ],
      scale: "linear"
    })
  }
  if (workspaces.length > 0) {
    const categories = workspaces.map(({ workspaces }) => formatCount(workspaces))
    panels.push({
      title: "First read of a prompt by a key",
      axis: "workspaces",
      categories,
      series: [
        { name: "p50, µs", values: workspaces.map(({ firstReads }) => firstReads.p50 * 1000) },
        {
          name: "CPU time of the service, µs",
          values: workspaces.map(({ firstReads }) => firstReads.serviceCpu)
        },
        {
          name: "CPU time of PostgreSQL, µs",
          values: workspaces.map(({ firstReads }) => firstReads.databaseCpu[0]!)
        }
      ],
      scale: "linear"
    })
    panels.push({
      title: "Memory and disk",
      axis: "workspaces",
      categories,
      series: [
        { name: "memory of the process, MiB", values: workspaces.map(({ memory }) => memory) },
        { name: "database, MiB", values: workspaces.map(({ database }) => database) }
      ],
      scale: "logarithmic"
    })
  }
  if (prompts.length > 0)
    panels.push({
      title: "Reads in one workspace, ms",
      axis: "prompts in the workspace",
      categories: prompts.map(({ prompts }) => formatCount(prompts)),
      series: [
        { name: "first read of a prompt", values: prompts.map(({ firstReads }) => firstReads.p50) },
        { name: "first list page", values: prompts.map(({ firstPage }) => firstPage) },
        { name: "last list page", values: prompts.map(({ lastPage }) => lastPage) },
        { name: "first list page after an edit", values: prompts.map((row) => row.firstPageAfterEdit) },
        { name: "last list page after an edit", values: prompts.map((row) => row.lastPageAfterEdit) }
      ],
      scale: "logarithmic"
    })
  panels.push({
    title: "Requests that a cache sends to the service, %",
    axis: "requests per second",
    categories: edgeRates.map(formatCount),
    series: edgeLocations.map((locations) => ({
      name: `${locations} ${locations === 1 ? "cache" : "separate caches"} (computed)`,
      values: edge.filter((row) => row.locations === locations).map(({ origin }) => origin * 100)
    })),
    scale: "linear"
  })
  return panels
}

/** Draws the results of the scaling benchmark. */
export const drawScalingChart = (report: Report): string => {
  const panels = makePanels(report)
  const width = columns * panelWidth
  const height = top + Math.ceil(panels.length / columns) * panelHeight
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">
<title>Costs by number of processes, workspaces, prompts and requests</title>
<rect width="${width}" height="${height}" fill="#fff"/>
<text x="12" y="20" font-size="14">Costs by number of processes, workspaces, prompts and requests</text>
<text x="12" y="38" fill="#555">${escapeXml(formatCaption(report))}</text>
${panels.map(drawPanel).join("\n")}
</svg>
`
}
