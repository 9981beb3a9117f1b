import { toTextArray } from "../connection/EncodedTexts.ts"
import type { Statement } from "../connection/Query.ts"
import { contentColumns, type ImportTable, importColumns, spooledColumns } from "./ContentTables.ts"
import type { RowBatch } from "./RowSpool.ts"

/** The setting of the transaction that holds the workspace of an import's content. */
const workspaceSetting = "prompt_retrieval.staged_workspace"

/** Sets the workspace `$1` of the content that the transaction imports. */
export const setWorkspace = `select set_config('${workspaceSetting}', $1, true)`

/** Returns the expression for a column of a table, where every column of the row `r` is a text. */
export const fromText = (table: ImportTable, name: string, type: string): string => {
  if (name === "key_hash") return "decode(r.key_hash, 'hex')"
  if (name === "workspace_id" && table in contentColumns)
    return `current_setting('${workspaceSetting}')::uuid`
  return type === "text" ? `r.${name}` : `r.${name}::${type}`
}

/**
 * Returns the table expression for the rows `r` of a batch. The parameters from `$first` are its columns and the
 * number of rows before it.
 */
export const batchRows = (table: ImportTable, first = 1): string => {
  const columns = spooledColumns(table)
  const arrays = columns.map((_, index) => `$${first + index}::text[]`)
  return `(select ${columns}, ($${first + columns.length}::integer + n - 1)::integer as ordinal
    from unnest(${arrays}) with ordinality u (${columns}, n)) r`
}

/** Returns the parameters of `batchRows`. */
export const toParams = ({ columns, rowsBefore }: RowBatch): ReadonlyArray<unknown> => [
  ...columns.map(toTextArray),
  rowsBefore
]

/** Inserts a batch into a table. */
export const insertBatch = (table: ImportTable, batch: RowBatch): Statement => {
  const columns = Object.entries(importColumns[table])
  const values = columns.map(([name, type]) => fromText(table, name, type))
  return {
    text: `insert into ${table} (${columns.map(([name]) => name)}) select ${values} from ${batchRows(table)}`,
    params: toParams(batch)
  }
}
