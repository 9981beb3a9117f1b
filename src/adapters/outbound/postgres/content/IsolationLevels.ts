/** The first statement of a transaction whose statements all see the state at the second one. */
export const repeatableRead = "set transaction isolation level repeatable read"

/** Like `repeatableRead`, for a transaction that changes nothing. */
export const repeatableReadReadOnly = `${repeatableRead}, read only`
