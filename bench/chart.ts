import type { ReportRow } from "./measurement.ts"

/** Where and when a benchmark ran. */
interface Provenance {
  readonly at: string
  readonly commit: string
  readonly processors: string
  readonly database: string
  readonly node: string
}

interface Report extends Provenance {
  readonly rows: ReadonlyArray<ReportRow>
}

export const escapeXml = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)

export const formatCaption = ({ commit, at, node, database, processors }: Provenance): string =>
  `${commit}, ${at.slice(0, 10)}; Node ${node}, ${database}, ${processors}`

const left = 330
const unit = 160 // the length of the bar of a row that just meets its bound
const maxScore = 3
const rowHeight = 22
const top = 58
const width = left + unit * maxScore + 290

/** Returns the score of a value: 1 just meets the row's bound, and more is better for both kinds of bound. */
const computeScore = ({ at_least, at_most }: ReportRow, value: number): number =>
  at_least === undefined ? at_most! / value : value / at_least

const toX = (score: number): number => Math.round(left + unit * Math.min(score, maxScore))

const colors = { aim: "#2e7d32", met: "#7cb342", missed: "#c62828" }

const drawBar = (row: ReportRow, index: number): string => {
  const y = top + index * rowHeight
  const bound = row.at_least === undefined ? `≤ ${row.at_most}` : `≥ ${row.at_least}`
  const title = `<text x="${left - 8}" y="${y + 11}" text-anchor="end">${escapeXml(row.title)}</text>`
  if (row.measured === null) return `${title}<text x="${left + 6}" y="${y + 11}">not measured</text>`
  const color = row.aim_met ? colors.aim : row.met ? colors.met : colors.missed
  const [from, to] = [computeScore(row, row.min!), computeScore(row, row.max!)].sort((a, b) => a - b)
  const aim = toX(computeScore(row, row.aim!))
  return [
    title,
    `<rect x="${left}" y="${y}" width="${toX(computeScore(row, row.measured)) - left}" height="14" fill="${color}"/>`,
    `<path d="M${toX(from!)} ${y + 7}H${toX(to!)}" stroke="#000" stroke-opacity="0.6"/>`,
    `<path d="M${aim} ${y - 2}v18" stroke="#555" stroke-dasharray="2 2"/>`,
    `<text x="${left + unit * maxScore + 8}" y="${y + 11}">${row.measured} (${bound}, aim ${row.aim}) ${escapeXml(row.unit)}</text>`
  ].join("")
}

/** Draws every row with a goal as a bar, in units of its bound, with its spread and its aim. */
export const drawChart = (report: Report): string => {
  const rows = report.rows.filter((row) => row.aim !== undefined || row.fault !== undefined)
  const height = top + rows.length * rowHeight + 12
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">
<title>Benchmark results in units of each row's goal</title>
<rect width="${width}" height="${height}" fill="#fff"/>
<text x="12" y="20" font-size="14">Measured, in units of each row's bound (longer is better; dashed line: aim; thin line: spread)</text>
<text x="12" y="38" fill="#555">${escapeXml(formatCaption(report))}</text>
<path d="M${left + unit} ${top - 8}V${height - 8}" stroke="#000"/>
${rows.map(drawBar).join("\n")}
</svg>
`
}
