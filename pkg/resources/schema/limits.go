package schema

// maxRefusal limits the text of a refusal, in bytes: it is kept in memory in place of the
// spec, and quotes values that a tenant wrote.
const maxRefusal = 1 << 10
