import type { Reported } from "./measurement.ts"

interface Report {
  readonly at: string
  readonly commit: string
  readonly processors: string
  readonly database: string
  readonly node: string
  readonly rows: ReadonlyArray<Reported>
}

const escape = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)

const left = 330
const unit = 160 // the length of a bar that is just what its row has to reach
const longest = 3
const rowHeight = 22
const top = 58
const width = left + unit * longest + 290

/** How good a value is: 1 is what the row has to reach, more is better, whichever way the row counts. */
const scoreOf = ({ at_least, at_most }: Reported, value: number): number =>
  at_least === undefined ? at_most! / value : value / at_least

const x = (score: number): number => Math.round(left + unit * Math.min(score, longest))

const colours = { aim: "#2e7d32", met: "#7cb342", missed: "#c62828" }

const bar = (row: Reported, index: number): string => {
  const y = top + index * rowHeight
  const bound = row.at_least === undefined ? `≤ ${row.at_most}` : `≥ ${row.at_least}`
  const title = `<text x="${left - 8}" y="${y + 11}" text-anchor="end">${escape(row.title)}</text>`
  if (row.measured === null) return `${title}<text x="${left + 6}" y="${y + 11}">not measured</text>`
  const colour = row.aim_met ? colours.aim : row.met ? colours.met : colours.missed
  const [from, to] = [scoreOf(row, row.min!), scoreOf(row, row.max!)].sort((a, b) => a - b)
  const aim = x(scoreOf(row, row.aim!))
  return [
    title,
    `<rect x="${left}" y="${y}" width="${x(scoreOf(row, row.measured)) - left}" height="14" fill="${colour}"/>`,
    `<path d="M${x(from!)} ${y + 7}H${x(to!)}" stroke="#000" stroke-opacity="0.6"/>`,
    `<path d="M${aim} ${y - 2}v18" stroke="#555" stroke-dasharray="2 2"/>`,
    `<text x="${left + unit * longest + 8}" y="${y + 11}">${row.measured} (${bound}, aim ${row.aim}) ${escape(row.unit)}</text>`
  ].join("")
}

/** Every row with a goal as a bar, in units of what it has to reach, with its spread and its aim. */
export const chart = (report: Report): string => {
  const rows = report.rows.filter((row) => row.aim !== undefined || row.fault !== undefined)
  const height = top + rows.length * rowHeight + 12
  const about = `${report.commit}, ${report.at.slice(0, 10)}; Node ${report.node}, ${report.database}, ${report.processors}`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">
<rect width="${width}" height="${height}" fill="#fff"/>
<text x="12" y="20" font-size="14">Measured, in units of what each row has to reach (longer is better; dashes: the aim; thin line: spread)</text>
<text x="12" y="38" fill="#555">${escape(about)}</text>
<path d="M${left + unit} ${top - 8}V${height - 8}" stroke="#000"/>
${rows.map(bar).join("\n")}
</svg>
`
}
