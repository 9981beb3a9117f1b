/**
 * Returns a lateral FROM item that selects the row of a table by id. The caller compares other columns, such as the
 * workspace, outside this item: OFFSET 0 keeps PostgreSQL from searching by those columns. If most workspaces have a
 * few rows, PostgreSQL would otherwise read all rows of the workspace for each id.
 */
export const findById = (table: string, id: string, columns: ReadonlyArray<string>): string =>
  `lateral (select id, ${columns.join(", ")} from ${table} where id = ${id} offset 0)`
