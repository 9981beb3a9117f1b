import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { InvalidContent } from "../../../../domain/workspace/Problem.ts"
import { describeSqlError, sqlState } from "../driver/SqlErrors.ts"

/** The prefix of the temporary tables of an import, which PostgreSQL's messages name instead of the real tables. */
export const stagedTablePrefix = "prompt_retrieval_staged_"

/** Returns true for errors of class 22 and 23: PostgreSQL cannot store a value, or the value violates a constraint. */
export const isConstraintViolation = (error: unknown): error is SqlError =>
  isSqlError(error) && /^2[23]/.test(sqlState(error))

/** Returns the error for content that violates a constraint which the archive's reader does not check. */
export const toInvalidContent = (error: SqlError): InvalidContent =>
  InvalidContent([
    {
      path: "",
      message: `cannot be stored: ${describeSqlError(error).replaceAll(`"${stagedTablePrefix}`, '"')}`
    }
  ])
