/** The first statement of a transaction in which every statement sees the database as of the second statement. */
export const repeatableRead = "set transaction isolation level repeatable read"

/** Like `repeatableRead`, for a transaction that changes nothing. */
export const repeatableReadReadOnly = `${repeatableRead}, read only`
